//! Numbers, or rows of them, of many keys in the order of each key: in memory up to a limit, then in a
//! temporary file, so that memory does not grow with the length of a run.
//!
//! The file has no name, so that it disappears with the process. Where none can be created or written, the
//! numbers stay in memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use talkspurt_proto::time::Instant;

/// Where a [`Spool`] continues when its memory is full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// In memory.
    Memory,
    /// In the system's folder for temporary files.
    Temporary,
    /// In this folder.
    Folder(PathBuf),
}

/// What a [`Spool`] can hold.
pub(crate) trait Number: Copy {
    /// Its length in a file.
    const BYTES: usize;
    /// Appends it, least significant byte first.
    fn write(self, bytes: &mut Vec<u8>);
    /// Takes it from the front of these bytes.
    fn read(bytes: &mut &[u8]) -> Self;
}

macro_rules! numbers {
    ($($type:ty)*) => {
        $(impl Number for $type {
            const BYTES: usize = size_of::<Self>();
            fn write(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }
            fn read(bytes: &mut &[u8]) -> Self {
                let (own, rest) = bytes.split_first_chunk().expect("whole numbers");
                *bytes = rest;
                Self::from_le_bytes(*own)
            }
        })*
    };
}
numbers!(u32 u64 f64);

/// NaN is no value.
impl Number for Option<f64> {
    const BYTES: usize = f64::BYTES;
    fn write(self, bytes: &mut Vec<u8>) {
        self.unwrap_or(f64::NAN).write(bytes);
    }
    fn read(bytes: &mut &[u8]) -> Self {
        Some(f64::read(bytes)).filter(|value| !value.is_nan())
    }
}

impl Number for Instant {
    const BYTES: usize = u64::BYTES;
    fn write(self, bytes: &mut Vec<u8>) {
        self.as_nanos().write(bytes);
    }
    fn read(bytes: &mut &[u8]) -> Self {
        Self::from_nanos(u64::read(bytes))
    }
}

/// Rows of numbers.
macro_rules! rows {
    ($($row:ty { $($field:ident: $kind:ty),* $(,)? })*) => {
        $(impl Number for $row {
            const BYTES: usize = 0 $(+ <$kind>::BYTES)*;
            fn write(self, bytes: &mut Vec<u8>) {
                $(self.$field.write(bytes);)*
            }
            fn read(bytes: &mut &[u8]) -> Self {
                Self { $($field: Number::read(bytes)),* }
            }
        })*
    };
}
pub(crate) use rows;

/// Rows of numbers by key.
#[derive(Debug)]
pub(crate) struct Spool<T> {
    /// Numbers in memory: the last ones of each key.
    held: Vec<Vec<T>>,
    count: usize,
    /// As many numbers are held, at most.
    limit: usize,
    beyond: Beyond,
    file: Option<File>,
    written: u64,
    /// By key: the numbers in the file, in order.
    blocks: Vec<Vec<Block>>,
}

/// Consecutive numbers of one key in the file.
#[derive(Clone, Copy, Debug)]
struct Block {
    offset: u64,
    count: usize,
}

/// Numbers that are read or written at once.
const PIECE: usize = 1 << 13;

impl<T: Number> Spool<T> {
    /// Nothing of `keys` keys. About `limit` numbers are held in memory.
    pub(crate) fn new(keys: usize, limit: usize, beyond: Beyond) -> Self {
        Self {
            held: vec![Vec::new(); keys],
            count: 0,
            limit,
            beyond,
            file: None,
            written: 0,
            blocks: Vec::new(),
        }
    }

    /// Adds a number.
    #[inline]
    pub(crate) fn push(&mut self, key: usize, number: T) {
        self.held[key].push(number);
        self.count += 1;
        if self.count >= self.limit && self.beyond != Beyond::Memory {
            self.spill();
        }
    }

    /// Moves everything to the file. After a failure, all further numbers stay in memory.
    #[cold]
    fn spill(&mut self) {
        if self.write().is_err() {
            self.beyond = Beyond::Memory;
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(match &self.beyond {
                Beyond::Folder(folder) => tempfile::tempfile_in(folder)?,
                // Without files the standard library has no such folder, and panics.
                _ if cfg!(target_arch = "wasm32") => {
                    return Err(io::ErrorKind::Unsupported.into());
                }
                Beyond::Memory | Beyond::Temporary => tempfile::tempfile()?,
            }),
        };
        let mut bytes = Vec::with_capacity((PIECE + 1) * T::BYTES);
        for numbers in self.held.iter().flat_map(|held| held.chunks(PIECE)) {
            numbers.iter().for_each(|number| number.write(&mut bytes));
            if bytes.len() >= PIECE * T::BYTES {
                file.write_all(&bytes)?;
                bytes.clear();
            }
        }
        file.write_all(&bytes)?;
        self.blocks.resize(self.held.len(), Vec::new());
        for (held, blocks) in self.held.iter_mut().zip(&mut self.blocks) {
            if !held.is_empty() {
                blocks.push(Block { offset: self.written, count: held.len() });
                self.written += (held.len() * T::BYTES) as u64;
                held.clear();
            }
        }
        self.count = 0;
        Ok(())
    }

