//! When the loop sleeps and when it spins.
//!
//! A thread with a real-time priority that never sleeps is stopped by the system for 50 ms of every second
//! (sched(7), `sched_rt_runtime_us`), and keeps programs of the user from its processor. So the loop spins
//! only shortly before an event, not at all after a span in which it hardly slept, and rests after one in
//! which it did not sleep.

use talkspurt_proto::time::{Duration, Instant};

/// The loop spins for this time before an event: waking up from a sleep takes about as long.
const SPIN: Duration = Duration::from_micros(50);
/// The same if it sleeps nearly always: its processor sleeps, too, and takes longer to wake up.
const LONG_SPIN: Duration = Duration::from_micros(150);
/// Length of a span.
const SPAN: Duration = Duration::from_millis(2);
/// The sleep of a span after which the loop spins for longer.
const MUCH: Duration = Duration::from_micros(1500);
/// The least sleep of a span after which the loop may spin.
const ENOUGH: Duration = Duration::from_micros(400);
/// The least sleep of a span: a twentieth plus a margin.
const LEAST: Duration = Duration::from_micros(120);
/// The shortest sleep of a loop that may not spin. Its processor is awake, so that it wakes up quickly.
const NAP: Duration = Duration::from_micros(20);

/// How the loop waits.
#[derive(Debug)]
pub(crate) struct Pace {
    began: Instant,
    slept: Duration,
    /// Zero if it may not.
    spin: Duration,
}

/// What the loop does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// It looks for packets and events again.
    Spin,
    /// It sleeps for so long, or until a packet is there.
    Sleep(Duration),
    /// It sleeps for so long, packets or not.
    Rest(Duration),
}

impl Pace {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { began: now, slept: Duration::ZERO, spin: LONG_SPIN }
    }

    /// What to do until `next`. `busy`: there was a packet in this round.
    pub(crate) fn wait(&mut self, now: Instant, next: Instant, busy: bool) -> Wait {
        if now.saturating_since(self.began) >= SPAN {
            let lack = LEAST.saturating_sub(self.slept);
            self.spin = match self.slept {
                slept if slept >= MUCH => LONG_SPIN,
                slept if slept >= ENOUGH => SPIN,
                _ => Duration::ZERO,
            };
            (self.began, self.slept) = (now, Duration::ZERO);
            if !lack.is_zero() {
                return Wait::Rest(lack);
            }
        }
        let ahead = next.saturating_since(now);
        if busy || ahead < self.spin {
            Wait::Spin
        } else {
            Wait::Sleep((ahead - self.spin).max(NAP))
        }
    }

    /// The loop slept for so long; not called for a rest, which makes up for the span before it.
    pub(crate) fn slept(&mut self, length: Duration) {
        self.slept += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(micros: u64) -> Instant {
        Instant::from_nanos(1000 * micros)
    }

    #[test]
    fn it_sleeps_until_shortly_before_an_event_and_then_spins() {
        let mut pace = Pace::new(us(0));
        assert_eq!(pace.wait(us(0), us(900), false), Wait::Sleep(Duration::from_micros(750)));
        assert_eq!(pace.wait(us(751), us(900), false), Wait::Spin);
        assert_eq!(pace.wait(us(751), us(9000), true), Wait::Spin);
        // After a span with less sleep, it wakes up faster.
        pace.slept(Duration::from_micros(750));
        let next = pace.wait(us(2_000), us(2_900), false);
        assert_eq!(next, Wait::Sleep(Duration::from_micros(850)));
    }

    /// Whatever comes, at least a twentieth of the time is left to others.
    #[test]
    fn a_loop_that_is_always_busy_rests() {
        let mut pace = Pace::new(us(0));
        let (mut now, mut slept) = (0, 0);
        while now < 1_000_000 {
            match pace.wait(us(now), us(now), true) {
                Wait::Spin => now += 7,
                Wait::Sleep(length) | Wait::Rest(length) => {
                    slept += length.as_nanos() / 1000;
                    now += length.as_nanos() / 1000;
                }
            }
        }
        assert!(slept > 50_000 && slept < 70_000, "{slept}");
    }

    #[test]
    fn a_loop_that_hardly_slept_naps_instead_of_spinning() {
        let mut pace = Pace::new(us(0));
        pace.slept(Duration::from_micros(200));
        assert_eq!(pace.wait(us(2_000), us(2_001), false), Wait::Sleep(NAP));
        pace.slept(Duration::from_millis(1));
        assert_eq!(pace.wait(us(4_000), us(4_001), false), Wait::Spin);
    }
}
