//! RTCP, the reports beside RTP (RFC 3550 §6).

/// A compound packet: a sender or receiver report followed by an SDES with the CNAME.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compound {
    /// Who reports.
    pub ssrc: u32,
}

impl Compound {
    /// Length on the wire in bytes.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        8
    }
}
