//! A JSON document as serde's data: read into any type, written by any serializer.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what a type asks for concerns few kinds; the others go to `deserialize_any`, which names each"
)]

use alloc::string::String;
use core::cell::Cell;

use ::serde::Deserialize;
use ::serde::de::value::BorrowedStrDeserializer;
use ::serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use ::serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};

use super::{ReadError, ReadFault};
use crate::value::json::{Json, JsonArray, JsonError, JsonKind, JsonObject, JsonOpaque, JsonValue};

impl<'de> Json<'de> {
    /// The document read into `T`. See [the module](crate::read) for what becomes what.
    ///
    /// # Errors
    /// What is wrong with the document, or with `T` for it.
    pub fn to<T: Deserialize<'de>>(self) -> Result<T, ReadError> {
        self.root()?.to()
    }
}

impl<'de> JsonValue<'de> {
    /// This value read into `T`, as [`Json::to`].
    ///
    /// # Errors
    /// As there.
    pub fn to<T: Deserialize<'de>>(self) -> Result<T, ReadError> {
        let left = Cell::new(self.visited_max());
        T::deserialize(JsonDeserializer { value: self, left: &left })
    }
}

/// One value of a document. `left` is how many bytes may still be visited: hostile documents unfold.
#[derive(Clone, Copy)]
pub(super) struct JsonDeserializer<'de, 'l> {
    pub(super) value: JsonValue<'de>,
    pub(super) left: &'l Cell<usize>,
}

fn spend(left: &Cell<usize>, bytes: usize) -> Result<(), JsonError> {
    left.set(left.get().checked_sub(bytes).ok_or(JsonError::Overlap)?);
    Ok(())
}

impl<'de, 'l> JsonDeserializer<'de, 'l> {
    fn opaque<V: Visitor<'de>>(self, opaque: JsonOpaque<'de>, visitor: V) -> Result<V::Value, ReadError> {
        spend(self.left, opaque.bytes().len())?;
        visitor.visit_string(text_of(opaque)?)
    }

    fn elements(self, array: JsonArray<'de>) -> Result<Elements<'de, 'l>, ReadError> {
        spend(self.left, array.head_bytes())?;
        Ok(Elements { array, at: 0, left: self.left })
    }

    fn members(self, object: JsonObject<'de>) -> Result<Members<'de, 'l>, ReadError> {
        spend(self.left, object.head_bytes())?;
        Ok(Members { object, at: 0, value: None, left: self.left })
    }
}

/// The server's text of it, without the quotes.
fn text_of(opaque: JsonOpaque<'_>) -> Result<String, JsonError> {
    let mut text = String::new();
    JsonValue::Opaque(opaque).write_text(&mut text)?;
    Ok(match text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        // Lines of base64 are broken by an escaped line feed; a plain string may have any escape.
        Some(inside) if inside.contains('\\') => serde_json::from_str(&text).map_err(|_| JsonError::Utf8)?,
        Some(inside) => String::from(inside),
        None => text,
    })
}

