//! A reader over bytes from outside that can neither panic nor run past the end.

/// The bytes ended before the field did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes end inside a field")]
pub struct Short;

/// A cursor over borrowed bytes. Integers are little-endian unless the name says `be`.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl core::fmt::Debug for Reader<'_> {
    // Rule 1: what is left may hold row values, so only its length is shown.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Reader({} bytes left)", self.rest.len())
    }
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read yet.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// How many bytes are left.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rest.len()
    }

    /// Whether everything has been read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `n` bytes.
    #[inline]
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Short> {
        let (head, tail) = self.rest.split_at_checked(n).ok_or(Short)?;
        self.rest = tail;
        Ok(head)
    }

    /// The next `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(Short)?;
        self.rest = tail;
        Ok(*head)
    }

    /// Steps over `n` bytes.
    #[inline]
    pub fn skip(&mut self, n: usize) -> Result<(), Short> {
        self.take(n).map(|_| ())
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Short> {
        self.array::<1>().map(|[b]| b)
    }

    /// Two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Short> {
        self.array().map(u16::from_le_bytes)
    }

    /// Three bytes.
    #[inline]
    pub fn u24(&mut self) -> Result<u32, Short> {
        self.array::<3>().map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
    }

    /// Four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Short> {
        self.array().map(u32::from_le_bytes)
    }

    /// Six bytes (table ids).
    #[inline]
    pub fn u48(&mut self) -> Result<u64, Short> {
        self.array::<6>().map(|[a, b, c, d, e, f]| u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
    }

    /// Seven bytes (the commit timestamps of GTID events).
    #[inline]
    pub fn u56(&mut self) -> Result<u64, Short> {
        self.array::<7>().map(|[a, b, c, d, e, f, g]| u64::from_le_bytes([a, b, c, d, e, f, g, 0]))
    }

    /// Eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Short> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length-encoded integer (protocol docs, `protocol_basic_data_types`). `0xfb` and `0xff` are
    /// no integers here: the first is NULL in text rows, the second opens an error packet, and a
    /// caller that allows them tests for them first.
    #[inline]
    pub fn lenenc(&mut self) -> Result<u64, Short> {
        match self.u8()? {
            n @ 0..=0xfa => Ok(u64::from(n)),
            0xfc => self.u16().map(u64::from),
            0xfd => self.u24().map(u64::from),
            0xfe => self.u64(),
            0xfb | 0xff => Err(Short),
        }
    }

    /// A length-encoded integer that counts bytes still to come, so it cannot exceed them.
    #[inline]
    pub fn lenenc_len(&mut self) -> Result<usize, Short> {
        let n = usize::try_from(self.lenenc()?).map_err(|_| Short)?;
        if n > self.rest.len() { Err(Short) } else { Ok(n) }
    }

    /// Bytes behind a length-encoded length.
    #[inline]
    pub fn lenenc_bytes(&mut self) -> Result<&'a [u8], Short> {
        let n = self.lenenc_len()?;
        self.take(n)
    }

    /// A variable-length integer of MySQL's serialization library (GTID_TAGGED events, tagged GTID
    /// sets): as many trailing ones in the first byte as bytes follow, then a zero (none in front of
    /// eight bytes), then the number (`libs/mysql/serialization/readme.md`).
    #[inline]
    pub fn varlen(&mut self) -> Result<u64, Short> {
        let first = self.u8()?;
        let following = first.trailing_ones();
        let mut rest = [0; 8];
        for slot in rest.iter_mut().take(usize::try_from(following).map_err(|_| Short)?) {
            *slot = self.u8()?;
        }
        let rest = u64::from_le_bytes(rest);
        // Up to seven following bytes leave 7 - following bits in the first; eight leave none.
        match following {
            8 => Ok(rest),
            n => Ok(u64::from(first) >> n.wrapping_add(1) | rest << 7_u32.wrapping_sub(n)),
        }
    }

    /// A signed [`varlen`](Self::varlen): the lowest bit is the sign, a negative number is stored as
    /// its complement.
    #[inline]
    pub fn varlen_signed(&mut self) -> Result<i64, Short> {
        let n = self.varlen()?;
        let magnitude = (n >> 1).cast_signed();
        Ok(if n & 1 == 0 { magnitude } else { !magnitude })
    }

    /// Bytes up to a NUL, which is consumed and not returned.
    pub fn nul_terminated(&mut self) -> Result<&'a [u8], Short> {
        let end = self.rest.iter().position(|&b| b == 0).ok_or(Short)?;
        let bytes = self.take(end)?;
        self.skip(1)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_encoded_integers_have_four_widths_and_two_holes() {
        for (bytes, want) in [
            (&[0xfa][..], Ok(0xfa)),
            (&[0xfc, 0x01, 0x02], Ok(0x0201)),
            (&[0xfd, 1, 2, 3], Ok(0x03_0201)),
            (&[0xfe, 1, 0, 0, 0, 0, 0, 0, 0x80], Ok(0x8000_0000_0000_0001)),
            (&[0xfb], Err(Short)),
            (&[0xff], Err(Short)),
            (&[0xfc, 1], Err(Short)),
            (&[], Err(Short)),
        ] {
            assert_eq!(Reader::new(bytes).lenenc(), want, "{bytes:02x?}");
        }
    }

    #[test]
    fn a_length_beyond_the_end_is_short_before_anything_is_taken() {
        let mut r = Reader::new(&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
        assert_eq!(r.lenenc_bytes(), Err(Short));
    }

    #[test]
    fn variable_length_integers_as_documented() {
        // The first rows are the examples of `libs/mysql/serialization/readme.md`, byte-swapped: the
        // page prints them most significant byte first.
        for (bytes, unsigned, signed) in [
            (&[0b1111_1011, 0xff, 0b0000_0111][..], Ok(65535), None),
            (&[0b1111_0011, 0xff, 0b0000_1111], Ok(131_070), Some(65535)),
            (&[0b1111_1011, 0xff, 0b0000_1111], Ok(131_071), Some(-65536)),
            (&[0x00], Ok(0), Some(0)),
            (&[0x02], Ok(1), Some(-1)),
            (&[0xfe], Ok(127), Some(-64)),
            (&[0x01, 0x02], Ok(128), Some(64)),
            (&[0x7f, 1, 2, 3, 4, 5, 6, 7], Ok(0x0007_0605_0403_0201), None),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Ok(u64::MAX), Some(i64::MIN)),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Err(Short), None),
            (&[0x01], Err(Short), None),
            (&[], Err(Short), None),
        ] {
            assert_eq!(Reader::new(bytes).varlen(), unsigned, "{bytes:02x?}");
            if let Some(signed) = signed {
                assert_eq!(Reader::new(bytes).varlen_signed(), Ok(signed), "{bytes:02x?}");
            }
        }
    }

    #[test]
    fn nul_terminated_needs_its_nul() {
        let mut r = Reader::new(b"ab\0c");
        assert_eq!(r.nul_terminated(), Ok(&b"ab"[..]));
        assert_eq!(r.nul_terminated(), Err(Short));
    }
}
