//! Files that a scenario names, read by name from the disk or from memory. From the disk, no file can
//! block or fill the machine: only regular files of limited length are read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;

/// Length of a trace or capture at most.
pub const MAX_BYTES: u64 = 64 << 20;

/// Why a file was not read.
#[derive(Debug)]
pub enum Fault {
    /// There is no such file, or it may not be read.
    Unreadable(io::Error),
    /// A folder, device, pipe or socket.
    NotAFile,
    /// Longer than this many bytes.
    TooLong(u64),
}

/// In words that go behind the name of the file.
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

/// Where files come from: the disk, or memory where there is no disk (a browser) or the files were
/// sent along (a worker of a cluster).
pub trait Files {
    /// The bytes of a file, at most `max_bytes`.
    ///
    /// # Errors
    /// What is wrong with the file.
    fn read(&self, path: &Path, max_bytes: u64) -> Result<Bytes, Fault>;
}

/// The files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path, max_bytes: u64) -> Result<Bytes, Fault> {
        read(path, max_bytes).map(Bytes::from)
    }
}

/// Files kept in memory, by the path under which a scenario names them.
impl Files for BTreeMap<PathBuf, Bytes> {
    fn read(&self, path: &Path, max_bytes: u64) -> Result<Bytes, Fault> {
        match self.get(path) {
            None => Err(Fault::Unreadable(ErrorKind::NotFound.into())),
            Some(bytes) if bytes.len() as u64 > max_bytes => Err(Fault::TooLong(max_bytes)),
            Some(bytes) => Ok(bytes.clone()),
        }
    }
}

/// Reads a regular file of at most so many bytes. A pipe is not opened: that would wait for its writer.
///
/// # Errors
/// What is wrong with the file.
pub fn read(path: &Path, max_bytes: u64) -> Result<Vec<u8>, Fault> {
    check(&std::fs::metadata(path), max_bytes)?;
    let file = File::open(path).map_err(Fault::Unreadable)?;
    // Checked again, as the name may now belong to another file.
    check(&file.metadata(), max_bytes)?;
    let mut bytes = Vec::new();
    // A file that grows, or one of /proc, may be longer than its metadata says.
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
    fn only_regular_files_of_sane_length_are_read() {
        let folder = std::env::temp_dir().join(format!("talkspurt-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for temporary files");
        assert!(matches!(read(&folder, 10), Err(Fault::NotAFile)));
        assert!(matches!(read(Path::new("/dev/zero"), 10), Err(Fault::NotAFile)));
        let file = folder.join("file");
        std::fs::write(&file, b"ten bytes.").expect("writing");
        assert_eq!(read(&file, 10).ok().as_deref(), Some(b"ten bytes.".as_slice()));
        assert!(matches!(read(&file, 9), Err(Fault::TooLong(9))));
        // Of no length by what the system says, and longer than is allowed.
        assert!(matches!(read(Path::new("/proc/self/maps"), 9), Err(Fault::TooLong(9))));
        // A pipe that nobody writes into: opening it would not return.
        let pipe = folder.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if made.is_ok_and(|status| status.success()) {
            assert!(matches!(read(&pipe, 10), Err(Fault::NotAFile)));
        }
        std::fs::remove_dir_all(&folder).expect("removing");
        assert!(matches!(read(&file, 9), Err(Fault::Unreadable(_))));
    }
}
