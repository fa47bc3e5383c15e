//! HyStart++ (RFC 9406): slow start ends before it overflows the queue, when the RTTs of a round
//! exceed those of the round before; five rounds of slower growth guard against a false alarm.

use super::Ack;
use crate::time::Duration;

// RFC 9406 §4.3: the constants, named as there.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// Maximum growth per acknowledgement in segments, for a sender that does not pace.
pub(super) const L: u64 = 8;

/// Phase of the exit from slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SlowStart,
    /// Conservative slow start: rounds so far, and the minimum RTT when it began.
    Conservative {
        rounds: u32,
        baseline: Duration,
    },
    /// Congestion avoidance, final; also after any loss.
    Over,
}

/// The state of HyStart++.
#[derive(Clone, Debug)]
pub(super) struct Hystart {
    phase: Phase,
    last_round: Duration,
    this_round: Duration,
    samples: u32,
    /// Units to be acknowledged until the round ends; none before the first acknowledgement.
    left: Option<u64>,
}

impl Default for Hystart {
    fn default() -> Self {
        Self {
            phase: Phase::SlowStart,
            last_round: Duration::MAX,
            this_round: Duration::MAX,
            samples: 0,
            left: None,
        }
    }
}

impl Hystart {
    /// The growth of the window, where slow start would grow it by `step`.
    pub(super) fn step(&mut self, step: u64, ack: &Ack, rtt: Duration) -> u64 {
        let left = self.left.unwrap_or(ack.flight);
        // §4.2: a round lasts until the data sent when it began is acknowledged.
        self.left = Some(left.saturating_sub(ack.acked));
        self.this_round = self.this_round.min(rtt);
        self.samples += 1;
        self.judge();
        let grown = match self.phase {
            Phase::Conservative { .. } => step / CSS_GROWTH_DIVISOR,
            _ => step,
        };
        if left <= ack.acked {
            self.next_round(ack.flight.saturating_sub(ack.acked));
        }
        grown
    }

    fn judge(&mut self) {
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match self.phase {
            Phase::SlowStart
                if self.last_round != Duration::MAX && self.this_round != Duration::MAX =>
            {
                let eighth = self.last_round / MIN_RTT_DIVISOR;
                let threshold = eighth.clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.this_round >= self.last_round + threshold {
                    self.phase = Phase::Conservative { rounds: 0, baseline: self.this_round };
                }
            }
            // A false alarm: round trips are short again.
            Phase::Conservative { baseline, .. } if self.this_round < baseline => {
                self.phase = Phase::SlowStart;
            }
            _ => {}
        }
    }

    fn next_round(&mut self, flight: u64) {
        (self.last_round, self.this_round) = (self.this_round, Duration::MAX);
        (self.samples, self.left) = (0, Some(flight));
        if let Phase::Conservative { rounds, .. } = &mut self.phase {
            *rounds += 1;
            if *rounds >= CSS_ROUNDS {
                self.phase = Phase::Over;
            }
        }
    }

    /// True if HyStart++ has ended slow start.
    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }
}
