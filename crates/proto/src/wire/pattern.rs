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
