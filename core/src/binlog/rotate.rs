//! ROTATE_EVENT.

use bytes::Bytes;

use super::DecodeError;
use crate::wire::Reader;

/// The file that follows, or (artificial, in front of a stream) the one the stream is in
/// (`Rotate_event`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotate {
    /// The name of the file, without a path.
    pub file: Bytes,
    /// Where in it the next event stands; 64 bits, also beyond 4 GiB.
    pub position: u64,
}

impl Rotate {
    /// Reads the body of the event.
    pub fn decode(body: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let position = reader.u64()?;
        Ok(Self { file: file_name(body, reader.rest())?, position })
    }
}

/// The longest file name (`FN_REFLEN` − 1).
const FILE_NAME_MAX: usize = 511;

/// A file name as events carry it: not empty, no NUL, no longer than the server allows.
pub(super) fn file_name(body: &Bytes, name: &[u8]) -> Result<Bytes, DecodeError> {
    if name.is_empty() || name.len() > FILE_NAME_MAX || name.contains(&0) {
        return Err(DecodeError::Field("file name"));
    }
    Ok(body.slice_ref(name))
}
