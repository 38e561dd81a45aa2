//! Text on its way into a string: gathered in a piece of fixed size, in which a short text is one store and not a
//! call, and whose UTF-8 is tested once for many values.

use alloc::string::String;

use crate::value::{DateTime, Decimal, json::digits, json::escape, json::temporal};

/// What takes a few values to fill, and is cleared in no time.
const SIZE: usize = 1024;
/// Bytes that are stored at once, of which the first ones count.
pub(crate) const STORE: usize = 32;
/// Room for a value that is written in place: a sign, twenty digits, a point and quotes, and what is stored behind them.
pub(super) const VALUE: usize = 64;

/// When it is tested that texts are UTF-8 which may be none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// With all that stands in a piece, as that is tested anyway. Which of them is none does not show.
    Together,
    /// Each before it is appended.
    Each,
}

/// What is appended to a string, the last part of it not yet there. What is not [settled](Self::settle) is lost,
/// which is meant where a value turns out malformed.
pub(super) struct Draft<'o> {
    out: &'o mut String,
    bytes: [u8; SIZE],
    len: usize,
    proof: Proof,
    /// A piece was no UTF-8.
    broken: bool,
}

impl<'o> Draft<'o> {
    #[inline]
    pub(super) fn new(out: &'o mut String, proof: Proof) -> Self {
        Self { out, bytes: [0; SIZE], len: 0, proof, broken: false }
    }

    /// The string, with all that was appended.
    pub(super) fn settle(&mut self) -> &mut String {
        let text = self.bytes.get(..self.len).unwrap_or_default();
        match simdutf8::basic::from_utf8(text) {
            Ok(text) => self.out.push_str(text),
            Err(_) => {
                self.broken = true;
                self.out.push_str(&String::from_utf8_lossy(text));
            }
        }
        self.len = 0;
        self.out
    }

    /// Settles it. Whether all texts are in the string as they are: if not, which is only where they were proved
    /// [together](Proof::Together), it is all to be done again.
    #[must_use]
    pub(super) fn is_whole(&mut self) -> bool {
        self.settle();
        !self.broken
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
        self.push_array([byte]);
    }

