//! Bytes that nobody may see.

use alloc::vec::Vec;
use core::fmt;

/// A password or what is derived from one. Its `Debug` is blank, it has no `Display`, and its bytes
/// are overwritten when it is dropped.
///
/// Overwriting is done in safe code, so a compiler that proves the write dead may leave it out: it
/// narrows the window in which a core dump holds the password, and promises no more than that.
#[derive(Clone, Default)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Takes the bytes over, so that no second copy is left behind.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes, for the one computation that needs them.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Whether there is no password at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.fill(0);
        core::hint::black_box(self.0.as_slice());
    }
}

impl fmt::Debug for Secret {
    // Rule 1: not even the length, which would narrow a search.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn debug_says_neither_bytes_nor_length() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret");
        assert_eq!(format!("{:?}", Secret::default()), "Secret");
    }
}
