//! PIE: proportional integral controller, enhanced (RFC 8033). The queueing delay is measured by timestamps, as
//! that of the last packet to leave, instead of estimated from the departure rate.

use std::collections::VecDeque;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{Control, DropReason, Probe};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};

use crate::codel;
use crate::validate::{ConfigError, Validate, is_false, positive};
use crate::{Discipline, Hop, Served};

/// Drops or marks arrivals with a probability that a controller adapts to the deviation of the queueing delay
/// from its target and to its growth. The delay is that of the last packet to leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Queue limit in packets, 1 or more.
    #[schemars(range(min = 1))]
    pub packets: u32,
    /// Target queueing delay, above zero (RFC 8033 §4.1: QDELAY_REF).
    pub target: Duration,
    /// Time between two updates of the probability, above zero (RFC 8033 §4.2: T_UPDATE).
    pub update: Duration,
    /// Weight of the deviation from the target, per second (RFC 8033 §4.2).
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub alpha: f64,
    /// Weight of the growth of the delay, per second (RFC 8033 §4.2).
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub beta: f64,
    /// Time for which a burst into an idle queue is not dropped (RFC 8033 §4.4: MAX_BURST).
    pub max_burst: Duration,
    /// Whether ECN-capable packets are marked instead of dropped.
    #[serde(skip_serializing_if = "is_false")]
    pub ecn: bool,
    /// Probability above which ECN-capable packets are dropped too, 0 to 1 (RFC 8033 §5.1: mark_ecnth).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mark_below: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            packets: codel::Config::default().packets,
            target: Duration::from_nanos(15_000_000),
            update: Duration::from_nanos(15_000_000),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Duration::from_nanos(150_000_000),
            ecn: false,
            mark_below: 0.1,
        }
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PIE {}", self.target)
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

/// Proportional integral controller, enhanced.
#[derive(Debug)]
pub struct Pie {
    waiting: VecDeque<(Instant, Packet)>,
    bytes: u64,
    limit: u32,
    target: Duration,
    every: Duration,
    alpha: f64,
    beta: f64,
    max_burst: Duration,
    ecn: bool,
    mark_below: f64,
    mtu: u64,
    /// The next update of the probability.
    next: Instant,
    drop_prob: f64,
    accu_prob: f64,
    burst_allowance: Duration,
    /// Queueing delay of the last packet to leave.
    wait: Duration,
    qdelay_old: Duration,
}

impl Pie {
    /// A queue as configured, for a link of this MTU.
    #[must_use]
    pub fn new(words: &Config, _: Rate, mtu: Size) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            limit: words.packets,
            target: words.target,
            every: words.update,
            alpha: words.alpha,
            beta: words.beta,
            max_burst: words.max_burst,
            ecn: words.ecn,
            mark_below: words.mark_below,
            mtu: mtu.as_bytes(),
            next: Instant::ZERO + words.update,
            drop_prob: 0.0,
            accu_prob: 0.0,
            burst_allowance: words.max_burst,
            wait: Duration::ZERO,
            qdelay_old: Duration::ZERO,
        }
    }

    /// The current drop probability.
    #[must_use]
    pub fn drop_prob(&self) -> f64 {
        self.drop_prob
    }

    /// Performs every update of the probability due up to `now`; its inputs have not changed since the last
    /// call.
    fn catch_up(&mut self, now: Instant) {
        while self.next <= now {
            self.next += self.every;
            let qdelay = if self.waiting.is_empty() { Duration::ZERO } else { self.wait };
            self.move_probability(qdelay);
        }
    }

    /// RFC 8033 §4.2, §4.4.
    fn move_probability(&mut self, qdelay: Duration) {
        let distance = qdelay.as_secs_f64() - self.target.as_secs_f64();
        let growth = qdelay.as_secs_f64() - self.qdelay_old.as_secs_f64();
        let mut p = (self.alpha * distance + self.beta * growth) / damping(self.drop_prob);
        if self.drop_prob >= 0.1 {
            p = p.min(0.02);
        }
        self.drop_prob += p;
        if qdelay.is_zero() && self.qdelay_old.is_zero() {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        let is_quiet = |delay: Duration| delay < self.target / 2;
        if self.drop_prob == 0.0 && is_quiet(qdelay) && is_quiet(self.qdelay_old) {
            self.burst_allowance = self.max_burst;
        } else {
            self.burst_allowance = self.burst_allowance.saturating_sub(self.every);
        }
        self.qdelay_old = qdelay;
    }

    /// RFC 8033 §4.1, with the derandomisation of §5.4.
    fn drops_early(&mut self, unity: impl FnOnce() -> f64) -> bool {
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        let is_short = self.qdelay_old < self.target / 2 && self.drop_prob < 0.2;
        if !self.burst_allowance.is_zero() || is_short || self.bytes <= 2 * self.mtu {
            return false;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            return false;
        }
        let drops = self.accu_prob >= 8.5 || unity() < self.drop_prob;
        if drops {
            self.accu_prob = 0.0;
        }
        drops
    }
}

/// RFC 8033 §4.2: a small probability changes in small steps.
fn damping(drop_prob: f64) -> f64 {
    match drop_prob {
        p if p < 0.000_001 => 2048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}

impl Discipline for Pie {
    fn enqueue<P: Probe>(&mut self, mut packet: Packet, hop: &mut Hop<'_, P>) -> bool {
        self.catch_up(hop.now);
        let marks = self.ecn && self.drop_prob < self.mark_below;
        let why = match self.packets() >= self.limit {
            true => Some(DropReason::Full),
            false if !self.drops_early(|| hop.rng.unit()) => None,
            false if marks && hop.mark(&mut packet) => None,
            false => Some(DropReason::Early),
        };
        if let Some(why) = why {
            hop.refuse(packet, why);
            return false;
        }
        self.bytes += u64::from(packet.ip_bytes);
        self.waiting.push_back((hop.now, packet));
        true
    }
    fn dequeue<P: Probe>(&mut self, hop: &mut Hop<'_, P>) -> Served {
        self.catch_up(hop.now);
        let Some((since, packet)) = self.waiting.pop_front() else { return Served::Empty };
        self.bytes -= u64::from(packet.ip_bytes);
        self.wait = hop.now - since;
        Served::Packet(packet)
    }
    fn control(&self) -> Control {
        Control { drop_probability: Some(self.drop_prob), ..Control::default() }
    }
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
