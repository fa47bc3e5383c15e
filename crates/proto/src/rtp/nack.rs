//! Which packets a receiver requests again, and when: as libwebrtc's `NackRequester`.

use std::collections::BTreeMap;

use crate::time::{Duration, Instant};

// libwebrtc: kMaxNackPackets, kMaxPacketAge, kMaxNackRetries.
const MAX_MISSING: usize = 1000;
const MAX_AGE: u64 = 10_000;
const MAX_REQUESTS: u32 = 10;
/// Packets are requested again at multiples of this time (libwebrtc: kUpdateInterval), so that a retransmission
/// which takes a little longer than the round trip rarely meets a second request.
const BETWEEN: Duration = Duration::from_millis(20);

/// Requests for a missing packet so far: how many, and when the last one was made.
#[derive(Clone, Copy, Debug, Default)]
struct Missing {
    requests: u32,
    last: Option<Instant>,
}

/// The missing packets of a stream, by their extended sequence numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Requester {
    newest: Option<u64>,
    missing: BTreeMap<u64, Missing>,
    /// When something is to be requested.
    next: Option<Instant>,
}

impl Requester {
    /// A packet arrived; false if so many are missing before it that all are given up.
    pub(super) fn on_packet(&mut self, now: Instant, sequence: u64) -> bool {
        let newest = *self.newest.get_or_insert(sequence);
        if sequence <= newest {
            self.missing.remove(&sequence);
            return true;
        }
        self.newest = Some(sequence);
        let gap = (sequence - newest - 1) as usize;
        self.missing = self.missing.split_off(&sequence.saturating_sub(MAX_AGE));
        if self.missing.len().saturating_add(gap) > MAX_MISSING {
            self.missing.clear();
            return false;
        }
        if gap > 0 {
            self.missing.extend((newest + 1..sequence).map(|it| (it, Missing::default())));
            self.next = Some(now);
        }
        true
    }

    /// Packets before this one are of no use any more.
    pub(super) fn forget_before(&mut self, sequence: u64) {
        if self.missing.first_key_value().is_some_and(|(first, _)| *first < sequence) {
            self.missing = self.missing.split_off(&sequence);
        }
    }

    /// When there is something to request.
    pub(super) fn due(&self) -> Option<Instant> {
        self.next.filter(|_| !self.missing.is_empty())
    }

    /// The sequence numbers to request now, ascending, but no more than `most`; the others are due at once.
    /// Each is requested again after a round-trip time.
    pub(super) fn take(&mut self, now: Instant, rtt: Duration, most: usize) -> Vec<u16> {
        if self.due().is_none_or(|due| due > now) {
            return Vec::new();
        }
        let rtt = rtt.max(BETWEEN);
        self.missing.retain(|_, it| {
            it.requests < MAX_REQUESTS || it.last.is_some_and(|last| last + rtt > now)
        });
        let mut lost = Vec::new();
        for (sequence, it) in &mut self.missing {
            if it.last.is_none_or(|last| last + rtt <= now) {
                if lost.len() == most {
                    return lost;
                }
                *it = Missing { requests: it.requests + 1, last: Some(now) };
                lost.push(*sequence as u16);
            }
        }
        let again = self.missing.values().filter_map(|it| it.last).min();
        self.next = again.map(|last| {
            let ticks = (last + rtt - Instant::ZERO).as_nanos().div_ceil(BETWEEN.as_nanos());
            Instant::ZERO + BETWEEN * ticks
        });
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn what_is_missing_is_requested_at_once_and_at_ticks_after_a_round_trip_time() {
        let mut requester = Requester::default();
        for sequence in [65_530, 65_534, 65_533, 65_538] {
            assert!(requester.on_packet(at(1), sequence));
        }
        assert_eq!(requester.due(), Some(at(1)));
        assert_eq!(requester.take(at(1), RTT, 9), [65_531, 65_532, 65_535, 0, 1]);
        assert_eq!(requester.take(at(50), RTT, 9), [0; 0]);
        assert!(requester.on_packet(at(40), 65_535));
        assert!(requester.on_packet(at(40), 65_540));
        // The new one does not wait for the others.
        assert_eq!(requester.take(at(40), RTT, 9), [3]);
        assert_eq!(requester.due(), Some(at(60)));
        assert_eq!(requester.take(at(60), RTT, 9), [65_531, 65_532, 0, 1]);
        assert_eq!(requester.due(), Some(at(100)));
        // What has no room is due at once.
        assert_eq!(requester.clone().take(at(120), RTT, 2), [65_531, 65_532]);
        requester.forget_before(65_537);
        assert_eq!(requester.take(at(120), RTT, 9), [1, 3]);
        requester.forget_before(65_550);
        assert_eq!(requester.due(), None);
    }

    #[test]
    fn ten_requests_are_enough() {
        let mut requester = Requester::default();
        requester.on_packet(at(0), 1);
        requester.on_packet(at(0), 3);
        let mut requests = 0;
        while let Some(due) = requester.due() {
            requests += requester.take(due, RTT, 9).len();
        }
        assert_eq!(requests, 10);
    }

    #[test]
    fn too_many_are_given_up() {
        let mut requester = Requester::default();
        assert!(requester.on_packet(at(0), 0));
        assert!(requester.on_packet(at(0), 1001));
        assert!(!requester.on_packet(at(0), 1003));
        assert_eq!(requester.due(), None);
        assert!(!requester.on_packet(at(0), 40_000));
        // Those that are too old are no reason.
        assert!(requester.on_packet(at(0), 40_990));
        for sequence in 40_991..52_000 {
            assert!(requester.on_packet(at(0), sequence));
        }
        assert!(requester.missing.is_empty());
    }
}
