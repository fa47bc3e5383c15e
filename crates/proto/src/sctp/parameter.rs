//! Parameters of INIT and INIT ACK (RFC 9260 §3.3.2.1, §3.3.3.1; RFC 3758 §3.1; RFC 5061 §4.2.7).

use std::net::{Ipv4Addr, Ipv6Addr};

use bytes::Bytes;

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// 5: an address of the sender.
    Ipv4(Ipv4Addr),
    /// 6: an address of the sender.
    Ipv6(Ipv6Addr),
    /// 7: the State Cookie.
    StateCookie(Bytes),
    /// 8: an unrecognized parameter of the INIT, unchanged.
    Unrecognized(Bytes),
    /// 9: milliseconds to add to the cookie's life.
    CookiePreservative(u32),
    /// 12: kinds of addresses the sender can use.
    SupportedAddressTypes(Vec<u16>),
    /// 0x8000: the sender supports ECN (RFC 4960 appendix A; RFC 9260 §3.3.2 reserves it).
    Ecn,
    /// 0x8008: supported chunk types beyond RFC 9260 (RFC 5061 §4.2.7).
    SupportedExtensions(Bytes),
    /// 0xC000: the sender supports FORWARD TSN (RFC 3758 §3.1).
    ForwardTsn,
    /// Of unknown type.
    Unknown {
        /// Type; its two highest bits say what to do with it (RFC 9260 §3.2.1).
        kind: u16,
        /// Value.
        value: Bytes,
    },
}

impl Parameter {
    /// The Parameter Type.
    #[must_use]
    pub const fn number(&self) -> u16 {
        match self {
            Self::Ipv4(_) => 5,
            Self::Ipv6(_) => 6,
            Self::StateCookie(_) => 7,
            Self::Unrecognized(_) => 8,
            Self::CookiePreservative(_) => 9,
            Self::SupportedAddressTypes(_) => 12,
            Self::Ecn => 0x8000,
            Self::SupportedExtensions(_) => 0x8008,
            Self::ForwardTsn => 0xc000,
            Self::Unknown { kind, .. } => *kind,
        }
    }

    /// Parameter Length: header and value.
    #[must_use]
    pub fn length(&self) -> usize {
        4 + match self {
            Self::Ipv4(_) | Self::CookiePreservative(_) => 4,
            Self::Ipv6(_) => 16,
            Self::StateCookie(value)
            | Self::Unrecognized(value)
            | Self::SupportedExtensions(value)
            | Self::Unknown { value, .. } => value.len(),
            Self::SupportedAddressTypes(types) => 2 * types.len(),
            Self::Ecn | Self::ForwardTsn => 0,
        }
    }
}
