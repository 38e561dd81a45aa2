//! Text on its way into a string: gathered in a piece of fixed size, in which a short text is one store and not a
//! call, and whose UTF-8 is tested once for many values.

use alloc::string::String;

use crate::value::{Decimal, json::escape};

/// What takes a few values to fill, and is cleared in no time.
const SIZE: usize = 1024;
/// Bytes that are stored at once, of which the first ones count.
pub(crate) const STORE: usize = 32;

/// What is appended to a string, the last part of it not yet there. What is not [settled](Self::settle) is lost,
/// which is meant where a value turns out malformed.
pub(super) struct Draft<'o> {
    out: &'o mut String,
    bytes: [u8; SIZE],
    len: usize,
}

impl<'o> Draft<'o> {
    #[inline]
    pub(super) fn new(out: &'o mut String) -> Self {
        Self { out, bytes: [0; SIZE], len: 0 }
    }

    /// The string, with all that was appended.
    pub(super) fn settle(&mut self) -> &mut String {
        let text = self.bytes.get(..self.len).unwrap_or_default();
        match simdutf8::basic::from_utf8(text) {
            Ok(text) => self.out.push_str(text),
            // Not to be reached: whole texts are appended, and nothing else.
            Err(_) => self.out.push_str(&String::from_utf8_lossy(text)),
        }
        self.len = 0;
        self.out
    }

    /// Room for `N` bytes.
    #[inline]
    fn room<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        const { assert!(N <= SIZE) }
        if self.len > SIZE - N {
            self.settle();
        }
        self.bytes.get_mut(self.len..)?.first_chunk_mut()
    }

    /// An ASCII character.
    #[inline]
    pub(super) fn push(&mut self, byte: u8) {
        if let Some(to) = self.room() {
            *to = [byte];
            self.len += 1;
        }
    }

    /// The first `len` bytes of an ASCII text.
    #[inline]
    pub(super) fn push_short(&mut self, text: &[u8; STORE], len: usize) {
        if let Some(to) = self.room() {
            *to = *text;
            self.len += len.min(STORE);
        }
    }

    /// A text whose first byte, which is ASCII, becomes `first`.
    #[inline]
    pub(super) fn push_key(&mut self, first: u8, text: &[u8; STORE], len: usize) {
        if let Some(to) = self.room::<STORE>() {
            *to = *text;
            to[0] = first;
            self.len += len.min(STORE);
        }
    }

    #[inline]
    pub(super) fn push_str(&mut self, text: &str) {
        if self.len + text.len() > SIZE {
            self.settle();
        }
        match self.bytes.get_mut(self.len..).and_then(|rest| rest.get_mut(..text.len())) {
            Some(to) => {
                copy(to, text.as_bytes());
                self.len += text.len();
            }
            None => self.out.push_str(text),
        }
    }

    /// A DECIMAL in quotes.
    #[inline]
    pub(super) fn quote_decimal(&mut self, value: Decimal<'_>) {
        self.push(b'"');
        let (scale, mut buffer) = (usize::from(value.scale()), itoa::Buffer::new());
        let digits = value.short().map(|digits| buffer.format(digits)).unwrap_or_default();
        match digits.split_at(digits.len().saturating_sub(scale)) {
            (whole, fraction) if !whole.is_empty() && !fraction.is_empty() => {
                if value.is_negative() {
                    self.push(b'-');
                }
                self.push_str(whole);
                self.push(b'.');
                self.push_str(fraction);
            }
            _ => self.push_str(value.text().as_str()),
        }
        self.push(b'"');
    }

    /// A text in quotes, with escapes where there must be some.
    #[inline]
    pub(super) fn quote(&mut self, text: &str) {
        if !self.quote_as_it_is::<false>(text.as_bytes()) {
            escape::quote(self.settle(), text);
        }
    }

    /// Bytes in quotes, if they are ASCII without anything to escape; if not nothing is appended.
    #[inline]
    pub(super) fn quote_plain(&mut self, bytes: &[u8]) -> bool {
        self.quote_as_it_is::<true>(bytes)
    }

    /// Bytes in quotes, if there is nothing to escape, and if they are `ASCII` where they must be.
    #[inline]
    fn quote_as_it_is<const ASCII: bool>(&mut self, bytes: &[u8]) -> bool {
        let quoted = bytes.len().saturating_add(2);
        if quoted > SIZE - self.len {
            if quoted > SIZE {
                return false;
            }
            self.settle();
        }
        let Some([first, rest @ ..]) = self.bytes.get_mut(self.len..) else { return false };
        let Some((to, [last, ..])) = rest.split_at_mut_checked(bytes.len()) else { return false };
        if !copy_plain::<ASCII>(to, bytes) {
            return false;
        }
        (*first, *last) = (b'"', b'"');
        self.len += quoted;
        true
    }
}

/// Copies into as many bytes, few of them without a call.
#[inline]
fn copy(to: &mut [u8], from: &[u8]) {
    match from.len() {
        8..=16 => copy_ends::<8>(to, from),
        17..=32 => copy_ends::<16>(to, from),
        _ => to.copy_from_slice(from),
    }
}

