//! Handshakes against a TLS server in memory, with certificates of every kind.

use std::{fmt::Write as _, path::PathBuf, sync::Arc};

use capstan_core::{halt::Code, replica::LostReason};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType, date_time_ymd,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig, SupportedProtocolVersion,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer},
        server::WebPkiClientVerifier,
        version::{TLS12, TLS13},
    },
};

use super::Tls;
use crate::source::{SslMode, SslSettings};

type Ca = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Ca {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "An authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server's certificate and key.
struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: KeyPair,
}

fn identity(ca: &Ca, change: impl FnOnce(&mut CertificateParams)) -> Identity {
    let mut params = CertificateParams::default();
    // As MySQL's own: a common name, no alternative name.
    params.distinguished_name.push(DnType::CommonName, "db.example.org");
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, ca).unwrap();
    Identity { chain: vec![certificate.der().clone()], key }
}

fn named(ca: &Ca, names: &[&str]) -> Identity {
    identity(ca, |params| {
        for name in names {
            params.subject_alt_names.push(match name.parse() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName((*name).try_into().unwrap()),
            });
        }
    })
}

fn acceptor(
    identity: &Identity,
    versions: &[&'static SupportedProtocolVersion],
    clients: Option<&Ca>,
) -> TlsAcceptor {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(versions).unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            roots.add(ca.der().clone()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let key = PrivateKeyDer::try_from(identity.key.serialize_der()).unwrap();
    TlsAcceptor::from(Arc::new(builder.with_single_cert(identity.chain.clone(), key).unwrap()))
}

/// One handshake, and one byte there and back. Gives the name the client asked for, if any.
async fn handshake(tls: &Tls, acceptor: TlsAcceptor, host: &str) -> Result<Option<String>, LostReason> {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let server = tokio::spawn(async move {
        let mut stream = acceptor.accept(theirs).await.ok()?;
        let name = stream.get_ref().1.server_name().map(str::to_owned);
        let byte = stream.read_u8().await.ok()?;
        stream.write_u8(byte).await.ok()?;
        stream.flush().await.ok()?;
        Some(name)
    });
    let mut stream = tls.connect(ours, host).await?;
    stream.write_u8(7).await.map_err(|_| LostReason::Reset)?;
    stream.flush().await.map_err(|_| LostReason::Reset)?;
    assert_eq!(stream.read_u8().await.map_err(|_| LostReason::Reset)?, 7);
    Ok(server.await.unwrap().unwrap())
}

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

fn settings(files: &Files, mode: SslMode, ca: &Ca) -> SslSettings {
    let ca = (mode != SslMode::Required).then(|| files.put("ca.pem", ca.pem()));
    SslSettings { mode, ca, ..SslSettings::default() }
}

const BOTH: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

#[tokio::test]
async fn each_mode_checks_what_it_says() {
    use LostReason::{CertificateNameMismatch as Name, CertificateUntrusted as Untrusted};
    use SslMode::{Required, VerifyCa, VerifyIdentity};
    let files = Files::new();
    let (ours, theirs) = (authority(), authority());
    let good = named(&ours, &["db.example.org", "*.rds.example.org", "10.0.0.7", "2001:db8::7"]);
    let own = identity(&ours, |_| {});
    let foreign = named(&theirs, &["db.example.org"]);
    let expired = identity(&ours, |params| {
        params.subject_alt_names.push(SanType::DnsName("db.example.org".try_into().unwrap()));
        params.not_after = date_time_ymd(2001, 1, 1);
    });
    let client_only = identity(&ours, |params| {
        params.subject_alt_names.push(SanType::DnsName("db.example.org".try_into().unwrap()));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    });
    let mut report = String::new();
    for (what, identity, host, required, verify_ca, verify_identity) in [
        ("a name of it", &good, "db.example.org", None, None, None),
        ("another case", &good, "DB.Example.ORG", None, None, None),
        ("under a wildcard", &good, "a.rds.example.org", None, None, None),
        ("an IPv4 address of it", &good, "10.0.0.7", None, None, None),
        ("an IPv6 address of it", &good, "2001:db8::7", None, None, None),
        ("another name", &good, "db2.example.org", None, None, Some(Name)),
        ("below a wildcard's level", &good, "a.b.rds.example.org", None, None, Some(Name)),
        ("another address", &good, "10.0.0.8", None, None, Some(Name)),
        ("MySQL's own: only a common name", &own, "db.example.org", None, None, Some(Name)),
        ("MySQL's own, by address", &own, "127.0.0.1", None, None, Some(Name)),
        ("a host no certificate can name", &good, "db_1 ", None, None, Some(Name)),
        ("another authority's", &foreign, "db.example.org", None, Some(Untrusted), Some(Untrusted)),
        ("expired", &expired, "db.example.org", None, Some(Untrusted), Some(Untrusted)),
        ("not for servers", &client_only, "db.example.org", None, Some(Untrusted), Some(Untrusted)),
    ] {
        for (mode, want) in [(Required, required), (VerifyCa, verify_ca), (VerifyIdentity, verify_identity)] {
            let tls = Tls::new(&settings(&files, mode, &ours)).unwrap();
            for version in BOTH {
                let got = handshake(&tls, acceptor(identity, &[version], None), host).await.err();
                if got != want {
                    let _ = writeln!(report, "{what}, {mode:?}, {version:?}: {got:?} instead of {want:?}");
                }
            }
        }
    }
    assert_eq!(report, "");
}

#[tokio::test]
async fn a_name_is_asked_for_and_an_address_is_not() {
    let files = Files::new();
    let ca = authority();
    let server = named(&ca, &["db.example.org", "10.0.0.7"]);
    let tls = Tls::new(&settings(&files, SslMode::VerifyIdentity, &ca)).unwrap();
    let asked = handshake(&tls, acceptor(&server, &BOTH, None), "db.example.org").await.unwrap();
    assert_eq!(asked.as_deref(), Some("db.example.org"));
    let asked = handshake(&tls, acceptor(&server, &BOTH, None), "10.0.0.7").await.unwrap();
    assert_eq!(asked, None);
}

#[tokio::test]
async fn a_peer_without_the_key_of_its_certificate_is_no_server_even_unchecked() {
    let ca = authority();
    let mut server = named(&ca, &["db.example.org"]);
    // Somebody else's certificate.
    server.chain = named(&ca, &["db.example.org"]).chain;
    let provider = Arc::new(ring::default_provider());
    let key = PrivateKeyDer::try_from(server.key.serialize_der()).unwrap();
    let key = provider.key_provider.load_private_key(key).unwrap();
    let certified = tokio_rustls::rustls::sign::CertifiedKey::new(server.chain, key);
    let resolver = Arc::new(tokio_rustls::rustls::sign::SingleCertAndKey::from(certified));
    for version in BOTH {
        let config = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(resolver.clone());
        let tls = Tls::new(&SslSettings { mode: SslMode::Required, ..SslSettings::default() }).unwrap();
        let end = handshake(&tls, TlsAcceptor::from(Arc::new(config)), "db.example.org").await;
        assert!(end.is_err(), "{version:?}");
    }
}

#[tokio::test]
async fn a_client_certificate_is_shown_where_one_is_asked_for() {
    let files = Files::new();
    let (ca, clients) = (authority(), authority());
    let server = named(&ca, &["db.example.org"]);
    let ours = identity(&clients, |_| {});
    let mut ssl = settings(&files, SslMode::VerifyIdentity, &ca);
    let without = Tls::new(&ssl).unwrap();
    let mut chain = String::new();
    chain.push_str(&pem("CERTIFICATE", ours.chain[0].as_ref()));
    ssl.cert = Some(files.put("cert.pem", chain));
    ssl.key = Some(files.put("key.pem", ours.key.serialize_pem()));
    let with = Tls::new(&ssl).unwrap();
    for version in BOTH {
        let server = || acceptor(&server, &[version], Some(&clients));
        assert!(handshake(&with, server(), "db.example.org").await.is_ok(), "{version:?}");
        // To be tried again: the server may be told to accept us.
        let end = handshake(&without, server(), "db.example.org").await.unwrap_err();
        assert!(matches!(end, LostReason::TlsFailed | LostReason::Reset), "{version:?}: {end:?}");
    }
}

#[tokio::test]
async fn what_does_not_speak_tls_is_tried_again() {
    let tls = Tls::new(&SslSettings { mode: SslMode::Required, ..SslSettings::default() }).unwrap();
    for answer in [&b""[..], b"HTTP/1.1 400 Bad Request\r\n\r\n", &[0x15, 3, 3, 0, 2, 2, 40]] {
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        theirs.write_all(answer).await.unwrap();
        theirs.shutdown().await.unwrap();
        let end = tls.connect(ours, "db.example.org").await.map(|_| ()).unwrap_err();
        assert!(matches!(end, LostReason::TlsFailed | LostReason::Reset), "{end:?}");
    }
}

#[test]
fn files_that_cannot_be_used_are_named_before_anything_is_dialled() {
    let files = Files::new();
    let ca = authority();
    let (one, other) = (identity(&ca, |_| {}), identity(&ca, |_| {}));
    let cert = files.put("cert.pem", pem("CERTIFICATE", one.chain[0].as_ref()));
    let key = files.put("key.pem", one.key.serialize_pem());
    let wrong = files.put("other.pem", other.key.serialize_pem());
    let none = files.put("none.pem", "");
    let garbage = files.put("garbage.pem", "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n");
    let damaged = files.put("damaged.pem", pem("CERTIFICATE", b"no DER"));
    let missing = files.0.path().join("missing.pem");
    let with_ca = |path: &PathBuf| SslSettings {
        mode: SslMode::VerifyCa,
        ca: Some(path.clone()),
        ..SslSettings::default()
    };
    let with_cert = |cert: &PathBuf, key: &PathBuf| SslSettings {
        mode: SslMode::Required,
        cert: Some(cert.clone()),
        key: Some(key.clone()),
        ..SslSettings::default()
    };
    for (ssl, parts) in [
        (with_ca(&missing), ["ssl-ca", "cannot be read"]),
        (with_ca(&none), ["ssl-ca", "holds no certificate"]),
        (with_ca(&garbage), ["ssl-ca", "not PEM"]),
        (with_ca(&damaged), ["ssl-ca", "cannot be used"]),
        (with_cert(&missing, &key), ["ssl-cert", "cannot be read"]),
        (with_cert(&none, &key), ["ssl-cert", "holds no certificate"]),
        (with_cert(&cert, &missing), ["ssl-key", "no readable private key"]),
        (with_cert(&cert, &cert), ["ssl-key", "no readable private key"]),
        (with_cert(&cert, &wrong), ["ssl-key", "with ssl-cert"]),
    ] {
        let halt = Tls::new(&ssl).unwrap_err();
        let text = halt.to_string();
        assert_eq!(halt.code, Code::ConfigInvalid);
        assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} not in {text}");
        assert!(!text.contains("PRIVATE"), "{text}");
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in der.chunks(48) {
        for three in line.chunks(3) {
            let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
                << (8 * (3 - three.len()));
            for digit in 0..4 {
                let at = (bits >> (18 - 6 * digit)) as usize & 63;
                text.push(if digit <= three.len() { DIGITS[at] as char } else { '=' });
            }
        }
        text.push('\n');
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}
