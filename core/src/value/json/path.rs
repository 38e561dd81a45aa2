//! The paths of differences, as the server writes them (`Json_path_leg::to_string`, `sql-common/json_path.cc`):
//! `$` and legs, each a member (`.name`, `."any name"`) or an array cell (`[3]`, `[last]`, `[last-2]`).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::MAX_DEPTH;
use super::diff::JsonDiffError;

/// One step of a path.
pub(super) enum Leg<'a> {
    Member(Cow<'a, str>),
    Cell(Cell),
}

/// An array cell, counted from the start, or from the last one.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    from_last: bool,
    index: u32,
}

impl Cell {
    /// The place in an array of `count` elements; `None` if it has no such element.
    pub(super) fn within(self, count: usize) -> Option<usize> {
        let index = usize::try_from(self.index).ok().filter(|index| *index < count)?;
        Some(if self.from_last { count.saturating_sub(index).saturating_sub(1) } else { index })
    }

    /// Where an element is inserted: beyond either end is that end (`Json_array_index`).
    pub(super) fn clamped(self, count: usize) -> usize {
        self.within(count).unwrap_or(if self.from_last { 0 } else { count })
    }
}

/// Reads a path into `legs`. Wildcards and ranges name more than one place: no difference has them.
pub(super) fn parse<'a>(path: &'a [u8], legs: &mut Vec<Leg<'a>>) -> Result<(), JsonDiffError> {
    legs.clear();
    let path = core::str::from_utf8(path).map_err(|_| JsonDiffError::Path)?;
    let mut rest = path.strip_prefix('$').ok_or(JsonDiffError::Path)?;
    while !rest.is_empty() {
        // What nests deeper than a document may be is not in it.
        if legs.len() >= usize::from(MAX_DEPTH) {
            return Err(JsonDiffError::Path);
        }
        let (leg, behind) = match (rest.strip_prefix('.'), rest.strip_prefix('[')) {
            (Some(name), _) => member(name)?,
            (None, Some(inside)) => cell(inside)?,
            (None, None) => return Err(JsonDiffError::Path),
        };
        legs.push(leg);
        rest = behind;
    }
    Ok(())
}

fn member(text: &str) -> Result<(Leg<'_>, &str), JsonDiffError> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(['.', '[', '*', ' ']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        if name.is_empty() {
            return Err(JsonDiffError::Path);
        }
        return Ok((Leg::Member(unescaped(name)?), rest));
    };
    // The closing quote is the first that no backslash stands before.
    let mut escaped = false;
    let end = quoted.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    let (name, rest) = quoted.split_at(end.ok_or(JsonDiffError::Path)?);
    Ok((Leg::Member(unescaped(name)?), rest.get(1..).unwrap_or_default()))
}

/// A name as it stands between the quotes of a JSON string.
fn unescaped(name: &str) -> Result<Cow<'_, str>, JsonDiffError> {
    if !name.contains('\\') {
        return Ok(Cow::Borrowed(name));
    }
    serde_json::from_str::<String>(&format!("\"{name}\"")).map(Cow::Owned).map_err(|_| JsonDiffError::Path)
}

fn cell(text: &str) -> Result<(Leg<'_>, &str), JsonDiffError> {
    let (inside, rest) = text.split_once(']').ok_or(JsonDiffError::Path)?;
    let number = |digits: &str| {
        let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        all_digits.then(|| digits.parse::<u32>().ok()).flatten().ok_or(JsonDiffError::Path)
    };
    let cell = match inside.strip_prefix("last") {
        None => Cell { from_last: false, index: number(inside)? },
        Some("") => Cell { from_last: true, index: 0 },
        Some(before) => {
            Cell { from_last: true, index: number(before.strip_prefix('-').ok_or(JsonDiffError::Path)?)? }
        }
    };
    Ok((Leg::Cell(cell), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_path_is_read_as_the_server_writes_it() {
        for (path, want) in [
            ("$", Some("")),
            ("$.a", Some(".a")),
            ("$.a.bc[0][12].d", Some(".a .bc [0] [12] .d")),
            ("$[last]", Some("[last-0]")),
            ("$.x[last-3]", Some(".x [last-3]")),
            (r#"$."a b"."""#, Some(".a b .")),
            (r#"$."key \"quoted\"".n"#, Some(".key \"quoted\" .n")),
            (r#"$."back\\"[1]"#, Some(".back\\ [1]")),
            (r#"$."\u00e9\ud83d\ude00\n""#, Some(".é😀\n")),
            ("$.é", Some(".é")),
            (r#"$."dot.and[0]""#, Some(".dot.and[0]")),
            ("$[4294967295]", Some("[4294967295]")),
            ("", None),
            ("a", None),
            ("$a", None),
            ("$.", None),
            ("$..a", None),
            ("$.*", None),
            ("$**.a", None),
            ("$[*]", None),
            ("$[1 to 2]", None),
            ("$[]", None),
            ("$[-1]", None),
            ("$[+1]", None),
            ("$[4294967296]", None),
            ("$[last+1]", None),
            ("$[last-]", None),
            ("$[1", None),
            (r#"$."a"#, None),
            (r#"$."a\""#, None),
            (r#"$."\x""#, None),
            ("$.a b", None),
            (r#"$."a"b"#, None),
        ] {
            let mut legs = Vec::new();
            let read = parse(path.as_bytes(), &mut legs).map(|()| {
                let words = legs.iter().map(|leg| match leg {
                    Leg::Member(name) => format!(".{name}"),
                    Leg::Cell(Cell { from_last: false, index }) => format!("[{index}]"),
                    Leg::Cell(Cell { from_last: true, index }) => format!("[last-{index}]"),
                });
                words.collect::<Vec<_>>().join(" ")
            });
            assert_eq!(read.ok(), want.map(ToString::to_string), "{path}");
        }
        assert!(parse(b"$.\xff", &mut Vec::new()).is_err());
        assert!(parse(format!("${}", "[0]".repeat(100)).as_bytes(), &mut Vec::new()).is_ok());
        assert!(parse(format!("${}", "[0]".repeat(101)).as_bytes(), &mut Vec::new()).is_err());
    }

    #[test]
    fn a_cell_beyond_an_array_is_not_within_it_and_clamped_to_its_ends() {
        for (from_last, index, count, within, clamped) in [
            (false, 0, 0, None, 0),
            (false, 1, 3, Some(1), 1),
            (false, 3, 3, None, 3),
            (false, 9, 3, None, 3),
            (true, 0, 3, Some(2), 2),
            (true, 2, 3, Some(0), 0),
            (true, 3, 3, None, 0),
            (true, 0, 0, None, 0),
        ] {
            let cell = Cell { from_last, index };
            assert_eq!((cell.within(count), cell.clamped(count)), (within, clamped));
        }
    }
}
