//! RED: random early detection (Floyd and Jacobson 1993), gentle (Floyd 2000) and adaptive (Floyd,
//! Gummadi and Shenker 2001). The letters of the papers: `p_b` is the probability by the average
//! alone, `p_a` the one with which a packet goes once the packets since the last are counted.

use std::collections::VecDeque;

use talkspurt_proto::math;
use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{DropReason, Probe};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};
use talkspurt_scenario::model::{self, RedMode};

use super::{Discipline, Hop, Served};

/// Random early detection.
#[derive(Debug)]
pub struct Red {
    waiting: VecDeque<Packet>,
    bytes: u64,
    limit: f64,
    min: f64,
    max: f64,
    max_p: f64,
    weight: f64,
    gentle: bool,
    in_bytes: bool,
    mean_bytes: f64,
    /// Time to send a packet of mean length: the step of an idle queue's average.
    step: Duration,
    /// When `max_p` was last looked at, if it adapts.
    adapted: Option<Instant>,
    ecn: bool,
    ns2: bool,
    average: f64,
    /// Packets (in byte mode, of mean length) since the last that was dropped or marked; none while
    /// the average is below `min`, the paper's −1.
    count: Option<f64>,
}

/// What becomes of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Passes,
    /// By the dice: a mark will do.
    Early,
    /// The average is too high for anybody.
    Forced,
}

impl Red {
    /// The interval of adaptation, the least and the greatest `max_p`, and the factor of decrease
    /// (Floyd et al. 2001, figure 1).
    const INTERVAL: Duration = Duration::from_nanos(500_000_000);
    const LEAST: f64 = 0.01;
    const MOST: f64 = 0.5;
    const BETA: f64 = 0.9;

