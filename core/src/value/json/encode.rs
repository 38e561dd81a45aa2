//! A changed document back into the server's binary form (`serialize_json_value`,
//! `sql-common/json_binary.cc`). What was not taken apart is copied as it is: offsets count from the start
//! of their own container.

use alloc::vec::Vec;

use super::diff::JsonDiffError;
use super::edit::{Node, Own, Parts, Piece, Tree};
use super::{
    DOUBLE, INT16, INT32, INT64, JsonArray, JsonError, JsonObject, JsonValue, LARGE_ARRAY, LARGE_OBJECT,
    LITERAL, OPAQUE, SMALL_ARRAY, SMALL_OBJECT, STRING, UINT16, UINT32, UINT64, inlined, key_entry,
    offset_size, value_entry,
};

/// How a container that was taken apart is written.
#[derive(Clone, Copy, Default)]
pub(super) struct Layout {
    large: bool,
    size: usize,
}

impl Tree<'_, '_> {
    /// Appends the document. `source` is how many bytes it came from, those of the differences included: in
    /// a server's documents no two values share a byte, so no more is copied. (Hostile offsets unfold a few
    /// kilobytes into gigabytes otherwise.)
    pub(super) fn encode(
        mut self,
        source: usize,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), JsonDiffError> {
        // No difference applies to anything else.
        let Node::Parts(parts) = &mut self.root else { return Err(JsonDiffError::NotThere) };
        let mut budget = source;
        parts.measure(&mut budget)?;
        let size = parts.layout.size.saturating_add(1);
        if out.len().saturating_add(size) > max {
            return Err(JsonDiffError::TooLarge);
        }
        out.reserve(size);
        out.push(parts.kind());
        parts.write(out)
    }
}

impl<'a> Parts<'a> {
    const fn kind(&self) -> u8 {
        match (self.source.object, self.layout.large) {
            (true, false) => SMALL_OBJECT,
            (true, true) => LARGE_OBJECT,
            (false, false) => SMALL_ARRAY,
            (false, true) => LARGE_ARRAY,
        }
    }

    const fn entries(&self, large: bool) -> usize {
        let keys = if self.source.object { key_entry(large) } else { 0 };
        let each = keys.saturating_add(value_entry(large));
        self.count.saturating_mul(each).saturating_add(offset_size(large).saturating_mul(2))
    }

    /// Sets the layout here and below. Recursion ends with the longest path.
    fn measure(&mut self, budget: &mut usize) -> Result<(), JsonDiffError> {
        for piece in &mut self.pieces {
            if let Piece::Own(own) = piece
                && let Node::Parts(parts) = &mut own.node
            {
                parts.measure(budget)?;
            }
        }
        spend(budget, self.source.header)?;
        let (mut keys, mut small, mut large) = (0_usize, 0_usize, 0_usize);
        self.each(|key, item| {
            spend(budget, key.len())?;
            keys = keys.saturating_add(key.len());
            match item {
                Item::Value(value) => {
                    let size = payload(value, true);
                    spend(budget, size)?;
                    large = large.saturating_add(size);
                    small = small.saturating_add(payload(value, false));
                }
                Item::Parts(parts) => {
                    large = large.saturating_add(parts.layout.size);
                    small = small.saturating_add(parts.layout.size);
                }
            }
            Ok(())
        })?;
        let size = |large, values: usize| self.entries(large).saturating_add(keys).saturating_add(values);
        let (small, large) = (size(false, small), size(true, large));
        self.layout = if u16::try_from(small).is_ok() {
            Layout { large: false, size: small }
        } else if u32::try_from(large).is_ok() {
            Layout { large: true, size: large }
        } else {
            return Err(JsonDiffError::TooLarge);
        };
        Ok(())
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), JsonDiffError> {
        let Layout { large, size } = self.layout;
        let (start, header) = (out.len(), self.entries(large));
        let mut slots = Slots { at: start, large };
        out.resize(start.saturating_add(header), 0);
        slots.offset(out, self.count);
        slots.offset(out, size);
        if self.source.object {
            self.each(|key, _| {
                let at = out.len().saturating_sub(start);
                slots.offset(out, at);
                slots.put(out, &u16::try_from(key.len()).unwrap_or(u16::MAX).to_le_bytes());
                out.extend_from_slice(key);
                Ok(())
            })?;
        }
        self.each(|_, item| {
            let at = out.len().saturating_sub(start);
            match item {
                Item::Parts(parts) => {
                    slots.put(out, &[parts.kind()]);
                    slots.offset(out, at);
                    parts.write(out)
                }
                Item::Value(value) => {
                    let kind = kind(value);
                    slots.put(out, &[kind]);
                    if inlined(kind, large) {
                        slots.offset(out, inline_bits(value));
                    } else {
                        slots.offset(out, at);
                        write_payload(value, out);
                    }
                    Ok(())
                }
            }
        })
    }

    /// Every element or member in order, with its key (empty in an array).
    fn each<'s>(
        &'s self,
        mut visit: impl FnMut(&[u8], Item<'s, 'a>) -> Result<(), JsonDiffError>,
    ) -> Result<(), JsonDiffError> {
        for piece in &self.pieces {
            match piece {
                Piece::Range(start, end) => {
                    for place in *start..*end {
                        let key = if self.source.object { self.source.key(place)? } else { &[] };
                        visit(key, Item::Value(self.source.value(place)?))?;
                    }
                }
                Piece::Own(own) => {
                    let Own { key, node } = &**own;
                    let item = match node {
                        Node::Value(value) => Item::Value(*value),
                        Node::Parts(parts) => Item::Parts(parts),
                    };
                    visit(key, item)?;
                }
            }
        }
        Ok(())
    }
}

