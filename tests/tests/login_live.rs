//! Who may log in, over which encryption, trusting whom; and four answers that must never be one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test says what it expects by panicking"
)]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use capstan::{Code, Halt, Secret, Source, SslMode, SslSettings, Start, Until};
use capstan_mysql::Server;
use capstan_tests::live::{Memory, hasty, replica_at, run};

const GRANTS: &[&str] = &["REPLICATION SLAVE ON *.*", "REPLICATION CLIENT ON *.*"];

/// A server with something to read.
fn server() -> Server {
    let server = Server::start().expect("a server");
    server.sql("CREATE DATABASE d").unwrap();
    server.user("repl", "secret", GRANTS).unwrap();
    server
}

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tls").join(name).display().to_string()
}

/// Logs in, passes the gates, reads to the present and ends; or the halt.
fn reach(url: &str) -> Result<(), Halt> {
    let builder = replica_at(url).start(Start::Earliest).until(Until::Now).limits(hasty());
    let memory = Memory::new();
    let end = run(builder, memory.clone());
    if end.is_ok() {
        assert!(!memory.items().is_empty(), "the stream was read, not only begun");
    }
    end.map(drop)
}

fn reaches(url: &str, why: &str) {
    reach(url).unwrap_or_else(|halt| panic!("{why}: {halt}"));
}

fn refused(url: &str, code: Code, exit: u8) -> Halt {
    let halt = reach(url).expect_err(code.as_str());
    assert_eq!((halt.code, halt.exit_status()), (code, exit), "{url}: {halt}");
    halt
}

fn url(server: &Server, account: &str, settings: &str) -> String {
    format!("mysql://{account}@127.0.0.1:{}/?{settings}", server.port())
}

fn ca(server: &Server) -> String {
    server.ca_path().display().to_string()
}

#[test]
fn encryption_and_whom_it_trusts() {
    let server = server();
    let at = |settings: &str| url(&server, "repl:secret", settings);
    let (ours, other) = (ca(&server), fixture("ca.pem"));

    // The certificate that MySQL makes for itself names no host.
    let named =
        refused(&at(&format!("ssl-mode=verify-identity&ssl-ca={ours}")), Code::CertificateNameMismatch, 3);
    assert!(named.to_string().contains("verify-ca"), "it says the way out: {named}");
    let _ = refused(&at(&format!("ssl-ca={ours}")), Code::CertificateNameMismatch, 3);
    reaches(&at(&format!("ssl-mode=verify-ca&ssl-ca={ours}")), "its own authority");
    let _ = refused(&at(&format!("ssl-mode=verify-ca&ssl-ca={other}")), Code::CertificateUntrusted, 3);
    let _ = refused(&at(&format!("ssl-mode=verify-identity&ssl-ca={other}")), Code::CertificateUntrusted, 3);
    reaches(&at("ssl-mode=required"), "encrypted, whoever it is");

    client_certificates(&server, &ours);

    // A certificate that names the host.
    server
        .restart_with(&[
            &format!("--ssl-ca={other}"),
            &format!("--ssl-cert={}", fixture("server-cert.pem")),
            &format!("--ssl-key={}", fixture("server-key.pem")),
        ])
        .unwrap();
    reaches(&at(&format!("ssl-mode=verify-identity&ssl-ca={other}")), "an address in the certificate");
    let by_name = format!("mysql://repl:secret@localhost:{}/?ssl-ca={other}", server.port());
    reaches(&by_name, "a name in the certificate, and verify-identity is the default");
    let _ = refused(&at(&format!("ssl-mode=verify-identity&ssl-ca={ours}")), Code::CertificateUntrusted, 3);
    // The certificate's common name is not looked at, and another address of this machine is not in it.
    let elsewhere = format!("mysql://repl:secret@127.0.0.2:{}/?ssl-ca={other}", server.port());
    server.restart_with(&["--bind-address=0.0.0.0"]).unwrap();
    let _ = refused(&elsewhere, Code::CertificateNameMismatch, 3);
    reaches(&format!("{elsewhere}&ssl-mode=verify-ca"), "the chain alone");

    // No TLS on offer.
    server.restart_with(&["--tls-version="]).unwrap();
    for mode in ["required", "verify-ca", "verify-identity"] {
        let ca = if mode == "required" { String::new() } else { format!("&ssl-ca={other}") };
        let _ = refused(&at(&format!("ssl-mode={mode}{ca}")), Code::TlsNotOffered, 3);
    }
    reaches(&at("ssl-mode=disabled&allow-public-key-retrieval=true"), "asked for without");
}

