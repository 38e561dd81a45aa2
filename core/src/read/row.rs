//! A row as serde's data, its columns found by name.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ::serde::Deserialize;
use ::serde::de::value::BorrowedStrDeserializer;
use ::serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::value::ValueDeserializer;
use super::{ReadError, ReadFault};
use crate::binlog::rows::Row;
use crate::value::Column;

/// Reads rows into types of your own: see [the module](crate::read).
///
/// A struct's fields are columns by their exact names (`#[serde(rename)]` for others). Names are looked up
/// once for as long as rows of the same table come; columns that the struct does not name are not decoded.
/// A field without a column is an error, an `Option` too, unless [`RowReader::may_lack`] says that it may
/// be missing: a column that was renamed must not turn into `None` in silence.
///
/// A map takes every column that is there; a tuple takes the columns in their order, all of them.
#[derive(Debug, Default)]
pub struct RowReader {
    may_lack: Vec<String>,
    fields: &'static [&'static str],
    /// For each field its column.
    columns: Vec<Option<usize>>,
}

impl RowReader {
    /// A reader that has seen no table yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { may_lack: Vec::new(), fields: &[], columns: Vec::new() }
    }

    /// These fields need no column: `#[serde(default)]` or an `Option` stands in for them. The other names of
    /// a field with `#[serde(alias)]` are to be told here as well.
    #[must_use]
    pub fn may_lack<'a>(mut self, fields: impl IntoIterator<Item = &'a str>) -> Self {
        self.may_lack.extend(fields.into_iter().map(ToString::to_string));
        self
    }

    /// The row as a `T`.
    ///
    /// # Errors
    /// The column and what is wrong with it for `T`; never the value.
    pub fn read<'de, T: Deserialize<'de>>(&mut self, row: Row<'de>) -> Result<T, ReadError> {
        T::deserialize(RowDeserializer { row, reader: self })
    }

    /// Looks the fields up, unless they are where they were.
    fn plan(&mut self, fields: &'static [&'static str], table: &[Column]) -> Result<(), ReadError> {
        let known = core::ptr::eq(self.fields, fields) && self.columns.len() == fields.len();
        // A comparison of each name, so that no table is ever read by another's plan.
        let holds = |(field, at): (&&str, &Option<usize>)| match at {
            Some(at) => table.get(*at).is_some_and(|column| column.name == **field),
            None => !table.iter().any(|column| column.name == **field),
        };
        if known && fields.iter().zip(&self.columns).all(holds) {
            return Ok(());
        }
        self.fields = fields;
        self.columns.clear();
        for field in fields {
            let at = table.iter().position(|column| column.name == *field);
            if at.is_none() && !self.may_lack.iter().any(|name| name == field) {
                self.columns.clear();
                return Err(of_column(field, ReadFault::NoSuchColumn));
            }
            self.columns.push(at);
        }
        Ok(())
    }
}

fn of_column(name: &str, reason: ReadFault) -> ReadError {
    ReadError { column: Some(name.to_string()), reason }
}

struct RowDeserializer<'de, 'r> {
    row: Row<'de>,
    reader: &'r mut RowReader,
}

impl<'de> Deserializer<'de> for RowDeserializer<'de, '_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_map(All { row: self.row, at: 0 })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.reader.plan(fields, self.row.table().columns())?;
        visitor.visit_map(Fields { row: self.row, reader: self.reader, at: 0 })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let mut all = All { row: self.row, at: 0 };
        let value = visitor.visit_seq(&mut all)?;
        if all.at < self.row.len() { Err(ReadFault::Length.into()) } else { Ok(value) }
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

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    ::serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        map enum identifier ignored_any
    }
}

/// The value of a column read by `seed`, and the column's name in what goes wrong.
pub(super) fn read_column<'de, S: DeserializeSeed<'de>>(
    row: Row<'de>,
    index: usize,
    seed: S,
) -> Result<S::Value, ReadError> {
    let value = row.get(index).map_err(|error| ReadError::from(error.reason));
    value.and_then(|value| seed.deserialize(ValueDeserializer(value))).map_err(|error| {
        let name = row.table().columns().get(index).map(|column| column.name.clone());
        ReadError { column: error.column.or(name), ..error }
    })
}

/// The columns of a struct.
struct Fields<'de, 'r> {
    row: Row<'de>,
    reader: &'r RowReader,
    at: usize,
}

impl<'de> MapAccess<'de> for Fields<'de, '_> {
    type Error = ReadError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        // What may be missing is left to the type, also where only this row does not have it.
        while let Some(column) = self.reader.columns.get(self.at) {
            let there = column.is_some_and(|column| self.row.is_present(column));
            let field = self.reader.fields.get(self.at).copied().unwrap_or_default();
            if there || (column.is_some() && !self.reader.may_lack.iter().any(|name| name == field)) {
                return seed.deserialize(BorrowedStrDeserializer::new(field)).map(Some);
            }
            self.at = self.at.saturating_add(1);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ReadError> {
        let column = self.reader.columns.get(self.at).copied().flatten().ok_or(ReadFault::Refused)?;
        self.at = self.at.saturating_add(1);
        read_column(self.row, column, seed)
    }
}

/// Every column that is there.
struct All<'de> {
    row: Row<'de>,
    at: usize,
}

impl<'de> MapAccess<'de> for All<'de> {
    type Error = ReadError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        while self.at < self.row.len() && !self.row.is_present(self.at) {
            self.at = self.at.saturating_add(1);
        }
        let Some(column) = self.row.table().columns().get(self.at) else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(&column.name)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ReadError> {
        let at = self.at;
        self.at = at.saturating_add(1);
        read_column(self.row, at, seed)
    }
}

impl<'de> SeqAccess<'de> for All<'de> {
    type Error = ReadError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        if self.at >= self.row.len() {
            return Ok(None);
        }
        let at = self.at;
        self.at = at.saturating_add(1);
        read_column(self.row, at, seed).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.row.len().saturating_sub(self.at))
    }
}