enum Item<'s, 'a> {
    Value(JsonValue<'a>),
    Parts(&'s Parts<'a>),
}

/// The header of a container, filled in order.
pub(super) struct Slots {
    pub(super) at: usize,
    pub(super) large: bool,
}

impl Slots {
    pub(super) fn put(&mut self, out: &mut [u8], bytes: &[u8]) {
        let end = self.at.saturating_add(bytes.len());
        if let Some(slot) = out.get_mut(self.at..end) {
            slot.copy_from_slice(bytes);
        }
        self.at = end;
    }

    /// Two or four bytes: the layout was chosen so that it fits.
    pub(super) fn offset(&mut self, out: &mut [u8], value: usize) {
        let bytes = (value as u32).to_le_bytes();
        self.put(out, bytes.get(..offset_size(self.large)).unwrap_or_default());
    }
}

fn spend(budget: &mut usize, bytes: usize) -> Result<(), JsonDiffError> {
    *budget = budget.checked_sub(bytes).ok_or(JsonDiffError::Document(JsonError::Overlap))?;
    Ok(())
}

/// The narrowest type, as the server chooses it.
pub(super) fn kind(value: JsonValue<'_>) -> u8 {
    match value {
        JsonValue::Null | JsonValue::Boolean(_) => LITERAL,
        JsonValue::Integer(value) if i16::try_from(value).is_ok() => INT16,
        JsonValue::Integer(value) if i32::try_from(value).is_ok() => INT32,
        JsonValue::Integer(_) => INT64,
        JsonValue::UnsignedInteger(value) if u16::try_from(value).is_ok() => UINT16,
        JsonValue::UnsignedInteger(value) if u32::try_from(value).is_ok() => UINT32,
        JsonValue::UnsignedInteger(_) => UINT64,
        JsonValue::Double(_) => DOUBLE,
        JsonValue::String(_) => STRING,
        JsonValue::Opaque(_) => OPAQUE,
        JsonValue::Array(JsonArray(container)) if container.large => LARGE_ARRAY,
        JsonValue::Array(_) => SMALL_ARRAY,
        JsonValue::Object(JsonObject(container)) if container.large => LARGE_OBJECT,
        JsonValue::Object(_) => SMALL_OBJECT,
    }
}

/// What stands in the entry itself.
pub(super) fn inline_bits(value: JsonValue<'_>) -> usize {
    match value {
        JsonValue::Boolean(true) => 1,
        JsonValue::Boolean(false) => 2,
        // Of a negative number the low bytes.
        JsonValue::Integer(value) => value as usize,
        JsonValue::UnsignedInteger(value) => value as usize,
        JsonValue::Null
        | JsonValue::Double(_)
        | JsonValue::String(_)
        | JsonValue::Opaque(_)
        | JsonValue::Array(_)
        | JsonValue::Object(_) => 0,
    }
}

/// Bytes of the value behind the header of a container.
pub(super) fn payload(value: JsonValue<'_>, large: bool) -> usize {
    let kind = kind(value);
    if inlined(kind, large) {
        return 0;
    }
    let counted = |length: usize| length.saturating_add(length_bytes(length).1);
    match value {
        JsonValue::Null | JsonValue::Boolean(_) => 0,
        JsonValue::Integer(_) | JsonValue::UnsignedInteger(_) => match kind {
            INT64 | UINT64 => 8,
            _ => 4,
        },
        JsonValue::Double(_) => 8,
        JsonValue::String(text) => counted(text.len()),
        JsonValue::Opaque(opaque) => counted(opaque.bytes().len()).saturating_add(1),
        JsonValue::Array(JsonArray(container)) | JsonValue::Object(JsonObject(container)) => {
            container.bytes.len()
        }
    }
}

pub(super) fn write_payload(value: JsonValue<'_>, out: &mut Vec<u8>) {
    let counted = |out: &mut Vec<u8>, bytes: &[u8]| {
        let (length, used) = length_bytes(bytes.len());
        out.extend_from_slice(length.get(..used).unwrap_or_default());
        out.extend_from_slice(bytes);
    };
    match value {
        JsonValue::Null | JsonValue::Boolean(_) => out.push(inline_bits(value) as u8),
        JsonValue::Integer(number) => {
            let width = if kind(value) == INT64 { 8 } else { 4 };
            out.extend_from_slice(number.to_le_bytes().get(..width).unwrap_or_default());
        }
        JsonValue::UnsignedInteger(number) => {
            let width = if kind(value) == UINT64 { 8 } else { 4 };
            out.extend_from_slice(number.to_le_bytes().get(..width).unwrap_or_default());
        }
        JsonValue::Double(number) => out.extend_from_slice(&number.to_le_bytes()),
        JsonValue::String(text) => counted(out, text.as_bytes()),
        JsonValue::Opaque(opaque) => {
            out.push(opaque.field_type());
            counted(out, opaque.bytes());
        }
        JsonValue::Array(JsonArray(container)) | JsonValue::Object(JsonObject(container)) => {
            out.extend_from_slice(container.bytes);
        }
    }
}

/// A length in groups of seven bits, the lowest first (`append_variable_length`), and how many bytes of it
/// are used.
fn length_bytes(length: usize) -> ([u8; 5], usize) {
    let (mut bytes, mut rest, mut used) = ([0; 5], length, 0_usize);
    for slot in &mut bytes {
        *slot = (rest & 0x7f) as u8;
        used = used.saturating_add(1);
        rest >>= 7;
        if rest == 0 {
            break;
        }
        *slot |= 0x80;
    }
    (bytes, used)
}
