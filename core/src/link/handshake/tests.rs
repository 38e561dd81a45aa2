//! Exchanges as stories: what the server says, what we say, how it ends.

use super::*;
use crate::link::error_packet::ErrorMeaning;
use crate::link::secret::Secret;
use crate::link::version::Flavour;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use proptest::prelude::*;

/// Captured from MySQL 9.7.4.
const GREETING_97: &[u8] = b"\x0a9.7.4-2\x00\x08\x00\x00\x00\x34\x30\x0c\x7e\x21\x07\x29\x74\x00\xff\xff\
    \xff\x02\x00\xff\xdf\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x39\x42\x42\x52\x53\x04\x1a\x63\x17\x35\x4a\
    \x3a\x00caching_sha2_password\x00";
const NONCE_97: Nonce = *b"\x34\x30\x0c\x7e\x21\x07\x29\x74\x39\x42\x42\x52\x53\x04\x1a\x63\x17\x35\x4a\x3a";

/// Captured from MySQL 5.6.24 (built without TLS).
const GREETING_56: &[u8] = b"\x0a5.6.24-log\x00\x01\x00\x00\x00\x2d\x23\x66\x59\x69\x27\x24\x7e\x00\xff\xf7\
    \x08\x02\x00\x7f\x80\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x6f\x31\x46\x4c\x2e\x3c\x24\x3d\x46\x29\x3a\
    \x26\x00mysql_native_password\x00";
const NONCE_56: Nonce = *b"\x2d\x23\x66\x59\x69\x27\x24\x7e\x6f\x31\x46\x4c\x2e\x3c\x24\x3d\x46\x29\x3a\x26";

/// Another nonce, as an auth switch brings one.
const NONCE_2: &[u8; 21] = b"abcdefghijklmnopqrst\x00";
const NONCE_2_BARE: &Nonce = b"abcdefghijklmnopqrst";

const OK: &[u8] = b"\x00\x00\x00\x02\x00\x00\x00";
const DENIED: &[u8] = b"\xff\x15\x04#28000Access denied for user 'repl'@'localhost' (using password: YES)";
const FAST: &[u8] = b"\x01\x03";
const FULL: &[u8] = b"\x01\x04";

const PEM: &str = "-----BEGIN PUBLIC KEY-----\n\
    MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC00iUOAiBAg5uH7i49ssPiCz7G\n\
    08KXbEJ8LU9aof4J3KxdQg32ur7Pkp3Mc0GMv0wDfgby7uXl8J5SsfBEHgfFdE4V\n\
    rc30ZD0H1vlL7nylOB/PJEkdeeuoXQUVlC1LOWQOGUWboP9sdZgLMYvyEBwLb5Mw\n\
    cXsLt8siEBFZRPir9wIDAQAB\n\
    -----END PUBLIC KEY-----\n";

fn switch_to(plugin: &str) -> Vec<u8> {
    [b"\xfe", plugin.as_bytes(), b"\x00", NONCE_2].concat()
}

fn key_answer() -> Vec<u8> {
    [b"\x01", PEM.as_bytes(), b"\x00"].concat()
}

fn pinned() -> KeyTrust {
    KeyTrust::Pinned(Box::new(ServerPublicKey::from_pem(PEM.as_bytes()).unwrap()))
}

fn login(password: &str) -> Login {
    Login::new("repl", Secret::new(password)).unwrap()
}

fn plain(password: &str) -> Login {
    login(password).tls(TlsMode::Disabled)
}

/// Plays the server's part; gives what we sent and how it ended (`None`: still waiting).
fn play(login: Login, server: &[&[u8]]) -> (Vec<Bytes>, Option<Result<Session, HandshakeError>>) {
    let mut sent = Vec::new();
    let mut handshake = Handshake::new(login, [7; 32]);
    for payload in server {
        let mut step = handshake.on_payload(payload);
        if let Ok(Step::StartTls(request, pending)) = step {
            sent.push(request);
            step = pending.secured();
        }
        handshake = match step {
            Ok(Step::Send(payload, next)) => {
                sent.push(payload);
                next
            }
            Ok(Step::Wait(next)) => next,
            Ok(Step::Done(session)) => return (sent, Some(Ok(session))),
            Ok(Step::StartTls(..)) => panic!("TLS twice"),
            Err(error) => return (sent, Some(Err(error))),
        };
    }
    (sent, None)
}

