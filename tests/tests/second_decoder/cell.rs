//! A value of either decoder in one form.

use std::{
    fmt::Write,
    panic::{AssertUnwindSafe, catch_unwind},
};

use capstan_core::value::{
    Column, ColumnType, Value,
    json::{JsonError, JsonValue},
};
use mysql_common::{
    Value as Plain,
    binlog::{jsonb, value::BinlogValue},
};

/// A value in a form that both decoders' values have.
#[derive(Clone, PartialEq, Eq)]
pub enum Cell {
    Null,
    /// Integers, an ENUM's index, the bits of BIT and SET, the seconds of a TIMESTAMP without a fraction.
    Number(i128),
    /// IEEE bits.
    Float(u32),
    Double(u64),
    /// DECIMAL and temporals (with six digits of the second), and JSON in the form of [`json_ours`].
    Text(String),
    Bytes(Vec<u8>),
    /// Differences of a JSON document.
    Differences,
    /// What a decoder cannot read.
    Unreadable(String),
}

impl Cell {
    /// For the message of a failure.
    pub fn shown(&self) -> String {
        match self {
            Self::Null => "NULL".to_owned(),
            Self::Number(n) => n.to_string(),
            Self::Float(bits) => f32::from_bits(*bits).to_string(),
            Self::Double(bits) => f64::from_bits(*bits).to_string(),
            Self::Text(text) => text.clone(),
            Self::Bytes(bytes) => hex(bytes),
            Self::Differences => "differences of a document".to_owned(),
            Self::Unreadable(error) => format!("<{error}>"),
        }
    }
}

pub fn time_cell(negative: bool, [hours, minute, second, micros]: [i64; 4]) -> Cell {
    let sign = if negative { "-" } else { "" };
    Cell::Text(format!("{sign}{hours:02}:{minute:02}:{second:02}.{micros:06}"))
}

pub fn ours_as_cell(value: Value<'_>) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Absent => Cell::Unreadable("absent".to_owned()),
        Value::Int(n) => Cell::Number(n.into()),
        Value::UInt(n) => Cell::Number(n.into()),
        Value::Float(n) => Cell::Float(n.to_bits()),
        Value::Double(n) => Cell::Double(n.to_bits()),
        Value::Decimal(n) => Cell::Text(n.to_string()),
        Value::Bit(bit) => Cell::Number(bit.value().into()),
        Value::Year(year) => Cell::Text(format!("{year:04}")),
        Value::Date(date) => Cell::Text(date.to_string()),
        Value::Time(t) => {
            let (hours, minute, second, micros) = (t.hours(), t.minute(), t.second(), t.micros());
            time_cell(t.is_negative(), [hours.into(), minute.into(), second.into(), micros.into()])
        }
        Value::DateTime(t) => {
            let (date, hour, minute, second, micros) =
                (t.date(), t.hour(), t.minute(), t.second(), t.micros());
            Cell::Text(format!("{date} {hour:02}:{minute:02}:{second:02}.{micros:06}"))
        }
        Value::Timestamp(t) => {
            let seconds = t.unix_seconds().unwrap_or(0);
            match t.micros() {
                0 => Cell::Number(seconds.into()),
                micros => Cell::Text(format!("{seconds}.{micros:06}")),
            }
        }
        Value::Text(text) => Cell::Bytes(text.as_bytes().to_vec()),
        Value::Binary(binary) => Cell::Bytes(binary.to_bytes().into_owned()),
        Value::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
        Value::Enum(member) => Cell::Number(member.index().into()),
        Value::Set(set) => Cell::Number(set.bits().into()),
        Value::Json(json) => {
            let mut text = String::new();
            match json.root().and_then(|root| json_ours(root, &mut text)) {
                Ok(()) => Cell::Text(text),
                Err(error) => Cell::Unreadable(error.to_string()),
            }
        }
        Value::Geometry(shape) => Cell::Bytes(shape.as_bytes().to_vec()),
        Value::Vector(vector) => Cell::Bytes(vector.as_bytes().to_vec()),
    }
}

pub fn theirs_as_cell(value: &BinlogValue<'_>, column: &Column) -> Cell {
    let value = match value {
        BinlogValue::Value(value) => value,
        BinlogValue::JsonDiff(_) => return Cell::Differences,
        BinlogValue::Jsonb(json) => {
            let mut text = String::new();
            let read = catch_unwind(AssertUnwindSafe(|| json_theirs(json, &mut text)));
            return match read.unwrap_or_else(|_| Err("a panic".to_owned())) {
                Ok(()) => Cell::Text(text),
                Err(error) => Cell::Unreadable(error),
            };
        }
    };
    let number =
        |bytes: &mut dyn Iterator<Item = &u8>| bytes.fold(0_i128, |n, byte| n << 8 | i128::from(*byte));
    match (value, &column.column_type) {
        (Plain::NULL, _) => Cell::Null,
        (Plain::Int(n), _) => Cell::Number((*n).into()),
        (Plain::UInt(n), _) => Cell::Number((*n).into()),
        (Plain::Float(n), _) => Cell::Float(n.to_bits()),
        (Plain::Double(n), _) => Cell::Double(n.to_bits()),
        (Plain::Bytes(bytes), ColumnType::Bit { .. }) => Cell::Number(number(&mut bytes.iter())),
        (Plain::Bytes(bytes), ColumnType::Set { .. }) => Cell::Number(number(&mut bytes.iter().rev())),
        (
            Plain::Bytes(bytes),
            ColumnType::Decimal { .. } | ColumnType::Year | ColumnType::Timestamp { .. },
        ) => {
            let text = String::from_utf8(bytes.clone()).unwrap();
            match (&column.column_type, text.parse()) {
                (ColumnType::Timestamp { .. }, Ok(seconds)) => Cell::Number(seconds),
                _ => Cell::Text(text),
            }
        }
        (Plain::Bytes(bytes), _) => Cell::Bytes(bytes.clone()),
        (Plain::Date(year, month, day, ..), ColumnType::Date) => {
            Cell::Text(format!("{year:04}-{month:02}-{day:02}"))
        }
        (Plain::Date(year, month, day, hour, minute, second, micros), _) => {
            Cell::Text(format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}"))
        }
        (Plain::Time(negative, days, hours, minute, second, micros), _) => {
            let hours = i64::from(*days) * 24 + i64::from(*hours);
            time_cell(*negative, [hours, (*minute).into(), (*second).into(), (*micros).into()])
        }
    }
}

