//! The differences of a partial update, applied to the document as it was (`apply_json_diffs`,
//! `sql/json_diff.cc`).
//!
//! A list of differences is what `PARTIAL_UPDATE_ROWS_EVENT` holds in place of a document: for each an
//! operation, a path and, but for REMOVE, a value, both with a length in front.

use alloc::vec::Vec;

use super::edit::{Effort, Tree};
use super::path::{self, Leg};
use super::{Json, JsonError};
use crate::wire::{Reader, Short};

/// Why a list of differences does not apply. Always the source's doing, or that of who changed the bytes on
/// the way: a server writes none of these, and its replica refuses them as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonDiffError {
    /// The list ends inside a difference.
    #[error("the JSON differences end inside one")]
    Short,
    /// Neither replace, insert nor remove.
    #[error("unknown JSON difference {0}")]
    Operation(u8),
    /// A path that names no single place, is malformed, or longer than documents are deep.
    #[error("a malformed path in a JSON difference")]
    Path,
    /// A difference of the whole document: the server logs the document then.
    #[error("a JSON difference of the whole document")]
    Root,
    /// There is nothing at the path, or nothing that could hold what is inserted.
    #[error("a JSON difference to what the document does not have")]
    NotThere,
    /// A member is inserted that is there already.
    #[error("a JSON difference that inserts what the document has")]
    AlreadyThere,
    /// The document before, or a new value, is malformed where it was read.
    #[error("a malformed JSON document under a difference: {0}")]
    Document(#[from] JsonError),
    /// The document would outgrow the limit.
    #[error("a JSON document that grows above the limit")]
    TooLarge,
    /// More differences on more places than the work and memory that are allowed for them.
    #[error("too many JSON differences in one row event")]
    TooMuchWork,
}

impl From<Short> for JsonDiffError {
    fn from(_: Short) -> Self {
        Self::Short
    }
}

impl Json<'_> {
    /// The document after a list of differences (without the length in front of it), in the server's binary
    /// form.
    ///
    /// The result has the server's text; its bytes may be others than in the server's own pages, which keep
    /// holes.
    ///
    /// # Errors
    /// The first thing found wrong with the differences, or with the part of the document that they touch.
    pub fn patched(self, diffs: &[u8]) -> Result<Vec<u8>, JsonDiffError> {
        let mut out = Vec::new();
        apply(self, diffs, &mut Effort::default(), u32::MAX as usize, &mut out)?;
        Ok(out)
    }
}

