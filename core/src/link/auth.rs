//! The arithmetic of authentication: scrambles, the RSA exchange, and its randomness.
//!
//! Sources: `sql/auth/password.c`, `sql/auth/sha2_password_common.cc`, `sql-common/client_authentication.cc`;
//! manual pages "Native Pluggable Authentication" and "Caching SHA-2 Pluggable Authentication".

use super::secret::Secret;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;
use rsa::pkcs8::DecodePublicKey;
use rsa::rand_core::{TryCryptoRng, TryRng};
use rsa::traits::PublicKeyParts;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// The nonce of a greeting or a switch: 20 bytes, the NUL behind them left off.
pub(crate) const NONCE_LEN: usize = 20;
pub(crate) type Nonce = [u8; NONCE_LEN];

/// OAEP with SHA-1 takes two digests and two bytes of every block (RFC 8017, 7.1.1).
const OAEP_OVERHEAD: usize = 2 * 20 + 2;

/// A public key that is none: not PEM, not RSA, or of a size outside 1,024 to 8,192 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an RSA public key in PEM form")]
pub struct BadPublicKey;

/// The password does not fit the server's key: at most the key's bytes less 43 (213 bytes for
/// 2,048 bits). The configuration is at fault; TLS has no such limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the password is longer than the {max} bytes that the server's RSA key can encrypt")]
pub struct PasswordTooLong {
    /// The longest password this key can encrypt, in bytes.
    pub max: usize,
}

/// The RSA key that a server decrypts passwords with.
#[derive(Clone)]
pub struct ServerPublicKey(rsa::PublicKey);

impl fmt::Debug for ServerPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerPublicKey({} bits)", self.0.size().saturating_mul(8))
    }
}

impl ServerPublicKey {
    /// Reads PEM (`BEGIN PUBLIC KEY`), as in the server's `public_key.pem`, which ends in a NUL byte
    /// when the server wrote it itself: NULs and white space around the text are left off.
    pub fn from_pem(pem: &[u8]) -> Result<Self, BadPublicKey> {
        let text = core::str::from_utf8(pem).map_err(|_| BadPublicKey)?;
        let text = text.trim_matches(|c: char| c == '\0' || c.is_ascii_whitespace());
        rsa::PublicKey::from_public_key_pem(text).map(Self).map_err(|_| BadPublicKey)
    }

    /// Encrypts the password, NUL-terminated and masked with the nonce, with OAEP (SHA-1).
    pub(crate) fn encrypt(
        &self,
        password: &Secret,
        nonce: &Nonce,
        random: &mut SeedRandom,
    ) -> Result<Vec<u8>, PasswordTooLong> {
        let max = self.0.size().saturating_sub(OAEP_OVERHEAD).saturating_sub(1);
        if password.expose().len() > max {
            return Err(PasswordTooLong { max });
        }
        let masked = masked(password, nonce);
        self.0.oaep_encrypt_with_rng::<Sha1, _>(random, masked.expose()).map_err(|_| PasswordTooLong { max })
    }
}

/// `mysql_native_password`: SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password))); nothing for no
/// password.
#[must_use]
pub(crate) fn native(password: &Secret, nonce: &Nonce) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password.expose());
    let twice = Sha1::digest(once);
    let mask = Sha1::new().chain_update(nonce).chain_update(twice).finalize();
    xor(&once, &mask)
}

/// The fast path of `caching_sha2_password`:
/// SHA256(password) XOR SHA256(SHA256(SHA256(password)) + nonce); one NUL for no password.
#[must_use]
pub(crate) fn caching_sha2(password: &Secret, nonce: &Nonce) -> Vec<u8> {
    if password.is_empty() {
        return clear(password);
    }
    let once = Sha256::digest(password.expose());
    let twice = Sha256::digest(once);
    let mask = Sha256::new().chain_update(twice).chain_update(nonce).finalize();
    xor(&once, &mask)
}

/// The password itself, NUL-terminated. Only for an encrypted connection, or for no password.
#[must_use]
pub(crate) fn clear(password: &Secret) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(password.expose().len().saturating_add(1));
    bytes.extend_from_slice(password.expose());
    bytes.push(0);
    bytes
}

/// The NUL-terminated password XOR the nonce over and over: what the RSA exchange encrypts.
fn masked(password: &Secret, nonce: &Nonce) -> Secret {
    let mut bytes = clear(password);
    bytes.iter_mut().zip(nonce.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    Secret::new(bytes)
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// Random bytes from a seed: SHA-256 over the seed and a counter. The seed must be fresh for every
/// connection and must come from a good source; the core has none of its own.
pub(crate) struct SeedRandom {
    seed: [u8; 32],
    counter: u64,
}

impl fmt::Debug for SeedRandom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeedRandom")
    }
}

impl SeedRandom {
    pub(crate) const fn new(seed: [u8; 32]) -> Self {
        Self { seed, counter: 0 }
    }

    fn block(&mut self) -> [u8; 32] {
        let block = Sha256::new()
            .chain_update(b"capstan link\0")
            .chain_update(self.seed)
            .chain_update(self.counter.to_le_bytes())
            .finalize();
        self.counter = self.counter.wrapping_add(1);
        block.into()
    }
}

impl TryRng for SeedRandom {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let [a, b, c, d, ..] = self.block();
        Ok(u32::from_le_bytes([a, b, c, d]))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let [a, b, c, d, e, f, g, h, ..] = self.block();
        Ok(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
    }

    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), Infallible> {
        for part in into.chunks_mut(32) {
            part.iter_mut().zip(self.block()).for_each(|(to, from)| *to = from);
        }
        Ok(())
    }
}

impl TryCryptoRng for SeedRandom {}