/// The first bytes and the last, of which some may be the same.
#[inline]
fn copy_ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk()) {
        *to = *from;
    }
}

/// Copies into as many bytes and says whether all stand in JSON as they are, and are `ASCII` where they must be. If
/// not, what was copied is of no use.
#[inline]
fn copy_plain<const ASCII: bool>(to: &mut [u8], from: &[u8]) -> bool {
    match (from.last_chunk::<16>(), from.first_chunk::<8>(), from.last_chunk::<8>()) {
        (Some(last), ..) => {
            let mut special = [0u8; 16];
            for (to, from) in to.as_chunks_mut::<16>().0.iter_mut().zip(from.as_chunks::<16>().0) {
                note_special::<ASCII, _>(&mut special, from);
                *to = *from;
            }
            // Some of them for the second time, so that no block is of another size.
            note_special::<ASCII, _>(&mut special, last);
            if let Some(to) = to.last_chunk_mut() {
                *to = *last;
            }
            none(&special)
        }
        (None, Some(first), Some(last)) => {
            let mut special = [0u8; 8];
            note_special::<ASCII, _>(&mut special, first);
            note_special::<ASCII, _>(&mut special, last);
            copy_ends::<8>(to, from);
            none(&special)
        }
        (None, ..) => {
            let mut special = [0u8];
            for (to, from) in to.iter_mut().zip(from) {
                note_special::<ASCII, _>(&mut special, &[*from]);
                *to = *from;
            }
            none(&special)
        }
    }
}

/// A comparison with zeros would be made byte by byte.
#[inline(always)]
fn none<const N: usize>(special: &[u8; N]) -> bool {
    special.iter().fold(0, |any, special| any | special) == 0
}

/// Without a way out, so that all bytes are looked at together.
#[inline(always)]
fn note_special<const ASCII: bool, const N: usize>(special: &mut [u8; N], bytes: &[u8; N]) {
    for (special, byte) in special.iter_mut().zip(bytes) {
        // Below a space, or beyond ASCII too.
        let beyond = if ASCII { byte.wrapping_sub(0x20) >= 0x60 } else { *byte < 0x20 };
        *special |= u8::from(beyond | (*byte == b'"') | (*byte == b'\\'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Texts around every length that is handled in another way, with one byte of every kind at each place.
    #[test]
    fn plain_text_is_copied_and_told_from_any_other() {
        for len in (0..70).chain([SIZE - 3, SIZE - 2, SIZE - 1, SIZE]) {
            let plain: Vec<u8> =
                (0..len).map(|n| [b' ', b'!', b'#', b'[', b']', b'~', 0x7f][n % 7]).collect();
            for at in 0..len {
                for byte in [0, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x5b, 0x5c, 0x5d, 0x7f, 0x80, 0xa2, 0xdc, 0xff]
                {
                    let mut bytes = plain.clone();
                    bytes[at] = byte;
                    let needs_escape = byte < 0x20 || byte == b'"' || byte == b'\\';
                    let (mut to, mut other) = (std::vec![0; len], std::vec![0; len]);
                    assert_eq!(copy_plain::<true>(&mut to, &bytes), !needs_escape && byte < 0x80);
                    assert_eq!(copy_plain::<false>(&mut other, &bytes), !needs_escape);
                    assert!(needs_escape || (to == bytes && other == bytes), "{len} {at}");
                }
            }
        }
    }

    proptest::proptest! {
        /// Any pieces behind one another are what they are in a string.
        #[test]
        fn a_draft_is_a_string(
            pieces in proptest::collection::vec(
                (0u8..6, proptest::prop_oneof!["[a-z]{0,40}", "[ -~äö\u{1f600}\n\"]{0,60}", "[a-z\u{e9}\t]{900,1100}"]),
                0..60,
            ),
        ) {
            let (mut out, mut plain) = (String::from("head"), String::from("head"));
            let mut draft = Draft::new(&mut out);
            for (how, text) in &pieces {
                let mut short = [b'x'; STORE];
                let ascii: Vec<u8> = text.bytes().filter(u8::is_ascii).take(STORE).collect();
                short[..ascii.len()].copy_from_slice(&ascii);
                match how {
                    0 => { draft.push_str(text); plain.push_str(text); }
                    1 => { draft.quote(text); escape::quote(&mut plain, text); }
                    2 => { draft.push(b','); plain.push(','); }
                    3 => { draft.push_short(&short, ascii.len()); plain.push_str(core::str::from_utf8(&ascii).unwrap()); }
                    4 if !ascii.is_empty() => {
                        draft.push_key(b'{', &short, ascii.len());
                        plain.push('{');
                        plain.push_str(core::str::from_utf8(&ascii[1..]).unwrap());
                    }
                    _ => { draft.settle().push('.'); plain.push('.'); }
                }
            }
            draft.settle();
            proptest::prop_assert_eq!(out, plain);
        }
    }
}
