//! RED: random early detection (Floyd and Jacobson 1993), gentle (Floyd 2000) and adaptive (Floyd, Gummadi and
//! Shenker 2001). Symbols follow the papers: `p_b` is the probability from the average alone, `p_a` the drop
//! probability that also depends on the packets since the last drop.

use std::collections::VecDeque;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::math;
use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{Control, DropReason, Probe};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};

use crate::validate::{ConfigError, Validate, is_false, positive, some, yes};
use crate::{Discipline, Hop, Served};

/// Random early detection: drops or marks packets with a probability that grows with the average
/// queue (Floyd and Jacobson 1993); `adaptive` moves `max_p` so that the average stays half-way
/// between the thresholds (Floyd, Gummadi and Shenker 2001).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Queue limit in packets, 1 or more; in byte mode, multiples of `mean_packet`.
    #[schemars(range(min = 1))]
    pub packets: u32,
    /// Average above which packets are dropped, in packets (in byte mode, of `mean_packet`). Absent: half of
    /// what the link sends in `target_delay`, 5 or more (Floyd et al. 2001 §5.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_threshold: Option<f64>,
    /// Average at which `max_p` is reached. Absent: three times `min_threshold`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_threshold: Option<f64>,
    /// Drop probability just below `max_threshold`, above 0 and at most 1; the initial value if `adaptive`.
    #[serde(default = "Config::default_max_p")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_p: f64,
    /// Weight of a new sample in the average, above 0 and at most 1. Absent: 1 − e^(−1/C), where C is the
    /// number of `mean_packet` packets that the link sends per second (Floyd et al. 2001 §5.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub weight: Option<f64>,
    /// Whether the probability rises gradually to 1 between `max_threshold` and twice that (Floyd 2000) instead
    /// of at once.
    #[serde(default = "yes")]
    pub gentle: bool,
    /// Unit of the average and of drops.
    #[serde(default)]
    pub mode: Mode,
    /// Typical packet length: in byte mode the unit of all values in packets, and always the step in which the
    /// average of an idle queue decays (ns-2 `mean_pktsize_`).
    #[serde(default = "Config::default_mean_packet")]
    pub mean_packet: Size,
    /// Whether `max_p` adapts, twice per second.
    #[serde(default, skip_serializing_if = "is_false")]
    pub adaptive: bool,
    /// Delay used to compute absent thresholds, above zero.
    #[serde(default = "Config::default_target_delay")]
    pub target_delay: Duration,
    /// Whether what depends on the link's rate (absent thresholds, an absent weight, and the decay of an idle
    /// queue's average) is computed again at each change of the rate, instead of once.
    #[serde(default, skip_serializing_if = "is_false")]
    pub follow_rate: bool,
    /// Whether ECN-capable packets are marked instead of dropped, unless the average is so high that every
    /// packet is dropped (RFC 3168 §7).
    #[serde(default, skip_serializing_if = "is_false")]
    pub ecn: bool,
    /// Counts as ns-2.35's `red.cc`: the packet that raises the average above `min_threshold` passes and counts
    /// as 1; no packet is dropped before count · p reaches 1 (`wait_`), or while fewer than two packets are
    /// queued.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ns2: bool,
}

/// Unit of RED's average and of its drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Packets of any length.
    #[default]
    Packets,
    /// Bytes: a packet twice as long is dropped twice as often (ns-2 `queue_in_bytes_`, `bytes_`).
    Bytes,
}

impl Config {
    talkspurt_proto::defaults! {
        default_max_p: f64 = 0.1;
        default_mean_packet: Size = Size::from_bytes(1000);
        default_target_delay: Duration = Duration::from_nanos(5_000_000);
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.adaptive { "Adaptive RED" } else { "RED" };
        let follows = if self.follow_rate { " at the current rate" } else { "" };
        write!(f, "{name} {} packets{follows}", self.packets)
    }
}

impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        let mut found = Vec::new();
        let mut add = |knob, why: &str| found.push(ConfigError::new(knob, why));
        for (key, threshold) in
            [("min_threshold", self.min_threshold), ("max_threshold", self.max_threshold)]
        {
            if threshold.is_some_and(|threshold| threshold <= 0.0) {
                add(key, "a threshold is above 0 packets");
            }
        }
        match (self.min_threshold, self.max_threshold) {
            (Some(min), Some(max)) if max <= min => {
                add("max_threshold", &format!("{max} is not above min_threshold ({min})"));
            }
            (None, Some(_)) => add("min_threshold", "missing, though max_threshold is given"),
            _ => {}
        }
        let highest = self.max_threshold.or(self.min_threshold.map(|min| 3.0 * min));
        if let Some(highest) = highest.filter(|highest| *highest > f64::from(self.packets)) {
            let why = format!(
                "the average of a queue of {} packets never reaches the upper threshold ({highest})",
                self.packets
            );
            add("packets", &why);
        }
        if self.max_p == 0.0 {
            add("max_p", "with probability 0 nothing is dropped early");
        }
        if self.weight == Some(0.0) {
            add("weight", "with weight 0 the average never moves");
        }
        found.extend(some("mean_packet", self.mean_packet));
        found.extend(positive("target_delay", self.target_delay));
        found
    }
}

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
    /// Decay of the average after each number of steps, for typical pauses.
    fades: Box<[f64]>,
    /// The configuration, if the rate's changes matter.
    follows: Option<Box<Config>>,
    /// Last update of `max_p`, if it adapts.
    adapted: Option<Instant>,
    ecn: bool,
    ns2: bool,
    average: f64,
    /// Packets (in byte mode, of mean length) since the last drop or mark; none while the average is below
    /// `min`, which is −1 in the paper.
    count: Option<f64>,
}

