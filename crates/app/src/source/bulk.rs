//! As much data as the transport will carry.

use talkspurt_proto::packet::Payload;
use talkspurt_proto::time::Instant;

use super::Unit;
use super::config;

/// A greedy source; its unit is one full segment.
#[derive(Debug)]
pub struct Bulk {
    unit_bytes: u32,
    offset: u64,
    left: u64,
    index: u32,
    start: Instant,
    stop: Instant,
}

impl Bulk {
    /// A source of units of `unit_bytes`.
    #[must_use]
    pub fn new(config: &config::Bulk, unit_bytes: u32, start: Instant, stop: Instant) -> Self {
        let left = config.total.map_or(u64::MAX, talkspurt_proto::units::Size::as_bytes);
        Self { unit_bytes: unit_bytes.max(1), offset: 0, left, index: 0, start, stop }
    }

    /// When it begins.
    #[must_use]
    pub fn start(&self) -> Instant {
        self.start
    }

    /// The next unit, if it is time and `room` bytes suffice for it. Where a packet carries no more
    /// than `largest` bytes, the path having become narrower, it is cut to that: it would wait for
    /// ever.
    #[inline]
    pub fn take(&mut self, now: Instant, room: usize, largest: usize) -> Option<Unit> {
        let len = u64::from(self.unit_bytes).min(self.left).min(largest as u64);
        if len == 0 || (len as usize) > room || now < self.start || now >= self.stop {
            return None;
        }
        let payload = Payload::Virtual { offset: self.offset, len };
        let slot = u64::from(self.index);
        let unit = Unit {
            index: self.index,
            slot,
            encoding: 0,
            keep_alive: false,
            marker: false,
            captured: now,
            payload,
        };
        self.offset += len;
        self.left -= len;
        self.index = self.index.checked_add(1).expect(super::UNITS_FIT);
        Some(unit)
    }

    /// True when there will be no more.
    #[must_use]
    pub fn is_done(&self, now: Instant) -> bool {
        self.left == 0 || now >= self.stop
    }
}
