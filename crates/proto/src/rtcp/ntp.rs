//! NTP timestamps (RFC 3550 §4) of a clock's instants, and the short form that reports echo.
//!
//! The origin of every clock, [`Instant::ZERO`], is written as 1970-01-01 00:00 UTC, in RTCP and
//! in captures alike; a live clock that counts from the Unix epoch is then true wall-clock time.

use serde::Serialize;

use crate::time::{Duration, Instant};

/// Seconds from the NTP era's begin (1900) to 1970.
const UNIX_EPOCH: u64 = 2_208_988_800;
const NANOS: u128 = 1_000_000_000;

/// Seconds since 1900 in 32.32 fixed point, modulo 2³² seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NtpTime(pub u64);

impl From<Instant> for NtpTime {
    /// Rounds down to 2⁻³² s.
    fn from(instant: Instant) -> Self {
        let seconds = ((u128::from(instant.as_nanos()) << 32) / NANOS) as u64;
        Self(seconds.wrapping_add(UNIX_EPOCH << 32))
    }
}

impl NtpTime {
    /// The middle 32 bits: 16.16 seconds, as in LSR and in round-trip times (RFC 3550 §6.4.1).
    #[must_use]
    pub const fn middle(self) -> u32 {
        (self.0 >> 16) as u32
    }
}

/// A span in 1/65536 s, rounded down and saturating (RFC 3550 §6.4.1, DLSR).
pub(super) fn short(span: Duration) -> u32 {
    ((u128::from(span.as_nanos()) << 16) / NANOS).try_into().unwrap_or(u32::MAX)
}

/// The span of this many 1/65536 s.
pub(super) fn from_short(units: u32) -> Duration {
    Duration::from_nanos(((u128::from(units) * NANOS) >> 16) as u64)
}
