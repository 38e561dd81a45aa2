//! MySQL's binary JSON, read in place (`sql-common/json_binary.cc`).
//!
//! A document is a type byte and a value. A container holds a count, its size, and entries that point
//! to keys and values by offset from its start; small scalars sit in the entry itself. Everything is
//! reached by offset, so the holes that in-place updates leave are never seen.
//!
//! Nothing here copies, panics or loops: offsets are checked as the server checks them, nesting ends
//! at [`MAX_DEPTH`], and no walk visits more bytes than the document has.

use core::fmt;

use crate::wire::{Reader, Short};

pub(crate) mod diff;
pub(crate) mod digits;
mod edit;
mod encode;
pub(crate) mod escape;
pub(crate) mod number;
mod opaque;
mod parse;
mod path;
pub(crate) mod temporal;
#[cfg(test)]
mod tests;
mod text;

pub use diff::JsonDiffError;
pub use opaque::JsonOpaque;
pub use parse::JsonTextError;

pub(crate) use diff::apply as apply_diffs;
pub(crate) use edit::Effort as DiffEffort;
pub(crate) use parse::binary_of;

/// How deep arrays and objects may nest (`JSON_DOCUMENT_MAX_DEPTH`, `sql-common/json_syntax_check.cc`).
pub const MAX_DEPTH: u8 = 100;

/// What is wrong with a document. Always the source's doing, or that of who changed the bytes on
/// the way: a server writes none of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// A value is longer than what holds it.
    #[error("a JSON value runs past the end of what holds it")]
    Short,
    /// An entry points before its own end, or past the end of its container.
    #[error("a JSON offset points outside its container")]
    Offset,
    /// A type byte that the format does not have.
    #[error("unknown binary JSON type {0:#04x}")]
    Type(u8),
    /// A literal that is neither null, true nor false.
    #[error("unknown JSON literal")]
    Literal,
    /// More than [`MAX_DEPTH`] containers in each other.
    #[error("JSON nested more than 100 deep")]
    Depth,
    /// Several entries point to the same bytes: the document would unfold to more than it holds.
    #[error("JSON values overlap")]
    Overlap,
    /// A key or string that is not UTF-8.
    #[error("a JSON string is not UTF-8")]
    Utf8,
    /// The keys of an object are not in the server's order (by length, then by bytes) or repeat.
    #[error("JSON keys are out of order")]
    KeyOrder,
    /// A double that is infinite or no number.
    #[error("a JSON number is not finite")]
    NotFinite,
    /// A decimal with an impossible precision, scale, length or digit.
    #[error("a malformed DECIMAL inside JSON")]
    Decimal,
    /// A date or time with a wrong length or an impossible part.
    #[error("a malformed date or time inside JSON")]
    Temporal,
}

impl From<Short> for JsonError {
    fn from(_: Short) -> Self {
        Self::Short
    }
}

/// The names of the types, as `JSON_TYPE()` has them, with the opaque ones told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    Null,
    Boolean,
    Integer,
    UnsignedInteger,
    Double,
    String,
    Array,
    Object,
    Decimal,
    Date,
    Time,
    DateTime,
    /// Any other column type (`BLOB`, `BIT` and `OPAQUE` in `JSON_TYPE()`).
    Opaque,
}

/// A JSON document as a row holds it. Nothing is read before it is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Json<'a> {
    bytes: &'a [u8],
}

impl fmt::Debug for Json<'_> {
    // Rule 1: a document is a row value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.bytes.len())
    }
}

impl<'a> Json<'a> {
    /// A document over its bytes: from the type byte on, without the length that precedes it in a row.
    ///
    /// No bytes at all is the document `null`, as for the server: that is what `INSERT IGNORE` of NULL
    /// into a NOT NULL column stores.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The bytes as the server stores them.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The outermost value.
    ///
    /// # Errors
    /// What is wrong with the value's head; what it contains is looked at when it is reached.
    pub fn root(self) -> Result<JsonValue<'a>, JsonError> {
        match self.bytes.split_first() {
            None => Ok(JsonValue::Null),
            Some((&kind, rest)) => JsonValue::parse(kind, rest, 0),
        }
    }

    /// The type of the outermost value.
    ///
    /// # Errors
    /// As [`Self::root`].
    pub fn kind(self) -> Result<JsonKind, JsonError> {
        self.root().map(JsonValue::kind)
    }

    /// The member `key` of an object; `None` if there is none, or if this is no object.
    ///
    /// # Errors
    /// What was wrong on the way to it.
    pub fn get(self, key: &str) -> Result<Option<JsonValue<'a>>, JsonError> {
        self.root()?.get(key)
    }

    /// The element `at` of an array; `None` if there is none, or if this is no array.
    ///
    /// # Errors
    /// What was wrong on the way to it.
    pub fn index(self, at: usize) -> Result<Option<JsonValue<'a>>, JsonError> {
        self.root()?.index(at)
    }

    /// Walks everything: offsets, nesting, UTF-8, key order, decimals and temporals.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn validate(self) -> Result<(), JsonError> {
        text::validate(self.root()?)
    }

    /// Appends the text that the server's `SELECT` gives for this document.
    ///
    /// # Errors
    /// The first thing found wrong; `out` then holds a part, which the caller cuts off.
    pub fn write_text(self, out: &mut alloc::string::String) -> Result<(), JsonError> {
        self.root()?.write_text(out)
    }
}

