//! A file that is either complete or absent: written as `NAME.part`, and renamed when the last byte is on
//! disk. A writer inside a probe cannot return an error, so the first failure is kept.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file being written, or another writer. If dropped before [`Output::finish`], it leaves no file.
pub struct Output {
    sink: Sink,
    failure: Option<io::Error>,
}

enum Sink {
    /// The first `used` bytes of `held` are buffered and written in pieces of `piece` bytes. The buffer is
    /// allocated with the first byte.
    File {
        out: File,
        held: Vec<u8>,
        used: usize,
        piece: usize,
        partial: PathBuf,
        path: PathBuf,
    },
    Writer(Box<dyn Write + Send + Sync>),
}

/// Write size: in pieces of 8 KiB, a file costs half as much kernel time again.
const PIECE: usize = 1 << 16;
/// Buffer limit of all files written at once, unless there are so many that each has the minimum.
const HELD: usize = 8 << 20;
const MIN_PIECE: usize = 1 << 13;

impl Output {
    /// Creates the file `path`.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        Self::create_unnamed(path.clone()).map_err(|error| named(&path, &error))
    }

    fn create_unnamed(path: PathBuf) -> io::Result<Self> {
        let mut partial = path.clone().into_os_string();
        partial.push(".part");
        let partial = PathBuf::from(partial);
        let out = File::create(&partial)?;
        let sink = Sink::File { out, held: Vec::new(), used: 0, piece: PIECE, partial, path };
        Ok(Self { sink, failure: None })
    }

    /// Creates the file `path`; a failure is kept as if the first write had failed.
    pub(crate) fn create_or_fail(path: PathBuf) -> Self {
        Self::create_unnamed(path).unwrap_or_else(|error| {
            let mut none = Self::to(io::sink());
            none.failure = Some(error);
            none
        })
    }

    /// Declares the number of files written at once, which limits the buffer of each.
    #[must_use]
    pub fn one_of(mut self, files: usize) -> Self {
        if let Sink::File { held, used, piece, .. } = &mut self.sink {
            // No page of the file is written twice.
            let share = (HELD / files.max(1)).max(1);
            let lesser = (1 << share.ilog2()).clamp(MIN_PIECE, PIECE);
            if *used < lesser {
                *piece = lesser;
                held.truncate(lesser);
                held.shrink_to_fit();
            }
        }
        self
    }

    /// Writes to another writer.
    pub fn to(out: impl Write + Send + Sync + 'static) -> Self {
        Self { sink: Sink::Writer(Box::new(out)), failure: None }
    }

    /// Writes these bytes; does nothing after a failure.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) {
        match self.room(bytes.len()) {
            Some(room) => room.copy_from_slice(bytes),
            None => self.pass_on(bytes),
        }
    }

    /// Writes `bytes` bytes, produced in place in the buffer.
    #[inline]
    pub(crate) fn write_with(&mut self, bytes: usize, make: impl FnOnce(&mut [u8])) {
        if let Some(room) = self.room(bytes) {
            make(room);
        } else {
            let mut made = vec![0; bytes];
            make(&mut made);
            self.pass_on(&made);
        }
    }

    /// A slice of `bytes` bytes at the end of the buffer, if it has space.
    #[inline]
    fn room(&mut self, bytes: usize) -> Option<&mut [u8]> {
        let Sink::File { held, used, .. } = &mut self.sink else { return None };
        let room = held.get_mut(*used..*used + bytes)?;
        *used += bytes;
        Some(room)
    }

    /// Writes whole pieces, and buffers the remainder.
    #[inline(never)]
    fn pass_on(&mut self, mut bytes: &[u8]) {
        let mut written = Ok(());
        match &mut self.sink {
            _ if self.failure.is_some() => {}
            Sink::Writer(out) => written = out.write_all(bytes),
            Sink::File { out, held, used, piece, .. } => {
                if held.is_empty() {
                    held.resize(*piece, 0);
                }
                while written.is_ok() && bytes.len() >= *piece - *used {
                    let (now, rest) = bytes.split_at(*piece - *used);
                    held[*used..].copy_from_slice(now);
                    written = out.write_all(held);
                    *used = 0;
                    bytes = rest;
                }
                if written.is_ok() {
                    held[*used..][..bytes.len()].copy_from_slice(bytes);
                    *used += bytes.len();
                }
            }
        }
        self.failure = self.failure.take().or(written.err());
    }

    /// Whether a write failed; [`Output::finish`] returns the error.
    #[must_use]
    pub const fn failed(&self) -> bool {
        self.failure.is_some()
    }

    /// The final path, if this is a file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.sink {
            Sink::File { path, .. } => Some(path),
            Sink::Writer(_) => None,
        }
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// The first write error; there is then no file.
    pub fn finish(self) -> io::Result<()> {
        let path = self.path().map(Path::to_path_buf);
        self.complete(true).map_err(|error| match path {
            Some(path) => named(&path, &error),
            None => error,
        })
    }

    /// Like [`Output::finish`], but does not wait for the disk.
    ///
    /// # Errors
    /// The first write error, without the file's name; there is then no file.
    pub(crate) fn finish_quickly(self) -> io::Result<()> {
        self.complete(false)
    }

    fn complete(mut self, flush: bool) -> io::Result<()> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        match &mut self.sink {
            Sink::Writer(out) => out.flush(),
            Sink::File { out, held, used, partial, path, .. } => out
                .write_all(&held[..*used])
                .and_then(|()| if flush { out.sync_all() } else { Ok(()) })
                .and_then(|()| fs::rename(partial, &path)),
        }
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Sink::File { partial, .. } = &self.sink {
            // After a rename this name no longer exists; a failure cannot be handled.
            let _ = fs::remove_file(partial);
        }
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("path", &self.path())
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}
