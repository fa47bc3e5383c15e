//! A file that is whole or not there: written beside its place as `NAME.part`, renamed when the last
//! byte is on the disk. A writer inside a probe cannot fail upward, so the first failure is kept.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file in the making, or another writer. Dropped before [`Output::finish`], it leaves no file.
pub struct Output {
    sink: Sink,
    failure: Option<io::Error>,
}

enum Sink {
    /// The first `used` bytes of `held` wait to be written together with what comes, in pieces of so
    /// many; behind them there is only room, which is there when the first byte has come.
    File {
        out: File,
        held: Vec<u8>,
        used: usize,
        piece: usize,
        partial: PathBuf,
        path: PathBuf,
    },
    Writer(Box<dyn Write + Send>),
}

/// Bytes that are written together: in pieces of 8 KiB a file takes the kernel half as much time again.
const PIECE: usize = 1 << 16;
/// Bytes that all files written at once may hold, unless they are so many that each holds the least.
const HELD: usize = 8 << 20;
const MIN_PIECE: usize = 1 << 13;

impl Output {
    /// Begins the file `path`.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let mut partial = path.clone().into_os_string();
        partial.push(".part");
        let partial = PathBuf::from(partial);
        let out = File::create(&partial).map_err(|error| named(&path, &error))?;
        let sink = Sink::File { out, held: Vec::new(), used: 0, piece: PIECE, partial, path };
        Ok(Self { sink, failure: None })
    }

    /// Tells a file that it is one of so many that are written at once, so that they do not hold
    /// too much together.
    #[must_use]
    pub fn one_of(mut self, files: usize) -> Self {
        if let Sink::File { held, used, piece, .. } = &mut self.sink {
            // Of a file's pages none is written twice.
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

    /// Writes elsewhere.
    pub fn to(out: impl Write + Send + 'static) -> Self {
        Self { sink: Sink::Writer(Box::new(out)), failure: None }
    }

    /// Writes these bytes; after a failure, nothing.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) {
        match self.room(bytes.len()) {
            Some(room) => room.copy_from_slice(bytes),
            None => self.pass_on(bytes),
        }
    }

    /// Writes so many bytes, made where they wait.
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

    /// Room for so many bytes behind those that wait, if there is some.
    #[inline]
    fn room(&mut self, bytes: usize) -> Option<&mut [u8]> {
        let Sink::File { held, used, .. } = &mut self.sink else { return None };
        let room = held.get_mut(*used..*used + bytes)?;
        *used += bytes;
        Some(room)
    }

    /// Writes in whole pieces, and holds what is left.
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

    /// Whether something could not be written; [`Output::finish`] says what.
    #[must_use]
    pub const fn failed(&self) -> bool {
        self.failure.is_some()
    }

    /// The file this becomes, if it is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.sink {
            Sink::File { path, .. } => Some(path),
            Sink::Writer(_) => None,
        }
    }

    /// Completes it: the file gets its name.
    ///
    /// # Errors
    /// The first thing that could not be written; there is then no file.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(error) = self.failure.take() {
            return Err(match self.path() {
                Some(path) => named(path, &error),
                None => error,
            });
        }
        match &mut self.sink {
            Sink::Writer(out) => out.flush(),
            Sink::File { out, held, used, partial, path, .. } => out
                .write_all(&held[..*used])
                .and_then(|()| out.sync_all())
                .and_then(|()| fs::rename(partial, &path))
                .map_err(|error| named(path, &error)),
        }
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Sink::File { partial, .. } = &self.sink {
            // After a rename there is nothing of this name; nothing can be done about a failure.
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
