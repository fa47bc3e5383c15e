//! CoDel: controlled delay (RFC 8289). Names follow the pseudocode of §5.

use std::collections::VecDeque;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{Control, DropReason, Probe};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};

use crate::validate::{ConfigError, Validate, is_false, positive};
use crate::{Discipline, Hop, Served};

/// Controlled delay: once packets have waited longer than `target` for an `interval`, one is dropped from the
/// head, and others after interval/√2, interval/√3 … until the delay is below the target again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Queue limit in packets, 1 or more.
    #[schemars(range(min = 1))]
    pub packets: u32,
    /// Acceptable standing delay, above zero (RFC 8289 §4.3).
    pub target: Duration,
    /// On the order of the longest usual round-trip time, longer than `target` (RFC 8289 §4.2).
    pub interval: Duration,
    /// Whether ECN-capable packets are marked instead of dropped.
    #[serde(skip_serializing_if = "is_false")]
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            packets: 1000,
            target: Duration::from_nanos(5_000_000),
            interval: Duration::from_nanos(100_000_000),
            ecn: false,
        }
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CoDel {}, {}", self.target, self.interval)
    }
}

impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        law_fits(self.target, self.interval)
    }
}

/// Checks the target and the interval of a control law.
pub(super) fn law_fits(target: Duration, interval: Duration) -> Vec<ConfigError> {
    let mut found = Vec::new();
    found.extend(positive("target", target));
    found.extend(positive("interval", interval));
    if interval <= target && !interval.is_zero() {
        let why = format!("{interval} is not longer than target ({target})");
        let hint = "the target is 5 to 10% of the interval (RFC 8289 §4.3)";
        found.push(ConfigError::new("interval", why).hint(hint));
    }
    found
}

/// Parameters of the control law, the same for every queue under it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    pub(super) target: Duration,
    pub(super) interval: Duration,
    /// A queue of at most this many bytes is never too long (`maxpacket_`); here the link's MTU.
    pub(super) max_packet: u64,
    pub(super) ecn: bool,
}

impl Law {
    /// RFC 8289 §5.6: the next drop comes interval/√count after the last.
    fn next(&self, last: Instant, count: u32) -> Instant {
        let nanos = self.interval.as_nanos() as f64 / f64::from(count).sqrt();
        last + Duration::from_nanos(nanos as u64)
    }
}

/// An unlimited queue under the control law.
#[derive(Debug, Default)]
pub(super) struct Lane {
    waiting: VecDeque<(Instant, Packet)>,
    pub(super) bytes: u64,
    /// When the delay will have exceeded the target for an interval; `None` while it is below.
    first_above: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    count: u32,
    last_count: u32,
}

impl Lane {
    pub(super) fn push(&mut self, now: Instant, packet: Packet) {
        self.bytes += u64::from(packet.ip_bytes);
        self.waiting.push_back((now, packet));
    }

    pub(super) fn pop(&mut self) -> Option<(Instant, Packet)> {
        let (since, packet) = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.ip_bytes);
        Some((since, packet))
    }

    pub(super) fn packets(&self) -> u32 {
        self.waiting.len() as u32
    }

    /// Drops per second under the control law.
    pub(super) fn drops_per_second(&self, law: &Law) -> f64 {
        if !self.dropping {
            return 0.0;
        }
        f64::from(self.count).sqrt() / law.interval.as_secs_f64()
    }

    /// RFC 8289 §5.6, `dodequeue`: the head, and whether it may be dropped.
    fn head(&mut self, now: Instant, law: &Law) -> (Option<Packet>, bool) {
        let Some((since, packet)) = self.pop() else {
            self.first_above = None;
            return (None, false);
        };
        if now - since < law.target || self.bytes <= law.max_packet {
            self.first_above = None;
            return (Some(packet), false);
        }
        let first_above = *self.first_above.get_or_insert(now + law.interval);
        (Some(packet), now >= first_above)
    }

    /// RFC 8289 §5.5, `dequeue`. A mark replaces a drop, and the marked packet is sent (§3, and as in Linux).
    pub(super) fn dequeue<P: Probe>(&mut self, law: &Law, hop: &mut Hop<'_, P>) -> Option<Packet> {
        let now = hop.now;
        let (mut head, mut may_drop) = self.head(now, law);
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                let marked = law.ecn && head.as_mut().is_some_and(|packet| hop.mark(packet));
                if !marked {
                    head.into_iter().for_each(|packet| hop.refuse(packet, DropReason::Early));
                    (head, may_drop) = self.head(now, law);
                    self.dropping = may_drop;
                }
                if self.dropping {
                    self.drop_next = law.next(self.drop_next, self.count);
                }
                if marked {
                    break;
                }
            }
        } else if may_drop {
            let marked = law.ecn && head.as_mut().is_some_and(|packet| hop.mark(packet));
            if !marked {
                head.into_iter().for_each(|packet| hop.refuse(packet, DropReason::Early));
                (head, _) = self.head(now, law);
            }
            self.dropping = true;
            // Soon after the last dropping state, resume at about the rate that sufficed then.
            let delta = self.count - self.last_count;
            let is_soon = now < self.drop_next + law.interval * 16;
            self.count = if delta > 1 && is_soon { delta } else { 1 };
            self.drop_next = law.next(now, self.count);
            self.last_count = self.count;
        }
        head
    }
}

/// Controlled delay.
#[derive(Debug)]
pub struct Codel {
    lane: Lane,
    law: Law,
    limit: u32,
}

impl Codel {
    /// A queue as configured, for a link of this MTU.
    #[must_use]
    pub fn new(words: &Config, _: Rate, mtu: Size) -> Self {
        let Config { target, interval, ecn, packets } = *words;
        let law = Law { target, interval, ecn, max_packet: mtu.as_bytes() };
        Self { lane: Lane::default(), law, limit: packets }
    }
}

impl Discipline for Codel {
    fn enqueue<P: Probe>(&mut self, packet: Packet, hop: &mut Hop<'_, P>) -> bool {
        if self.lane.packets() >= self.limit {
            hop.refuse(packet, DropReason::Full);
            return false;
        }
        self.lane.push(hop.now, packet);
        true
    }
    fn dequeue<P: Probe>(&mut self, hop: &mut Hop<'_, P>) -> Served {
        self.lane.dequeue(&self.law, hop).map_or(Served::Empty, Served::Packet)
    }
    /// A packet that does not wait ends the dropping state.
    fn passes_when_idle(&self) -> bool {
        false
    }
    fn control(&self) -> Control {
        let rate = self.lane.drops_per_second(&self.law);
        Control { drops_per_second: Some(rate), ..Control::default() }
    }
    fn packets(&self) -> u32 {
        self.lane.packets()
    }
    fn bytes(&self) -> u64 {
        self.lane.bytes
    }
}