impl<'de> Deserializer<'de> for JsonDeserializer<'de, '_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.value {
            JsonValue::Null => visitor.visit_unit(),
            JsonValue::Boolean(value) => visitor.visit_bool(value),
            JsonValue::Integer(value) => visitor.visit_i64(value),
            JsonValue::UnsignedInteger(value) => visitor.visit_u64(value),
            JsonValue::Double(value) if value.is_finite() => visitor.visit_f64(value),
            JsonValue::Double(_) => Err(JsonError::NotFinite.into()),
            JsonValue::String(text) => {
                spend(self.left, text.len())?;
                visitor.visit_borrowed_str(text)
            }
            JsonValue::Array(array) => visit_all(self.elements(array)?, visitor),
            JsonValue::Object(object) => visitor.visit_map(self.members(object)?),
            JsonValue::Opaque(opaque) => self.opaque(opaque, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.value {
            JsonValue::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.value {
            JsonValue::Opaque(opaque) if self.value.kind() == JsonKind::Decimal => {
                spend(self.left, opaque.bytes().len())?;
                let number = text_of(opaque)?.parse().map_err(|_| JsonError::Decimal)?;
                visitor.visit_f64(number)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.value {
            JsonValue::Opaque(opaque) if self.value.kind() == JsonKind::Opaque => {
                spend(self.left, opaque.bytes().len())?;
                visitor.visit_borrowed_bytes(opaque.bytes())
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_bytes(visitor)
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
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.value {
            JsonValue::String(name) => visitor.visit_enum(Variant { name, content: None }),
            // One member: its name is the variant's.
            JsonValue::Object(object) if object.len() == 1 => {
                let mut members = self.members(object)?;
                let (name, value) = members.next_member()?.ok_or(ReadFault::Type)?;
                let content = Some(JsonDeserializer { value, left: self.left });
                visitor.visit_enum(Variant { name, content })
            }
            _ => Err(ReadFault::Type.into()),
        }
    }

    ::serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 char str string unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// All elements: a type that takes fewer does not fit.
fn visit_all<'de, V: Visitor<'de>>(
    mut elements: Elements<'de, '_>,
    visitor: V,
) -> Result<V::Value, ReadError> {
    let value = visitor.visit_seq(&mut elements)?;
    if elements.at < elements.array.len() { Err(ReadFault::Length.into()) } else { Ok(value) }
}

struct Elements<'de, 'l> {
    array: JsonArray<'de>,
    at: usize,
    left: &'l Cell<usize>,
}

impl<'de> SeqAccess<'de> for Elements<'de, '_> {
    type Error = ReadError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        let Some(value) = JsonValue::Array(self.array).index(self.at)? else { return Ok(None) };
        self.at = self.at.saturating_add(1);
        seed.deserialize(JsonDeserializer { value, left: self.left }).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        // Each has an entry of three bytes at least, so the count is one of bytes that are there.
        Some(self.array.len().saturating_sub(self.at))
    }
}

struct Members<'de, 'l> {
    object: JsonObject<'de>,
    at: usize,
    value: Option<JsonValue<'de>>,
    left: &'l Cell<usize>,
}

impl<'de> Members<'de, '_> {
    fn next_member(&mut self) -> Result<Option<(&'de str, JsonValue<'de>)>, ReadError> {
        let Some((key, value)) = self.object.member(self.at)? else { return Ok(None) };
        self.at = self.at.saturating_add(1);
        spend(self.left, key.len())?;
        Ok(Some((key, value)))
    }
}

impl<'de> MapAccess<'de> for Members<'de, '_> {
    type Error = ReadError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        let Some((key, value)) = self.next_member()? else { return Ok(None) };
        self.value = Some(value);
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ReadError> {
        let value = self.value.take().ok_or(ReadFault::Refused)?;
        seed.deserialize(JsonDeserializer { value, left: self.left })
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.object.len().saturating_sub(self.at))
    }
}

struct Variant<'de, 'l> {
    name: &'de str,
    content: Option<JsonDeserializer<'de, 'l>>,
}

impl<'de, 'l> EnumAccess<'de> for Variant<'de, 'l> {
    type Error = ReadError;
    type Variant = Content<'de, 'l>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Content<'de, 'l>), ReadError> {
        let name: BorrowedStrDeserializer<'_, ReadError> = BorrowedStrDeserializer::new(self.name);
        Ok((seed.deserialize(name)?, Content(self.content)))
    }
}

struct Content<'de, 'l>(Option<JsonDeserializer<'de, 'l>>);

impl<'de> VariantAccess<'de> for Content<'de, '_> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        match self.0 {
            None => Ok(()),
            Some(content) => de::Deserialize::deserialize(content),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, ReadError> {
        seed.deserialize(self.0.ok_or(ReadFault::Type)?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.0.ok_or(ReadFault::Type)?.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.0.ok_or(ReadFault::Type)?.deserialize_any(visitor)
    }
}

/// As its outermost value.
impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.root().map_err(S::Error::custom)?.serialize(serializer)
    }
}

/// Members in stored order. Decimals, temporals and values of other column types are text, as they are read.
impl Serialize for JsonValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let left = Cell::new(self.visited_max());
        Counted { value: *self, left: &left }.serialize(serializer)
    }
}

struct Counted<'a, 'l> {
    value: JsonValue<'a>,
    left: &'l Cell<usize>,
}

impl Serialize for Counted<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fault = S::Error::custom::<JsonError>;
        match self.value {
            JsonValue::Null => serializer.serialize_unit(),
            JsonValue::Boolean(value) => serializer.serialize_bool(value),
            JsonValue::Integer(value) => serializer.serialize_i64(value),
            JsonValue::UnsignedInteger(value) => serializer.serialize_u64(value),
            JsonValue::Double(value) if value.is_finite() => serializer.serialize_f64(value),
            JsonValue::Double(_) => Err(fault(JsonError::NotFinite)),
            JsonValue::String(text) => {
                spend(self.left, text.len()).map_err(fault)?;
                serializer.serialize_str(text)
            }
            JsonValue::Opaque(opaque) => {
                spend(self.left, opaque.bytes().len()).map_err(fault)?;
                serializer.serialize_str(&text_of(opaque).map_err(fault)?)
            }
            JsonValue::Array(array) => {
                spend(self.left, array.head_bytes()).map_err(fault)?;
                let mut seq = serializer.serialize_seq(Some(array.len()))?;
                for value in array.iter() {
                    seq.serialize_element(&Counted { value: value.map_err(fault)?, left: self.left })?;
                }
                seq.end()
            }
            JsonValue::Object(object) => {
                spend(self.left, object.head_bytes()).map_err(fault)?;
                let mut map = serializer.serialize_map(Some(object.len()))?;
                for member in object.iter() {
                    let (key, value) = member.map_err(fault)?;
                    spend(self.left, key.len()).map_err(fault)?;
                    map.serialize_entry(key, &Counted { value, left: self.left })?;
                }
                map.end()
            }
        }
    }
}
