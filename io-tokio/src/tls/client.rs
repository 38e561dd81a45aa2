//! The client side, over any stream.

use std::{fmt, net::Ipv4Addr, path::Path, sync::Arc};

use capstan_core::replica::LostReason;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        CertificateError, ClientConfig, Error, RootCertStore,
        crypto::{CryptoProvider, ring},
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
        version::{TLS12, TLS13},
    },
};

use super::verify::{Check, Verifier};
use crate::{
    halt::Halt,
    source::{SslMode, SslSettings, invalid},
};

/// An encrypted stream.
pub type TlsStream<S> = tokio_rustls::client::TlsStream<S>;

/// How connections are encrypted and whom they trust. Cheap to clone.
#[derive(Clone)]
pub struct Tls {
    mode: SslMode,
    connector: Option<TlsConnector>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tls({})", self.mode.as_str())
    }
}

impl Tls {
    /// Reads the files that `ssl` names, and the system's authorities where it names none.
    ///
    /// # Errors
    /// `config_invalid` with the setting's name.
    pub fn new(ssl: &SslSettings) -> Result<Self, Halt> {
        let provider = Arc::new(ring::default_provider());
        let check = match ssl.mode {
            SslMode::Disabled => return Ok(Self { mode: ssl.mode, connector: None }),
            SslMode::Required => Check::Nothing,
            SslMode::VerifyCa => Check::Chain(authorities(ssl)?),
            SslMode::VerifyIdentity => Check::ChainAndName(authorities(ssl)?),
        };
        let config = config(ssl, provider, check)?;
        Ok(Self { mode: ssl.mode, connector: Some(TlsConnector::from(Arc::new(config))) })
    }

    /// Runs the handshake on `stream`, which leads to `host` (a name, sent as SNI, or an address).
    ///
    /// # Errors
    /// [`LostReason::CertificateUntrusted`], [`LostReason::CertificateNameMismatch`], and
    /// [`LostReason::TlsFailed`] or [`LostReason::Reset`] for what may pass.
    pub async fn connect<S>(&self, stream: S, host: &str) -> Result<TlsStream<S>, LostReason>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Some(connector) = &self.connector else { return Err(LostReason::TlsFailed) };
        let name = match ServerName::try_from(host.to_owned()) {
            Ok(name) => name,
            Err(_) if self.mode == SslMode::VerifyIdentity => {
                return Err(LostReason::CertificateNameMismatch);
            }
            // No certificate could name it, but nobody asks. An address is never sent as SNI.
            Err(_) => ServerName::IpAddress(Ipv4Addr::UNSPECIFIED.into()),
        };
        connector.connect(name, stream).await.map_err(|error| {
            let Some(cause) = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>()) else {
                tracing::debug!(kind = ?error.kind(), "the link failed during the TLS handshake");
                return LostReason::Reset;
            };
            tracing::debug!(%cause, "the TLS handshake failed");
            reason(cause)
        })
    }
}

/// What a failed handshake is called. A certificate that is refused now is refused the next time too,
/// so those halt; the rest may be a proxy or a server in mid-restart.
#[allow(clippy::wildcard_enum_match_arm, reason = "a kind that is not known is not trusted")]
fn reason(error: &Error) -> LostReason {
    let Error::InvalidCertificate(why) = error else { return LostReason::TlsFailed };
    match why {
        // A certificate without any subject alternative name (MySQL makes itself such a one) is here too:
        // the common name is not looked at since RFC 9525.
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            LostReason::CertificateNameMismatch
        }
        _ => LostReason::CertificateUntrusted,
    }
}

fn config(ssl: &SslSettings, provider: Arc<CryptoProvider>, check: Check) -> Result<ClientConfig, Halt> {
    let verifier = Verifier::new(check, provider.signature_verification_algorithms);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|_| invalid("ssl-mode", "is not possible with this build's cryptography"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let (Some(cert), Some(key)) = (&ssl.cert, &ssl.key) else { return Ok(builder.with_no_client_auth()) };
    let chain = certificates(cert, "ssl-cert")?;
    let key = PrivateKeyDer::from_pem_file(key)
        .map_err(|_| invalid("ssl-key", "names a file that holds no readable private key"))?;
    builder
        .with_client_auth_cert(chain, key)
        .map_err(|_| invalid("ssl-key", "is no key that can be used with ssl-cert"))
}

fn authorities(ssl: &SslSettings) -> Result<RootCertStore, Halt> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = &ssl.ca {
        for certificate in certificates(path, "ssl-ca")? {
            roots
                .add(certificate)
                .map_err(|_| invalid("ssl-ca", "names a file with a certificate that cannot be used"))?;
        }
        return Ok(roots);
    }
    let found = rustls_native_certs::load_native_certs();
    let (added, ignored) = roots.add_parsable_certificates(found.certs);
    tracing::debug!(added, ignored, errors = found.errors.len(), "read the system's authorities");
    if roots.is_empty() {
        return Err(invalid("ssl-ca", "is not given, and this system trusts no authority"));
    }
    Ok(roots)
}

fn certificates(path: &Path, setting: &str) -> Result<Vec<CertificateDer<'static>>, Halt> {
    let unreadable = || invalid(setting, "names a file that cannot be read");
    let pem = std::fs::read(path).map_err(|_| unreadable())?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|_| invalid(setting, "names a file that is not PEM"))?;
    if found.is_empty() {
        return Err(invalid(setting, "names a file that holds no certificate"));
    }
    Ok(found)
}