/// Appends the document after `diffs` to `out`, which is not to grow beyond `max` bytes.
pub(crate) fn apply(
    before: Json<'_>,
    diffs: &[u8],
    effort: &mut Effort,
    max: usize,
    out: &mut Vec<u8>,
) -> Result<(), JsonDiffError> {
    if diffs.is_empty() {
        // Not even looked at: most of these are columns that the statement did not touch.
        if out.len().saturating_add(before.as_bytes().len()) > max {
            return Err(JsonDiffError::TooLarge);
        }
        out.extend_from_slice(before.as_bytes());
        return Ok(());
    }
    let mut tree = Tree::new(before.root()?, effort);
    let (mut r, mut legs) = (Reader::new(diffs), Vec::new());
    while !r.is_empty() {
        let operation = r.u8()?;
        if operation > REMOVE {
            return Err(JsonDiffError::Operation(operation));
        }
        path::parse(r.lenenc_bytes()?, &mut legs)?;
        let (last, parents): (&Leg<'_>, _) = legs.split_last().ok_or(JsonDiffError::Root)?;
        if operation == REMOVE {
            tree.remove(parents, last)?;
            continue;
        }
        let value = Json::new(r.lenenc_bytes()?).root()?;
        if operation == REPLACE {
            tree.replace(parents, last, value)?;
        } else {
            tree.insert(parents, last, value)?;
        }
    }
    tree.encode(before.as_bytes().len().saturating_add(diffs.len()), max, out)
}

/// `enum_json_diff_operation`; 1 is INSERT.
const REPLACE: u8 = 0;
const REMOVE: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;

    /// An array of numbers as a server writes it.
    fn numbers(count: u16) -> Vec<u8> {
        let mut document = alloc::vec![2];
        document.extend(count.to_le_bytes());
        document.extend((4 + count * 3).to_le_bytes());
        for n in 0..count {
            document.push(5);
            document.extend(n.to_le_bytes());
        }
        document
    }

    fn one(list: &mut Vec<u8>, operation: u8, path: &str, value: &[u8]) {
        list.push(operation);
        list.push(u8::try_from(path.len()).unwrap());
        list.extend(path.bytes());
        if operation != REMOVE {
            list.push(u8::try_from(value.len()).unwrap());
            list.extend(value);
        }
    }

    fn text(bytes: &[u8]) -> String {
        let mut out = String::new();
        Json::new(bytes).write_text(&mut out).unwrap();
        assert_eq!(Json::new(bytes).validate(), Ok(()));
        out
    }

    /// Against the same operations on a tree of another library.
    #[test]
    fn random_differences_of_arrays_and_objects_are_those_of_another_tree() {
        use proptest::prelude::*;
        use serde_json::Value;
        let operation = (0_u8..3, 0_u8..4, 0_usize..9, 0_u16..999);
        proptest!(|(operations in prop::collection::vec(operation, 0..60), start in 0_u16..6)| {
            let mut document = numbers(start);
            let mut model: Value = serde_json::from_str(&text(&document)).unwrap();
            let mut list = Vec::new();
            // An object inside, changed as well.
            one(&mut list, 1, "$[0]", &[0, 1, 0, 12, 0, 11, 0, 1, 0, 5, 9, 0, b'm'][..13]);
            model.as_array_mut().unwrap().insert(0, serde_json::json!({"m": 9}));
            for (operation, place, index, number) in operations {
                let value = [&[5][..], &number.to_le_bytes()].concat();
                let new = Value::from(number);
                // Places: the array's cell, its cell from the end, a member of whatever object lies first.
                let array = model.as_array_mut().unwrap();
                let count = array.len();
                if place < 2 {
                    let (path, at) = match place {
                        0 => (format!("$[{index}]"), (index < count).then_some(index)),
                        _ => (format!("$[last-{index}]"), (index < count).then(|| count - 1 - index)),
                    };
                    match (operation, at) {
                        (REPLACE, Some(at)) => array[at] = new,
                        (REMOVE, Some(at)) => drop(array.remove(at)),
                        (1, _) => array.insert(at.unwrap_or(if place == 0 { count } else { 0 }), new),
                        (_, _) => continue,
                    }
                    one(&mut list, operation, &path, &value);
                } else if let Some(Value::Object(object)) = array.first_mut() {
                    let name = format!("k{}{index}", "y".repeat(usize::from(place) * index % 3));
                    match (operation, object.contains_key(&name)) {
                        (REPLACE, true) | (1, false) => drop(object.insert(name.clone(), new)),
                        (REMOVE, true) => drop(object.remove(&name)),
                        (_, _) => continue,
                    }
                    one(&mut list, operation, &format!("$[0].\"{name}\""), &value);
                }
            }
            document = Json::new(&document).patched(&list).unwrap();
            let found: Value = serde_json::from_str(&text(&document)).unwrap();
            prop_assert_eq!(found, model);
        });
    }

    #[test]
    fn a_document_changes_its_format_with_its_size() {
        let small = numbers(20_000);
        let mut list = Vec::new();
        for _ in 0..2_000 {
            one(&mut list, 1, "$[0]", &[5, 7, 0]);
        }
        let large = Json::new(&small).patched(&list).unwrap();
        assert_eq!((small[0], large[0]), (2, 3));
        assert!(text(&large).starts_with("[7, 7") && text(&large).ends_with("19998, 19999]"));
        list.clear();
        for _ in 0..2_000 {
            one(&mut list, REMOVE, "$[0]", &[]);
        }
        assert_eq!(Json::new(&large).patched(&list).as_deref(), Ok(&small[..]), "back to the same bytes");
    }

    /// Lists that would take hours or gigabytes end by a count of steps and pieces.
    #[test]
    fn the_work_of_differences_is_bounded() {
        let document = numbers(2_000);
        let mut list = Vec::new();
        for n in 0..1_000 {
            one(&mut list, REPLACE, &format!("$[{}]", n * 2), &[5, 1, 0]);
        }
        let with = |steps: u64| {
            let mut effort = Effort { steps, ..Effort::default() };
            apply(Json::new(&document), &list, &mut effort, 1 << 20, &mut Vec::new())
        };
        assert_eq!(with(1_100_000), Ok(()));
        assert_eq!(with(900_000), Err(JsonDiffError::TooMuchWork));
        // Each path takes as many objects apart as it is long.
        let mut nested = alloc::vec![2, 0, 0, 4, 0];
        let mut list = Vec::new();
        one(&mut list, 1, "$[0]", &[2, 0, 0, 4, 0]);
        for _ in 0..100_000 {
            one(&mut list, 1, "$[0][0]", &[5, 1, 0]);
            one(&mut list, REPLACE, "$[0]", &[2, 0, 0, 4, 0]);
        }
        assert_eq!(Json::new(&nested).patched(&list), Err(JsonDiffError::TooMuchWork));
        nested.clear();
    }

    #[test]
    fn values_that_share_bytes_do_not_unfold() {
        // 60,000 bytes that 1,000 elements point to: the document is changed elsewhere.
        let count = 1_000_u32;
        let start = 8 + count * 5;
        let mut document = alloc::vec![3];
        document.extend(count.to_le_bytes());
        document.extend((start + 60_003).to_le_bytes());
        for _ in 0..count {
            document.push(0x0c);
            document.extend(start.to_le_bytes());
        }
        document.extend([0xe0, 0xd4, 0x03]);
        document.extend(core::iter::repeat_n(b'x', 60_000));
        let mut list = Vec::new();
        one(&mut list, REPLACE, "$[0]", &[5, 1, 0]);
        assert_eq!(Json::new(&document).patched(&list), Err(JsonDiffError::Document(JsonError::Overlap)));
    }
}
