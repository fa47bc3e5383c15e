//! The bytes of a virtual payload: a function of the offset in its stream and nothing else.
//!
//! The stream is a sequence of words of eight bytes, each its own offset modulo 2³² as hexadecimal
//! digits: byte `o` is digit `o mod 8` of the word `o − o mod 8`. In a dump the position in the stream
//! can be read off, a receiver can check every byte, and none of the heuristics by which Wireshark
//! guesses at protocols takes it for one; binary numbers look like the headers of several.

use crate::packet::Payload;

/// The byte at this offset.
#[must_use]
pub const fn byte_at(offset: u64) -> u8 {
    word(offset)[(offset & 7) as usize]
}

/// The word that a byte stands in.
const fn word(offset: u64) -> [u8; 8] {
    // A nibble a byte: halves, quarters and eighths are moved apart.
    let mut digits = offset & 0xffff_fff8;
    digits = (digits | digits << 16) & 0x0000_ffff_0000_ffff;
    digits = (digits | digits << 8) & 0x00ff_00ff_00ff_00ff;
    digits = (digits | digits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // 1 where a nibble is ten or more: a letter stands 39 behind where its digit would.
    let letters = (digits + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (digits + 0x3030_3030_3030_3030 + letters * 39).to_be_bytes()
}

/// Appends the payload's bytes, real or virtual.
pub fn emit(payload: &Payload, out: &mut Vec<u8>) {
    match payload {
        Payload::Real(bytes) => out.extend_from_slice(bytes),
        Payload::Virtual { offset, len } => emit_from(*offset, *len, out),
    }
}

/// The last two digits of the 32 words of a block of 256 bytes, each where it stands in a word.
static LAST: [u64; 32] = {
    let mut last = [0; 32];
    let mut index = 0;
    while index < last.len() {
        last[index] = u64::from_le_bytes(word(8 * index as u64)) & TWO_DIGITS;
        index += 1;
    }
    last
};

const TWO_DIGITS: u64 = 0xffff << 48;

/// Block by block: the words of one differ in their last two digits only.
fn emit_from(offset: u64, len: u64, out: &mut Vec<u8>) {
    let (begin, end) = (out.len(), out.len() + len as usize);
    let skipped = offset & 7;
    let words = (skipped + len).div_ceil(8);
    out.resize(begin + 8 * words as usize, 0);
    let (mut room, _) = out[begin..].as_chunks_mut::<8>();
    let mut at = offset - skipped;
    while !room.is_empty() {
        let first = (at as usize & 255) / 8;
        let (block, rest) = room.split_at_mut(room.len().min(LAST.len() - first));
        let others = u64::from_le_bytes(word(at)) & !TWO_DIGITS;
        for (word, last) in block.iter_mut().zip(&LAST[first..]) {
            *word = (others | last).to_le_bytes();
        }
        at = at.wrapping_add(8 * block.len() as u64);
        room = rest;
    }
    out.drain(begin..begin + skipped as usize);
    out.truncate(end);
}

/// The offset modulo 2³² that the first word of these bytes tells, if they begin with one.
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
        for offset in [0, 1, 7, 8, 249, 1021, 0xffff_ff03, u64::MAX - 20] {
            for len in [0, 1, 6, 7, 8, 9, 17, 247, 1000] {
                let mut bytes = vec![0xee; 3];
                emit(&Payload::Virtual { offset, len }, &mut bytes);
                assert_eq!(bytes.len() as u64, 3 + len);
                assert!(matches(offset, &bytes[3..]), "{len} from {offset}");
            }
        }
    }
}
