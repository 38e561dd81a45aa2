//! Writing integers the way the protocol does, and reading them back.

/// Appends the low `width` bytes of `n`, little-endian.
pub(crate) fn int(out: &mut Vec<u8>, n: u64, width: usize) {
    out.extend_from_slice(&n.to_le_bytes()[..width]);
}

/// A length-encoded integer (`page_protocol_basic_dt_integers`).
pub(crate) fn lenenc(out: &mut Vec<u8>, n: u64) {
    match n {
        0..=250 => out.push(n as u8),
        251..=0xffff => {
            out.push(0xfc);
            int(out, n, 2);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            int(out, n, 3);
        }
        _ => {
            out.push(0xfe);
            int(out, n, 8);
        }
    }
}

/// Bytes behind their length-encoded length.
pub(crate) fn lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    lenenc(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A variable-length integer of the serialization library (`libs/mysql/serialization/readme.md`): as
/// many low ones as bytes follow, a zero, and the number.
pub(crate) fn varlen(out: &mut Vec<u8>, n: u64) {
    for bytes in 1..=8_u32 {
        if n >> (7 * bytes) == 0 {
            let marked = if bytes == 8 { n << 8 } else { n << bytes } | ((1 << (bytes - 1)) - 1);
            int(out, marked, bytes as usize);
            return;
        }
    }
    out.push(0xff);
    int(out, n, 8);
}

/// A signed one: the sign is the lowest bit, a negative number is stored as its complement.
pub(crate) fn varlen_signed(out: &mut Vec<u8>, n: i64) {
    let magnitude = if n < 0 { !n } else { n }.cast_unsigned();
    varlen(out, magnitude << 1 | u64::from(n < 0));
}

/// A cursor over bytes that were written here or captured: what does not fit is `None`.
#[derive(Clone, Copy)]
pub(crate) struct Take<'a>(pub(crate) &'a [u8]);

impl<'a> Take<'a> {
    pub(crate) fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }

    pub(crate) fn int(&mut self, width: usize) -> Option<u64> {
        let mut n = [0; 8];
        n[..width].copy_from_slice(self.bytes(width)?);
        Some(u64::from_le_bytes(n))
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.int(1).map(|n| n as u8)
    }

    pub(crate) fn lenenc(&mut self) -> Option<u64> {
        match self.u8()? {
            n @ 0..=0xfa => Some(u64::from(n)),
            0xfc => self.int(2),
            0xfd => self.int(3),
            0xfe => self.int(8),
            0xfb | 0xff => None,
        }
    }

    pub(crate) fn lenenc_bytes(&mut self) -> Option<&'a [u8]> {
        let n = self.lenenc()?;
        self.bytes(usize::try_from(n).ok()?)
    }

    pub(crate) fn varlen(&mut self) -> Option<u64> {
        let following = self.0.first()?.trailing_ones() as usize;
        if following == 8 {
            self.bytes(1)?;
            return self.int(8);
        }
        Some(self.int(following + 1)? >> (following + 1))
    }

    pub(crate) fn varlen_signed(&mut self) -> Option<i64> {
        let n = self.varlen()?;
        let magnitude = (n >> 1).cast_signed();
        Some(if n & 1 == 0 { magnitude } else { !magnitude })
    }

    pub(crate) fn nul_terminated(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|b| *b == 0)?;
        let bytes = self.bytes(end)?;
        self.bytes(1)?;
        Some(bytes)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
