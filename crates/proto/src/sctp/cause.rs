//! Error causes (RFC 9260 §3.3.10), carried by ERROR and ABORT; an open set, since peers may send any.

use bytes::Bytes;

/// A cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Cause Code.
    pub code: u16,
    /// Cause-specific information.
    pub value: Bytes,
}

impl Cause {
    /// 1: DATA came on a stream that does not exist.
    pub const INVALID_STREAM: u16 = 1;
    /// 2: a mandatory parameter is missing.
    pub const MISSING_PARAMETER: u16 = 2;
    /// 3: the State Cookie has expired.
    pub const STALE_COOKIE: u16 = 3;
    /// 6: a chunk of unknown type that requests a report.
    pub const UNRECOGNIZED_CHUNK: u16 = 6;
    /// 7: a parameter of INIT has an invalid value.
    pub const INVALID_PARAMETER: u16 = 7;
    /// 8: parameters of unknown type that request a report.
    pub const UNRECOGNIZED_PARAMETERS: u16 = 8;
    /// 9: a DATA chunk without data.
    pub const NO_USER_DATA: u16 = 9;
    /// 10: a COOKIE ECHO came while shutting down.
    pub const COOKIE_WHILE_SHUTTING_DOWN: u16 = 10;
    /// 12: the application gave up.
    pub const USER_INITIATED_ABORT: u16 = 12;
    /// 13: the peer broke the protocol.
    pub const PROTOCOL_VIOLATION: u16 = 13;

    /// A cause with these bytes of information.
    #[must_use]
    pub fn new(code: u16, value: impl Into<Bytes>) -> Self {
        Self { code, value: value.into() }
    }
    /// Invalid Stream Identifier (§3.3.10.1).
    #[must_use]
    pub fn invalid_stream(stream: u16) -> Self {
        let [high, low] = stream.to_be_bytes();
        Self::new(Self::INVALID_STREAM, vec![high, low, 0, 0])
    }
    /// Stale Cookie (§3.3.10.3), by these microseconds.
    #[must_use]
    pub fn stale_cookie(micros: u32) -> Self {
        Self::new(Self::STALE_COOKIE, micros.to_be_bytes().to_vec())
    }
    /// No User Data (§3.3.10.9) in the chunk with this TSN.
    #[must_use]
    pub fn no_user_data(tsn: u32) -> Self {
        Self::new(Self::NO_USER_DATA, tsn.to_be_bytes().to_vec())
    }
    /// Protocol Violation (§3.3.10.13), in words.
    #[must_use]
    pub fn violation(words: &'static str) -> Self {
        Self::new(Self::PROTOCOL_VIOLATION, words.as_bytes().to_vec())
    }
    /// Cause Length: header and information.
    #[must_use]
    pub fn length(&self) -> usize {
        4 + self.value.len()
    }
}
