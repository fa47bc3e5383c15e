//! A file that is whole or not there: written beside its place as `NAME.part`, renamed when the last
//! byte is on the disk. A writer inside a probe cannot fail upward, so the first failure is kept.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file in the making, or another writer. Dropped before [`Output::finish`], it leaves no file.
pub struct Output {
    sink: Sink,
    failure: Option<io::Error>,
}

enum Sink {
    File { out: BufWriter<File>, partial: PathBuf, path: PathBuf },
    Writer(Box<dyn Write + Send>),
}

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
        let out = BufWriter::new(out);
        Ok(Self { sink: Sink::File { out, partial, path }, failure: None })
    }

    /// Writes elsewhere.
    pub fn to(out: impl Write + Send + 'static) -> Self {
        Self { sink: Sink::Writer(Box::new(out)), failure: None }
    }

    /// Writes these bytes; after a failure, nothing.
    pub fn write(&mut self, bytes: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        let written = match &mut self.sink {
            Sink::File { out, .. } => out.write_all(bytes),
            Sink::Writer(out) => out.write_all(bytes),
        };
        self.failure = written.err();
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
            Sink::File { out, partial, path } => out
                .flush()
                .and_then(|()| out.get_ref().sync_all())
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