fn refused(login: Login, server: &[&[u8]]) -> HandshakeError {
    play(login, server).1.unwrap().unwrap_err()
}

/// What `play` sent after the login itself.
fn after_login(login: Login, server: &[&[u8]]) -> Vec<Bytes> {
    play(login, server).0.split_off(1)
}

fn encrypted(password: &str, nonce: &Nonce) -> Vec<u8> {
    let key = ServerPublicKey::from_pem(PEM.as_bytes()).unwrap();
    key.encrypt(&Secret::new(password), nonce, &mut SeedRandom::new([7; 32])).unwrap()
}

#[test]
fn greetings_of_real_servers() {
    let new = Greeting::parse(GREETING_97).unwrap();
    assert_eq!(format!("{}", new.version), "MySQL 9.7.4");
    assert_eq!((new.connection_id, new.capabilities.0, new.nonce), (8, 0xdfff_ffff, NONCE_97));
    assert_eq!(new.opening_plugin(), Plugin::CachingSha2);

    let old = Greeting::parse(GREETING_56).unwrap();
    assert_eq!(format!("{}", old.version), "MySQL 5.6.24");
    assert_eq!((old.connection_id, old.capabilities.0, old.nonce), (1, 0x807f_f7ff, NONCE_56));
    assert_eq!(old.opening_plugin(), Plugin::Native);
}

#[test]
fn a_greeting_may_leave_the_length_of_its_nonce_out() {
    let place = GREETING_97.iter().position(|&byte| byte == 21).unwrap();
    for len in [0, 8, 20] {
        let mut bytes = GREETING_97.to_vec();
        bytes[place] = len;
        let greeting = Greeting::parse(&bytes).unwrap();
        assert_eq!((greeting.nonce, greeting.opening_plugin()), (NONCE_97, Plugin::CachingSha2), "{len}");
    }
}

#[test]
fn a_server_without_what_we_build_on() {
    // CLIENT_PROTOCOL_41, CLIENT_SECURE_CONNECTION in the low half, CLIENT_PLUGIN_AUTH and its long
    // data in the high one.
    let low = GREETING_97.windows(2).position(|pair| pair == [0xff, 0xff]).unwrap();
    let high = low + 5;
    assert_eq!(GREETING_97[high..high + 2], [0xff, 0xdf]);
    for (place, bit) in [(low + 1, 1 << 1), (low + 1, 1 << 7), (high, 1 << 3), (high, 1 << 5)] {
        let mut bytes = GREETING_97.to_vec();
        bytes[place] &= !bit;
        assert_eq!(refused(plain("x"), &[&bytes]), HandshakeError::ProtocolUnsupported, "{place} {bit}");
    }
}

#[test]
fn a_greeting_cut_anywhere_is_no_greeting() {
    // The plugin's name may lack its NUL, and an unknown name is no error; everything before counts.
    let until = GREETING_97.len() - b"caching_sha2_password\x00".len();
    for len in 0..until {
        assert!(Greeting::parse(&GREETING_97[..len]).is_err(), "{len}");
    }
    for len in until..=GREETING_97.len() {
        assert!(Greeting::parse(&GREETING_97[..len]).is_ok(), "{len}");
    }
}

#[test]
fn a_login_byte_for_byte() {
    let (sent, end) = play(plain("secret"), &[GREETING_97, FAST, OK]);
    let scramble = auth::caching_sha2(&Secret::new("secret"), &NONCE_97);
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    let attributes = [
        &[12][..],
        b"program_name",
        &[7],
        b"capstan",
        &[12],
        b"_client_name",
        &[7],
        b"capstan",
        &[15],
        b"_client_version",
        &[version.len() as u8],
        version,
    ]
    .concat();
    let want = [
        // DEPRECATE_EOF, LENENC, ATTRS, PLUGIN_AUTH | SECURE_CONNECTION, PROTOCOL_41 | LONG_PASSWORD
        &[0x01, 0x82, 0x38, 0x01][..],
        &[0x00, 0x00, 0x00, 0x40],
        &[45],
        &[0; 23],
        b"repl\0",
        &[32],
        &scramble,
        b"caching_sha2_password\0",
        &[attributes.len() as u8],
        &attributes,
    ]
    .concat();
    assert_eq!(sent, [want]);
    let session = end.unwrap().unwrap();
    assert_eq!(session.connection_id, 8);
    assert_eq!(session.version.flavour, Flavour::MySql);
    assert!(session.capabilities.contains(Capabilities::DEPRECATE_EOF) && !session.encrypted);
}

