//! One script into one or more binlog files, with what the server says about them beside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use capstan_mysql::{LaunchError, Server, Session};

use super::script::{Script, Step};
use super::{SERVER_UUID, failure, io};

/// The scripts of a folder, in the order of their names.
pub(super) fn scripts(folder: &Path) -> Result<Vec<PathBuf>, LaunchError> {
    let entries = fs::read_dir(folder).map_err(io(folder))?;
    let mut scripts: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .collect();
    scripts.sort();
    Ok(scripts)
}

/// Runs the script on a server of its own and writes, beside it, `NAME.binlog` (or `NAME.1.binlog`, …),
/// `NAME.events.tsv` with what `SHOW BINLOG EVENTS` says, and `NAME.tsv` with the truth, if the script asks for it.
pub(super) fn capture(path: &Path, name: &str) -> Result<(), LaunchError> {
    let script = Script::parse(&fs::read(path).map_err(io(path))?)?;
    let server = Server::builder()
        .flavour(script.flavour)
        .option("--server-id=1")
        .server_uuid(SERVER_UUID)
        .options(&script.options)
        .start()?;
    run(&server, &script)?;

    let folder = path.parent().unwrap_or(Path::new("."));
    if let Some(query) = &script.truth {
        let path = folder.join(format!("{name}.tsv"));
        let text = table(&mut server.connect()?, query)?;
        fs::write(&path, text).map_err(io(&path))?;
    }
    let files = server.binlogs()?;
    if !script.in_use {
        server.sql("FLUSH BINARY LOGS")?; // ends the last file; the new one is left out
    }
    let mut events = String::new();
    for (at, file) in files.iter().enumerate() {
        let suffix = if files.len() == 1 { String::new() } else { format!(".{}", at + 1) };
        let target = folder.join(format!("{name}{suffix}.binlog"));
        // Not copied: the server's file may be read by its user only, and so would the copy.
        fs::write(&target, fs::read(file).map_err(io(file))?).map_err(io(&target))?;
        let log_name = file.file_name().unwrap_or_default().to_string_lossy();
        let listed = table(&mut server.connect()?, &format!("SHOW BINLOG EVENTS IN '{log_name}'"))?;
        let skipped = if at == 0 { 0 } else { 1 }; // the column names once
        events.extend(listed.split_inclusive('\n').skip(skipped));
    }
    let path = folder.join(format!("{name}.events.tsv"));
    fs::write(&path, events).map_err(io(&path))
}

fn run(server: &Server, script: &Script) -> Result<(), LaunchError> {
    let mut sessions: BTreeMap<String, Session> = BTreeMap::new();
    let mut current = "main".to_owned();
    for step in &script.steps {
        match step {
            Step::Run { statements, fails } => {
                let session = match sessions.remove(&current) {
                    Some(session) => session,
                    None => server.connect()?,
                };
                let session = sessions.entry(current.clone()).or_insert(session);
                match (session.query_bytes(statements), fails) {
                    (Ok(_), false) | (Err(_), true) => {}
                    (Err(error), false) => return Err(error.into()),
                    (Ok(_), true) => return Err(failure("a statement was to fail and did not".to_owned())),
                }
            }
            Step::Session(name) => current.clone_from(name),
            Step::Close(name) => {
                sessions.remove(name);
                // What the server logs at a disconnect must be there before the next statement.
                while server
                    .sql("SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'root'")?
                    .trim()
                    != (sessions.len() + 1).to_string()
                {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
            }
            Step::Restart => {
                sessions.clear();
                server.restart()?;
            }
            Step::Kill9 => {
                sessions.clear();
                server.kill9()?;
                server.restart()?;
            }
            Step::OldTemporals { schema, table } => make_temporals_old(server, schema, table)?,
        }
    }
    Ok(())
}

/// The rows of a query with their column names first, as `SELECT … INTO OUTFILE` writes them:
/// columns divided by tabs, `\N` for NULL, a backslash before what would be taken for either.
fn table(session: &mut Session, query: &str) -> Result<String, LaunchError> {
    let result = session.query(query)?.pop().ok_or_else(|| failure("no result".to_owned()))?;
    let mut text = result.columns.join("\t");
    text.push('\n');
    for row in result.rows {
        let values: Vec<String> = row.iter().map(|value| escaped(value.as_deref())).collect();
        text.push_str(&values.join("\t"));
        text.push('\n');
    }
    Ok(text)
}

fn escaped(value: Option<&[u8]>) -> String {
    let Some(bytes) = value else { return "\\N".to_owned() };
    let mut text = String::new();
    for c in String::from_utf8_lossy(bytes).chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\0' => text.push_str("\\0"),
            other => text.push(other),
        }
    }
    text
}

/// MySQL 5.6 still reads and logs the temporal types of 5.5 in tables made by 5.5, but makes none. A table's `.frm`
/// holds a type code per column; this turns the codes of TIME, TIMESTAMP and BIGINT (as long as an old DATETIME)
/// into those of the old types while the table is empty. What the server writes from then on is its own.
fn make_temporals_old(server: &Server, schema: &str, table: &str) -> Result<(), LaunchError> {
    const OLD: [(u8, u8); 3] = [(19, 11), (17, 7), (8, 12)]; // TIME2, TIMESTAMP2, LONGLONG: TIME, TIMESTAMP, DATETIME
    server.sql("FLUSH TABLES")?;
    let path = server.datadir().join(schema).join(format!("{table}.frm"));
    let mut frm = fs::read(&path).map_err(io(&path))?;
    let columns: usize = server
        .sql(&format!(
            "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = '{schema}' AND table_name = '{table}'"
        ))?
        .trim()
        .parse()
        .map_err(|_| failure("no columns".to_owned()))?;
    server.sql("FLUSH TABLES")?;
    let fields = fields_of_frm(&frm, columns)
        .ok_or_else(|| failure(format!("{} is not understood", path.display())))?;
    for at in fields {
        if let Some(code) = frm.get_mut(at) {
            *code = OLD.into_iter().find(|(new, _)| new == code).map_or(*code, |(_, old)| old);
        }
    }
    fs::write(&path, frm).map_err(io(&path))
}

/// Where the type codes of a `.frm` lie (`sql/unireg.cc`, `sql/table.cc` of 5.6): the form section's offset follows
/// the names of forms; its head has 288 bytes, then come the screens and 17 bytes for each column with the code at 13.
fn fields_of_frm(frm: &[u8], columns: usize) -> Option<Vec<usize>> {
    let u16_at = |at: usize| Some(usize::from(u16::from_le_bytes(frm.get(at..at + 2)?.try_into().ok()?)));
    let u32_at = |at: usize| usize::try_from(u32::from_le_bytes(frm.get(at..at + 4)?.try_into().ok()?)).ok();
    let names_length = u16_at(4)?;
    let form = u32_at(64 + names_length)?;
    if u16_at(form + 258)? != columns {
        return None;
    }
    let screens_length = u16_at(form + 260)?;
    let first = form + 288 + screens_length;
    Some((0..columns).map(|column| first + column * 17 + 13).collect())
}
