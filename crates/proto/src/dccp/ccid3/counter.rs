//! The window counter (RFC 4342 §8.1): quarters of a round trip, counted by the sender, carried in
//! the four bits of `CCVal`, read by the receiver. Counts in memory do not wrap.

use std::collections::VecDeque;

use crate::time::{Duration, Instant};

/// Number of `CCVal` values.
const SPACE: u64 = 16;
/// RFC 4342 §8.1: maximum step of the counter between two packets, so that a receiver can
/// distinguish lost steps from steps that were not made.
const MAX_STEP: u64 = 5;
/// Counts whose last arrival is remembered for [`CounterReader::span_back`].
const KEPT_COUNTS: usize = 16;
/// Counts per round trip: quarters.
pub(super) const ROUND_TRIP: u64 = 4;

/// The sender's counter.
#[derive(Debug, Default)]
pub(super) struct WindowCounter {
    /// `last_WC` and when it was reached (`last_WC_time`), after the first packet.
    last: Option<(u64, Instant)>,
    /// The count of the last data packet.
    sent: u64,
}

impl WindowCounter {
    /// The count of a packet sent now.
    pub(super) fn at(&self, now: Instant, rtt: Option<Duration>) -> u64 {
        let Some((count, since)) = self.last else { return 0 };
        // RFC 4342 §8.1: quarter_RTTs = floor((t_now − last_WC_time) / (RTT / 4))
        let quarters = rtt.map_or(0, |rtt| {
            let elapsed = u128::from(now.saturating_since(since).as_nanos());
            let quarters = elapsed * u128::from(ROUND_TRIP) / u128::from(rtt.as_nanos().max(1));
            quarters.min(MAX_STEP.into()) as u64
        });
        // "adjacent data-carrying packets' CCVal counters never differ by more than five"
        (count + quarters).min(self.sent + MAX_STEP)
    }

    /// Advances to the count of a data packet sent now.
    pub(super) fn advance(&mut self, now: Instant, rtt: Option<Duration>) -> u64 {
        let count = self.at(now, rtt);
        if self.last.is_none_or(|(last, _)| count > last) {
            self.last = Some((count, now));
        }
        self.sent = count;
        count
    }

    /// A packet with this count was acknowledged: a round trip has passed since (RFC 4342 §8.1).
    pub(super) fn on_ack(&mut self, now: Instant, acked: u64) {
        if let Some((count, _)) = self.last
            && acked + ROUND_TRIP > count
        {
            self.last = Some((acked + ROUND_TRIP, now));
        }
    }

    /// The wire value.
    #[must_use]
    pub(super) const fn wire(count: u64) -> u8 {
        (count % SPACE) as u8
    }
}

/// The other side's counter as followed by a receiver, and the round-trip time derived from it.
#[derive(Debug, Default)]
pub(super) struct CounterReader {
    latest: Option<u64>,
    /// The time and count since which every step was smaller than the maximum.
    steady: Option<(u64, Instant)>,
    /// Arrival of the latest data packet.
    arrived: Option<Instant>,
    /// The last arrival with each of the latest counts, for [`Self::span_back`] only.
    recent: VecDeque<(u64, Instant)>,
}

/// Round-trip time information from a packet's count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// A measurement.
    Sample(Duration),
    /// An upper bound.
    AtMost(Duration),
}

impl CounterReader {
    /// The count of a data packet that is the latest in order (`ahead`), or was overtaken.
    pub(super) fn read(&mut self, ccval: u8, ahead: bool) -> u64 {
        let ccval = u64::from(ccval);
        // Starts one cycle above zero, so that earlier counts can be represented.
        let latest = *self.latest.get_or_insert(SPACE + ccval);
        if !ahead {
            return latest.saturating_sub(latest.wrapping_sub(ccval) % SPACE);
        }
        let count = latest + ccval.wrapping_sub(latest) % SPACE;
        self.latest = Some(count);
        count
    }

    /// The latest count, if a data packet has arrived.
    pub(super) const fn latest(&self) -> Option<u64> {
        self.latest
    }

    /// Derives the round-trip time from a packet with this count, `step` above the one before (RFC 4342
    /// §10.3). A step of [`MAX_STEP`] may stand for any longer time, and one across a `gap` in the
    /// numbers for an unknown number of steps: both begin a new measurement.
    pub(super) fn tell(&mut self, now: Instant, count: u64, step: u64, gap: bool) -> Option<Told> {
        let before = self.arrived.replace(now);
        let Some((from, since)) = self.steady.filter(|_| step < MAX_STEP && !gap) else {
            self.steady = Some((count, now));
            let before = before.filter(|_| step == MAX_STEP && !gap)?;
            return span(now, before, step).map(Told::AtMost);
        };
        if count - from < ROUND_TRIP {
            return None;
        }
        self.steady = Some((count, now));
        span(now, since, count - from).map(Told::Sample)
    }
}

impl CounterReader {
    /// ns-2's estimate (`dccp_tfrc.cc`, `sampleRTT`): at each packet from the last one that is more than a
    /// round trip of counts behind it, unless a step in between may stand for any time.
    pub(super) fn span_back(&mut self, now: Instant, count: u64, step: u64) -> Option<Duration> {
        if step >= MAX_STEP {
            self.recent.clear();
        }
        let behind = |(from, _): &&(u64, Instant)| count - *from > ROUND_TRIP;
        let since = self.recent.iter().rev().find(behind).copied();
        match self.recent.back_mut() {
            Some((last, at)) if *last == count => *at = now,
            _ => self.recent.push_back((count, now)),
        }
        if self.recent.len() > KEPT_COUNTS {
            self.recent.pop_front();
        }
        since.and_then(|(from, at)| span(now, at, count - from))
    }
}

/// The round-trip time if this many counts took the time from `since` to `now`.
fn span(now: Instant, since: Instant, counts: u64) -> Option<Duration> {
    let elapsed = now.saturating_since(since).as_nanos();
    Some(Duration::from_nanos(elapsed / counts * ROUND_TRIP)).filter(|rtt| !rtt.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A count each 30 ms with packets each 15 ms: the last packet five counts back came 150 ms before the
    /// second of a count, so that ns-2 says 4 · 150 / 5 ms.
    #[test]
    fn each_packet_may_give_a_round_trip() {
        let mut reader = CounterReader::default();
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let spans: Vec<_> = (0..22)
            .map(|packet| reader.span_back(at(15 * packet), packet / 2, u64::from(packet % 2 == 0)))
            .collect();
        assert!(spans[..10].iter().all(Option::is_none));
        for (packet, millis) in [(10, 108), (11, 120), (20, 108), (21, 120)] {
            assert_eq!(spans[packet], Some(Duration::from_millis(millis)), "{packet}");
        }
        assert_eq!(reader.span_back(at(900), 16, MAX_STEP), None);
    }

    #[test]
    fn counts_do_not_wrap_and_what_was_overtaken_lies_behind() {
        let mut reader = CounterReader::default();
        assert_eq!(reader.read(14, true), 30);
        assert_eq!(reader.read(3, true), 35);
        assert_eq!(reader.read(15, false), 31);
        assert_eq!(reader.read(3, true), 35);
    }
}