    /// How many numbers a key has.
    pub(crate) fn len(&self, key: usize) -> usize {
        let blocks = self.blocks.get(key).into_iter().flatten();
        blocks.map(|block| block.count).sum::<usize>() + self.held[key].len()
    }

    /// Whether all numbers of a key are in memory.
    pub(crate) fn held(&self, key: usize) -> Option<&[T]> {
        self.blocks.get(key).is_none_or(Vec::is_empty).then_some(&self.held[key][..])
    }

    /// Calls `take` with the numbers `from..to` of a key, in order and in pieces.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn read(
        &self,
        key: usize,
        from: usize,
        to: usize,
        mut take: impl FnMut(&[T]),
    ) -> io::Result<()> {
        let (mut bytes, mut numbers) = (Vec::new(), Vec::new());
        let mut begin = 0;
        for block in self.blocks.get(key).into_iter().flatten() {
            let end = begin + block.count;
            let (mut next, last) = (from.clamp(begin, end), to.clamp(begin, end));
            while next < last {
                let count = (last - next).min(PIECE);
                let mut file = self.file.as_ref().expect("a block is in a file");
                file.seek(SeekFrom::Start(block.offset + ((next - begin) * T::BYTES) as u64))?;
                bytes.resize(count * T::BYTES, 0);
                file.read_exact(&mut bytes)?;
                numbers.clear();
                let mut rest = &bytes[..];
                numbers.extend((0..count).map(|_| T::read(&mut rest)));
                take(&numbers);
                next += count;
            }
            begin = end;
        }
        let held = &self.held[key];
        let of = |at: usize| at.saturating_sub(begin).min(held.len());
        if of(from) < of(to) {
            take(&held[of(from)..of(to)]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(spool: &Spool<u64>, key: usize, from: usize, to: usize) -> Vec<u64> {
        let mut found = Vec::new();
        spool.read(key, from, to, |numbers| found.extend_from_slice(numbers)).unwrap();
        found
    }

    proptest! {
        /// Compares with plain lists, with every limit, and for every part of a list.
        #[test]
        fn agrees_with_lists(
            rows in prop::collection::vec((0_usize..3, prop::collection::vec(any::<u64>(), 0..5)), 0..60),
            limit in 1_usize..40,
            part in (0_usize..40, 0_usize..40),
        ) {
            let mut plain = vec![Vec::new(); 3];
            let mut spool = Spool::new(3, limit, Beyond::Temporary);
            for (key, numbers) in &rows {
                plain[*key].extend_from_slice(numbers);
                numbers.iter().for_each(|number| spool.push(*key, *number));
                prop_assert!(spool.count < limit);
            }
            for (key, numbers) in plain.iter().enumerate() {
                prop_assert_eq!(spool.len(key), numbers.len());
                prop_assert_eq!(&all(&spool, key, 0, usize::MAX), numbers);
                let to = part.1.min(numbers.len());
                let wanted = numbers.get(part.0..to).unwrap_or_default();
                prop_assert_eq!(&all(&spool, key, part.0, part.1)[..], wanted);
            }
        }
    }

    #[test]
    fn long_blocks_are_read_in_pieces() {
        let count = 3 * PIECE + 7;
        let mut spool = Spool::<u64>::new(2, count, Beyond::Temporary);
        (0..count as u64).for_each(|number| spool.push(1, number));
        assert!(spool.held(1).is_none() && spool.held(0).is_some());
        assert!(all(&spool, 1, 0, count).into_iter().eq(0..count as u64));
        assert!(all(&spool, 1, 5, PIECE + 9).into_iter().eq(5..PIECE as u64 + 9));
    }

    #[test]
    fn numbers_stay_in_memory_without_a_folder() {
        let nowhere = std::env::temp_dir().join("no-such-folder/at-all");
        let mut spool = Spool::<u64>::new(1, 4, Beyond::Folder(nowhere));
        (0..10).for_each(|number| spool.push(0, number));
        assert_eq!(spool.held(0), Some(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9][..]));
    }
}
