//! INIT and INIT ACK (RFC 9260 §3.3.2, §3.3.3).

use bytes::Bytes;

use super::{parameter, tlv};
use crate::octets::{WireError, at_least, u16_at, u32_at};
use crate::sctp::Init;

pub(super) fn emit(init: &Init, out: &mut Vec<u8>) -> Result<(), WireError> {
    out.extend_from_slice(&init.tag.to_be_bytes());
    out.extend_from_slice(&init.a_rwnd.to_be_bytes());
    out.extend_from_slice(&init.outbound.to_be_bytes());
    out.extend_from_slice(&init.inbound.to_be_bytes());
    out.extend_from_slice(&init.tsn.to_be_bytes());
    let start = out.len();
    for one in &init.parameters {
        tlv::pad(start, out);
        parameter::emit(one, out)?;
    }
    Ok(())
}

pub(super) fn parse(value: Bytes) -> Result<Init, WireError> {
    at_least(&value, 16, "SCTP INIT chunk")?;
    let mut rest = value.slice(16..);
    let mut parameters = Vec::new();
    while !rest.is_empty() {
        parameters.push(parameter::parse(&mut rest)?);
    }
    Ok(Init {
        tag: u32_at(&value, 0),
        a_rwnd: u32_at(&value, 4),
        outbound: u16_at(&value, 8),
        inbound: u16_at(&value, 10),
        tsn: u32_at(&value, 12),
        parameters,
    })
}
