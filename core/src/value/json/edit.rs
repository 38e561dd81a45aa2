//! A document that is being changed. Only what a change passes through is taken apart, and of that only the
//! places that change: the rest stays a range of the document that it came from.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use super::diff::JsonDiffError;
use super::encode::Layout;
use super::path::Leg;
use super::{Container, JsonValue};

/// What may still be spent. Honest differences need next to nothing of it: it ends lists that are made to
/// take hours or gigabytes.
#[derive(Debug)]
pub(crate) struct Effort {
    /// Steps over pieces, in all documents of one row event: 2^30 are a few seconds.
    pub(super) steps: u64,
    /// Pieces that one document may be taken into: 2^18 are some 30 MB.
    pub(super) pieces: u32,
}

impl Default for Effort {
    fn default() -> Self {
        Self { steps: 1 << 30, pieces: 0 }
    }
}

impl Effort {
    const PIECES_MAX: u32 = 1 << 18;

    fn step(&mut self, count: usize) -> Result<(), JsonDiffError> {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.steps = self.steps.checked_sub(count).ok_or(JsonDiffError::TooMuchWork)?;
        Ok(())
    }

    /// One change at one leg makes at most three pieces of one.
    fn take_apart(&mut self) -> Result<(), JsonDiffError> {
        self.pieces = self.pieces.checked_sub(3).ok_or(JsonDiffError::TooMuchWork)?;
        Ok(())
    }
}

/// The document, from its outermost value on.
pub(super) struct Tree<'a, 'e> {
    pub(super) root: Node<'a>,
    effort: &'e mut Effort,
}

/// A value: as it was found, or taken apart.
pub(super) enum Node<'a> {
    Value(JsonValue<'a>),
    Parts(Box<Parts<'a>>),
}

/// An array or object that is taken apart.
pub(super) struct Parts<'a> {
    pub(super) source: Container<'a>,
    pub(super) pieces: Vec<Piece<'a>>,
    pub(super) count: usize,
    /// Set by the measuring that precedes the writing.
    pub(super) layout: Layout,
}

/// Some of its elements or members, in order.
pub(super) enum Piece<'a> {
    /// As they are in the source, from one place to before another.
    Range(usize, usize),
    Own(Box<Own<'a>>),
}

/// One element or member that is new, or has changed inside.
pub(super) struct Own<'a> {
    /// Empty in an array.
    pub(super) key: Cow<'a, [u8]>,
    pub(super) node: Node<'a>,
}

/// A piece, and how far into it.
#[derive(Clone, Copy)]
struct At {
    piece: usize,
    offset: usize,
}

impl<'a, 'e> Tree<'a, 'e> {
    pub(super) fn new(root: JsonValue<'a>, effort: &'e mut Effort) -> Self {
        effort.pieces = Effort::PIECES_MAX;
        Self { root: Node::Value(root), effort }
    }

