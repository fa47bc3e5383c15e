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
    let word = offset as u32 & !7;
    let digit = word >> (28 - 4 * (offset & 7) as u32) & 0xf;
    b"0123456789abcdef"[digit as usize]
}

/// Appends the payload's bytes, real or virtual.
pub fn emit(payload: &Payload, out: &mut Vec<u8>) {
    match payload {
        Payload::Real(bytes) => out.extend_from_slice(bytes),
        Payload::Virtual { offset, len } => {
            out.extend((0..(*len)).map(|i| byte_at(offset.wrapping_add(i))));
        }
    }
}

/// Whether these are the bytes of the stream from `offset` on.
#[must_use]
pub fn matches(offset: u64, bytes: &[u8]) -> bool {
    bytes.iter().enumerate().all(|(i, byte)| *byte == byte_at(offset.wrapping_add(i as u64)))
}
