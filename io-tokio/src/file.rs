//! Reading binlog files.

use std::{
    fmt,
    io::{self, ErrorKind, Read},
};

use bytes::{Bytes, BytesMut};

/// A file in large pieces, for [`FileReader::feed_bytes`](crate::core::binlog::FileReader::feed_bytes). The
/// memory of a piece is used again for the next one as soon as nothing keeps it.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use capstan::{core::binlog::FileReader, file::Pieces};
///
/// let mut pieces = Pieces::new(std::fs::File::open("binlog.000001")?);
/// let mut reader = FileReader::new(1 << 30);
/// while let Some(piece) = pieces.next_piece()? {
///     reader.feed_bytes(piece);
///     while let Some((offset, event)) = reader.next_event()? {
///         println!("{offset}: {}", event.header.event_type);
///     }
/// }
/// reader.finish()?;
/// # Ok(())
/// # }
/// ```
pub struct Pieces<R> {
    from: R,
    /// The pieces given last. Which of them nothing keeps any more is seen when one is needed.
    given: Vec<Bytes>,
}

/// Bytes of a piece: few enough to stay in the cache of a core between reading and decoding.
const PIECE: usize = 256 << 10;
/// Where a piece starts in memory: at a line of the cache, as the pages of the kernel do that it is copied from. A large
/// allocation starts 16 bytes behind such a line, and that copy takes 2.5 times as long.
const ALIGNED_TO: usize = 64;
/// How many pieces are looked at: as many as a transaction holds that is not yet handed over while it is read.
const GIVEN_MAX: usize = 32;

impl<R> fmt::Debug for Pieces<R> {
    // Rule 1: what they hold are row values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pieces({} given)", self.given.len())
    }
}

impl<R: Read> Pieces<R> {
    /// Reads from here on.
    pub fn new(from: R) -> Self {
        Self { from, given: Vec::new() }
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// What reading gives.
    pub fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        let free = self.given.iter().position(Bytes::is_unique).map(|at| self.given.swap_remove(at));
        let mut piece = free.and_then(|free| free.try_into_mut().ok()).unwrap_or_default();
        piece.resize(PIECE + ALIGNED_TO, 0);
        let start = piece.as_ptr().align_offset(ALIGNED_TO).min(ALIGNED_TO);
        let read = loop {
            match self
                .from
                .read(piece.get_mut(start..).and_then(|to| to.get_mut(..PIECE)).unwrap_or_default())
            {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        let whole = BytesMut::freeze(piece);
        let given = whole.slice(start..start + read);
        self.given.truncate(GIVEN_MAX.saturating_sub(1));
        self.given.push(whole);
        Ok((read > 0).then_some(given))
    }

    /// What is read from, to seek in it.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_comes_and_a_piece_that_is_kept_stays() {
        let bytes: Vec<u8> = (0..3 * PIECE + 5).map(|n| (n % 251) as u8).collect();
        for keep in [true, false] {
            let mut pieces = Pieces::new(bytes.as_slice());
            let (mut kept, mut all) = (Vec::new(), Vec::new());
            while let Some(piece) = pieces.next_piece().unwrap() {
                all.extend_from_slice(&piece);
                if keep {
                    kept.push(piece);
                }
            }
            assert!(all == bytes);
            assert!(!keep || kept.concat() == bytes);
        }
    }
}