/// One value of a document.
#[derive(Clone, Copy, PartialEq)]
pub enum JsonValue<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    UnsignedInteger(u64),
    /// Always finite when it comes from a server.
    Double(f64),
    String(&'a str),
    Array(JsonArray<'a>),
    Object(JsonObject<'a>),
    /// A value of another column type, kept as that type's bytes.
    Opaque(JsonOpaque<'a>),
}

impl fmt::Debug for JsonValue<'_> {
    // Rule 1: the kind only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonValue({:?})", self.kind())
    }
}

impl<'a> JsonValue<'a> {
    /// The value's type.
    #[must_use]
    pub const fn kind(self) -> JsonKind {
        match self {
            Self::Null => JsonKind::Null,
            Self::Boolean(_) => JsonKind::Boolean,
            Self::Integer(_) => JsonKind::Integer,
            Self::UnsignedInteger(_) => JsonKind::UnsignedInteger,
            Self::Double(_) => JsonKind::Double,
            Self::String(_) => JsonKind::String,
            Self::Array(_) => JsonKind::Array,
            Self::Object(_) => JsonKind::Object,
            Self::Opaque(opaque) => opaque.kind(),
        }
    }

    /// The member `key` of an object; `None` if there is none, or if this is no object.
    ///
    /// # Errors
    /// What was wrong on the way to it.
    pub fn get(self, key: &str) -> Result<Option<Self>, JsonError> {
        match self {
            Self::Object(object) => object.get(key),
            Self::Null
            | Self::Boolean(_)
            | Self::Integer(_)
            | Self::UnsignedInteger(_)
            | Self::Double(_)
            | Self::String(_)
            | Self::Array(_)
            | Self::Opaque(_) => Ok(None),
        }
    }

    /// The element `at` of an array; `None` if there is none, or if this is no array.
    ///
    /// # Errors
    /// What was wrong with that element.
    pub fn index(self, at: usize) -> Result<Option<Self>, JsonError> {
        match self {
            Self::Array(array) if at < array.len() => array.element(at).map(Some),
            Self::Null
            | Self::Boolean(_)
            | Self::Integer(_)
            | Self::UnsignedInteger(_)
            | Self::Double(_)
            | Self::String(_)
            | Self::Array(_)
            | Self::Object(_)
            | Self::Opaque(_) => Ok(None),
        }
    }

    /// Appends the text that the server gives for this value as a document of its own.
    ///
    /// # Errors
    /// The first thing found wrong; `out` then holds a part, which the caller cuts off.
    pub fn write_text(self, out: &mut alloc::string::String) -> Result<(), JsonError> {
        text::write(out, self)
    }

    /// How many bytes a walk over all of it may visit: in a server's document no two values share any.
    pub(crate) const fn visited_max(self) -> usize {
        match self {
            Self::Array(JsonArray(container)) | Self::Object(JsonObject(container)) => container.bytes.len(),
            Self::String(text) => text.len(),
            Self::Opaque(opaque) => opaque.bytes().len(),
            Self::Null | Self::Boolean(_) | Self::Integer(_) | Self::UnsignedInteger(_) | Self::Double(_) => {
                0
            }
        }
    }

    /// Reads a value of type `kind` at the start of `bytes`, inside `depth` containers.
    fn parse(kind: u8, bytes: &'a [u8], depth: u8) -> Result<Self, JsonError> {
        let mut r = Reader::new(bytes);
        Ok(match kind {
            SMALL_OBJECT => Self::Object(JsonObject(Container::parse(bytes, true, false, depth)?)),
            LARGE_OBJECT => Self::Object(JsonObject(Container::parse(bytes, true, true, depth)?)),
            SMALL_ARRAY => Self::Array(JsonArray(Container::parse(bytes, false, false, depth)?)),
            LARGE_ARRAY => Self::Array(JsonArray(Container::parse(bytes, false, true, depth)?)),
            LITERAL => match r.u8()? {
                0 => Self::Null,
                1 => Self::Boolean(true),
                2 => Self::Boolean(false),
                _ => return Err(JsonError::Literal),
            },
            INT16 => Self::Integer(i16::from_le_bytes(r.array()?).into()),
            UINT16 => Self::UnsignedInteger(r.u16()?.into()),
            INT32 => Self::Integer(i32::from_le_bytes(r.array()?).into()),
            UINT32 => Self::UnsignedInteger(r.u32()?.into()),
            INT64 => Self::Integer(i64::from_le_bytes(r.array()?)),
            UINT64 => Self::UnsignedInteger(r.u64()?),
            DOUBLE => Self::Double(f64::from_le_bytes(r.array()?)),
            STRING => {
                let length = variable_length(&mut r)?;
                Self::String(utf8(r.take(length)?)?)
            }
            OPAQUE => {
                let field_type = r.u8()?;
                let length = variable_length(&mut r)?;
                Self::Opaque(JsonOpaque::new(field_type, r.take(length)?))
            }
            other => return Err(JsonError::Type(other)),
        })
    }
}

/// An array: its elements in order.
#[derive(Clone, Copy, PartialEq)]
pub struct JsonArray<'a>(Container<'a>);

