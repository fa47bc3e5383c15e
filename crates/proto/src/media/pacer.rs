//! When the next packet of a session may leave.

use crate::time::{Duration, Instant};
use crate::units::Rate;

const SLOWEST: Rate = Rate::from_bps(1);
/// Longest that one packet is paid for: years, so that instants do not overflow.
const LONGEST: Duration = Duration::from_secs(1 << 30);

/// A pacer: packets leave at a rate, up to a burst at once. It holds no packets.
///
/// It keeps the instant at which all that has left would have left at the rate. A packet may leave up to the
/// burst before that instant; time without packets is not saved. One that pauses lets nothing leave after a
/// burst before all of it is paid for (libwebrtc: `PacingController::NextSendTime`).
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    rate: Rate,
    burst: Duration,
    pauses: bool,
    /// A burst has left, and its pause is not over.
    is_pausing: bool,
    /// When what has left is paid for.
    paid: Instant,
}

impl Pacer {
    /// A pacer that lets packets leave at `rate`, `burst` of them at once, and then pauses or not.
    #[must_use]
    pub fn new(rate: Rate, (burst, pauses): (Duration, bool)) -> Self {
        let (is_pausing, paid) = (false, Instant::ZERO);
        Self { rate: rate.max(SLOWEST), burst, pauses, is_pausing, paid }
    }

    /// The rate from now on. What is not paid for yet is paid for at the new rate.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        let rate = rate.max(SLOWEST);
        let owed = u128::from(self.paid.saturating_since(now).as_nanos());
        if rate != self.rate && owed > 0 {
            let scaled = owed * u128::from(self.rate.as_bps()) / u128::from(rate.as_bps());
            let scaled = u64::try_from(scaled).unwrap_or(u64::MAX).min(LONGEST.as_nanos());
            self.paid = now + Duration::from_nanos(scaled);
        }
        self.rate = rate;
    }

    /// When a packet may leave.
    #[must_use]
    pub fn next(&self) -> Instant {
        let burst = if self.is_pausing { 0 } else { self.burst.as_nanos() };
        Instant::from_nanos(self.paid.as_nanos().saturating_sub(burst))
    }

    /// When what has left is paid for.
    #[must_use]
    pub const fn paid(&self) -> Instant {
        self.paid
    }

    /// A packet comes, while others wait or not: one alone ends a pause if there is room for it.
    pub fn on_packet(&mut self, now: Instant, waits: bool) {
        self.is_pausing &= waits || self.paid.saturating_since(now) >= self.burst;
    }

    /// A packet of this size leaves.
    pub fn on_sent(&mut self, now: Instant, bytes: u64) {
        let still = self.is_pausing && self.paid > now;
        self.paid =
            self.paid.max(now) + self.rate.time_for(bytes).map_or(LONGEST, |it| it.min(LONGEST));
        let is_full = self.paid.saturating_since(now) >= self.burst;
        self.is_pausing = self.pauses && (still || is_full);
    }

    /// Nothing is paid for longer than this from now.
    pub fn forgive(&mut self, now: Instant, most: Duration) {
        self.paid = self.paid.min(now + most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Instants at which packets of 1000 bytes leave that all wait at `from`.
    fn departures(pacer: &mut Pacer, from: Instant, count: usize) -> Vec<Instant> {
        let mut now = from;
        let mut left = Vec::new();
        while left.len() < count {
            now = now.max(pacer.next());
            pacer.on_sent(now, 1000);
            left.push(now);
        }
        left
    }

    #[test]
    fn packets_leave_at_the_rate_after_a_burst() {
        // 8 Mbit/s: a millisecond for each packet; five may leave at once, the first being free.
        let mut pacer = Pacer::new(Rate::from_bps(8_000_000), (MS * 5, false));
        let at = Instant::ZERO + MS * 1000;
        let left = departures(&mut pacer, at, 10);
        assert!(left[..6].iter().all(|one| *one == at));
        for (place, one) in left.iter().enumerate().skip(6) {
            assert_eq!(*one, at + MS * (place as u64 - 5));
        }
        // Silence is not saved.
        let later = at + MS * 10_000;
        assert_eq!(departures(&mut pacer, later, 7)[6], later + MS);
    }

    #[test]
    fn nothing_leaves_after_a_burst_before_it_is_paid_for() {
        // Chromium's log of a frame at about 4 Mbit/s: bursts of 17 packets, some 41 ms apart.
        let mut pacer = Pacer::new(Rate::from_bps(8_000_000), (MS * 5, true));
        let at = Instant::ZERO + MS * 1000;
        let left = departures(&mut pacer, at, 12);
        let bursts = [at, at + MS * 5].map(|one| left.iter().filter(|it| **it == one).count());
        assert_eq!(bursts, [5, 5]);
        assert_eq!(left[10], at + MS * 10);
        // What does not wait, as sound, does not end a pause.
        let mut pacer = Pacer::new(Rate::from_bps(8_000_000), (MS * 5, true));
        departures(&mut pacer, at, 5);
        pacer.on_sent(at + MS * 2, 1000);
        assert_eq!(pacer.next(), at + MS * 6);
        // The next frame does, if nothing waits.
        pacer.on_packet(at + MS * 3, true);
        assert_eq!(pacer.next(), at + MS * 6);
        pacer.on_packet(at + MS * 3, false);
        assert_eq!(pacer.next(), at + MS);
    }

    #[test]
    fn a_new_rate_applies_to_what_waits() {
        let mut pacer = Pacer::new(Rate::from_bps(8_000), (Duration::ZERO, false));
        let at = Instant::ZERO + MS;
        pacer.on_sent(at, 1000);
        assert_eq!(pacer.next(), at + MS * 1000);
        pacer.set_rate(at + MS * 500, Rate::from_bps(80_000));
        assert_eq!(pacer.next(), at + MS * 550);
        // A rate of zero is no reason to stop forever.
        pacer.set_rate(at + MS * 500, Rate::from_bps(0));
        assert_eq!(pacer.next(), at + MS * 500 + MS * 50 * 80_000);
    }
}
