//! A login at a server that says anything.

use capstan_core::link::{Handshake, HandshakeError, KeyTrust, Login, Secret, Step, TlsMode, VersionGate};

const USER: &str = "user-of-the-login";
const PASSWORD: &str = "sentinel-of-the-login";

/// The password is never sent in the clear outside of TLS, nor shown; where TLS is required nothing that
/// says who we are goes ahead of it; nobody is logged in without an OK.
///
/// The first byte: TLS required, a key may be retrieved, any server will do. Then payloads, each behind its
/// length of two bytes.
pub fn check(data: &[u8]) {
    let Some((&options, mut rest)) = data.split_first() else { return };
    let tls = if options & 1 == 1 { TlsMode::Required } else { TlsMode::Disabled };
    let key = if options & 2 == 2 { KeyTrust::Retrieve } else { KeyTrust::Refuse };
    let gate = if options & 4 == 4 { VersionGate::Any } else { VersionGate::Supported };
    let login = Login::new(USER, Secret::new(PASSWORD)).expect("no NUL in it").tls(tls).key(key).gate(gate);
    let mut handshake = Handshake::new(login, [7; 32]);
    let mut encrypted = false;
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(behind.len());
        let (payload, behind) = behind.split_at(length);
        rest = behind;
        let mut step = handshake.on_payload(payload);
        if let Ok(Step::StartTls(sent, pending)) = step {
            assert_eq!(tls, TlsMode::Required);
            assert_eq!(sent.len(), 32, "more than the request for TLS");
            encrypted = true;
            step = pending.secured();
        }
        match step {
            Ok(Step::Send(sent, next)) => {
                assert!(encrypted || tls == TlsMode::Disabled, "a login in the clear");
                assert!(encrypted || !holds(&sent, PASSWORD), "the password in the clear");
                handshake = next;
            }
            Ok(Step::Wait(next)) => handshake = next,
            Ok(Step::Done(session)) => {
                assert_eq!(session.encrypted, tls == TlsMode::Required);
                assert_eq!(payload.first(), Some(&0), "logged in without an OK");
                return;
            }
            Ok(Step::StartTls(..)) => panic!("TLS inside TLS"),
            Err(error) => return shows_nothing(&error),
        }
    }
}

fn shows_nothing(error: &HandshakeError) {
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(PASSWORD) && !shown.contains(USER), "{shown}");
}

fn holds(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|window| window == part.as_bytes())
}
