//! Well-known text of a geometry (OGC 06-103r4, sections 7 and 8), on demand.

use alloc::string::String;

use super::json::number;
use crate::wire::Reader;

/// Collections may hold collections; deeper than this none is written.
const DEPTH_MAX: usize = 64;

/// The shape of a geometry type after its head.
#[derive(Clone, Copy)]
enum Shape {
    Point,
    /// A list of points.
    Line,
    /// A list of lists of points.
    Area,
    /// A list of whole geometries of one type, whose names are left out.
    Many(u32),
    /// A list of whole geometries of any type.
    Collection,
}

const fn shape(code: u32) -> Option<(&'static str, Shape)> {
    Some(match code {
        1 => ("POINT", Shape::Point),
        2 => ("LINESTRING", Shape::Line),
        3 => ("POLYGON", Shape::Area),
        4 => ("MULTIPOINT", Shape::Many(1)),
        5 => ("MULTILINESTRING", Shape::Many(2)),
        6 => ("MULTIPOLYGON", Shape::Many(3)),
        7 => ("GEOMETRYCOLLECTION", Shape::Collection),
        _ => return None,
    })
}

/// The text of `wkb`; `None` if it is malformed, or nested beyond all use.
pub(super) fn of(wkb: &[u8]) -> Option<String> {
    let mut r = Reader::new(wkb);
    let mut out = String::new();
    geometry(&mut out, &mut r, 0)?;
    r.is_empty().then_some(out)
}

fn geometry(out: &mut String, r: &mut Reader<'_>, depth: usize) -> Option<()> {
    let (name, shape) = shape(head(r)?)?;
    out.push_str(name);
    body(out, r, shape, depth)
}

/// Byte order and type. The server stores little-endian alone (`wkb_ndr`, `sql/spatial.h`).
fn head(r: &mut Reader<'_>) -> Option<u32> {
    if r.u8().ok()? != 1 {
        return None;
    }
    r.u32().ok()
}

fn body(out: &mut String, r: &mut Reader<'_>, shape: Shape, depth: usize) -> Option<()> {
    match shape {
        Shape::Point => {
            out.push('(');
            point(out, r)?;
            out.push(')');
        }
        Shape::Line => list(out, r, point)?,
        Shape::Area => list(out, r, |out, r| list(out, r, point))?,
        Shape::Many(of) => list(out, r, |out, r| {
            if head(r)? != of {
                return None;
            }
            let (_, part) = self::shape(of)?;
            body(out, r, part, depth)
        })?,
        Shape::Collection => {
            if depth == DEPTH_MAX {
                return None;
            }
            if r.rest().first_chunk() == Some(&[0; 4]) {
                out.push_str(" EMPTY");
                return r.skip(4).ok();
            }
            list(out, r, |out, r| geometry(out, r, depth.saturating_add(1)))?;
        }
    }
    Some(())
}

fn list(
    out: &mut String,
    r: &mut Reader<'_>,
    mut each: impl FnMut(&mut String, &mut Reader<'_>) -> Option<()>,
) -> Option<()> {
    let count = r.u32().ok()?;
    out.push('(');
    for at in 0..count {
        if at > 0 {
            out.push(',');
        }
        each(out, r)?;
    }
    out.push(')');
    Some(())
}

fn point(out: &mut String, r: &mut Reader<'_>) -> Option<()> {
    coordinate(out, r)?;
    out.push(' ');
    coordinate(out, r)
}

fn coordinate(out: &mut String, r: &mut Reader<'_>) -> Option<()> {
    number::double(out, f64::from_le_bytes(r.array().ok()?)).ok()?;
    if out.ends_with(".0") {
        out.truncate(out.len().saturating_sub(2));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(|b| *b != b' ').collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    /// `HEX` of what a 9.7 server made of the text (`tests/fixtures/types/types.sql` and `.txt`); with SRID
    /// 4326 the text names the latitude first, and the server stores the longitude first.
    #[test]
    fn what_the_server_stores_for_a_text_reads_as_that_text() {
        for (wkb, text) in [
            ("0101000000000000000000F03F0000000000000040", "POINT(1 2)"),
            ("0101000000000000000000F8BF0000000000000440", "POINT(-1.5 2.5)"),
            ("010100000000000000000034400000000000002440", "POINT(20 10)"),
            (
                "01020000000300000000000000000000000000000000000000000000000000F03F000000000000F03F00000000000000400000000000000040",
                "LINESTRING(0 0,1 1,2 2)",
            ),
            (
                "01030000000100000004000000000000000000000000000000000000000000000000000000000000000000F03F000000000000F03F000000000000F03F00000000000000000000000000000000",
                "POLYGON((0 0,0 1,1 1,0 0))",
            ),
            (
                "0104000000020000000101000000000000000000000000000000000000000101000000000000000000F03F000000000000F03F",
                "MULTIPOINT((0 0),(1 1))",
            ),
            (
                "01050000000200000001020000000200000000000000000000000000000000000000000000000000F03F000000000000F03F0102000000020000000000000000000040000000000000004000000000000008400000000000000840",
                "MULTILINESTRING((0 0,1 1),(2 2,3 3))",
            ),
            (
                "01060000000100000001030000000100000004000000000000000000000000000000000000000000000000000000000000000000F03F000000000000F03F000000000000F03F00000000000000000000000000000000",
                "MULTIPOLYGON(((0 0,0 1,1 1,0 0)))",
            ),
            (
                "0107000000020000000101000000000000000000F03F000000000000F03F01020000000200000000000000000000000000000000000000000000000000F03F000000000000F03F",
                "GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))",
            ),
            ("010700000000000000", "GEOMETRYCOLLECTION EMPTY"),
        ] {
            assert_eq!(of(&bytes(wkb)).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_is_malformed_has_no_text() {
        for wkb in [
            "",
            "00 00000001 3FF0000000000000 4000000000000000", // big-endian
            "01 01000000 000000000000F03F 00000000000000",   // cut
            "01 01000000 000000000000F03F 0000000000000040 00", // more than a point
            "01 01000000 000000000000F07F 0000000000000040", // infinite
            "01 08000000 00000000",                          // no such type
            "01 02000000 FFFFFFFF 0000000000000000",         // a count beyond the bytes
            "01 04000000 01000000 01 02000000 00000000",     // a line among points
        ] {
            assert_eq!(of(&bytes(wkb)), None, "{wkb}");
        }
        let mut nested = Vec::new();
        for _ in 0..10_000 {
            nested.extend_from_slice(&bytes("01 07000000 01000000"));
        }
        assert_eq!(of(&nested), None);
    }
}
