//! The `capstan-mysql` command: real MySQL servers by hand.

mod capture;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use capstan_mysql::{Flavour, LaunchError, Mysql, Server, Session, stop_detached};

const USAGE: &str = "\
capstan-mysql: real MySQL servers beside the system, for tests and demos

  capstan-mysql fetch [mysql|mysql56|mariadb|all]   brings a server into the cache folder, if it is not there
  capstan-mysql start [OPTIONS]                     starts one, prints where it is, serves until Ctrl-C
      --flavour mysql|mysql56|mariadb               the kind of server (mysql)
      --option --NAME=VALUE                         an option of mysqld; may be given more than once
      --port PORT                                   that port (a free one)
      --durable                                     flush every commit to the disk
      --detach                                      return at once; `stop` ends it
  capstan-mysql stop DIR                            ends a detached server and removes its folder
  capstan-mysql sql DIR|URL [SQL]                   runs statements (standard input without SQL) and prints the rows
  capstan-mysql capture FIXTURES [NAME …]           captures the repository's fixtures anew (all, or those named)
  capstan-mysql sweep                               ends servers whose starter is gone (each start does this too)

Environment: CAPSTAN_MYSQLD, the mysqld to use; CAPSTAN_MYSQL_CACHE, the cache folder;
CAPSTAN_MYSQL_KEEP, set to keep the folders of ended servers.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(what)) => {
            eprintln!("capstan-mysql: {what}\n\n{USAGE}");
            ExitCode::from(2)
        }
        Err(Failure::Launch(error)) => {
            eprintln!("capstan-mysql: {error}");
            ExitCode::FAILURE
        }
    }
}

enum Failure {
    Usage(String),
    Launch(LaunchError),
}

impl<E: Into<LaunchError>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Launch(error.into())
    }
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["fetch"] => fetch("mysql"),
        ["fetch", flavour] => fetch(flavour),
        ["start", options @ ..] => start(options),
        ["stop", folder] => Ok(stop_detached(Path::new(folder))?),
        ["sql", place] => sql(place, &standard_input()?),
        ["sql", place, statements] => sql(place, statements.as_bytes()),
        ["capture", fixtures, names @ ..] => Ok(capture::capture(Path::new(fixtures), names)?),
        ["sweep"] => {
            capstan_mysql::sweep();
            Ok(())
        }
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        [] => Err(Failure::Usage("a subcommand is needed".to_owned())),
        [unknown, ..] => {
            Err(Failure::Usage(format!("`{unknown}` is not understood, or has too few arguments")))
        }
    }
}

fn fetch(flavour: &str) -> Result<(), Failure> {
    let wanted = if flavour == "all" { Flavour::ALL.to_vec() } else { vec![flavour_named(flavour)?] };
    for flavour in wanted {
        let mysql = Mysql::of(flavour)?;
        println!("{} {}", flavour.name(), mysql.version());
    }
    Ok(())
}

fn start(options: &[&str]) -> Result<(), Failure> {
    let mut builder = Server::builder();
    let mut detach = false;
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let mut value =
            || options.next().copied().ok_or_else(|| Failure::Usage(format!("{option} needs a value")));
        builder = match *option {
            "--flavour" => builder.flavour(flavour_named(value()?)?),
            "--option" => builder.option(value()?),
            "--port" => {
                let port = value()?;
                let number = port.parse().map_err(|_| Failure::Usage(format!("`{port}` is not a port")))?;
                builder.port(number)
            }
            "--durable" => builder.durable(),
            "--detach" => {
                detach = true;
                builder
            }
            unknown => return Err(Failure::Usage(format!("start has no option `{unknown}`"))),
        };
    }
    let server = builder.start()?;
    describe(&server)?;
    if detach {
        server.detach()?;
        return Ok(());
    }
    println!("\nserves until Ctrl-C");
    // Ctrl-C ends this process the plain way; the server's watchdog then ends the server.
    while server.is_running() {
        std::thread::sleep(Duration::from_millis(200));
    }
    Err(Failure::Launch(LaunchError::NotRunning))
}

