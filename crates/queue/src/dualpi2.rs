//! DualPI2: a low-latency queue beside a classic one, coupled by one controller (RFC 9332, Appendix A). Where
//! the RFC leaves a choice, it is that of `sch_dualpi2` of Linux 6.18, whose defaults are these.

use std::collections::VecDeque;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::packet::{Ecn, Packet};
use talkspurt_proto::probe::{Control, DropReason, Probe};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};

use crate::validate::{ConfigError, Validate, positive};
use crate::{Discipline, Hop, Served};

/// Two queues: packets with ECT(1) or CE wait in a low-latency queue (L), all others in a classic one (C). A
/// controller adapts a probability p to the longer of the two delays; C drops or marks with p², L marks with
/// `coupling` · p, or if a packet has waited longer than `step`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Limit in packets of both queues together, 1 or more.
    #[schemars(range(min = 1))]
    pub packets: u32,
    /// Target of the longer queueing delay, above zero (RFC 9332 Figure 2: target).
    pub target: Duration,
    /// Time between two updates of the probability, above zero (RFC 9332 Figure 2: Tupdate).
    pub update: Duration,
    /// Weight of the deviation from the target, in 1/s (RFC 9332 Figure 2: alpha).
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub alpha: f64,
    /// Weight of the growth of the delay, in 1/s (RFC 9332 Figure 2: beta).
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub beta: f64,
    /// Ratio of the probability of a mark in L to p, 1 or more (RFC 9332 §2.1: k).
    #[schemars(range(min = 1.0, max = 255.0))]
    pub coupling: f64,
    /// Delay above which each packet of L is marked (RFC 9332 Appendix A, note c).
    pub step: Duration,
    /// Packets of L that a packet must have found at its arrival for `step` to apply (RFC 9332 Figure 2:
    /// Th_len). On slow links, one packet in transmission delays the next by more than `step`.
    pub step_packets: u32,
    /// Share of the link that C gets at least while both queues hold packets, 0 to 1 (RFC 9332 §4.2.2).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub c_protection: f64,
    /// Whether L drops packets, and C does instead of marking, when `coupling` · p exceeds 1 (RFC 9332 §4.2.3).
    /// Otherwise p stays below 1/`coupling`, and the limit drops.
    pub drop_overload: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            packets: 10_000,
            target: Duration::from_nanos(15_000_000),
            update: Duration::from_nanos(16_000_000),
            alpha: 0.16,
            beta: 3.2,
            coupling: 2.0,
            step: Duration::from_nanos(1_000_000),
            step_packets: 0,
            c_protection: 0.1,
            drop_overload: true,
        }
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DualPI2 {}, {}", self.step, self.target)
    }
}

impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        [positive("target", self.target), positive("update", self.update)]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// A packet that waits.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    /// Whether `step` applies to it.
    steps: bool,
    packet: Packet,
}

/// A low-latency queue beside a classic one.
#[derive(Debug)]
pub struct Dualpi2 {
    config: Config,
    low: VecDeque<Waiting>,
    classic: VecDeque<Waiting>,
    bytes: u64,
    mtu: u64,
    /// The next update of the probability.
    next: Instant,
    /// p' of RFC 9332, the square root of the probability in the classic queue.
    base: f64,
    /// The longer delay at the last update.
    last: Duration,
    /// The queue that is served next if both hold packets: the classic one if above zero. It counts bytes,
    /// each by the share of the other queue in millionths.
    credit: i64,
}

impl Dualpi2 {
    /// Queues as configured, for a link of this MTU.
    #[must_use]
    pub fn new(config: &Config, _: Rate, mtu: Size) -> Self {
        let mut new = Self {
            config: config.clone(),
            low: VecDeque::new(),
            classic: VecDeque::new(),
            bytes: 0,
            mtu: mtu.as_bytes(),
            next: Instant::ZERO + config.update,
            base: 0.0,
            last: Duration::ZERO,
            credit: 0,
        };
        new.reset_credit();
        new
    }

    /// "The WRR credit is reset in favour of the L queue when the link is idle" (RFC 9332 Appendix A.1).
    fn reset_credit(&mut self) {
        let (classic, low) = self.weights();
        self.credit = self.mtu as i64 * (classic - low);
    }

    /// Shares of the classic and of the low-latency queue in millionths: whole numbers, so that ties are exact.
    fn weights(&self) -> (i64, i64) {
        let classic = (self.config.c_protection * 1e6).round() as i64;
        (classic, 1_000_000 - classic)
    }