    /// A few ASCII characters.
    #[inline]
    pub(super) fn push_array<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(to) = self.room() {
            *to = bytes;
            self.len += N;
        }
    }

    /// An ASCII text whose first byte becomes `first`, and the value that `write` writes behind it, which gives its
    /// length.
    #[inline(always)]
    pub(super) fn push_member(
        &mut self,
        (first, key, len): (u8, &[u8; STORE], usize),
        write: impl FnOnce(&mut [u8; VALUE]) -> usize,
    ) {
        let Some(to) = self.room::<{ STORE + VALUE }>() else { return };
        if let Some(to) = to.first_chunk_mut() {
            *to = *key;
        }
        to[0] = first;
        let len = len.min(STORE);
        if let Some(to) = to.get_mut(len..).and_then(<[u8]>::first_chunk_mut) {
            self.len += len + write(to).min(VALUE);
        }
    }

    /// A value alone, as in [`Draft::push_member`].
    #[inline(always)]
    pub(super) fn push_value(&mut self, write: impl FnOnce(&mut [u8; VALUE]) -> usize) {
        if let Some(to) = self.room() {
            self.len += write(to).min(VALUE);
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

    /// Bytes in quotes that are UTF-8 if they are text, if that is not to be tested before and there is nothing to
    /// escape; if not nothing is appended.
    #[inline]
    pub(super) fn quote_utf8(&mut self, bytes: &[u8]) -> bool {
        match self.proof {
            Proof::Together => self.quote_as_it_is::<false>(bytes),
            Proof::Each => self.quote_plain(bytes),
        }
    }

    /// Bytes in quotes, if there is nothing to escape, and if they are `ASCII` where they must be.
    #[inline(always)]
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

/// An integer in the first bytes of `to`; gives how many.
#[inline(always)]
pub(super) fn integer(to: &mut [u8; VALUE], negative: bool, magnitude: u64) -> usize {
    to[0] = b'-';
    let sign = usize::from(negative);
    let Some(to) = to.get_mut(sign..).and_then(<[u8]>::first_chunk_mut) else { return 0 };
    sign + digits::write(to, magnitude)
}

/// A DATETIME in quotes, as [`integer`].
#[inline(always)]
pub(super) fn date_time(to: &mut [u8; VALUE], at: DateTime) -> usize {
    let [first, to @ ..] = to;
    let (text, len) = temporal::date_time_text(at);
    let Some(place) = to.first_chunk_mut() else { return 0 };
    *place = text;
    *first = b'"';
    if let Some(last) = to.get_mut(len) {
        *last = b'"';
    }
    len + 2
}

/// A DECIMAL in quotes, as [`integer`]; `None` if it is not a short one.
#[inline(always)]
pub(super) fn decimal(value: Decimal<'_>) -> Option<impl FnOnce(&mut [u8; VALUE]) -> usize> {
    let (all, scale) = (value.short()?, usize::from(value.scale()));
    let power = *digits::POWERS.get(scale)?;
    let (negative, whole, fraction) = (value.is_negative(), all / power, all % power);
    Some(move |to: &mut [u8; VALUE]| {
        *to.first_chunk_mut().unwrap_or(&mut [0; 2]) = *b"\"-";
        let mut len = 1 + usize::from(negative);
        let Some(place) = to.get_mut(len..).and_then(<[u8]>::first_chunk_mut) else { return 0 };
        len += digits::write(place, whole);
        if scale > 0 {
            let Some([point, place @ ..]) = to.get_mut(len..) else { return 0 };
            *point = b'.';
            let Some(place) = place.first_chunk_mut() else { return 0 };
            digits::write_exactly(place, fraction, scale);
            len += 1 + scale;
        }
        if let Some(last) = to.get_mut(len) {
            *last = b'"';
        }
        len + 1
    })
}

/// Copies into as many bytes, few of them without a call.
#[inline]
fn copy(to: &mut [u8], from: &[u8]) {
    match from.len() {
        8..=16 => copy_ends::<8>(to, from),
        17..=32 => copy_ends::<16>(to, from),
        33..=64 => copy_ends::<32>(to, from),
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
#[inline(always)]
fn copy_plain<const ASCII: bool>(to: &mut [u8], from: &[u8]) -> bool {
    match from.len() {
        32.. => copy_blocks::<ASCII, 32>(to, from),
        16.. => copy_blocks::<ASCII, 16>(to, from),
        8.. => copy_blocks::<ASCII, 8>(to, from),
        _ => {
            let mut special = [0u8];
            for (to, from) in to.iter_mut().zip(from) {
                note_special::<ASCII, _>(&mut special, &[*from]);
                *to = *from;
            }
            special == [0]
        }
    }
}

/// [`copy_plain`] of at least one block.
#[inline(always)]
fn copy_blocks<const ASCII: bool, const N: usize>(to: &mut [u8], from: &[u8]) -> bool {
    let mut special = [0u8; N];
    for (to, from) in to.as_chunks_mut::<N>().0.iter_mut().zip(from.as_chunks::<N>().0) {
        note_special::<ASCII, _>(&mut special, from);
        *to = *from;
    }
    // Some of them for the second time, so that no block is of another size.
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk::<N>()) {
        note_special::<ASCII, _>(&mut special, from);
        *to = *from;
    }
    // A comparison with zeros would be made byte by byte.
    special.iter().fold(0, |any, special| any | special) == 0
}

/// Without a way out, so that all bytes are looked at together.
#[inline(always)]
fn note_special<const ASCII: bool, const N: usize>(special: &mut [u8; N], bytes: &[u8; N]) {
    for (special, byte) in special.iter_mut().zip(bytes) {
        // A quote changes places with a space, and then is right behind what is below a space. All beyond ASCII is
        // below it too where signs count.
        let moved = byte ^ 0x02;
        let low = if ASCII { moved.cast_signed() <= 0x20 } else { moved <= 0x20 };
        // All bits, which is what a comparison of many bytes gives.
        *special |= u8::from(low | (*byte == b'\\')).wrapping_neg();
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
            let mut draft = Draft::new(&mut out, Proof::Each);
            for (how, text) in &pieces {
                let mut short = [b'x'; STORE];
                let ascii: Vec<u8> = text.bytes().filter(u8::is_ascii).take(STORE).collect();
                short[..ascii.len()].copy_from_slice(&ascii);
                match how {
                    0 => { draft.push_str(text); plain.push_str(text); }
                    1 => { draft.quote(text); escape::quote(&mut plain, text); }
                    2 => { draft.push(b','); plain.push(','); }
                    3 if !ascii.is_empty() => {
                        let (magnitude, negative) = (u64::MAX >> (text.len() % 64), text.len() % 2 == 0);
                        draft.push_member((b',', &short, ascii.len()), |to| integer(to, negative, magnitude));
                        let (key, sign) = (core::str::from_utf8(&ascii[1..]).unwrap(), if negative { "-" } else { "" });
                        plain.push_str(&std::format!(",{key}{sign}{magnitude}"));
                    }
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