    pub(super) fn replace(
        &mut self,
        parents: &[Leg<'a>],
        last: &Leg<'a>,
        value: JsonValue<'a>,
    ) -> Result<(), JsonDiffError> {
        let (parts, effort) = self.seek(parents)?;
        let at = parts.find(last, effort)?.ok_or(JsonDiffError::NotThere)?;
        *parts.isolate(at, effort)? = Node::Value(value);
        Ok(())
    }

    pub(super) fn insert(
        &mut self,
        parents: &[Leg<'a>],
        last: &Leg<'a>,
        value: JsonValue<'a>,
    ) -> Result<(), JsonDiffError> {
        let (parts, effort) = self.seek(parents)?;
        let (at, key) = match last {
            Leg::Member(name) if parts.source.object => {
                // The length of a key has 16 bits.
                if name.len() > usize::from(u16::MAX) {
                    return Err(JsonDiffError::TooLarge);
                }
                let at = parts.find_key(name.as_bytes(), effort)?.err().ok_or(JsonDiffError::AlreadyThere)?;
                (at, owned_bytes(name))
            }
            Leg::Cell(cell) if !parts.source.object => {
                (parts.find_index(cell.clamped(parts.count), effort)?, Cow::Borrowed(&[][..]))
            }
            Leg::Member(_) | Leg::Cell(_) => return Err(JsonDiffError::NotThere),
        };
        parts.put(at, Own { key, node: Node::Value(value) }, effort)
    }

    pub(super) fn remove(&mut self, parents: &[Leg<'a>], last: &Leg<'a>) -> Result<(), JsonDiffError> {
        let (parts, effort) = self.seek(parents)?;
        let at = parts.find(last, effort)?.ok_or(JsonDiffError::NotThere)?;
        parts.cut(at, effort)
    }

    /// The array or object at a path, taken apart.
    fn seek(&mut self, parents: &[Leg<'a>]) -> Result<(&mut Parts<'a>, &mut Effort), JsonDiffError> {
        let mut node = &mut self.root;
        for leg in parents {
            let parts = node.open()?;
            let at = parts.find(leg, self.effort)?.ok_or(JsonDiffError::NotThere)?;
            node = parts.isolate(at, self.effort)?;
        }
        Ok((node.open()?, self.effort))
    }
}

fn owned_bytes<'a>(name: &Cow<'a, str>) -> Cow<'a, [u8]> {
    match name {
        Cow::Borrowed(name) => Cow::Borrowed(name.as_bytes()),
        Cow::Owned(name) => Cow::Owned(name.clone().into_bytes()),
    }
}

impl<'a> Node<'a> {
    fn open(&mut self) -> Result<&mut Parts<'a>, JsonDiffError> {
        if let Self::Value(JsonValue::Array(super::JsonArray(source)))
        | Self::Value(JsonValue::Object(super::JsonObject(source))) = *self
        {
            *self = Self::Parts(Box::new(Parts::new(source)));
        }
        match self {
            Self::Parts(parts) => Ok(parts),
            Self::Value(_) => Err(JsonDiffError::NotThere),
        }
    }
}

impl<'a> Parts<'a> {
    fn new(source: Container<'a>) -> Self {
        let pieces = if source.count == 0 { Vec::new() } else { Vec::from([Piece::Range(0, source.count)]) };
        Self { source, pieces, count: source.count, layout: Layout::default() }
    }

    fn find(&self, leg: &Leg<'_>, effort: &mut Effort) -> Result<Option<At>, JsonDiffError> {
        match leg {
            Leg::Member(name) if self.source.object => Ok(self.find_key(name.as_bytes(), effort)?.ok()),
            Leg::Cell(cell) if !self.source.object => match cell.within(self.count) {
                Some(index) => self.find_index(index, effort).map(Some),
                None => Ok(None),
            },
            Leg::Member(_) | Leg::Cell(_) => Ok(None),
        }
    }

    /// Where the element `index` is, or the end.
    fn find_index(&self, index: usize, effort: &mut Effort) -> Result<At, JsonDiffError> {
        effort.step(self.pieces.len())?;
        let mut offset = index;
        for (piece, part) in self.pieces.iter().enumerate() {
            let length = part.len();
            if offset < length {
                return Ok(At { piece, offset });
            }
            offset = offset.saturating_sub(length);
        }
        Ok(At { piece: self.pieces.len(), offset: 0 })
    }

