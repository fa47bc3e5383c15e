//! A policer: a meter of one or two token buckets colours each arrival green, yellow or red like the
//! single-rate (RFC 2697) or two-rate three colour marker (RFC 2698), in colour-blind mode. Red packets are
//! dropped or re-marked; the others enter the queue behind it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{Control, DropReason, Probe};
use talkspurt_proto::time::Instant;
use talkspurt_proto::units::{Rate, Size};

use crate::bucket::Bucket;
use crate::validate::{ConfigError, Validate, some};
use crate::{Discipline, Hop, Queue, Served};

/// A meter before a queue. Bytes are those of IP packets. With only `rate` and `burst`, a packet is green or
/// red; `excess_burst` (RFC 2697), or `peak_rate` and `peak_burst` (RFC 2698), add yellow in between.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Token rate, above zero (RFC 2697: CIR, committed information rate).
    pub rate: Rate,
    /// Burst in bytes, 1B or more (RFC 2697: CBS, committed burst size).
    pub burst: Size,
    /// Further bytes, saved while the bucket of `burst` is full (RFC 2697: EBS, excess burst size); packets
    /// that use them are yellow. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess_burst: Option<Size>,
    /// Packets above this rate are red, those between it and `rate` yellow; `rate` or more (RFC 2698: PIR, peak
    /// information rate). Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_rate: Option<Rate>,
    /// Burst in bytes at `peak_rate`; required with it (RFC 2698: PBS, peak burst size).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_burst: Option<Size>,
    /// Code point written into yellow packets. Absent: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 63))]
    pub yellow_dscp: Option<u8>,
    /// Code point written into red packets. Absent: they are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 63))]
    pub red_dscp: Option<u8>,
    /// Queue for the packets that are not dropped.
    pub queue: Box<crate::Config>,
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policed to {}, {}; {}", self.rate, self.burst, self.queue)
    }
}

impl Validate for Config {
    fn errors_for(&self, mtu: Size) -> Vec<ConfigError> {
        let mut found = Vec::new();
        if self.rate.as_bps() == 0 {
            found.push(ConfigError::new("rate", "no tokens would ever come"));
        }
        let sizes =
            [("excess_burst", self.excess_burst), ("peak_burst", self.peak_burst)].into_iter();
        found.extend(some("burst", self.burst));
        found.extend(sizes.filter_map(|(key, size)| some(key, size?)));
        match (self.peak_rate, self.peak_burst) {
            (Some(_), None) => {
                found.push(ConfigError::new("peak_burst", "missing beside peak_rate"))
            }
            (None, Some(_)) => {
                found.push(ConfigError::new("peak_rate", "missing beside peak_burst"))
            }
            (Some(peak), Some(_)) if peak < self.rate => {
                let why = format!("{peak} is below rate ({})", self.rate);
                found.push(ConfigError::new("peak_rate", why));
            }
            _ => {}
        }
        if self.excess_burst.is_some() && self.peak_rate.is_some() {
            let why = "a meter has an excess burst (RFC 2697) or a peak rate (RFC 2698), not both";
            found.push(ConfigError::new("excess_burst", why));
        }
        if self.yellow_dscp.is_some() && self.excess_burst.is_none() && self.peak_rate.is_none() {
            let why = "without excess_burst or peak_rate no packet is yellow";
            found.push(ConfigError::new("yellow_dscp", why));
        }
        found.extend(self.queue.errors_for(mtu).into_iter().map(|inner| inner.within("queue")));
        found
    }
}

/// The colour of a metered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    Green,
    Yellow,
    Red,
}

/// The bucket besides that of the committed rate.
#[derive(Debug)]
enum Second {
    None,
    /// Filled by the overflow of the first (RFC 2697 §3).
    Excess(Bucket),
    /// With its own rate (RFC 2698 §3).
    Peak(Bucket),
}

/// A meter that drops or re-marks, before a queue.
#[derive(Debug)]
pub struct Policer {
    committed: Bucket,
    second: Second,
    yellow_dscp: Option<u8>,
    red_dscp: Option<u8>,
    queue: Box<Queue>,
}

impl Policer {
    /// A meter as configured, before a queue for a transmitter of this rate and MTU.
    #[must_use]
    pub fn new(config: &Config, rate: Rate, mtu: Size) -> Self {
        let second = match (config.excess_burst, config.peak_rate, config.peak_burst) {
            (Some(burst), ..) => Second::Excess(Bucket::new(Rate::from_bps(0), burst)),
            (None, Some(rate), Some(burst)) => Second::Peak(Bucket::new(rate, burst)),
            _ => Second::None,
        };
        Self {
            committed: Bucket::new(config.rate, config.burst),
            second,
            yellow_dscp: config.yellow_dscp,
            red_dscp: config.red_dscp,
            queue: Box::new(Queue::new(&config.queue, rate, mtu)),
        }
    }

    /// RFC 2697 §3 and RFC 2698 §3, colour-blind.
    fn colour(&mut self, now: Instant, bytes: u32) -> Colour {
        let over = self.committed.fill(now);
        let is_green = self.committed.holds(bytes);
        let colour = match &mut self.second {
            Second::None if is_green => Colour::Green,
            Second::None => Colour::Red,
            Second::Excess(excess) => {
                excess.add(over);
                if is_green {
                    Colour::Green
                } else if excess.holds(bytes) {
                    excess.take(bytes);
                    Colour::Yellow
                } else {
                    Colour::Red
                }
            }
            Second::Peak(peak) => {
                peak.fill(now);
                if !peak.holds(bytes) {
                    return Colour::Red;
                }
                peak.take(bytes);
                if is_green { Colour::Green } else { Colour::Yellow }
            }
        };
        if colour == Colour::Green {
            self.committed.take(bytes);
        }
        colour
    }
}

impl Discipline for Policer {
    fn enqueue<P: Probe>(&mut self, mut packet: Packet, hop: &mut Hop<'_, P>) -> bool {
        let dscp = match self.colour(hop.now, packet.ip_bytes) {
            Colour::Green => None,
            Colour::Yellow => self.yellow_dscp,
            Colour::Red if self.red_dscp.is_none() => {
                hop.refuse(packet, DropReason::Early);
                return false;
            }
            Colour::Red => self.red_dscp,
        };
        packet.dscp = dscp.unwrap_or(packet.dscp);
        self.queue.enqueue(packet, hop)
    }
    fn dequeue<P: Probe>(&mut self, hop: &mut Hop<'_, P>) -> Served {
        self.queue.dequeue(hop)
    }
    /// Every packet is metered.
    fn passes_when_idle(&self) -> bool {
        false
    }
    fn set_rate(&mut self, rate: Rate) {
        self.queue.set_rate(rate);
    }
    fn packets(&self) -> u32 {
        self.queue.packets()
    }
    fn bytes(&self) -> u64 {
        self.queue.bytes()
    }
    fn control(&self) -> Control {
        Control { tokens_bytes: Some(self.committed.level_bytes()), ..self.queue.control() }
    }
}
