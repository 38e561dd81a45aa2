//! The part of a row event whose rows are wanted.

use alloc::{sync::Arc, vec::Vec};

use bytes::Bytes;

use super::{Places, Row, RowsError, RowsEvent, RowsKind};

/// Which images of a change are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The row as it was.
    pub before: bool,
    /// The row as it is now.
    pub after: bool,
}

impl RowsEvent {
    /// Events that hold the wanted images in their order: of an update of which one image is wanted, a delete
    /// or an insert. `wanted` is asked once for each change, with the images it has.
    ///
    /// # Errors
    /// As [`RowsEvent::validate`], or what `wanted` gives.
    pub fn filtered<E: From<RowsError>>(
        &self,
        mut wanted: impl FnMut(Option<Row<'_>>, Option<Row<'_>>) -> Result<Wanted, E>,
    ) -> Result<Vec<Self>, E> {
        let (mut first, mut second) = (Places::new(), Places::new());
        let mut parts: Vec<Part> = Vec::new();
        let (mut at, mut row) = (self.rows_at, 0_u64);
        loop {
            let middle = self.locate(self.first, at, row, &mut first)?;
            let end = match self.second {
                Some(image) => self.locate(image, middle, row, &mut second)?,
                None => middle,
            };
            let of_first = Row::new(&self.table, &self.bytes, &first);
            let of_second = Row::new(&self.table, &self.bytes, &second);
            let kept = match self.head.kind {
                RowsKind::Insert => {
                    wanted(None, Some(of_first))?.after.then_some((RowsKind::Insert, at, end))
                }
                RowsKind::Delete => {
                    wanted(Some(of_first), None)?.before.then_some((RowsKind::Delete, at, end))
                }
                RowsKind::Update | RowsKind::PartialUpdate => {
                    match wanted(Some(of_first), Some(of_second))? {
                        Wanted { before: true, after: true } => Some((RowsKind::Update, at, end)),
                        Wanted { before: true, after: false } => Some((RowsKind::Delete, at, middle)),
                        Wanted { before: false, after: true } => Some((RowsKind::Insert, middle, end)),
                        Wanted { before: false, after: false } => None,
                    }
                }
            };
            if let Some((kind, from, to)) = kept {
                let images = self.bytes.get(from..to).unwrap_or_default();
                match parts.last_mut().filter(|part| part.kind == kind) {
                    Some(part) => part.images.extend_from_slice(images),
                    None => parts.push(Part { kind, images: images.to_vec() }),
                }
            }
            row = row.saturating_add(1);
            if end == self.bytes.len() {
                break;
            }
            at = self.moved_on(at, end)?;
        }
        Ok(parts.into_iter().map(|part| self.part(part)).collect::<Result<_, RowsError>>()?)
    }

    fn part(&self, part: Part) -> Result<Self, RowsError> {
        // An update's head has a bitmap for either image; both are of the same columns, or the event is not full.
        let bitmaps = match (part.kind, self.second) {
            (RowsKind::Update | RowsKind::PartialUpdate, _) | (_, None) => self.rows_at,
            (RowsKind::Insert | RowsKind::Delete, Some(second)) => second.present_at,
        };
        let mut bytes = self.bytes.get(..bitmaps).unwrap_or_default().to_vec();
        bytes.extend_from_slice(&part.images);
        let mut head = self.head;
        head.kind = part.kind;
        Self::new(head, Arc::clone(&self.table), Bytes::from(bytes))?.validated()
    }
}

/// Images of one kind.
struct Part {
    kind: RowsKind,
    images: Vec<u8>,
}