/// Decision on an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Passes,
    /// Random; a mark suffices.
    Early,
    /// The average is too high for any packet.
    Forced,
}

impl Red {
    /// The interval of adaptation, the minimum and maximum `max_p`, and the factor of decrease (Floyd et al.
    /// 2001, figure 1).
    const INTERVAL: Duration = Duration::from_nanos(500_000_000);
    const LEAST: f64 = 0.01;
    const MOST: f64 = 0.5;
    const BETA: f64 = 0.9;
    /// Number of precomputed steps.
    const FADES: u32 = 32;

    /// A queue as configured, for a transmitter of this rate.
    #[must_use]
    pub fn new(words: &Config, rate: Rate, _: Size) -> Self {
        let mut queue = Self {
            waiting: VecDeque::new(),
            bytes: 0,
            limit: words.packets.into(),
            min: 0.0,
            max: 0.0,
            max_p: words.max_p,
            weight: 0.0,
            gentle: words.gentle,
            in_bytes: words.mode == Mode::Bytes,
            mean_bytes: words.mean_packet.as_bytes() as f64,
            step: Duration::MAX,
            fades: Box::default(),
            follows: words.follow_rate.then(|| Box::new(words.clone())),
            adapted: words.adaptive.then_some(Instant::ZERO),
            ecn: words.ecn,
            ns2: words.ns2,
            average: 0.0,
            count: None,
        };
        queue.suit(words, rate);
        queue
    }

    /// Sets what depends on the rate (Floyd et al. 2001 §5.1, §5.2).
    fn suit(&mut self, words: &Config, rate: Rate) {
        let mean = words.mean_packet.as_bytes();
        let per_second = rate.as_bps() as f64 / (8 * mean) as f64;
        let auto = || (words.target_delay.as_secs_f64() * per_second / 2.0).max(5.0);
        self.min = words.min_threshold.unwrap_or_else(auto);
        self.max = words.max_threshold.unwrap_or(3.0 * self.min);
        self.weight = words.weight.unwrap_or_else(|| 1.0 - math::exp(-1.0 / per_second));
        self.step = rate.time_for(mean).unwrap_or(Duration::MAX);
        let fade = |steps: u32| math::pow(1.0 - self.weight, steps.into());
        self.fades = (0..Self::FADES).map(fade).collect();
    }

    /// The average queue, in packets (in byte mode, of mean length).
    #[must_use]
    pub fn average(&self) -> f64 {
        self.average
    }

    /// The current drop probability below the upper threshold.
    #[must_use]
    pub fn max_p(&self) -> f64 {
        self.max_p
    }

    /// Bytes as packets of mean length.
    fn lengths(&self, bytes: u64) -> f64 {
        bytes as f64 / self.mean_bytes
    }

    /// The queue length, in the unit of the thresholds.
    fn length(&self) -> f64 {
        if self.in_bytes { self.lengths(self.bytes) } else { self.packets().into() }
    }

    /// Floyd and Jacobson 1993 §4: an average over arrivals; idle time counts as the small packets that could
    /// have arrived. ns-2.35 counts whole packet times, plus the arrival.
    #[inline]
    fn estimate(&mut self, now: Instant, free_at: Instant) {
        let pause = now.saturating_since(free_at);
        // A pause shorter than a packet does not change the average.
        if self.waiting.is_empty() && pause >= self.step {
            let missed = pause.as_nanos() / self.step.as_nanos().max(1);
            self.average *= match self.fades.get(missed as usize) {
                Some(fade) => *fade,
                None => math::pow(1.0 - self.weight, missed as f64),
            };
        }
        self.average += self.weight * (self.length() - self.average);
    }

    /// Floyd et al. 2001, figure 1: keeps the average within 0.4 and 0.6 of the way from `min` to `max`. Runs
    /// on packet arrival, like ns-2.
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

    /// The probability from the average alone.
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

    /// Decision on a packet that counts as `unit` packets.
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
        if self.adapted.is_some() {
            self.adapt(hop.now);
        }
        let unit = if self.in_bytes { self.lengths(packet.ip_bytes.into()) } else { 1.0 };
        let verdict = self.judge(unit, || hop.rng.unit());
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
        // Copied in place, in one piece.
        let Some(&packet) = self.waiting.front() else { return Served::Empty };
        self.waiting.pop_front();
        self.bytes -= u64::from(packet.ip_bytes);
        Served::Packet(packet)
    }
    fn set_rate(&mut self, rate: Rate) {
        if let Some(words) = self.follows.take() {
            self.suit(&words, rate);
            self.follows = Some(words);
        }
    }
    fn control(&self) -> Control {
        let top = if self.gentle { 2.0 * self.max } else { self.max };
        let p = match self.average {
            average if average < self.min => 0.0,
            average if average < top => self.p_b(),
            _ => 1.0,
        };
        Control {
            average_packets: Some(self.average),
            drop_probability: Some(p),
            ..Control::default()
        }
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