/// An account that must show a certificate: the server made one for clients, too.
fn client_certificates(server: &Server, ca: &str) {
    server.user("badge", "secret", GRANTS).unwrap();
    server.sql("ALTER USER badge@'%' REQUIRE X509").unwrap();
    let at =
        |settings: &str| url(server, "badge:secret", &format!("ssl-mode=verify-ca&ssl-ca={ca}{settings}"));
    let denied = refused(&at(""), Code::AccessDenied, 3);
    assert_eq!(denied.server_error, Some(1045));
    let file = |name: &str| server.datadir().join(name).display().to_string();
    let (cert, key) = (file("client-cert.pem"), file("client-key.pem"));
    reaches(&at(&format!("&ssl-cert={cert}&ssl-key={key}")), "with a certificate");
    let _ = refused(
        &at(&format!("&ssl-cert={cert}&ssl-key={}", fixture("server-key.pem"))),
        Code::ConfigInvalid,
        3,
    );
}

/// `caching_sha2_password`: over TLS the password itself goes, over plain TCP only under a key that is trusted.
#[test]
fn keys_passwords_and_plugins() {
    let server = server();
    let pinned = server.folder().join("key.pem");
    std::fs::write(&pinned, server.public_key_pem().unwrap()).unwrap();
    let other = Server::builder().option("--skip-log-bin").start().expect("a second server");
    let stranger = server.folder().join("stranger.pem");
    std::fs::write(&stranger, other.public_key_pem().unwrap()).unwrap();
    drop(other);
    // Once the server has seen the password it needs no key any more, until it forgets.
    let forget = || server.sql("FLUSH PRIVILEGES").map(drop).unwrap();
    let plain = |more: &str| url(&server, "repl:secret", &format!("ssl-mode=disabled{more}"));
    let key = |path: &PathBuf| format!("&server-public-key={}", path.display());

    let _ = refused(&plain(""), Code::ServerKeyNotTrusted, 3);
    reaches(&plain(&key(&pinned)), "a pinned key");
    reaches(&plain(""), "the server knows the password by now");
    forget();
    let _ = refused(&plain(""), Code::ServerKeyNotTrusted, 3);
    let _ = reach(&plain(&key(&stranger))).expect_err("another server's key");
    forget();
    reaches(&plain("&allow-public-key-retrieval=true"), "whatever key it sends");
    forget();
    reaches(&url(&server, "repl:secret", "ssl-mode=required"), "in full, over TLS");

    for settings in ["ssl-mode=required", "ssl-mode=disabled&allow-public-key-retrieval=true"] {
        for account in ["repl:wrong", "repl:", "repl", "nobody:secret", "Repl:secret"] {
            forget();
            let halt = refused(&url(&server, account, settings), Code::AccessDenied, 3);
            assert_eq!(halt.server_error, Some(1045), "{account}: {halt}");
        }
    }
    odd_passwords(&server);
    plugins(&server);
}

/// Every character has a way through the URL, and any bytes a way beside it.
fn odd_passwords(server: &Server) {
    for (n, password) in [
        "p@ss:w/rd?#[]",
        "100%",
        "a b",
        "a+b&c=d",
        "%41",
        "'\"`\\",
        "päßwörd",
        "\u{1f511}",
        ";--",
        "x\ty",
        "",
        &"long".repeat(60),
    ]
    .into_iter()
    .enumerate()
    {
        let user = format!("odd{n}");
        server.user(&user, password, GRANTS).unwrap();
        reaches(&server.url_for(&user, password), password);
        if !password.is_empty() {
            let ssl = SslSettings { mode: SslMode::Required, ..SslSettings::default() };
            let source = Source::new("127.0.0.1", user.as_str())
                .with_port(server.port())
                .with_password(Secret::new(password.as_bytes().to_vec()))
                .with_ssl(ssl);
            let builder = capstan::Replica::builder(source).start(Start::Current).until(Until::Now);
            run(builder, Memory::new()).unwrap_or_else(|halt| panic!("{password}: {halt}"));
            let wrong = server.url_for(&user, &format!("{password}x"));
            assert_eq!(refused(&wrong, Code::AccessDenied, 3).server_error, Some(1045));
        }
    }
    server.user("r@ot: ü", "secret", GRANTS).unwrap();
    reaches(&server.url_for("r@ot: ü", "secret"), "odd user");
}

