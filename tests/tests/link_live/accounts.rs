//! Who may log in, with which plugin, over which trust.

use crate::client::{login, own_key, pinned, root, try_login};
use capstan_core::link::{ErrorMeaning, HandshakeError, KeyTrust, TlsMode, VersionGate};
use capstan_mysql::{Flavour, Server};

/// A well-formed key of nobody.
const FOREIGN_KEY: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAkfAR4UK5YyGSeJn5cpgC
kAG/p+HJnNQNs2C8mMQdYObeQ/i1nMceah2QfDE3hnX73I7SsrauZtHAHmWO9tZF
ormu9SdXRdojZgQ8ZNIhyQrBDpnYyNj/55rUW+1cSWbWbFH2KSztdJczLUpT/mn3
FhM+ljdYEb1l7v56+GgBpwrnwNF9ngEA3NHrMZ70uDB23f3KqM1eJjbWOT6Pp6gX
JZMHAyO9aV0gwFFeuj2pngQPLSoOy6oEKyJ2vO60yN5+qGkSkzqS+L43onXQr9VF
NkODJ0yQu+svsgTaPbCgcjrLxr65Vao4bhXRad0hlQO/+PqxAMzZH4KQNFg0TOOS
uwIDAQAB
-----END PUBLIC KEY-----
";

/// The number and the meaning of a refusal.
fn refusal(result: Result<capstan_core::link::Session, HandshakeError>) -> (u16, ErrorMeaning) {
    match result {
        Err(HandshakeError::Refused(error)) => (error.number(), error.meaning()),
        other => panic!("not refused by the server: {other:?}"),
    }
}

const DENIED: (u16, ErrorMeaning) = (1045, ErrorMeaning::AccessDenied);

/// The cache is cold after CREATE USER and after FLUSH PRIVILEGES, and warm after one success.
#[test]
fn caching_sha2_password_cold_and_warm() {
    let server = Server::builder().start().unwrap();
    let mut admin = root(&server);
    admin.run("CREATE USER c@'%' IDENTIFIED WITH caching_sha2_password BY 'sécret 1'");
    let with = |password: &str, key: KeyTrust| try_login(&server, login("c", password).key(key));
    let own = own_key(&server);

    // Cold: the password must be encrypted, so the key decides.
    assert_eq!(with("sécret 1", KeyTrust::Refuse), Err(HandshakeError::KeyNotTrusted));
    assert_eq!(refusal(with("sécret 1", pinned(FOREIGN_KEY.as_bytes()))), DENIED);
    assert_eq!(refusal(with("wrong", KeyTrust::Retrieve)), DENIED);
    assert_eq!(refusal(with("wrong", pinned(&own))), DENIED);
    // No failure warmed it.
    assert_eq!(with("sécret 1", KeyTrust::Refuse), Err(HandshakeError::KeyNotTrusted));

    for key in [KeyTrust::Retrieve, pinned(&own)] {
        with("sécret 1", key).unwrap();
        // Warm: the fast path needs no key.
        let session = with("sécret 1", KeyTrust::Refuse).unwrap();
        assert!(session.version.supported().is_ok() && !session.encrypted && session.connection_id > 0);
        // A wrong password on a warm cache takes the full exchange and fails.
        assert_eq!(with("wrong", KeyTrust::Refuse), Err(HandshakeError::KeyNotTrusted));
        assert_eq!(refusal(with("wrong", KeyTrust::Retrieve)), DENIED);
        admin.run("FLUSH PRIVILEGES");
        assert_eq!(with("sécret 1", KeyTrust::Refuse), Err(HandshakeError::KeyNotTrusted));
    }
}

/// The opening scramble is for `caching_sha2_password`; the server switches.
#[test]
fn sha256_password_by_a_switch() {
    let server = Server::builder().start().unwrap();
    let mut admin = root(&server);
    admin.run("CREATE USER s@'%' IDENTIFIED WITH sha256_password BY 'secret'");
    admin.run("CREATE USER bare@'%' IDENTIFIED WITH sha256_password BY ''");
    let with = |password: &str, key: KeyTrust| try_login(&server, login("s", password).key(key));
    let own = own_key(&server);
    // There is no cache: what holds once holds again.
    for _ in 0..2 {
        assert_eq!(with("secret", KeyTrust::Refuse), Err(HandshakeError::KeyNotTrusted));
        with("secret", KeyTrust::Retrieve).unwrap();
        with("secret", pinned(&own)).unwrap();
        assert_eq!(refusal(with("wrong", pinned(&own))), DENIED);
        assert_eq!(refusal(with("", KeyTrust::Refuse)), DENIED);
        assert_eq!(refusal(with("secret", pinned(FOREIGN_KEY.as_bytes()))), DENIED);
    }
    try_login(&server, login("bare", "")).unwrap();
    assert_eq!(refusal(try_login(&server, login("bare", "x").key(KeyTrust::Retrieve))), DENIED);
}

