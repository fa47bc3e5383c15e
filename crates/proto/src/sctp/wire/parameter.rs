//! Parameters (RFC 9260 §3.2.1, §3.3.2.1, §3.3.3.1; RFC 3758 §3.1; RFC 5061 §4.2.7). One of a known
//! type and a wrong length is kept as an unknown one of that type.

use bytes::Bytes;

use super::tlv;
use crate::octets::{WireError, at_least, u16_at};
use crate::sctp::Parameter;

pub(super) fn emit(parameter: &Parameter, out: &mut Vec<u8>) -> Result<(), WireError> {
    tlv::head(parameter.number(), parameter.length(), out)?;
    match parameter {
        Parameter::Ipv4(address) => out.extend_from_slice(&address.octets()),
        Parameter::Ipv6(address) => out.extend_from_slice(&address.octets()),
        Parameter::StateCookie(value)
        | Parameter::Unrecognized(value)
        | Parameter::SupportedExtensions(value)
        | Parameter::Unknown { value, .. } => out.extend_from_slice(value),
        Parameter::CookiePreservative(millis) => out.extend_from_slice(&millis.to_be_bytes()),
        Parameter::SupportedAddressTypes(types) => {
            types.iter().for_each(|kind| out.extend_from_slice(&kind.to_be_bytes()));
        }
        Parameter::Ecn | Parameter::ForwardTsn => {}
    }
    Ok(())
}

/// Takes the first parameter.
pub(super) fn parse(rest: &mut Bytes) -> Result<Parameter, WireError> {
    at_least(rest, 4, "SCTP parameter")?;
    let kind = u16_at(rest, 0);
    let value = tlv::take(rest, "SCTP parameter")?;
    Ok(known(kind, &value).unwrap_or(Parameter::Unknown { kind, value }))
}

fn known(kind: u16, value: &Bytes) -> Option<Parameter> {
    Some(match kind {
        5 => Parameter::Ipv4(<[u8; 4]>::try_from(&value[..]).ok()?.into()),
        6 => Parameter::Ipv6(<[u8; 16]>::try_from(&value[..]).ok()?.into()),
        7 => Parameter::StateCookie(value.clone()),
        8 => Parameter::Unrecognized(value.clone()),
        9 => {
            Parameter::CookiePreservative(u32::from_be_bytes(<[u8; 4]>::try_from(&value[..]).ok()?))
        }
        12 if value.len().is_multiple_of(2) => Parameter::SupportedAddressTypes(
            value.chunks_exact(2).map(|kind| u16_at(kind, 0)).collect(),
        ),
        0x8000 if value.is_empty() => Parameter::Ecn,
        0x8008 => Parameter::SupportedExtensions(value.clone()),
        0xc000 if value.is_empty() => Parameter::ForwardTsn,
        _ => return None,
    })
}
