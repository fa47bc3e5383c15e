//! The causes in ERROR and ABORT (RFC 9260 §3.3.7, §3.3.10).

use bytes::Bytes;

use super::tlv;
use crate::octets::{WireError, at_least, u16_at};
use crate::sctp::Cause;

pub(super) fn emit(causes: &[Cause], out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    for cause in causes {
        tlv::pad(start, out);
        tlv::head(cause.code, cause.length(), out)?;
        out.extend_from_slice(&cause.value);
    }
    Ok(())
}

pub(super) fn parse(mut rest: Bytes) -> Result<Vec<Cause>, WireError> {
    let mut causes = Vec::new();
    while !rest.is_empty() {
        at_least(&rest, 4, "SCTP error cause")?;
        let code = u16_at(&rest, 0);
        causes.push(Cause { code, value: tlv::take(&mut rest, "SCTP error cause")? });
    }
    Ok(causes)
}