    /// A queue as the scenario words it, before a transmitter of this rate.
    #[must_use]
    pub fn new(words: &model::Red, rate: Rate, _: Size) -> Self {
        let mean = words.mean_packet.as_bytes();
        let per_second = rate.as_bps() as f64 / (8 * mean) as f64;
        // Floyd et al. 2001 §5.1, §5.2.
        let auto = || (words.target_delay.as_secs_f64() * per_second / 2.0).max(5.0);
        let min = words.min_threshold.unwrap_or_else(auto);
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            limit: words.packets.into(),
            min,
            max: words.max_threshold.unwrap_or(3.0 * min),
            max_p: words.max_p,
            weight: words.weight.unwrap_or_else(|| 1.0 - math::exp(-1.0 / per_second)),
            gentle: words.gentle,
            in_bytes: words.mode == RedMode::Bytes,
            mean_bytes: mean as f64,
            step: rate.time_for(mean).unwrap_or(Duration::MAX),
            adapted: words.adaptive.then_some(Instant::ZERO),
            ecn: words.ecn,
            ns2: words.ns2,
            average: 0.0,
            count: None,
        }
    }

    /// The average queue, in packets (in byte mode, of mean length).
    #[must_use]
    pub fn average(&self) -> f64 {
        self.average
    }

    /// The probability of a drop below the upper threshold, as it now is.
    #[must_use]
    pub fn max_p(&self) -> f64 {
        self.max_p
    }

    /// Bytes as packets of mean length.
    fn lengths(&self, bytes: u64) -> f64 {
        bytes as f64 / self.mean_bytes
    }

    /// What waits, in the unit of the thresholds.
    fn length(&self) -> f64 {
        if self.in_bytes { self.lengths(self.bytes) } else { self.waiting.len() as f64 }
    }

    /// Floyd and Jacobson 1993 §4: an average over arrivals, with what small packets would have seen
    /// of an idle queue put in. ns-2.35 counts whole packet times, and the arrival besides.
    fn estimate(&mut self, now: Instant, free_at: Instant) {
        if self.waiting.is_empty() && free_at <= now {
            let missed = (now - free_at).as_nanos() / self.step.as_nanos().max(1);
            self.average *= math::pow(1.0 - self.weight, missed as f64);
        }
        self.average += self.weight * (self.length() - self.average);
    }

    /// Floyd et al. 2001, figure 1: keeps the average within 0.4 and 0.6 of the way from `min` to
    /// `max`. Looked at when a packet arrives, as ns-2 does.
    fn adapt(&mut self, now: Instant) {
        let Some(last) = self.adapted.filter(|last| now > *last + Self::INTERVAL) else { return };
        let part = 0.4 * (self.max - self.min);
        if self.average > self.max - part && self.max_p <= Self::MOST {
            self.max_p += (self.max_p / 4.0).min(0.01);
        } else if self.average < self.min + part && self.max_p >= Self::LEAST {
            self.max_p *= Self::BETA;
        }
        debug_assert!(last < now);
        self.adapted = Some(now);
    }

    /// The probability by the average alone.
    fn p_b(&self) -> f64 {
        if self.average < self.max {
            self.max_p * (self.average - self.min) / (self.max - self.min)
        } else {
            self.max_p + (1.0 - self.max_p) * (self.average - self.max) / self.max
        }
    }

    /// Spreads drops evenly: `count` packets have passed since the last.
    fn p_a(&self, count: f64, unit: f64) -> f64 {
        let p_b = self.p_b();
        let so_far = count * p_b;
        let p_a = if self.ns2 {
            match so_far {
                x if x < 1.0 => 0.0,
                x if x < 2.0 => p_b / (2.0 - x),
                _ => 1.0,
            }
        } else if so_far < 1.0 {
            p_b / (1.0 - so_far)
        } else {
            1.0
        };
        p_a * unit
    }

    /// What becomes of a packet that counts as `unit` packets.
    fn judge(&mut self, unit: f64, mut unity: impl FnMut() -> f64) -> Verdict {
        let top = if self.gentle { 2.0 * self.max } else { self.max };
        let count = match (self.count, self.ns2) {
            (None, false) => 0.0,
            (None, true) => unit,
            (Some(count), _) => count + unit,
        };
        let first = self.count.is_none();
        if self.average < self.min || (self.ns2 && self.waiting.len() < 2) {
            self.count = None;
            return Verdict::Passes;
        }
        if self.average >= top {
            self.count = Some(if self.ns2 { count } else { 0.0 });
            return Verdict::Forced;
        }
        if (self.ns2 && first) || unity() >= self.p_a(count, unit) {
            self.count = Some(count);
            return Verdict::Passes;
        }
        self.count = Some(0.0);
        Verdict::Early
    }
}

impl Discipline for Red {
    fn enqueue<P: Probe>(&mut self, mut packet: Packet, hop: &mut Hop<'_, P>) -> bool {
        self.estimate(hop.now, hop.free_at);
        self.adapt(hop.now);
        let unit = if self.in_bytes { self.lengths(packet.ip_bytes.into()) } else { 1.0 };
        let verdict = self.judge(unit, || hop.dice.unit());
        let why = match verdict {
            _ if self.length() >= self.limit => Some(DropReason::Full),
            Verdict::Passes => None,
            Verdict::Early if self.ecn && hop.mark(&mut packet) => None,
            Verdict::Early | Verdict::Forced => Some(DropReason::Early),
        };
        if let Some(why) = why {
            hop.refuse(packet, why);
            return false;
        }
        self.bytes += u64::from(packet.ip_bytes);
        self.waiting.push_back(packet);
        true
    }
    fn dequeue<P: Probe>(&mut self, _: &mut Hop<'_, P>) -> Served {
        let Some(packet) = self.waiting.pop_front() else { return Served::Empty };
        self.bytes -= u64::from(packet.ip_bytes);
        Served::Packet(packet)
    }
    /// The average is over all arrivals.
    fn passes_when_idle(&self) -> bool {
        false
    }
    fn packets(&self) -> u32 {
        self.waiting.len() as u32
    }
    fn bytes(&self) -> u64 {
        self.bytes
    }
}