/// Plugins beside the default one.
fn plugins(server: &Server) {
    // Accounts nobody can log in to over TCP: the server refuses them, whatever we send.
    server
        .sql(
            "INSTALL PLUGIN auth_socket SONAME 'auth_socket.so';
             INSTALL PLUGIN mysql_no_login SONAME 'mysql_no_login.so';
             CREATE USER local@'%' IDENTIFIED WITH auth_socket; CREATE USER closed@'%' IDENTIFIED WITH mysql_no_login",
        )
        .unwrap();
    for user in ["local", "closed"] {
        let _ = refused(&server.url_for(user, "secret"), Code::AccessDenied, 3);
    }
    // One we do not speak is named as that, and not as a wrong password. 9.7 comes with none, so the server's
    // request to change to one (Protocol::AuthSwitchRequest) is put into a real conversation.
    let port = asks_for_plugin(server, b"\xfedialog\0Password: ");
    let url = format!("mysql://repl:secret@127.0.0.1:{port}/?ssl-mode=disabled");
    let halt = refused(&url, Code::AuthPluginUnsupported, 3);
    assert!(halt.remedy().contains("caching_sha2_password"), "{halt}");
}

/// A port where that server greets, and then answers our login with `request`.
fn asks_for_plugin(server: &Server, request: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, upstream) = (listener.local_addr().unwrap().port(), server.port());
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut greeting = vec![0; 4096];
        let bytes = TcpStream::connect(("127.0.0.1", upstream)).unwrap().read(&mut greeting).unwrap();
        client.write_all(greeting.get(..bytes).unwrap()).unwrap();
        let _ = client.read(&mut [0; 4096]).unwrap();
        client.write_all(&[u8::try_from(request.len()).unwrap(), 0, 0, 2]).unwrap();
        client.write_all(request).unwrap();
        let _ = client.read(&mut [0; 4096]);
    });
    port
}

/// The four that people meet first, each with its own code and, where it matters, its own exit status.
#[test]
fn four_different_answers() {
    let server = server();
    server.user("bare", "secret", &[]).unwrap();
    reaches(&server.url_for("repl", "secret"), "before");
    let wrong_password = reach(&server.url_for("repl", "wrong")).unwrap_err();
    let wrong_ca = url(&server, "repl:secret", &format!("ssl-mode=verify-ca&ssl-ca={}", fixture("ca.pem")));
    let wrong_ca = reach(&wrong_ca).unwrap_err();
    let missing = reach(&server.url_for("bare", "secret")).unwrap_err();
    let address = server.url_for("repl", "secret");
    server.stop().unwrap();
    let down = reach(&address).unwrap_err();
    let answers: Vec<_> = [&wrong_password, &wrong_ca, &missing, &down]
        .map(|halt| (halt.code.as_str(), halt.exit_status(), halt.code.class().as_str()))
        .into();
    assert_eq!(
        answers,
        [
            ("access_denied", 3, "authentication"),
            ("certificate_untrusted", 3, "authentication"),
            ("missing_privilege", 3, "configuration"),
            ("source_unreachable", 5, "transport"),
        ]
    );
    assert!(down.to_string().contains("refused"), "{down}");
    let unknown = reach("mysql://u:p@no-such-host.invalid/?ssl-mode=disabled").unwrap_err();
    assert_eq!(unknown.code, Code::SourceUnreachable);
    assert!(unknown.to_string().contains("resolved"), "{unknown}");
}