#[test]
fn an_old_server_gets_no_flags_it_does_not_know() {
    let (sent, end) = play(plain("secret").gate(VersionGate::Any), &[GREETING_56, OK]);
    assert_eq!(&sent[0][..4], [0x01, 0x82, 0x38, 0x00]);
    let scramble = auth::native(&Secret::new("secret"), &NONCE_56);
    assert_eq!(&sent[0][32..58], [b"repl\0", &[20][..], &scramble].concat());
    assert!(!end.unwrap().unwrap().capabilities.contains(Capabilities::DEPRECATE_EOF));
}

#[test]
fn tls_is_asked_for_before_the_user_is_named() {
    let (sent, end) = play(login("secret"), &[GREETING_97, FAST, OK]);
    assert_eq!(sent[0], [&[0x01, 0x8a, 0x38, 0x01, 0x00, 0x00, 0x00, 0x40, 45][..], &[0; 23]].concat());
    // The login repeats these 32 bytes.
    assert_eq!(sent[0], sent[1][..32]);
    assert!(end.unwrap().unwrap().encrypted);
}

#[test]
fn no_tls_means_no_login() {
    // 0xf7ff is without CLIENT_SSL.
    let (sent, end) = play(login("secret").gate(VersionGate::Any), &[GREETING_56, OK]);
    assert_eq!((sent.len(), end.unwrap().unwrap_err()), (0, HandshakeError::TlsNotOffered));
}

#[test]
fn the_version_is_judged_before_anything_is_sent() {
    let maria = [b"\x0a5.5.5-10.11.6-MariaDB", &GREETING_97[8..]].concat();
    for greeting in [GREETING_56, &maria] {
        let (sent, end) = play(plain("secret"), &[greeting, OK]);
        assert!(sent.is_empty());
        assert!(matches!(end, Some(Err(HandshakeError::Unsupported(_)))), "{end:?}");
    }
    assert_eq!(refused(login(""), &[b"\x09old"]), HandshakeError::ProtocolUnsupported);
}

#[test]
fn an_error_in_place_of_the_greeting() {
    let error = refused(login(""), &[b"\xff\x10\x04Too many connections"]);
    let HandshakeError::Refused(error) = error else { panic!("{error:?}") };
    assert_eq!((error.number(), error.meaning()), (1040, ErrorMeaning::Transient));
}

#[test]
fn a_wrong_password_is_said_by_number_and_without_text() {
    for server in [&[GREETING_97, DENIED][..], &[GREETING_97, FULL, DENIED], &[GREETING_97, FAST, DENIED]] {
        let error = refused(login("sentinel"), server);
        assert_eq!(format!("{error}"), "refused by the server: server error 1045 (28000)");
        assert!(!format!("{error:?}").contains("repl"));
        let HandshakeError::Refused(error) = error else { panic!("{error:?}") };
        assert_eq!(error.meaning(), ErrorMeaning::AccessDenied);
    }
}

/// `caching_sha2_password` with a cold cache, by transport and trust.
#[test]
fn full_authentication() {
    let cold = [GREETING_97, FULL, OK];
    // Inside TLS the password goes as it is, whatever the trust in keys.
    for key in [KeyTrust::Refuse, KeyTrust::Retrieve, pinned()] {
        assert_eq!(after_login(login("secret").key(key), &cold)[1..], [&b"secret\0"[..]]);
    }
    // Without, only to a key that is trusted.
    assert_eq!(refused(plain("secret"), &cold), HandshakeError::KeyNotTrusted);
    assert_eq!(after_login(plain("secret").key(pinned()), &cold), [encrypted("secret", &NONCE_97)]);
    let asked = [GREETING_97, FULL, &key_answer(), OK];
    let (sent, end) = play(plain("secret").key(KeyTrust::Retrieve), &asked);
    assert_eq!(sent[1..], [vec![2], encrypted("secret", &NONCE_97)]);
    assert!(end.unwrap().is_ok());
}