    /// Performs every update of the probability due up to `now`; the heads of the queues have not changed since
    /// the last call.
    fn catch_up(&mut self, now: Instant) {
        while self.next <= now {
            let at = self.next;
            let wait = |queue: &VecDeque<Waiting>| {
                queue.front().map_or(Duration::ZERO, |head| at.saturating_since(head.since))
            };
            self.move_probability(wait(&self.low).max(wait(&self.classic)));
            self.next += self.config.update;
        }
    }

    /// RFC 9332 Figure 8.
    fn move_probability(&mut self, delay: Duration) {
        let distance = delay.as_secs_f64() - self.config.target.as_secs_f64();
        let growth = delay.as_secs_f64() - self.last.as_secs_f64();
        self.last = delay;
        let most = if self.config.drop_overload { 1.0 } else { 1.0 / self.config.coupling };
        let moved = self.base + self.config.alpha * distance + self.config.beta * growth;
        self.base = moved.clamp(0.0, most);
    }

    /// Takes the next packet by weighted round robin, and tells how the credit changes if it is sent: only "if
    /// there are packets in both queues" (RFC 9332 Appendix A.1).
    fn next_packet(&mut self) -> Option<(Waiting, bool, i64)> {
        let (low, classic) = (!self.low.is_empty(), !self.classic.is_empty());
        let is_low = low && (!classic || self.credit <= 0);
        let queue = if is_low { &mut self.low } else { &mut self.classic };
        let head = queue.pop_front()?;
        let bytes = i64::from(head.packet.ip_bytes);
        self.bytes -= u64::from(head.packet.ip_bytes);
        let (of_classic, of_low) = self.weights();
        let credit = match (is_low, low && classic) {
            (_, false) => 0,
            (true, true) => of_classic * bytes,
            (false, true) => -of_low * bytes,
        };
        Some((head, is_low, credit))
    }

    /// Whether the controller marks this packet, or drops it instead (RFC 9332 Figure 7). It does neither while
    /// fewer bytes than two packets of the MTU wait (Appendix A.1).
    fn judge(&self, ecn: Ecn, is_low: bool, mut unit: impl FnMut() -> f64) -> Fate {
        if self.bytes < 2 * self.mtu {
            return Fate::Pass;
        }
        let coupled = self.base * self.config.coupling;
        let overload = coupled > 1.0;
        if is_low && !overload {
            return if unit() < coupled { Fate::Mark } else { Fate::Pass };
        }
        // Two draws below p' have the probability p'².
        let squared = unit() < self.base && unit() < self.base;
        match squared {
            true if overload || ecn == Ecn::NotEct => Fate::Drop,
            true => Fate::Mark,
            false if is_low => Fate::Mark,
            false => Fate::Pass,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Pass,
    Mark,
    Drop,
}

impl Discipline for Dualpi2 {
    fn enqueue<P: Probe>(&mut self, packet: Packet, hop: &mut Hop<'_, P>) -> bool {
        self.catch_up(hop.now);
        if self.packets() >= self.config.packets {
            hop.refuse(packet, DropReason::Full);
            return false;
        }
        if self.packets() == 0 && hop.free_at <= hop.now {
            self.reset_credit();
        }
        self.bytes += u64::from(packet.ip_bytes);
        let is_low = matches!(packet.ecn, Ecn::Ect1 | Ecn::Ce);
        let steps = self.low.len() >= self.config.step_packets as usize;
        let queue = if is_low { &mut self.low } else { &mut self.classic };
        queue.push_back(Waiting { since: hop.now, steps, packet });
        true
    }
    fn dequeue<P: Probe>(&mut self, hop: &mut Hop<'_, P>) -> Served {
        self.catch_up(hop.now);
        while let Some((Waiting { since, steps, mut packet }, is_low, credit)) = self.next_packet()
        {
            let fate = self.judge(packet.ecn, is_low, || hop.rng.unit());
            if fate == Fate::Drop {
                hop.refuse(packet, DropReason::Early);
                continue;
            }
            let is_late = is_low && steps && hop.now.saturating_since(since) > self.config.step;
            if fate == Fate::Mark || is_late {
                hop.mark(&mut packet);
            }
            self.credit += credit;
            return Served::Packet(packet);
        }
        Served::Empty
    }
    fn control(&self) -> Control {
        Control { drop_probability: Some(self.base * self.base), ..Control::default() }
    }
    fn passes_when_idle(&self) -> bool {
        false
    }
    fn packets(&self) -> u32 {
        (self.low.len() + self.classic.len()) as u32
    }
    fn bytes(&self) -> u64 {
        self.bytes
    }
}