impl fmt::Debug for JsonArray<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonArray({} elements)", self.len())
    }
}

impl<'a> JsonArray<'a> {
    /// How many elements.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count
    }

    /// Whether it is `[]`.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.count == 0
    }

    /// The elements, each as it is reached.
    pub fn iter(self) -> impl Iterator<Item = Result<JsonValue<'a>, JsonError>> + use<'a> {
        (0..self.len()).map(move |at| self.element(at))
    }

    /// The element `at`; `None` behind the last.
    ///
    /// # Errors
    /// What was wrong with it.
    pub fn get(self, at: usize) -> Result<Option<JsonValue<'a>>, JsonError> {
        if at < self.len() { self.element(at).map(Some) } else { Ok(None) }
    }

    #[cfg(feature = "serde")]
    pub(crate) const fn head_bytes(self) -> usize {
        self.0.header
    }

    fn element(self, at: usize) -> Result<JsonValue<'a>, JsonError> {
        self.0.value(at)
    }
}

/// An object: its members in stored order, which is by key length, then by the key's bytes.
#[derive(Clone, Copy, PartialEq)]
pub struct JsonObject<'a>(Container<'a>);

impl fmt::Debug for JsonObject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonObject({} members)", self.len())
    }
}

impl<'a> JsonObject<'a> {
    /// How many members.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count
    }

    /// Whether it is `{}`.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.count == 0
    }

    /// The members in stored order, each as it is reached.
    pub fn iter(self) -> impl Iterator<Item = Result<(&'a str, JsonValue<'a>), JsonError>> + use<'a> {
        (0..self.len()).map_while(move |at| self.member(at).transpose())
    }

    /// The member `at`, in stored order; `None` behind the last.
    ///
    /// # Errors
    /// What was wrong with its key or value.
    pub fn member(self, at: usize) -> Result<Option<(&'a str, JsonValue<'a>)>, JsonError> {
        if at >= self.len() {
            return Ok(None);
        }
        Ok(Some((utf8(self.0.key(at)?)?, self.0.value(at)?)))
    }

    #[cfg(feature = "serde")]
    pub(crate) const fn head_bytes(self) -> usize {
        self.0.header
    }

    /// The member `key`, by binary search as the server does it.
    ///
    /// # Errors
    /// What was wrong with a key on the way or with the value.
    pub fn get(self, key: &str) -> Result<Option<JsonValue<'a>>, JsonError> {
        let wanted = (key.len(), key.as_bytes());
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            let found = self.0.key(middle)?;
            match (found.len(), found).cmp(&wanted) {
                core::cmp::Ordering::Less => low = middle.saturating_add(1),
                core::cmp::Ordering::Greater => high = middle,
                core::cmp::Ordering::Equal => return self.0.value(middle).map(Some),
            }
        }
        Ok(None)
    }
}

