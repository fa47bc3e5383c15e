//! `X_recv_set`: the receive rates that bound a sender's own rate (RFC 5348 §4.2, §4.3), and
//! detection of data-limited intervals (§8.2.1).

use std::collections::VecDeque;

use crate::time::{Duration, Instant};

/// Receive rates of the last two round trips, in bytes per second.
#[derive(Clone, Debug)]
pub(super) struct ReceiveSet {
    /// The arrival of each. An infinite rate stands for the time before the first.
    rates: Vec<(Instant, f64)>,
}

/// Reports kept for two round trips. A receiver sends one per round trip and one per loss event;
/// beyond the limit only the largest is kept.
const KEPT: usize = 64;

impl ReceiveSet {
    /// Bytes held.
    pub(super) fn footprint(&self) -> usize {
        self.rates.capacity() * size_of::<(Instant, f64)>()
    }

    /// RFC 5348 §4.2: holds only infinity.
    pub(super) fn new(now: Instant) -> Self {
        Self { rates: vec![(now, f64::INFINITY)] }
    }

    /// RFC 5348 §4.3, Maximize X_recv_set: removes infinity, adds the rate, and keeps only the
    /// largest, as of now.
    pub(super) fn maximize(&mut self, now: Instant, rate: f64) {
        self.rates.retain(|(_, rate)| rate.is_finite());
        self.rates.push((now, rate));
        self.replace(now, self.highest());
    }

    /// RFC 5348 §4.3, Update X_recv_set: adds the rate, removes those older than two round trips.
    pub(super) fn update(&mut self, now: Instant, rate: f64, rtt: Duration) {
        self.rates.push((now, rate));
        self.rates.retain(|(at, _)| now.saturating_since(*at) <= rtt * 2);
        if self.rates.len() > KEPT {
            self.replace(now, self.highest());
        }
    }

    /// Halves every entry (RFC 5348 §4.3 step 4).
    pub(super) fn halve(&mut self) {
        self.rates.iter_mut().for_each(|(_, rate)| *rate /= 2.0);
    }

    /// Keeps only this rate (RFC 5348 §4.4, Update_Limits).
    pub(super) fn replace(&mut self, now: Instant, rate: f64) {
        self.rates.clear();
        self.rates.push((now, rate));
    }

    /// The largest of the set.
    pub(super) fn highest(&self) -> f64 {
        self.rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
    }
}

/// Times at which the sender had sent all it was allowed to (RFC 5348 §8.2.1). The RFC saves two
/// instants and lets a sender save more; these are all of them, as runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    /// Runs of such instants, oldest first, less than half a round trip apart within a run: a round
    /// trip that overlaps a run contains one of its instants.
    runs: VecDeque<(Instant, Instant)>,
}

/// Runs kept; a sender occasionally at its limit has one for each time.
const RUNS: usize = 32;

impl Limits {
    /// Bytes held.
    pub(super) fn footprint(&self) -> usize {
        self.runs.capacity() * size_of::<(Instant, Instant)>()
    }

    /// The sender has sent all it was allowed to.
    #[inline]
    pub(super) fn not_limited(&mut self, now: Instant, rtt: Duration) {
        match self.runs.back_mut() {
            Some((_, end)) if now.saturating_since(*end) < rtt / 2 => *end = now,
            _ => self.begin(now),
        }
    }

    #[inline(never)]
    fn begin(&mut self, now: Instant) {
        if self.runs.len() == RUNS {
            self.runs.pop_front();
        }
        self.runs.push_back((now, now));
    }

    /// Feedback arrived that covers what was sent in the round trip of `rtt` up to `covered`. True if
    /// the sender was data-limited throughout.
    #[inline]
    pub(super) fn on_feedback(&mut self, covered: Instant, rtt: Duration) -> bool {
        // RFC 5348 §8.2.1: (t_old, t_new] with t_old = t_new − R.
        let before = |end: Instant| end + rtt <= covered;
        while self.runs.front().is_some_and(|(_, end)| before(*end)) {
            self.runs.pop_front();
        }
        self.runs.front().is_none_or(|(start, _)| *start > covered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: Duration = Duration::from_millis(100);

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// RFC 5348 §8.2.1: the sender's state when it sent the covered data counts, not its state when
    /// the feedback arrives.
    #[test]
    fn limits_are_those_of_what_was_covered() {
        let mut limits = Limits::default();
        assert!(limits.on_feedback(at(50), R));
        limits.not_limited(at(120), R);
        assert!(limits.on_feedback(at(110), R), "120 is not covered yet");
        assert!(!limits.on_feedback(at(210), R), "now it is");
        assert!(limits.on_feedback(at(310), R), "and was before");
    }

    /// §8.2.1: t_old is t_new − R, however long ago the last feedback arrived: data sent before a
    /// pause is not covered by the first feedback after it.
    #[test]
    fn a_pause_is_not_covered() {
        let mut limits = Limits::default();
        limits.not_limited(at(120), R);
        limits.not_limited(at(150), R);
        assert!(limits.on_feedback(at(5000), R));
        limits.not_limited(at(5100), R);
        assert!(limits.on_feedback(at(5200), R), "exactly R before is outside");
        limits.not_limited(at(5250), R);
        assert!(!limits.on_feedback(at(5349), R), "just inside");
    }

    /// §8.2.1, last but one paragraph: more than two times are saved, so that lost feedback does not
    /// make a sender that is always at its limit appear data-limited.
    #[test]
    fn lost_feedback_hides_nothing() {
        let mut limits = Limits::default();
        (0..1000).for_each(|step| limits.not_limited(at(10 * step), R));
        assert!(!limits.on_feedback(at(50), R));
        assert!(!limits.on_feedback(at(9500), R));
        // Instants 300 ms apart are no run: a round trip between two of them was data-limited.
        let mut limits = Limits::default();
        (0..100).for_each(|step| limits.not_limited(at(300 * step), R));
        assert!(limits.on_feedback(at(29_250), R));
        assert!(!limits.on_feedback(at(29_450), R));
    }

    /// §4.3: Maximize removes infinity and keeps the largest as of now.
    #[test]
    fn maximize() {
        let mut set = ReceiveSet::new(at(0));
        assert!(set.highest().is_infinite());
        for (now, rate, highest) in [(100, 5.0, 5.0), (400, 3.0, 5.0), (700, 7.0, 7.0)] {
            set.maximize(at(now), rate);
            assert_eq!(set.rates, [(at(now), highest)]);
        }
    }
}
