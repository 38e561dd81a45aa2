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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;

    /// What a server would send, without the NUL.
    const NONCE: Nonce = *b"!\"#$%&'()*+,-./01234";

    const KEY_1024: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC00iUOAiBAg5uH7i49ssPiCz7G\n\
08KXbEJ8LU9aof4J3KxdQg32ur7Pkp3Mc0GMv0wDfgby7uXl8J5SsfBEHgfFdE4V\n\
rc30ZD0H1vlL7nylOB/PJEkdeeuoXQUVlC1LOWQOGUWboP9sdZgLMYvyEBwLb5Mw\n\
cXsLt8siEBFZRPir9wIDAQAB\n\
-----END PUBLIC KEY-----\n\
";

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Computed with Python's hashlib from the formulas of the manual.
    #[test]
    fn scrambles() {
        for (password, native_hex, caching_hex) in [
            (
                "secret",
                "1f44f306295a10870fd7895d358cb5f975d7d47f",
                "3e6e1d1225dfe8531b46e47caf897453dba8211b1e2fdca5e10ef0f98718b18e",
            ),
            (
                "p\u{e4}ssw\u{f6}rd \u{20ac}",
                "625c62df5dc794c3bbf097811ce0041ed4a1a0ed",
                "cf98c4fcb43fba7bae81de91b8fdcc14d8e96ff225ccca0220abe788c2610f46",
            ),
            ("", "", "00"),
        ] {
            let password = Secret::new(password);
            assert_eq!(hex(&native(&password, &NONCE)), native_hex);
            assert_eq!(hex(&caching_sha2(&password, &NONCE)), caching_hex);
        }
    }

    #[test]
    fn the_mask_repeats_the_nonce_and_covers_the_nul() {
        let masked = masked(&Secret::new("0123456789abcdefghijkl"), &NONCE);
        let bytes = masked.expose();
        assert_eq!(bytes.len(), 23);
        assert_eq!(bytes[0], b'0' ^ NONCE[0]);
        assert_eq!(bytes[20], b'k' ^ NONCE[0]);
        assert_eq!(bytes[22], NONCE[2], "the NUL is masked as well");
    }

    /// Computed with Python's hashlib.
    #[test]
    fn random_bytes_are_a_function_of_the_seed() {
        let mut random = SeedRandom::new([7; 32]);
        let mut bytes = [0; 40];
        random.try_fill_bytes(&mut bytes).unwrap();
        assert_eq!(
            hex(&bytes),
            "b20669e31d026d157b06fdcebde72b42ad3f9baa5874dfac20f98dd01f19041a210a1e5fc0e80a41"
        );
        assert_ne!(random.try_next_u64(), SeedRandom::new([8; 32]).try_next_u64());
    }

    /// OpenSSL decrypts this with the private half (`pkeyutl -decrypt -pkeyopt rsa_padding_mode:oaep`) to
    /// "secret" and a NUL, masked with the nonce.
    #[test]
    fn an_encrypted_password() {
        let key = ServerPublicKey::from_pem(KEY_1024.as_bytes()).unwrap();
        let encrypted = key.encrypt(&Secret::new("secret"), &NONCE, &mut SeedRandom::new([7; 32])).unwrap();
        assert_eq!(
            hex(&encrypted),
            concat!(
                "479c47630749e9cf4b8f1d360a1fa0707dafb8b85af9fb686531098bd4160f25",
                "8ed3ef14dfe5ddba913226aa0240dcf8a31e6b34f5aaf3b7e0636e6084e7730d",
                "f3b85d652cf448de86ee8dc4292efd8b0c971535604952b367c6bd3a92591cb9",
                "c402a80d03f56acd5a36a13066ae6f585d699c4b755620e1a7faf813d8b141cc",
            )
        );
    }

    #[test]
    fn the_longest_password_is_the_key_less_43_bytes() {
        let key = ServerPublicKey::from_pem(KEY_1024.as_bytes()).unwrap();
        let encrypt = |len| key.encrypt(&Secret::new("x".repeat(len)), &NONCE, &mut SeedRandom::new([7; 32]));
        assert_eq!(encrypt(85).map(|bytes| bytes.len()), Ok(128));
        assert_eq!(encrypt(86), Err(PasswordTooLong { max: 85 }));
        assert_eq!(encrypt(10_000), Err(PasswordTooLong { max: 85 }));
    }

    #[test]
    fn keys_are_read_leniently_around_and_strictly_inside() {
        for good in [
            KEY_1024.into(),
            // As the server writes its own.
            format!("{KEY_1024}\0"),
            format!("\r\n {} \n\0", KEY_1024.replace('\n', "\r\n")),
        ] {
            let key = ServerPublicKey::from_pem(good.as_bytes()).unwrap();
            assert_eq!(format!("{key:?}"), "ServerPublicKey(1024 bits)");
        }
        let ed25519 = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA+1fWZM7vyuE2amkIswgKVWoYA3NpznzFqgPW8vzp7FU=\n-----END PUBLIC KEY-----\n";
        let rsa_512 = "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAL+jffByfpLQK9AyhknlOyXmzvlGt+an\n7DxSyOU9PQfJktF7XjRZla3x4a+ViOusZLEvxdZuiwUfIkVV8gczYCECAwEAAQ==\n-----END PUBLIC KEY-----\n";
        for bad in ["", "\0", "no key", ed25519, rsa_512, &KEY_1024[..100], &KEY_1024.replace("MIG", "MIX")] {
            assert!(ServerPublicKey::from_pem(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(ServerPublicKey::from_pem(&[0xff, 0xfe]).is_err());
    }
}
