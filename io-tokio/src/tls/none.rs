//! A build without TLS.

use crate::{
    halt::Halt,
    source::{SslMode, SslSettings, invalid},
};

/// Refuses every mode but `disabled`.
#[derive(Clone, Debug)]
pub struct Tls(());

impl Tls {
    /// # Errors
    /// `config_invalid` where TLS is wanted.
    pub fn new(ssl: &SslSettings) -> Result<Self, Halt> {
        match ssl.mode {
            SslMode::Disabled => Ok(Self(())),
            SslMode::Required | SslMode::VerifyCa | SslMode::VerifyIdentity => {
                Err(invalid("ssl-mode", "needs a build with the feature tls"))
            }
        }
    }
}
