//! `X_recv_set`: the receive rates a sender keeps to bound its own rate (RFC 5348 §4.2, §4.3), and
//! how it knows that it has been data-limited (§8.2.1).

use std::collections::VecDeque;

use crate::time::{Duration, Instant};

/// Receive rates of the last two round trips, in bytes per second.
#[derive(Clone, Debug)]
pub(super) struct ReceiveSet {
    /// When each came. An infinite one represents the time before there were any.
    rates: Vec<(Instant, f64)>,
}

/// Reports a sender may get within two round trips and be remembered by. A receiver sends one in a
/// round trip and one for each loss event; of more, the largest is kept.
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

    /// RFC 5348 §4.3, Maximize X_recv_set: infinity leaves, the rate joins, and only the largest
    /// stays, as of now.
    pub(super) fn maximize(&mut self, now: Instant, rate: f64) {
        self.rates.retain(|(_, rate)| rate.is_finite());
        self.rates.push((now, rate));
        self.replace(now, self.highest());
    }

    /// RFC 5348 §4.3, Update X_recv_set: the rate joins, those older than two round trips leave.
    pub(super) fn update(&mut self, now: Instant, rate: f64, rtt: Duration) {
        self.rates.push((now, rate));
        self.rates.retain(|(at, _)| now.saturating_since(*at) <= rtt * 2);
        if self.rates.len() > KEPT {
            self.replace(now, self.highest());
        }
    }

    /// Every entry halved (RFC 5348 §4.3 step 4).
    pub(super) fn halve(&mut self) {
        self.rates.iter_mut().for_each(|(_, rate)| *rate /= 2.0);
    }

    /// Only this rate (RFC 5348 §4.4, Update_Limits).
    pub(super) fn replace(&mut self, now: Instant, rate: f64) {
        self.rates.clear();
        self.rates.push((now, rate));
    }

    /// The largest of the set.
    pub(super) fn highest(&self) -> f64 {
        self.rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
    }
}

/// Times at which the sender had sent all it was allowed to (RFC 5348 §8.2.1). The clause saves two
/// instants and lets a sender save more; these are all of them, as runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    /// Runs of such instants, oldest first, less than half a round trip apart within a run: a span of
    /// a round trip that touches a run holds one of its instants.
    runs: VecDeque<(Instant, Instant)>,
}

/// Runs remembered; a sender that is at its limit now and then has one for each time.
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

    /// Feedback came that covers what was sent in the round trip of `rtt` up to `covered`. True if the
    /// sender was data-limited all that time.
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

    /// RFC 5348 §8.2.1: what counts is whether the sender was at its limit when it sent what the
    /// feedback covers, not when the feedback comes.
    #[test]
    fn limits_are_those_of_what_was_covered() {
        let mut limits = Limits::default();
        assert!(limits.on_feedback(at(50), R));
        limits.not_limited(at(120), R);
        assert!(limits.on_feedback(at(110), R), "120 is not covered yet");
        assert!(!limits.on_feedback(at(210), R), "now it is");
        assert!(limits.on_feedback(at(310), R), "and was before");
    }

    /// §8.2.1: t_old is t_new − R, however long ago the last feedback came: what was sent before a
    /// pause is none of what the first feedback after it covers.
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
    /// make a sender that is always at its limit look data-limited.
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

    /// §4.3: Maximize lets infinity go and keeps the largest as of now.
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
