//! Files that a scenario names, read so that no file can stop or fill the machine: regular ones only, and
//! of a sane length.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

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

/// Opens a regular file of at most so many bytes. A pipe is not opened: that would wait for its writer.
///
/// # Errors
/// What is wrong with the file.
pub fn open(path: &Path, most_bytes: u64) -> Result<File, Fault> {
    check(&std::fs::metadata(path), most_bytes)?;
    let file = File::open(path).map_err(Fault::Unreadable)?;
    // Once more: the name may have become that of another file.
    check(&file.metadata(), most_bytes)?;
    Ok(file)
}

/// Reads a regular file of at most so many bytes.
///
/// # Errors
/// What is wrong with the file.
pub fn read(path: &Path, most_bytes: u64) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let file = open(path, most_bytes)?;
    // A file that grows, or one of /proc, may be longer than it says.
    file.take(most_bytes + 1).read_to_end(&mut bytes).map_err(Fault::Unreadable)?;
    if bytes.len() as u64 > most_bytes { Err(Fault::TooLong(most_bytes)) } else { Ok(bytes) }
}

fn check(about: &io::Result<std::fs::Metadata>, most_bytes: u64) -> Result<(), Fault> {
    match about {
        Err(fault) => Err(Fault::Unreadable(clone(fault))),
        Ok(about) if !about.is_file() => Err(Fault::NotAFile),
        Ok(about) if about.len() > most_bytes => Err(Fault::TooLong(most_bytes)),
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
