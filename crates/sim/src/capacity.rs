//! How long a transmission takes.

use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;

/// The bits a transmitter sends per second.
#[derive(Clone, Copy, Debug)]
pub enum Capacity {
    /// A rate whose byte lasts a whole number of nanoseconds: a multiplication instead of a division.
    PerByte(Duration),
    /// Any other rate; the time of a packet is rounded up to a nanosecond.
    Fixed(Rate),
}

impl Capacity {
    /// A constant rate.
    #[must_use]
    pub fn fixed(rate: Rate) -> Self {
        const BYTE: u64 = 8_000_000_000;
        match rate.as_bps() {
            bps if bps != 0 && BYTE.is_multiple_of(bps) => {
                Self::PerByte(Duration::from_nanos(BYTE / bps))
            }
            _ => Self::Fixed(rate),
        }
    }
    /// When a transmission of `bytes` begun at `start` ends; `None` means never.
    #[inline]
    #[must_use]
    pub fn finish(&self, start: Instant, bytes: u64) -> Option<Instant> {
        match self {
            Self::PerByte(byte) => Some(start + *byte * bytes),
            Self::Fixed(rate) => rate.time_for(bytes).map(|time| start + time),
        }
    }
}
