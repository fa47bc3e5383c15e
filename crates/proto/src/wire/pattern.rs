//! The bytes of a virtual payload: a function of the offset in its stream and nothing else.
//!
//! The stream is the sequence of 64-bit big-endian words whose value is their own offset: byte `o`
//! is byte `o mod 8` of the word `o − o mod 8`. In a hex dump the position in the stream can be
//! read off, and a receiver can check every byte.

use crate::packet::Payload;

/// The byte at this offset.
#[must_use]
pub const fn byte_at(offset: u64) -> u8 {
    (offset & !7).to_be_bytes()[(offset & 7) as usize]
}

/// Appends the payload's bytes, real or virtual.
pub fn emit(payload: &Payload, out: &mut Vec<u8>) {
    match payload {
        Payload::Real(bytes) => out.extend_from_slice(bytes),
        Payload::Virtual { offset, len } => emit_from(*offset, *len, out),
    }
}

/// Word by word: it is most of what a trace of whole packets costs.
fn emit_from(offset: u64, len: u64, out: &mut Vec<u8>) {
    let skipped = (offset & 7) as usize;
    let first = out.len();
    let words = (skipped as u64 + len).div_ceil(8);
    out.reserve(8 * words as usize);
    for word in 0..words {
        out.extend_from_slice(&(offset & !7).wrapping_add(8 * word).to_be_bytes());
    }
    out.drain(first..first + skipped);
    out.truncate(first + len as usize);
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
    fn words_hold_the_bytes_of_their_offsets() {
        for offset in [0, 1, 7, 8, 1021, u64::MAX - 20] {
            for len in [0, 1, 6, 7, 8, 9, 17, 1000] {
                let mut bytes = vec![0xee; 3];
                emit(&Payload::Virtual { offset, len }, &mut bytes);
                assert_eq!(bytes.len() as u64, 3 + len);
                assert!(matches(offset, &bytes[3..]), "{len} from {offset}");
            }
        }
    }
}
