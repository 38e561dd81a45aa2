//! Where the bytes of a binlog come from: a file, a compressed file, standard input.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek as _, SeekFrom},
    path::Path,
};

use bytes::Bytes;
use capstan::{Code, Detail, Halt, Place};
use flate2::bufread::MultiGzDecoder;

use crate::failure::Failure;

/// RFC 1952, section 2.3.1.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// RFC 8878, section 3.1.1.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The bytes of one binlog, decompressed.
pub struct Input {
    name: String,
    from: From,
    compressed: bool,
}

enum From {
    /// It can be leapt over.
    File(File),
    /// It can only be read.
    Stream(Box<dyn Read>),
}

impl Input {
    /// Opens `path`; `-` is standard input. Whether it is compressed is told by its first bytes, not its name.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
        let cannot = |error: io::Error| Failure::other(format!("{name}: {error}"), 3);
        if is_stdin {
            let mut bytes = BufReader::new(io::stdin());
            let head = head(&mut bytes).map_err(cannot)?;
            let (stream, compressed) = stream(head, bytes).map_err(cannot)?;
            return Ok(Self { name, from: From::Stream(stream), compressed });
        }
        let mut file = File::open(path).map_err(cannot)?;
        if file.metadata().map_err(cannot)?.is_dir() {
            return Err(Failure::other(format!("{name} is a folder, not a binlog file"), 3));
        }
        let head = head(&mut file).map_err(cannot)?;
        if Form::of(&head) == Form::Plain && file.seek(SeekFrom::Start(0)).is_ok() {
            return Ok(Self { name, from: From::File(file), compressed: false });
        }
        let (stream, compressed) = stream(head, BufReader::new(file)).map_err(cannot)?;
        Ok(Self { name, from: From::Stream(stream), compressed })
    }

    /// What to call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Goes on at `to`. `piece` is what was read last and `end` where it ended, in bytes from the head;
    /// gives the part of `piece` that is to be read again. `None` if `to` lies outside of what there is.
    pub fn seek(&mut self, to: u64, piece: &Bytes, end: u64) -> Result<Option<Bytes>, Failure> {
        if let From::File(file) = &mut self.from {
            let cannot = |error: io::Error| Failure::other(format!("{}: {error}", self.name), 3);
            if to > file.metadata().map_err(cannot)?.len() {
                return Ok(None);
            }
            file.seek(SeekFrom::Start(to)).map_err(cannot)?;
            return Ok(Some(Bytes::new()));
        }
        let mut left = match to.checked_sub(end) {
            Some(left) => left,
            None => {
                let back = usize::try_from(end.saturating_sub(to)).unwrap_or(usize::MAX);
                return Ok(piece.len().checked_sub(back).map(|at| piece.slice(at..)));
            }
        };
        let mut over = vec![0; 64 << 10];
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(over.len());
            let read =
                self.read(over.get_mut(..most).unwrap_or_default()).map_err(|error| self.failed(&error))?;
            if read == 0 {
                return Ok(None);
            }
            left = left.saturating_sub(read as u64);
        }
        Ok(Some(Bytes::new()))
    }

    /// A decompressor that stops tells of the bytes, anything else of the machine.
    pub fn failed(&self, error: &io::Error) -> Failure {
        let of_the_bytes = matches!(
            error.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof
        );
        // zstd's own errors are of no kind.
        if self.compressed && (of_the_bytes || error.raw_os_error().is_none()) {
            let place = Place { file: Some(self.name.clone()), ..Place::default() };
            let note = Detail::Note("The compressed file is damaged, or cut");
            return Halt::new(Code::EventMalformed).with(note).at(place).into();
        }
        Failure::other(format!("{}: {error}", self.name), 3)
    }
}

impl Read for Input {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match &mut self.from {
            From::File(file) => file.read(bytes),
            From::Stream(stream) => stream.read(bytes),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Gzip,
    Zstd,
}

impl Form {
    fn of(head: &[u8]) -> Self {
        if head.starts_with(&GZIP) {
            Self::Gzip
        } else if head.starts_with(&ZSTD) {
            Self::Zstd
        } else {
            Self::Plain
        }
    }
}

/// The first four bytes, or what there is of them.
fn head(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    from.take(4).read_to_end(&mut head)?;
    Ok(head)
}

fn stream(head: Vec<u8>, rest: impl Read + 'static) -> io::Result<(Box<dyn Read>, bool)> {
    let form = Form::of(&head);
    let whole = BufReader::new(io::Cursor::new(head).chain(rest));
    Ok(match form {
        Form::Plain => (Box::new(whole), false),
        Form::Gzip => (Box::new(MultiGzDecoder::new(whole)), true),
        Form::Zstd => (Box::new(zstd::stream::read::Decoder::with_buffer(whole)?), true),
    })
}
