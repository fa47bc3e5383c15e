//! The rate at which packets arrive (libwebrtc: `RobustThroughputEstimator`).

use std::collections::VecDeque;

use super::{Arrived, Bps, Micros, SECOND, rate_of};

/// The window has at least these packets and this time, and at most those.
const PACKETS: usize = 20;
const TIME: Micros = SECOND;
const MOST_PACKETS: usize = 500;
const MOST_TIME: Micros = 5 * SECOND;
/// Packets needed for an estimate.
const NEEDED: usize = 10;
/// The receiver's clock jumped if a packet arrived this long before another.
const CLOCK_JUMP: Micros = SECOND;

/// The packets that arrived last.
#[derive(Debug, Default)]
pub(super) struct Throughput {
    /// In order of arrival.
    window: VecDeque<Arrived>,
    /// The latest that a packet was sent which is not in the window any more.
    dropped: Option<Micros>,
}

impl Throughput {
    /// Takes in packets that arrived, in order of arrival.
    pub(super) fn on_packets(&mut self, arrived: &[Arrived]) {
        for packet in arrived {
            let place = self.window.partition_point(|it| it.arrived <= packet.arrived);
            self.window.insert(place, *packet);
            if self.window.back().is_some_and(|last| last.arrived - packet.arrived > CLOCK_JUMP) {
                *self = Self::default();
            }
        }
        while let Some(first) = self.surplus() {
            self.dropped = self.dropped.max(Some(first.sent));
            self.window.pop_front();
        }
    }

    /// The first packet if the window is too long.
    fn surplus(&self) -> Option<Arrived> {
        let (first, last) = (*self.window.front()?, self.window.back()?);
        let (packets, time) = (self.window.len(), last.arrived - first.arrived);
        let is_surplus =
            packets > MOST_PACKETS || time > MOST_TIME || (packets > PACKETS && time > TIME);
        is_surplus.then_some(first)
    }

    /// The rate, if enough packets arrived.
    pub(super) fn rate(&self) -> Option<Bps> {
        if self.window.len() < NEEDED {
            return None;
        }
        let (first, last) = (self.window.front()?, self.window.back()?);
        // The longest gap between arrivals counts as the second longest, so that a moment in which the network
        // sends nothing changes nothing.
        let (mut longest, mut second) = (0, 0);
        for gap in
            self.window.iter().zip(self.window.iter().skip(1)).map(|(a, b)| b.arrived - a.arrived)
        {
            if gap > longest {
                (second, longest) = (longest, gap);
            } else {
                second = second.max(gap);
            }
        }
        let received: i64 = self.window.iter().map(|it| it.bytes).sum();
        let time = (last.arrived - first.arrived - longest + second).max(1000);
        // The first packet left the bottleneck before the time began.
        let received = rate_of(received - first.bytes, time);
        // Packets that were overtaken by ones that left the window say nothing of the rate of sending.
        let sent = self.window.iter().filter(|it| self.dropped.is_none_or(|at| it.sent >= at));
        let (mut count, mut bytes) = (0, 0);
        let (mut begin, mut end) = (Micros::MAX, (Micros::MIN, 0));
        for packet in sent {
            count += 1;
            bytes += packet.bytes;
            begin = begin.min(packet.sent);
            if packet.sent > end.0 {
                end = (packet.sent, packet.bytes);
            }
        }
        if count < NEEDED {
            return Some(received);
        }
        // The last packet was sent after the time ended.
        Some(received.min(rate_of(bytes - end.1, (end.0 - begin).max(1000))))
    }
}