const SMALL_OBJECT: u8 = 0x00;
const LARGE_OBJECT: u8 = 0x01;
const SMALL_ARRAY: u8 = 0x02;
const LARGE_ARRAY: u8 = 0x03;
const LITERAL: u8 = 0x04;
const INT16: u8 = 0x05;
const UINT16: u8 = 0x06;
const INT32: u8 = 0x07;
const UINT32: u8 = 0x08;
const INT64: u8 = 0x09;
const UINT64: u8 = 0x0a;
const DOUBLE: u8 = 0x0b;
const STRING: u8 = 0x0c;
const OPAQUE: u8 = 0x0f;

/// The part that arrays and objects share. Its bytes hold at least the header.
#[derive(Clone, Copy, PartialEq)]
struct Container<'a> {
    bytes: &'a [u8],
    count: usize,
    header: usize,
    object: bool,
    large: bool,
    /// How many containers are around this one, itself included.
    depth: u8,
}

impl<'a> Container<'a> {
    fn parse(bytes: &'a [u8], object: bool, large: bool, around: u8) -> Result<Self, JsonError> {
        if around >= MAX_DEPTH {
            return Err(JsonError::Depth);
        }
        let mut r = Reader::new(bytes);
        let count = offset(&mut r, large)?;
        let size = offset(&mut r, large)?;
        let bytes = bytes.get(..size).ok_or(JsonError::Short)?;
        let entries =
            if object { key_entry(large).saturating_add(value_entry(large)) } else { value_entry(large) };
        // On 64 bits neither can saturate: the count has 32. On 32 bits a saturated header is refused here.
        let header = count.saturating_mul(entries).saturating_add(offset_size(large).saturating_mul(2));
        if header > size {
            return Err(JsonError::Short);
        }
        Ok(Self { bytes, count, header, object, large, depth: around.saturating_add(1) })
    }

    /// The key `at` of an object: it lies behind the header.
    fn key(self, at: usize) -> Result<&'a [u8], JsonError> {
        let entry = at
            .saturating_mul(key_entry(self.large))
            .saturating_add(offset_size(self.large).saturating_mul(2));
        let mut r = self.at(entry)?;
        let start = offset(&mut r, self.large)?;
        let length = usize::from(r.u16()?);
        if start < self.header {
            return Err(JsonError::Offset);
        }
        Ok(self.at(start)?.take(length)?)
    }

    /// The value `at`: in the entry itself, or behind it.
    fn value(self, at: usize) -> Result<JsonValue<'a>, JsonError> {
        let first = self.count.saturating_sub(at).saturating_mul(value_entry(self.large));
        let entry = self.header.saturating_sub(first);
        let mut r = self.at(entry)?;
        let kind = r.u8()?;
        let inline = r.take(offset_size(self.large))?;
        if inlined(kind, self.large) {
            return JsonValue::parse(kind, inline, self.depth);
        }
        let start = offset(&mut Reader::new(inline), self.large)?;
        // As the server checks it: never at or before its own entry, so no cycle.
        if start < entry.saturating_add(value_entry(self.large)) {
            return Err(JsonError::Offset);
        }
        JsonValue::parse(kind, self.at(start)?.rest(), self.depth)
    }

    fn at(self, offset: usize) -> Result<Reader<'a>, JsonError> {
        self.bytes.get(offset..).map(Reader::new).ok_or(JsonError::Offset)
    }
}

const fn offset_size(large: bool) -> usize {
    if large { 4 } else { 2 }
}

const fn key_entry(large: bool) -> usize {
    if large { 6 } else { 4 }
}

const fn value_entry(large: bool) -> usize {
    if large { 5 } else { 3 }
}

const fn inlined(kind: u8, large: bool) -> bool {
    matches!(kind, LITERAL | INT16 | UINT16) || (large && matches!(kind, INT32 | UINT32))
}

fn offset(r: &mut Reader<'_>, large: bool) -> Result<usize, JsonError> {
    let offset = if large { r.u32()? } else { r.u16()?.into() };
    usize::try_from(offset).map_err(|_| JsonError::Offset)
}

/// A length in groups of seven bits, the lowest first, at most 32 bits (`read_variable_length`).
fn variable_length(r: &mut Reader<'_>) -> Result<usize, JsonError> {
    let mut length = 0_u64;
    for shift in [0, 7, 14, 21, 28] {
        let byte = r.u8()?;
        length |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let length = u32::try_from(length).map_err(|_| JsonError::Short)?;
            return usize::try_from(length).map_err(|_| JsonError::Short);
        }
    }
    Err(JsonError::Short)
}

fn utf8(bytes: &[u8]) -> Result<&str, JsonError> {
    core::str::from_utf8(bytes).map_err(|_| JsonError::Utf8)
}