/// 2,048 bits encrypt 213 bytes and no more.
#[test]
fn long_passwords() {
    let server = Server::builder().start().unwrap();
    let mut admin = root(&server);
    let longest = "p".repeat(213);
    admin.run(&format!("CREATE USER l@'%' IDENTIFIED BY '{longest}'"));
    admin.run(&format!("CREATE USER m@'%' IDENTIFIED BY '{longest}p'"));
    try_login(&server, login("l", &longest).key(KeyTrust::Retrieve)).unwrap();
    let error = try_login(&server, login("m", &format!("{longest}p")).key(KeyTrust::Retrieve)).unwrap_err();
    assert!(matches!(error, HandshakeError::PasswordTooLong(_)), "{error:?}");
}

#[test]
fn accounts_that_may_not_log_in() {
    let server = Server::builder().start().unwrap();
    let mut admin = root(&server);
    admin.run("CREATE USER locked@'%' IDENTIFIED BY '' ACCOUNT LOCK");
    admin.run("CREATE USER expired@'%' IDENTIFIED BY '' PASSWORD EXPIRE");
    admin.run("CREATE USER tls@'%' IDENTIFIED BY '' REQUIRE SSL");
    admin.run("CREATE USER elsewhere@'192.0.2.1' IDENTIFIED BY ''");
    for (user, password, number) in [
        ("nobody", "secret", 1045),
        ("nobody", "", 1045),
        ("root", "secret", 1045),
        ("", "", 1045),
        ("elsewhere", "", 1045),
        ("tls", "", 1045),
        ("locked", "", 3118),
        ("expired", "", 1862),
    ] {
        let result = try_login(&server, login(user, password).key(KeyTrust::Retrieve));
        assert_eq!(refusal(result), (number, ErrorMeaning::AccessDenied), "{user}");
    }
    // Too many connections stands in place of a greeting, and passes.
    admin.run("SET GLOBAL max_connections = 1");
    let crowd: Vec<_> = (0..4).map(|_| crate::client::Client::connect(&server, login("root", ""))).collect();
    let errors: Vec<_> = crowd.iter().filter_map(|result| result.as_ref().err()).collect();
    assert!(!errors.is_empty());
    for error in errors {
        let HandshakeError::Refused(error) = error else { panic!("{error:?}") };
        assert_eq!((error.number(), error.meaning()), (1040, ErrorMeaning::Transient));
    }
}

/// What 9.7 no longer has: the native plugin, the one before it, and a server without TLS.
#[test]
fn old_plugins_on_5_6() {
    let server = Server::builder().flavour(Flavour::Mysql56).option("--skip-secure-auth").start().unwrap();
    let mut admin = root(&server);
    // The nameless accounts of a fresh 5.6 would stand in front of ours.
    admin.run("DELETE FROM mysql.user WHERE User = ''");
    admin.run("FLUSH PRIVILEGES");
    admin.run("CREATE USER n@'%' IDENTIFIED BY 'secret'");
    admin.run("CREATE USER s@'%' IDENTIFIED WITH sha256_password");
    admin.run("CREATE USER o@'%' IDENTIFIED WITH mysql_old_password");
    admin.run("SET old_passwords = 1");
    admin.run("SET PASSWORD FOR o@'%' = OLD_PASSWORD('secret')");

    let session = try_login(&server, login("n", "secret")).unwrap();
    assert_eq!(format!("{}", session.version), "MySQL 5.6.24");
    assert_eq!(refusal(try_login(&server, login("n", "wrong"))), DENIED);
    assert_eq!(refusal(try_login(&server, login("n", ""))), DENIED);
    assert_eq!(refusal(try_login(&server, login("nobody", "secret"))), DENIED);

    // The plugin that gives the password away to who listens.
    let error = try_login(&server, login("o", "secret").key(KeyTrust::Retrieve)).unwrap_err();
    let HandshakeError::PluginUnsupported(name) = error else { panic!("{error:?}") };
    assert_eq!(name.as_str(), "mysql_old_password");

    // This build has no RSA: a switch to sha256_password works without a password only.
    try_login(&server, login("s", "")).unwrap();
    assert_eq!(try_login(&server, login("s", "x")), Err(HandshakeError::KeyNotTrusted));

    // As the product does it: refused by version, and before that TLS was even looked for.
    let product = login("n", "secret").gate(VersionGate::Supported);
    let error = try_login(&server, product.clone()).unwrap_err();
    assert_eq!(format!("{error}"), "MySQL 5.6.24 is not supported: MySQL 8.0.14 or later is needed");
    let error = try_login(&server, product.tls(TlsMode::Required)).unwrap_err();
    assert!(matches!(error, HandshakeError::Unsupported(_)), "{error:?}");
    let error = try_login(&server, login("n", "secret").tls(TlsMode::Required)).unwrap_err();
    assert_eq!(error, HandshakeError::TlsNotOffered);
}

#[test]
fn mariadb_is_refused_by_name() {
    let server = Server::builder().flavour(Flavour::MariaDb).start().unwrap();
    let error = try_login(&server, login("root", "").gate(VersionGate::Supported)).unwrap_err();
    let HandshakeError::Unsupported(unsupported) = &error else { panic!("{error:?}") };
    assert_eq!(unsupported.found.flavour, capstan_core::link::Flavour::MariaDb);
    assert!(unsupported.found.major >= 10, "{error}");
}