/// An opaque value of this type is a plain string for the server (`wrapper_to_string`, `sql-common/json_dom.cc`) and the
/// core, base64 for `mysql_common`: 9.7.4 shows `"abc"` for one that reached it in a row event. Its bytes are compared.
const VAR_STRING: u8 = 253;

/// A document with all that a JSON text would lose: the signedness of integers, the bits of doubles, stored order,
/// and the type, bytes and text of opaque values.
fn json_ours(value: JsonValue<'_>, out: &mut String) -> Result<(), JsonError> {
    match value {
        JsonValue::Null => out.push_str("null"),
        JsonValue::Boolean(is) => write!(out, "{is}").unwrap(),
        JsonValue::Integer(n) => write!(out, "{n}").unwrap(),
        JsonValue::UnsignedInteger(n) => write!(out, "{n}u").unwrap(),
        JsonValue::Double(n) => write!(out, "{:016x}", n.to_bits()).unwrap(),
        JsonValue::String(text) => write!(out, "{text:?}").unwrap(),
        JsonValue::Array(array) => {
            out.push('[');
            for element in array.iter() {
                json_ours(element?, out)?;
                out.push(',');
            }
            out.push(']');
        }
        JsonValue::Object(object) => {
            out.push('{');
            for member in object.iter() {
                let (key, value) = member?;
                write!(out, "{key:?}:").unwrap();
                json_ours(value, out)?;
                out.push(',');
            }
            out.push('}');
        }
        JsonValue::Opaque(opaque) => {
            let mut text = String::new();
            if opaque.field_type() != VAR_STRING {
                value.write_text(&mut text)?;
            }
            let text = text.trim_matches('"');
            write!(out, "<{} {} {text}>", opaque.field_type(), hex(opaque.bytes())).unwrap();
        }
    }
    Ok(())
}

fn json_theirs(value: &jsonb::Value<'_>, out: &mut String) -> Result<(), String> {
    match value {
        jsonb::Value::Null => out.push_str("null"),
        jsonb::Value::Bool(is) => write!(out, "{is}").unwrap(),
        jsonb::Value::I16(n) => write!(out, "{n}").unwrap(),
        jsonb::Value::I32(n) => write!(out, "{n}").unwrap(),
        jsonb::Value::I64(n) => write!(out, "{n}").unwrap(),
        jsonb::Value::U16(n) => write!(out, "{n}u").unwrap(),
        jsonb::Value::U32(n) => write!(out, "{n}u").unwrap(),
        jsonb::Value::U64(n) => write!(out, "{n}u").unwrap(),
        jsonb::Value::F64(n) => write!(out, "{:016x}", n.to_bits()).unwrap(),
        jsonb::Value::String(text) => write!(out, "{:?}", text.str()).unwrap(),
        jsonb::Value::SmallArray(array) => elements_theirs(array.iter(), out)?,
        jsonb::Value::LargeArray(array) => elements_theirs(array.iter(), out)?,
        jsonb::Value::SmallObject(object) => members_theirs(object.iter(), out)?,
        jsonb::Value::LargeObject(object) => members_theirs(object.iter(), out)?,
        jsonb::Value::Opaque(opaque) => {
            let text: serde_json::Value = value.clone().parse().map_err(|error| error.to_string())?.into();
            let text = match opaque.value_type() as u8 {
                VAR_STRING => String::new(),
                _ => text.as_str().map_or_else(|| text.to_string(), str::to_owned),
            };
            write!(out, "<{} {} {text}>", opaque.value_type() as u8, hex(opaque.data_raw())).unwrap();
        }
    }
    Ok(())
}

fn elements_theirs<'a>(
    elements: impl Iterator<Item = std::io::Result<jsonb::Value<'a>>>,
    out: &mut String,
) -> Result<(), String> {
    out.push('[');
    for element in elements {
        json_theirs(&element.map_err(|error| error.to_string())?, out)?;
        out.push(',');
    }
    out.push(']');
    Ok(())
}

fn members_theirs<'a>(
    members: impl Iterator<Item = std::io::Result<(jsonb::ObjectKey<'a>, jsonb::Value<'a>)>>,
    out: &mut String,
) -> Result<(), String> {
    out.push('{');
    for member in members {
        let (key, value) = member.map_err(|error| error.to_string())?;
        write!(out, "{:?}:", key.value()).unwrap();
        json_theirs(&value, out)?;
        out.push(',');
    }
    out.push('}');
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
