//! Type-length-value elements: chunks, parameters and causes (RFC 9260 §3.2, §3.2.1, §3.3.2.1, §3.3.3.1,
//! §3.3.10; RFC 3758 §3.1; RFC 5061 §4.2.7). The length counts a header of four bytes and no padding.

use bytes::{Buf, BufMut, Bytes};

use crate::octets::{WireError, at_least, u16_at, u32_at};
use crate::sctp::{Cause, Parameter};

/// Bytes before a value.
const HEADER: usize = 4;

/// Takes the first element; returns its first two bytes and value. The padding behind it goes too, as far
/// as it is present: that of the last parameter belongs to the chunk.
pub(super) fn take(rest: &mut Bytes, what: &'static str) -> Result<(u16, Bytes), WireError> {
    at_least(rest, HEADER, what)?;
    let (kind, length) = (u16_at(rest, 0), usize::from(u16_at(rest, 2)));
    if length < HEADER {
        return Err(WireError::Malformed("SCTP length is below four"));
    }
    at_least(rest, length, what)?;
    let value = rest.slice(HEADER..length);
    rest.advance(length.next_multiple_of(4).min(rest.len()));
    Ok((kind, value))
}

/// All elements, read by `read`.
pub(super) fn parse<T>(
    mut rest: Bytes,
    what: &'static str,
    read: impl Fn(u16, Bytes) -> T,
) -> Result<Vec<T>, WireError> {
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (kind, value) = take(&mut rest, what)?;
        all.push(read(kind, value));
    }
    Ok(all)
}

/// Pads with zeros to a multiple of four bytes from `start` on (§3.2).
pub(super) fn pad(start: usize, out: &mut Vec<u8>) {
    out.resize(start + (out.len() - start).next_multiple_of(4), 0);
}

/// Pads the element before, and appends a header.
fn head(start: usize, kind: u16, length: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
    pad(start, out);
    out.put_u16(kind);
    out.put_u16(u16::try_from(length).map_err(|_| WireError::TooLong("SCTP parameter"))?);
    Ok(())
}

pub(super) fn emit_causes(causes: &[Cause], out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    for cause in causes {
        head(start, cause.code, cause.length(), out)?;
        out.put_slice(&cause.value);
    }
    Ok(())
}

pub(super) fn emit_parameters(all: &[Parameter], out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    for parameter in all {
        head(start, parameter.number(), parameter.length(), out)?;
        match parameter {
            Parameter::Ipv4(address) => out.put_slice(&address.octets()),
            Parameter::Ipv6(address) => out.put_slice(&address.octets()),
            Parameter::StateCookie(value)
            | Parameter::Unrecognized(value)
            | Parameter::SupportedExtensions(value)
            | Parameter::Unknown { value, .. } => out.put_slice(value),
            Parameter::CookiePreservative(millis) => out.put_u32(*millis),
            Parameter::SupportedAddressTypes(all) => all.iter().for_each(|&one| out.put_u16(one)),
            Parameter::Ecn | Parameter::ForwardTsn => {}
        }
    }
    Ok(())
}

/// The parameter of this type and value. One of a known type and a wrong length is kept as an unknown one
/// of that type.
pub(super) fn parameter(kind: u16, value: Bytes) -> Parameter {
    match (kind, value.len()) {
        (5, 4) => Parameter::Ipv4(u32_at(&value, 0).into()),
        (6, 16) => Parameter::Ipv6((&value[..]).get_u128().into()),
        (7, _) => Parameter::StateCookie(value),
        (8, _) => Parameter::Unrecognized(value),
        (9, 4) => Parameter::CookiePreservative(u32_at(&value, 0)),
        (12, length) if length.is_multiple_of(2) => Parameter::SupportedAddressTypes(
            value.chunks_exact(2).map(|kind| u16_at(kind, 0)).collect(),
        ),
        (0x8000, 0) => Parameter::Ecn,
        (0x8008, _) => Parameter::SupportedExtensions(value),
        (0xc000, 0) => Parameter::ForwardTsn,
        _ => Parameter::Unknown { kind, value },
    }
}