fn describe(server: &Server) -> Result<(), LaunchError> {
    let ca = server.ca_path();
    let ca = if ca.is_file() { ca.display().to_string() } else { "none".to_owned() };
    let text = format!(
        "version  {}\nhost     {}\nport     {}\nsocket   {}\nfolder   {}\ndata     {}\npid      {}\nca       {ca}\nurl      {}\n",
        server.version(),
        server.host(),
        server.port(),
        server.socket().display(),
        server.folder().display(),
        server.datadir().display(),
        server.pid().map(|pid| pid.to_string()).unwrap_or_default(),
        server.url(),
    );
    print(text.as_bytes())
}

/// A folder is asked through its socket; a URL through the `mysql` program, which knows passwords and TLS.
fn sql(place: &str, statements: &[u8]) -> Result<(), Failure> {
    if let Some(rest) = place.strip_prefix("mysql://") {
        return sql_by_url(rest, statements);
    }
    let socket = PathBuf::from(place).join("sock");
    let mut session = Session::connect(&socket, "root").map_err(LaunchError::from)?;
    Ok(print(capstan_mysql::as_text(&session.query_bytes(statements)?).as_bytes())?)
}

fn sql_by_url(rest: &str, statements: &[u8]) -> Result<(), Failure> {
    let bad = || {
        Failure::Usage("a URL is mysql://USER[:PASSWORD]@HOST[:PORT]/[?ssl-mode=MODE&ssl-ca=FILE]".to_owned())
    };
    let (authority, query) = rest.split_once('/').unwrap_or((rest, ""));
    let (account, address) = authority.rsplit_once('@').ok_or_else(bad)?;
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "3306"));
    let decoded = |text: &str| decode(text).ok_or_else(bad);
    let mut command = Mysql::get()?.program("mysql")?;
    command
        .args(["--batch", "--raw", "--skip-column-names", "--default-character-set=utf8mb4"])
        .args([format!("--user={}", decoded(user)?), format!("--host={host}"), format!("--port={port}")])
        .env("MYSQL_PWD", decoded(password)?); // not on the command line, which others can read
    for pair in query.trim_start_matches('?').split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').ok_or_else(bad)?;
        command.arg(match key {
            "ssl-mode" => format!("--ssl-mode={}", value.to_uppercase().replace('-', "_")),
            "ssl-ca" => format!("--ssl-ca={}", decoded(value)?),
            unknown => return Err(Failure::Usage(format!("the URL's key `{unknown}` is not known here"))),
        });
    }
    let mut child = command.stdin(Stdio::piped()).spawn().map_err(io("mysql"))?;
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(statements); // a client that ended early says why itself
    }
    if child.wait().map_err(io("mysql"))?.success() {
        return Ok(());
    }
    Err(Failure::Launch(LaunchError::Program { name: "mysql".to_owned(), output: "see above".to_owned() }))
}

fn flavour_named(name: &str) -> Result<Flavour, Failure> {
    Flavour::from_name(name)
        .ok_or_else(|| Failure::Usage(format!("`{name}` is not mysql, mysql56 or mariadb")))
}

fn standard_input() -> Result<Vec<u8>, LaunchError> {
    let mut statements = Vec::new();
    std::io::stdin().read_to_end(&mut statements).map_err(io("standard input"))?;
    Ok(statements)
}

fn print(bytes: &[u8]) -> Result<(), LaunchError> {
    let mut out = std::io::stdout();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(io("standard output"))
}

fn io(what: &str) -> impl FnOnce(std::io::Error) -> LaunchError {
    let what = what.to_owned();
    move |source| LaunchError::Io { what, source }
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.contains('+'))?; // "+1" would pass
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_are_read() {
        assert_eq!(decode("p%3Aw/%C3%BC%25").as_deref(), Some("p:w/ü%"));
        for bad in ["%", "%4", "%zz", "%FF", "%+1"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
