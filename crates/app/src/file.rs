//! Files named by a scenario, read from disk or from memory. On disk only regular files of limited length are
//! read, so no file can block or exhaust memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;

/// Maximum length of a trace or capture.
pub const MAX_BYTES: u64 = 64 << 20;

/// Why a file could not be read.
#[derive(Debug)]
pub enum Fault {
    /// The file does not exist, or access is denied.
    Unreadable(io::Error),
    /// A folder, device, pipe or socket.
    NotAFile,
    /// Longer than this many bytes.
    TooLong(u64),
}

/// A phrase that follows the name of the file.
impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreadable(fault) => match fault.kind() {
                ErrorKind::NotFound => f.write_str("there is no such file"),
                ErrorKind::PermissionDenied => f.write_str("permission denied"),
                _ => fault.fmt(f),
            },
            Self::NotAFile => f.write_str("is not a regular file"),
            Self::TooLong(most) => write!(f, "is longer than {} MiB", most >> 20),
        }
    }
}

/// Source of files: the disk, or memory where there is no disk (a browser) or the files were sent along (a
/// cluster worker).
pub trait Files {
    /// The bytes of a file, at most `max_bytes`.
    ///
    /// # Errors
    /// The fault of the file.
    fn read(&self, path: &Path, max_bytes: u64) -> Result<Bytes, Fault>;

    /// The length of a file in bytes; `None` if it is not there.
    fn length(&self, path: &Path) -> Option<u64>;

    /// One absolute name of a file, whatever path led to it.
    fn absolute(&self, path: &Path) -> PathBuf;

    /// Names of the files in a folder, for suggestions.
    fn names(&self, folder: &Path) -> Vec<String>;
}

/// Files on disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path, max_bytes: u64) -> Result<Bytes, Fault> {
        read(path, max_bytes).map(Bytes::from)
    }

    fn length(&self, path: &Path) -> Option<u64> {
        std::fs::metadata(path).ok().map(|about| about.len())
    }

    /// Canonical if the file exists.
    fn absolute(&self, path: &Path) -> PathBuf {
        let known = path.canonicalize().ok().filter(|path| path.to_str().is_some());
        known.or_else(|| std::path::absolute(path).ok()).unwrap_or_else(|| path.to_owned())
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
    }
}

/// Files in memory, by absolute path without `.` and `..`.
impl Files for BTreeMap<PathBuf, Bytes> {
    fn read(&self, path: &Path, max_bytes: u64) -> Result<Bytes, Fault> {
        match self.get(path) {
            None => Err(Fault::Unreadable(ErrorKind::NotFound.into())),
            Some(bytes) if bytes.len() as u64 > max_bytes => Err(Fault::TooLong(max_bytes)),
            Some(bytes) => Ok(bytes.clone()),
        }
    }

    fn length(&self, path: &Path) -> Option<u64> {
        self.get(path).map(|bytes| bytes.len() as u64)
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        let mut absolute = PathBuf::from("/");
        for part in path.components() {
            match part {
                Component::ParentDir => _ = absolute.pop(),
                Component::Normal(name) => absolute.push(name),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        absolute
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        let inside = self.keys().filter(|path| path.parent() == Some(folder));
        inside.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect()
    }
}

/// Reads a regular file of at most `max_bytes`. A pipe is not opened: that could block.
///
/// # Errors
/// The fault of the file.
pub fn read(path: &Path, max_bytes: u64) -> Result<Vec<u8>, Fault> {
    check(&std::fs::metadata(path), max_bytes)?;
    let file = File::open(path).map_err(Fault::Unreadable)?;
    // Checked again, because the name may now refer to another file.
    check(&file.metadata(), max_bytes)?;
    let mut bytes = Vec::new();
    // A file that grows, or one in /proc, may be longer than its metadata says.
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(Fault::Unreadable)?;
    if bytes.len() as u64 > max_bytes { Err(Fault::TooLong(max_bytes)) } else { Ok(bytes) }
}

fn check(about: &io::Result<std::fs::Metadata>, max_bytes: u64) -> Result<(), Fault> {
    match about {
        Err(fault) => Err(Fault::Unreadable(clone(fault))),
        Ok(about) if !about.is_file() => Err(Fault::NotAFile),
        Ok(about) if about.len() > max_bytes => Err(Fault::TooLong(max_bytes)),
        Ok(_) => Ok(()),
    }
}

fn clone(fault: &io::Error) -> io::Error {
    fault.raw_os_error().map_or_else(|| fault.kind().into(), io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_memory_have_folders() {
        let path = PathBuf::from("/speech/one.wav");
        let files = BTreeMap::from([(path.clone(), Bytes::from_static(b"ten bytes."))]);
        for named in ["/scenarios/../speech/one.wav", "speech/./one.wav"] {
            assert_eq!(files.absolute(Path::new(named)), path);
        }
        assert_eq!(files.names(Path::new("/speech")), ["one.wav"]);
        assert!(files.names(Path::new("/")).is_empty());
        assert_eq!(files.read(&path, 10).ok().as_deref(), Some(b"ten bytes.".as_slice()));
        assert!(matches!(files.read(&path, 9), Err(Fault::TooLong(9))));
        assert!(matches!(files.read(Path::new("/one.wav"), 9), Err(Fault::Unreadable(_))));
    }

    #[test]
    fn only_regular_files_of_sane_length_are_read() {
        let folder = std::env::temp_dir().join(format!("talkspurt-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for temporary files");
        assert!(matches!(read(&folder, 10), Err(Fault::NotAFile)));
        assert!(matches!(read(Path::new("/dev/zero"), 10), Err(Fault::NotAFile)));
        let file = folder.join("file");
        std::fs::write(&file, b"ten bytes.").expect("writing");
        assert_eq!(read(&file, 10).ok().as_deref(), Some(b"ten bytes.".as_slice()));
        assert!(matches!(read(&file, 9), Err(Fault::TooLong(9))));
        // Its metadata says length zero, but it is longer than allowed.
        assert!(matches!(read(Path::new("/proc/self/maps"), 9), Err(Fault::TooLong(9))));
        // A pipe without a writer: opening it would block.
        let pipe = folder.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if made.is_ok_and(|status| status.success()) {
            assert!(matches!(read(&pipe, 10), Err(Fault::NotAFile)));
        }
        std::fs::remove_dir_all(&folder).expect("removing");
        assert!(matches!(read(&file, 9), Err(Fault::Unreadable(_))));
    }
}
