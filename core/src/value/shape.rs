//! GEOMETRY and VECTOR values, and BIT.

use alloc::string::String;
use core::fmt;

/// A BIT(n) value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Bit {
    value: u64,
    bits: u8,
}

impl Bit {
    /// `value` in a column of `bits` bits (1 to 64); `None` if it does not fit.
    #[must_use]
    pub const fn new(value: u64, bits: u8) -> Option<Self> {
        let fits = match bits {
            1..=63 => value >> bits == 0,
            64 => true,
            _ => false,
        };
        if fits { Some(Self { value, bits }) } else { None }
    }

    /// The bits as a number, the leftmost being the most significant.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.value
    }

    /// Width of the column.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.bits
    }
}

impl fmt::Debug for Bit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bit({})", self.bits)
    }
}

/// A GEOMETRY value in the server's own form: four bytes SRID and WKB (manual, "Internal Geometry
/// Storage Format").
///
/// Or no bytes at all: what servers before 5.7 gave the rows that a new `GEOMETRY NOT NULL` column found, and
/// rows inserted without it. Such rows survive upgrades; the server shows them as an empty string.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Geometry<'a> {
    bytes: &'a [u8],
    srid: u32,
}

impl<'a> Geometry<'a> {
    /// A value over its bytes; `None` if they are some, and too few for SRID and the head of a WKB.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self { bytes, srid: 0 });
        }
        let (srid, wkb) = bytes.split_first_chunk::<4>()?;
        // Byte order and type.
        (wkb.len() >= 5).then_some(Self { bytes, srid: u32::from_le_bytes(*srid) })
    }

    /// SRID and WKB as stored.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// No bytes: not even an empty geometry (`GEOMETRYCOLLECTION EMPTY` has some).
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// Spatial reference system id; 0: none.
    #[must_use]
    pub const fn srid(self) -> u32 {
        self.srid
    }

    /// Well-known binary, little-endian, axes in the order the server stores (longitude first).
    #[must_use]
    pub fn wkb(self) -> &'a [u8] {
        self.bytes.get(4..).unwrap_or_default()
    }

    /// Well-known text, axes as in [`Geometry::wkb`] (`ST_AsText(g, 'axis-order=long-lat')`), each coordinate
    /// with the fewest digits that read back as the same double; `None` if the bytes are no geometry.
    #[must_use]
    pub fn to_wkt(self) -> Option<String> {
        super::wkt::of(self.wkb())
    }
}

impl fmt::Debug for Geometry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Geometry({} bytes)", self.bytes.len())
    }
}

/// A VECTOR value: 32-bit floats.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Vector<'a> {
    bytes: &'a [u8],
}

impl<'a> Vector<'a> {
    /// A value over its bytes, four to a float; `None` if their number is not a multiple of four.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len().is_multiple_of(4) { Some(Self { bytes }) } else { None }
    }

    /// The floats as stored: little-endian, four bytes each.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// How many floats.
    #[must_use]
    pub const fn dimension(self) -> usize {
        self.bytes.len() / 4
    }

    /// The floats.
    pub fn iter(self) -> impl ExactSizeIterator<Item = f32> + use<'a> {
        let (floats, _) = self.bytes.as_chunks::<4>();
        floats.iter().map(|f| f32::from_le_bytes(*f))
    }
}

impl fmt::Debug for Vector<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vector({})", self.dimension())
    }
}