#[test]
fn sha256_password() {
    let switch = switch_to("sha256_password");
    let server = [GREETING_97, &switch, OK];
    assert_eq!(after_login(login("secret"), &server)[1..], [&b"secret\0"[..]]);
    assert_eq!(refused(plain("secret"), &server), HandshakeError::KeyNotTrusted);
    assert_eq!(after_login(plain("secret").key(pinned()), &server), [encrypted("secret", NONCE_2_BARE)]);
    let asked = [GREETING_97, &switch, &key_answer(), OK];
    let sent = after_login(plain("secret").key(KeyTrust::Retrieve), &asked);
    assert_eq!(sent, [vec![1], encrypted("secret", NONCE_2_BARE)]);
}

#[test]
fn a_server_whose_default_is_sha256_is_opened_without_its_exchange() {
    let name = b"caching_sha2_password\x00";
    let head = &GREETING_97[..GREETING_97.len() - name.len()];
    for plugin in ["sha256_password", "authentication_windows_client", ""] {
        let greeting = [head, plugin.as_bytes(), b"\0"].concat();
        let (sent, _) = play(plain("secret"), &[&greeting]);
        assert!(sent[0].windows(name.len()).any(|window| window == name), "{plugin}");
    }
}

#[test]
fn other_plugins_by_a_switch() {
    let password = Secret::new("secret");
    let native = switch_to("mysql_native_password");
    let (sent, end) = play(plain("secret"), &[GREETING_97, &native, OK]);
    assert_eq!(sent[1], auth::native(&password, NONCE_2_BARE));
    assert!(end.unwrap().is_ok());

    let caching = switch_to("caching_sha2_password");
    let (sent, end) = play(plain("secret").gate(VersionGate::Any), &[GREETING_56, &caching, FAST, OK]);
    assert_eq!(sent[1], auth::caching_sha2(&password, NONCE_2_BARE));
    assert!(end.unwrap().is_ok());
}

#[test]
fn plugins_that_would_give_the_password_away_or_are_unknown() {
    let unsupported = |payload: &[u8]| {
        let error = refused(login("secret"), &[GREETING_97, payload]);
        let HandshakeError::PluginUnsupported(name) = error else { panic!("{error:?}") };
        String::from(name.as_str())
    };
    assert_eq!(unsupported(&switch_to("mysql_clear_password")), "mysql_clear_password");
    assert_eq!(unsupported(&switch_to("mysql_old_password")), "mysql_old_password");
    assert_eq!(unsupported(b"\xfe"), "mysql_old_password");
    assert_eq!(unsupported(&switch_to("authentication_ldap_sasl_client")), "authentication_ldap_sasl_client");
    assert_eq!(unsupported(b"\x02authentication_webauthn_client\0"), "(a second factor)");
    // The name is the server's: cut, and no line breaks for a log.
    assert_eq!(unsupported(&switch_to(&"a\n\u{1b}".repeat(100))).len(), 64);
    assert_eq!(unsupported(&switch_to("a\n\u{1b}[1m")), "a???1m");
}

#[test]
fn no_password_needs_no_key() {
    let (sent, end) = play(plain(""), &[GREETING_97, OK]);
    assert_eq!(&sent[0][32..39], b"repl\0\x01\x00");
    assert!(end.unwrap().is_ok());
    assert_eq!(after_login(plain(""), &[GREETING_97, &switch_to("sha256_password"), OK]), [&b"\0"[..]]);
    assert_eq!(after_login(plain(""), &[GREETING_97, &switch_to("mysql_native_password"), OK]), [&b""[..]]);
}

