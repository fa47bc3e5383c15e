//! The bytes of a virtual payload: a function of the offset in its stream and nothing else.
//!
//! The stream is a sequence of eight-byte words. Each word is its own offset modulo 2³² in hexadecimal
//! digits: byte `o` is digit `o mod 8` of the word `o − o mod 8`. A dump shows the position in the
//! stream, a receiver can check every byte, and Wireshark's heuristics do not mistake it for a
//! protocol, as they do binary numbers.

use std::ops::Range;

use super::checksum::Sum;
use crate::packet::Payload;

/// The byte at this offset.
#[must_use]
pub const fn byte_at(offset: u64) -> u8 {
    word(offset)[(offset & 7) as usize]
}

/// The word that contains a byte.
const fn word(offset: u64) -> [u8; 8] {
    // One nibble per byte: move halves, quarters and eighths apart.
    let mut digits = offset & 0xffff_fff8;
    digits = (digits | digits << 16) & 0x0000_ffff_0000_ffff;
    digits = (digits | digits << 8) & 0x00ff_00ff_00ff_00ff;
    digits = (digits | digits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // 1 where a nibble is ten or more: its letter is 39 above '0' + nibble.
    let letters = (digits + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (digits + 0x3030_3030_3030_3030 + letters * 39).to_be_bytes()
}

/// Appends the payload's bytes, real or virtual.
pub fn emit(payload: &Payload, out: &mut Vec<u8>) {
    match payload {
        Payload::Real(bytes) => out.extend_from_slice(bytes),
        Payload::Virtual { offset, len } => {
            let begin = out.len();
            out.resize(begin + *len as usize, 0);
            fill(*offset, &mut out[begin..]);
        }
    }
}

/// Words in a block; they differ only in their last three digits.
const BLOCK: usize = 512;
const LAST_DIGITS: u64 = 0xff_ffff << 40;

/// The last three digits of the words of a block, each at its place in a word.
static LAST: [u64; BLOCK] = {
    let mut last = [0; BLOCK];
    let mut index = 0;
    while index < BLOCK {
        last[index] = u64::from_le_bytes(word(8 * index as u64)) & LAST_DIGITS;
        index += 1;
    }
    last
};

/// Fills `room` with the bytes of the stream from `offset`.
pub fn fill(offset: u64, room: &mut [u8]) {
    let (first, words, last) = parts(offset, room.len());
    let (begin, rest) = room.split_at_mut(first.len());
    if !first.is_empty() {
        begin.copy_from_slice(&word(offset)[first]);
    }
    let (mut rest, end) = rest.as_chunks_mut::<8>();
    for (others, lasts) in blocks(words) {
        let (block, behind) = rest.split_at_mut(lasts.len());
        for (word, last) in block.iter_mut().zip(&LAST[lasts]) {
            *word = (others | last).to_le_bytes();
        }
        rest = behind;
    }
    if !end.is_empty() {
        end.copy_from_slice(&word(last)[..end.len()]);
    }
}

/// Prefix sums of [`LAST`] in words of four bytes, as the checksum sums them.
static SUMS: [u64; BLOCK + 1] = {
    let mut sums = [0; BLOCK + 1];
    let mut index = 0;
    while index < BLOCK {
        sums[index + 1] = sums[index] + (LAST[index] >> 32);
        index += 1;
    }
    sums
};

/// The checksum's sum over the `len` bytes that [`fill`] would write, without reading them.
#[must_use]
pub fn sum(offset: u64, len: usize) -> Sum {
    let (first, words, last) = parts(offset, len);
    let begin = Sum::default().over(&word(offset)[first.clone()]);
    let end = (len - first.len()) % 8;
    let fours = blocks(words).map(|(others, lasts)| {
        let each = (others & 0xffff_ffff) + (others >> 32);
        each * lasts.len() as u64 + SUMS[lasts.end] - SUMS[lasts.start]
    });
    let rest = Sum::turned(fours.sum()).over(&word(last)[..end]);
    if first.len() % 2 == 0 { begin.and(rest) } else { begin.and(rest.odd()) }
}

/// Splits `len` bytes from `offset`: the range in the first, partial word; the offset and number of
/// whole words; and the offset of the last word.
fn parts(offset: u64, len: usize) -> (Range<usize>, (u64, usize), u64) {
    let skipped = (offset & 7) as usize;
    let first = if skipped == 0 { 0..0 } else { skipped..(skipped + len).min(8) };
    let begin = offset.wrapping_add(first.len() as u64);
    let words = (len - first.len()) / 8;
    (first, (begin, words), begin.wrapping_add(8 * words as u64))
}

/// The words from an offset, block by block: the part common to a block, and its range of [`LAST`].
fn blocks((mut at, mut words): (u64, usize)) -> impl Iterator<Item = (u64, Range<usize>)> {
    std::iter::from_fn(move || {
        let first = at as usize / 8 % BLOCK;
        let count = words.min(BLOCK - first);
        let others = u64::from_le_bytes(word(at)) & !LAST_DIGITS;
        words -= count;
        at = at.wrapping_add(8 * count as u64);
        (count > 0).then_some((others, first..first + count))
    })
}

/// The offset modulo 2³² in the first word of these bytes, if they begin with one.
#[must_use]
pub fn offset_of(bytes: &[u8]) -> Option<u64> {
    let word = bytes.first_chunk::<8>()?;
    word.iter().try_fold(0, |offset, digit| {
        Some(offset << 4 | u64::from(char::from(*digit).to_digit(16)?))
    })
}

/// Whether these are the bytes of the stream from `offset` on.
#[must_use]
pub fn matches(offset: u64, bytes: &[u8]) -> bool {
    bytes.iter().enumerate().all(|(i, byte)| *byte == byte_at(offset.wrapping_add(i as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_its_offset_in_digits() {
        assert_eq!(word(0x1_dead_beef), *b"deadbee8");
        assert_eq!(word(0x2_0123_4567), *b"01234560");
        assert_eq!(word(0x9876_5abc), *b"98765ab8");
        assert_eq!(offset_of(b"98765ab8 and more"), Some(0x9876_5ab8));
        assert_eq!((offset_of(b"98765abx"), offset_of(b"98765ab")), (None, None));
    }

    #[test]
    fn words_hold_the_bytes_of_their_offsets() {
        for offset in [0, 1, 7, 8, 249, 1021, 4001, 0xffff_ff03, u64::MAX - 20] {
            for len in [0, 1, 6, 7, 8, 9, 17, 247, 1000, 9001] {
                let mut bytes = vec![0xee; 3];
                emit(&Payload::Virtual { offset, len }, &mut bytes);
                assert_eq!(bytes.len() as u64, 3 + len);
                assert!(matches(offset, &bytes[3..]), "{len} from {offset}");
                let read = Sum::default().over(&bytes[3..]).finish();
                assert_eq!(sum(offset, len as usize).finish(), read, "{len} from {offset}");
            }
        }
    }
}
