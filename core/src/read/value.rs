//! One column of a row as serde's data.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what a type asks for concerns few kinds; the others go to `deserialize_any`, which names each"
)]

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use core::cell::Cell;
use core::fmt::Display;

use ::serde::de::value::{BorrowedStrDeserializer, SeqDeserializer, StringDeserializer};
use ::serde::de::{Deserializer, IntoDeserializer, Visitor};

use super::json::JsonDeserializer;
use super::{ReadError, ReadFault};
use crate::value::json::Json;
use crate::value::{Set, Text, Value, ValueFault};

/// A value, decoded.
#[derive(Clone, Copy)]
pub(super) struct ValueDeserializer<'de>(pub(super) Value<'de>);

impl<'de> ValueDeserializer<'de> {
    /// Reads a document with a count of what is visited.
    fn document<T>(
        document: Json<'de>,
        read: impl FnOnce(JsonDeserializer<'de, '_>) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let value = document.root()?;
        let left = Cell::new(value.visited_max());
        read(JsonDeserializer { value, left: &left })
    }

    /// Text that is text in the row: ENUM, SET, CHAR and its kind.
    fn words(self) -> Result<Option<Cow<'de, str>>, ReadError> {
        let text = match self.0 {
            Value::Text(text) => text.to_str(),
            Value::Enum(value) => match value.label() {
                Some(label) => label.to_str(),
                None => return Err(ReadFault::NotText.into()),
            },
            Value::Set(value) => value.to_str(),
            _ => return Ok(None),
        };
        text.map(Some).map_err(|_| ReadFault::NotText.into())
    }
}

fn visit_text<'de, V: Visitor<'de>>(text: Cow<'de, str>, visitor: V) -> Result<V::Value, ReadError> {
    match text {
        Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
        Cow::Owned(text) => visitor.visit_string(text),
    }
}

fn shown<'de, V: Visitor<'de>>(value: impl Display, visitor: V) -> Result<V::Value, ReadError> {
    visitor.visit_string(value.to_string())
}

impl<'de> Deserializer<'de> for ValueDeserializer<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Absent => Err(ReadFault::Absent.into()),
            Value::Int(value) => visitor.visit_i64(value),
            Value::UInt(value) => visitor.visit_u64(value),
            Value::Float(value) => visitor.visit_f32(value),
            Value::Double(value) => visitor.visit_f64(value),
            Value::Bit(bit) => visitor.visit_u64(bit.value()),
            Value::Year(year) => visitor.visit_u16(year),
            Value::Decimal(value) => shown(value, visitor),
            Value::Date(value) => shown(value, visitor),
            Value::Time(value) => shown(value, visitor),
            Value::DateTime(value) => shown(value, visitor),
            Value::Timestamp(value) => shown(value, visitor),
            Value::Text(_) | Value::Enum(_) | Value::Set(_) => match self.words()? {
                Some(text) => visit_text(text, visitor),
                None => Err(ReadFault::NotText.into()),
            },
            Value::Binary(value) => match value.to_bytes() {
                Cow::Borrowed(bytes) => visitor.visit_borrowed_bytes(bytes),
                Cow::Owned(bytes) => visitor.visit_byte_buf(bytes),
            },
            Value::Blob(bytes) => visitor.visit_borrowed_bytes(bytes),
            Value::Geometry(value) => visitor.visit_borrowed_bytes(value.as_bytes()),
            Value::Vector(value) => visitor.visit_borrowed_bytes(value.as_bytes()),
            Value::Json(document) => Self::document(document, |json| json.deserialize_any(visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            Value::Absent => Err(ReadFault::Absent.into()),
            Value::Json(document) => Self::document(document, |json| json.deserialize_option(visitor)),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let number = match self.0 {
            Value::Int(value) => u64::try_from(value).ok(),
            Value::UInt(value) => Some(value),
            Value::Bit(bit) => Some(bit.value()),
            _ => return self.deserialize_any(visitor),
        };
        match number {
            Some(0) => visitor.visit_bool(false),
            Some(1) => visitor.visit_bool(true),
            _ => Err(ReadFault::Range.into()),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0 {
            Value::Text(text) => visitor.visit_borrowed_bytes(Text::as_bytes(text)),
            Value::Json(document) => Self::document(document, |json| json.deserialize_bytes(visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0 {
            Value::Vector(vector) => whole(SeqDeserializer::new(vector.iter()), visitor),
            Value::Set(set) => whole(SeqDeserializer::new(labels(set)?), visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0 {
            Value::Json(document) => Self::document(document, |json| json.deserialize_f64(visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.0 {
            Value::Null => Err(ReadFault::Null.into()),
            Value::Json(document) => {
                Self::document(document, |json| json.deserialize_enum(name, variants, visitor))
            }
            _ => match self.words()? {
                Some(Cow::Borrowed(label)) => {
                    visitor.visit_enum(BorrowedStrDeserializer::<ReadError>::new(label))
                }
                Some(Cow::Owned(label)) => {
                    let label: StringDeserializer<ReadError> = label.into_deserializer();
                    visitor.visit_enum(label)
                }
                None => Err(ReadFault::Type.into()),
            },
        }
    }

    ::serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 char str string unit unit_struct map struct identifier
        ignored_any
    }
}

fn labels(set: Set<'_>) -> Result<alloc::vec::IntoIter<String>, ReadError> {
    let labels = set.labels().ok_or(ReadFault::NotText)?;
    let labels = labels.map(|label| label.to_str().map(Cow::into_owned));
    let labels: Result<alloc::vec::Vec<_>, _> = labels.collect();
    Ok(labels.map_err(|_| ReadFault::NotText)?.into_iter())
}

/// All of a sequence: a type that takes fewer elements does not fit.
fn whole<'de, V, I, T>(mut items: SeqDeserializer<I, ReadError>, visitor: V) -> Result<V::Value, ReadError>
where
    V: Visitor<'de>,
    I: Iterator<Item = T>,
    T: IntoDeserializer<'de, ReadError>,
{
    let value = visitor.visit_seq(&mut items)?;
    items.end().map_err(|_: ReadError| ReadError::from(ReadFault::Length))?;
    Ok(value)
}

impl From<ValueFault> for ReadError {
    fn from(fault: ValueFault) -> Self {
        let none = fault == ValueFault::NoSuchColumn;
        if none { ReadFault::NoSuchColumn.into() } else { ReadFault::Value(fault).into() }
    }
}