#[test]
fn what_a_server_must_not_say() {
    let native = switch_to("mysql_native_password");
    let caching = switch_to("caching_sha2_password");
    let retrieve = || plain("secret").key(KeyTrust::Retrieve);
    let malformed = HandshakeError::Malformed(Malformed);
    for (login, server, want) in [
        // Two switches, whatever comes between.
        (plain("secret"), &[GREETING_97, &caching, &native][..], HandshakeError::SwitchedTwice),
        // A switch once the password is out.
        (login("secret"), &[GREETING_97, FULL, &native], malformed.clone()),
        (plain("secret"), &[GREETING_97, FAST, &native], malformed.clone()),
        // The full exchange twice, or after success.
        (login("secret"), &[GREETING_97, FULL, FULL], malformed.clone()),
        (login("secret"), &[GREETING_97, FAST, FULL], malformed.clone()),
        // Success before the key that was asked for.
        (retrieve(), &[GREETING_97, FULL, OK], malformed.clone()),
        (retrieve(), &[GREETING_97, FULL, b"\x01no key"], HandshakeError::BadPublicKey(BadPublicKey)),
        (retrieve(), &[GREETING_97, FULL, b"\x01"], HandshakeError::BadPublicKey(BadPublicKey)),
        (plain("x"), &[GREETING_97, b"\x01"], malformed.clone()),
        (plain("x"), &[GREETING_97, b"\x01\x05"], malformed.clone()),
        (plain("x"), &[GREETING_97, b"\x01\x03\x03"], malformed.clone()),
        (plain("x"), &[GREETING_97, b""], malformed.clone()),
        (plain("x"), &[GREETING_97, b"\x00"], malformed.clone()),
        (plain("x"), &[GREETING_97, b"\xff\x15"], malformed.clone()),
        (plain("x"), &[GREETING_97, b"\x03\x00\x00\x02\x00\x00\x00"], malformed.clone()),
        (plain("x"), &[GREETING_97, &native[..20]], malformed.clone()),
        (plain("x"), &[GREETING_97, &native[..native.len() - 2]], malformed.clone()),
        (plain("x"), &[b""], malformed.clone()),
    ] {
        assert_eq!(refused(login, server), want, "{server:02x?}");
    }
    // Data of another plugin.
    let old = plain("x").gate(VersionGate::Any);
    assert_eq!(refused(old, &[GREETING_56, FULL]), malformed);
}

#[test]
fn a_password_longer_than_the_key() {
    let error = refused(plain(&"x".repeat(100)).key(pinned()), &[GREETING_97, FULL]);
    assert_eq!(error, HandshakeError::PasswordTooLong(PasswordTooLong { max: 85 }));
}

#[test]
fn debug_shows_no_secret() {
    let mut shown = vec![format!("{:?}", Handshake::new(login("sentinel"), [7; 32]))];
    let step = Handshake::new(login("sentinel"), [7; 32]).on_payload(GREETING_97).unwrap();
    shown.push(format!("{step:?}"));
    let Step::StartTls(_, pending) = step else { panic!("{step:?}") };
    shown.push(format!("{pending:?}"));
    let Step::Send(_, next) = pending.secured().unwrap() else { panic!() };
    shown.push(format!("{next:?}"));
    let step = next.on_payload(FULL).unwrap();
    shown.push(format!("{step:?}"));
    assert!(matches!(&step, Step::Send(payload, _) if payload.as_ref() == b"sentinel\0"));
    for text in shown {
        // 115, 101 is "se" where a list of numbers would show it.
        assert!(!text.contains("sentinel") && !text.contains("115, 101") && !text.contains("repl"), "{text}");
    }
}

proptest! {
    /// Whatever a server says, the exchange ends without a panic, and the password only leaves inside
    /// TLS or encrypted.
    #[test]
    fn nonsense_is_survived(
        server in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..60),
                Just(GREETING_97.to_vec()),
                Just(OK.to_vec()),
                Just(FAST.to_vec()),
                Just(FULL.to_vec()),
                Just(key_answer()),
                Just(switch_to("sha256_password")),
                Just(switch_to("mysql_native_password")),
                Just(switch_to("mysql_clear_password")),
            ],
            0..6,
        ),
        retrieve in any::<bool>(),
    ) {
        let key = if retrieve { KeyTrust::Retrieve } else { KeyTrust::Refuse };
        let mut payloads = vec![GREETING_97];
        payloads.extend(server.iter().map(Vec::as_slice));
        for (login, tls) in [(plain("sentinel").key(key.clone()), false), (login("sentinel").key(key), true)] {
            let (sent, _) = play(login, &payloads);
            let clear = sent.iter().any(|bytes| bytes.windows(8).any(|window| window == b"sentinel"));
            prop_assert!(tls || !clear);
        }
    }
}
