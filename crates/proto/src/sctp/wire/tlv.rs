//! Type-length-value elements: chunks, parameters and causes (RFC 9260 §3.2, §3.2.1, §3.3.10).
//! The length counts a header of four bytes and no padding.

use bytes::{Buf, Bytes};

use crate::octets::{WireError, at_least, u16_at};

/// Bytes before a value.
const HEADER: usize = 4;

/// Takes the first element; returns its value. The padding behind it goes too, as far as it is
/// present: that of the last parameter belongs to the chunk.
pub(super) fn take(rest: &mut Bytes, what: &'static str) -> Result<Bytes, WireError> {
    at_least(rest, HEADER, what)?;
    let length = usize::from(u16_at(rest, 2));
    if length < HEADER {
        return Err(WireError::Malformed("SCTP length is below four"));
    }
    at_least(rest, length, what)?;
    let value = rest.slice(HEADER..length);
    rest.advance(length.next_multiple_of(4).min(rest.len()));
    Ok(value)
}

/// Appends a header.
pub(super) fn head(kind: u16, length: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
    let length = u16::try_from(length).map_err(|_| WireError::TooLong("SCTP parameter"))?;
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Pads with zeros to a multiple of four bytes from `start` on (§3.2).
pub(super) fn pad(start: usize, out: &mut Vec<u8>) {
    out.resize(start + (out.len() - start).next_multiple_of(4), 0);
}