    /// Where the member `key` is, or else where it belongs.
    fn find_key(&self, key: &[u8], effort: &mut Effort) -> Result<Result<At, At>, JsonDiffError> {
        // The search is short; what counts is what moves when a piece is put in.
        effort.step(self.pieces.len() / 8 + 1)?;
        let wanted = (key.len(), key);
        let (mut low, mut high) = (0, self.pieces.len());
        while low < high {
            let middle = low.midpoint(high);
            let first = self.first_key(middle)?;
            if (first.len(), first) <= wanted {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        let behind = At { piece: low, offset: 0 };
        let Some(piece) = low.checked_sub(1) else { return Ok(Err(behind)) };
        let (start, end) = match self.pieces.get(piece) {
            Some(Piece::Range(start, end)) => (*start, *end),
            Some(Piece::Own(own)) if *own.key == *key => return Ok(Ok(At { piece, offset: 0 })),
            Some(Piece::Own(_)) | None => return Ok(Err(behind)),
        };
        let (mut low, mut high) = (start, end);
        while low < high {
            let middle = low.midpoint(high);
            let found = self.source.key(middle)?;
            match (found.len(), found).cmp(&wanted) {
                core::cmp::Ordering::Less => low = middle.saturating_add(1),
                core::cmp::Ordering::Greater => high = middle,
                core::cmp::Ordering::Equal => {
                    return Ok(Ok(At { piece, offset: middle.saturating_sub(start) }));
                }
            }
        }
        Ok(Err(if low == end { behind } else { At { piece, offset: low.saturating_sub(start) } }))
    }

    fn first_key(&self, piece: usize) -> Result<&[u8], JsonDiffError> {
        match self.pieces.get(piece) {
            Some(Piece::Range(start, _)) => Ok(self.source.key(*start)?),
            Some(Piece::Own(own)) => Ok(&own.key),
            None => Err(JsonDiffError::NotThere),
        }
    }

    /// The element or member there, as a piece of its own.
    fn isolate(&mut self, at: At, effort: &mut Effort) -> Result<&mut Node<'a>, JsonDiffError> {
        if let Some(&Piece::Range(start, end)) = self.pieces.get(at.piece) {
            effort.take_apart()?;
            let place = start.saturating_add(at.offset);
            let key = if self.source.object { self.source.key(place)? } else { &[] };
            let node = Node::Value(self.source.value(place)?);
            let own = Own { key: Cow::Borrowed(key), node };
            self.split(at.piece, (start, place), Some(own), (place.saturating_add(1), end));
        }
        // In front of it there is now one piece more, unless it was the first of its range.
        let piece = if at.offset == 0 { at.piece } else { at.piece.saturating_add(1) };
        match self.pieces.get_mut(piece) {
            Some(Piece::Own(own)) => Ok(&mut own.node),
            Some(Piece::Range(..)) | None => Err(JsonDiffError::NotThere),
        }
    }

    /// Puts one in front of what is there.
    fn put(&mut self, at: At, own: Own<'a>, effort: &mut Effort) -> Result<(), JsonDiffError> {
        effort.take_apart()?;
        match self.pieces.get(at.piece) {
            Some(&Piece::Range(start, end)) if at.offset > 0 => {
                let place = start.saturating_add(at.offset);
                self.split(at.piece, (start, place), Some(own), (place, end));
            }
            Some(_) | None => {
                self.pieces.insert(at.piece.min(self.pieces.len()), Piece::Own(Box::new(own)));
            }
        }
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    /// Takes out what is there.
    fn cut(&mut self, at: At, effort: &mut Effort) -> Result<(), JsonDiffError> {
        match self.pieces.get(at.piece) {
            Some(&Piece::Range(start, end)) => {
                effort.take_apart()?;
                let place = start.saturating_add(at.offset);
                self.split(at.piece, (start, place), None, (place.saturating_add(1), end));
            }
            Some(Piece::Own(_)) => {
                self.pieces.remove(at.piece);
            }
            None => return Err(JsonDiffError::NotThere),
        }
        self.count = self.count.saturating_sub(1);
        Ok(())
    }

    /// Puts what is left of a range, and `own` in between, in its place.
    fn split(&mut self, piece: usize, front: (usize, usize), own: Option<Own<'a>>, back: (usize, usize)) {
        let range = |(start, end)| (start < end).then_some(Piece::Range(start, end));
        let own = own.map(|own| Piece::Own(Box::new(own)));
        let parts = [range(front), own, range(back)];
        self.pieces.splice(piece..=piece, parts.into_iter().flatten());
    }
}

impl Piece<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Range(start, end) => end.saturating_sub(*start),
            Self::Own(_) => 1,
        }
    }
}
