//! A walk over a whole document: the server's text of it (`wrapper_to_string`, `sql-common/json_dom.cc`),
//! or a check that it has one.

use alloc::string::String;

use super::escape::quote;
use super::{JsonError, JsonKind, JsonValue, number, opaque};

/// Appends the server's text of `value`.
pub(super) fn write(out: &mut String, value: JsonValue<'_>) -> Result<(), JsonError> {
    Budget::of(value).write(out, value)
}

/// Whether `value` is one that a server writes.
pub(super) fn validate(value: JsonValue<'_>) -> Result<(), JsonError> {
    Budget::of(value).validate(value)
}

/// How many bytes of the document may still be visited.
///
/// In a server's document no two values share a byte, so what is visited never exceeds what is there.
/// Hostile offsets may point many entries to one value, and unfold a few kilobytes into more than any
/// memory holds: they end here.
struct Budget {
    left: usize,
}

impl Budget {
    const fn of(root: JsonValue<'_>) -> Self {
        Self { left: root.visited_max() }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), JsonError> {
        self.left = self.left.checked_sub(bytes).ok_or(JsonError::Overlap)?;
        Ok(())
    }

    /// Recursion ends with the depth that the values carry.
    fn write(&mut self, out: &mut String, value: JsonValue<'_>) -> Result<(), JsonError> {
        match value {
            JsonValue::Null => out.push_str("null"),
            JsonValue::Boolean(true) => out.push_str("true"),
            JsonValue::Boolean(false) => out.push_str("false"),
            JsonValue::Integer(value) => number::integer(out, value),
            JsonValue::UnsignedInteger(value) => number::unsigned(out, value),
            JsonValue::Double(value) => number::double(out, value)?,
            JsonValue::String(text) => {
                self.spend(text.len())?;
                quote(out, text);
            }
            JsonValue::Opaque(opaque) => {
                self.spend(opaque.bytes().len())?;
                opaque::write(out, opaque)?;
            }
            JsonValue::Array(array) => {
                self.spend(array.0.header)?;
                out.push('[');
                for (at, element) in array.iter().enumerate() {
                    separate(out, at);
                    self.write(out, element?)?;
                }
                out.push(']');
            }
            JsonValue::Object(object) => {
                self.spend(object.0.header)?;
                out.push('{');
                for (at, member) in object.iter().enumerate() {
                    let (key, value) = member?;
                    self.spend(key.len())?;
                    separate(out, at);
                    quote(out, key);
                    out.push_str(": ");
                    self.write(out, value)?;
                }
                out.push('}');
            }
        }
        Ok(())
    }

    fn validate(&mut self, value: JsonValue<'_>) -> Result<(), JsonError> {
        match value {
            JsonValue::Null
            | JsonValue::Boolean(_)
            | JsonValue::Integer(_)
            | JsonValue::UnsignedInteger(_) => Ok(()),
            JsonValue::Double(value) if value.is_finite() => Ok(()),
            JsonValue::Double(_) => Err(JsonError::NotFinite),
            JsonValue::String(text) => self.spend(text.len()),
            JsonValue::Opaque(opaque) => {
                self.spend(opaque.bytes().len())?;
                if opaque.kind() == JsonKind::Opaque {
                    return Ok(());
                }
                opaque::write(&mut String::new(), opaque)
            }
            JsonValue::Array(array) => {
                self.spend(array.0.header)?;
                array.iter().try_for_each(|element| self.validate(element?))
            }
            JsonValue::Object(object) => {
                self.spend(object.0.header)?;
                let mut previous: Option<&str> = None;
                for member in object.iter() {
                    let (key, value) = member?;
                    self.spend(key.len())?;
                    if previous.is_some_and(|before| (before.len(), before) >= (key.len(), key)) {
                        return Err(JsonError::KeyOrder);
                    }
                    previous = Some(key);
                    self.validate(value)?;
                }
                Ok(())
            }
        }
    }
}

fn separate(out: &mut String, at: usize) {
    if at > 0 {
        out.push_str(", ");
    }
}
