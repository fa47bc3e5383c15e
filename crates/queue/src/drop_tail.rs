//! DropTail: first in, first out; arrivals that do not fit are dropped.

use std::collections::VecDeque;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{DropReason, Probe};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};

use crate::validate::{ConfigError, Validate, is_false, positive};
use crate::{Discipline, Hop, Served};

/// Limits of a DropTail queue; the packet in transmission does not count. At least one is required.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Limit in packets, 1 or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub packets: Option<u32>,
    /// Limit in bytes (of IP packets), 1B or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Size>,
    /// Limit as the time to send the queue at the link's `rate`, without link framing, above zero; it is
    /// converted to bytes once, and changes of the rate (`steps`, `trace`) do not change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
    /// Whether `time` is converted again at each change of the link's rate. Queued packets stay; arrivals are
    /// dropped until they fit. While the rate is 0, the limit is that of the rate before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub follow_rate: bool,
    /// Counts as ns-2.35: a queue of N `packets` holds N − 1, because `DropTail::enque` drops an arrival that
    /// would make the queue N long.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ns2: bool,
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packets = self.packets.map(|packets| format!("{packets} packets"));
        let bytes = self.bytes.map(|bytes| bytes.to_string());
        let follows = if self.follow_rate { " at the current rate" } else { "" };
        let time = self.time.map(|time| format!("{time}{follows}"));
        let limits: Vec<_> = [packets, bytes, time].into_iter().flatten().collect();
        write!(f, "DropTail {}", limits.join(", "))
    }
}

impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        let mut found = Vec::new();
        if self.packets.is_none() && self.bytes.is_none() && self.time.is_none() {
            let why = "a droptail queue needs a limit: `packets`, `bytes` or `time`";
            found.push(ConfigError::new("", why).hint("for example packets = 50"));
        }
        if self.bytes == Some(Size::from_bytes(0)) {
            let why =
                "a queue for 0 bytes drops all that must wait; give a packet's length or more";
            found.push(ConfigError::new("bytes", why));
        }
        found.extend(self.time.and_then(|time| positive("time", time)));
        if self.follow_rate && self.time.is_none() {
            let why = "without `time`, no limit depends on the rate";
            found.push(ConfigError::new("follow_rate", why));
        }
        if self.ns2 && self.packets.is_none_or(|packets| packets < 2) {
            let why = "a queue of N packets holds N − 1 in ns-2; give `packets`, 2 or more";
            found.push(ConfigError::new("ns2", why));
        }
        found
    }
}

/// First in, first out; arrivals that do not fit are dropped. The packet in transmission does not count.
#[derive(Debug)]
pub struct Droptail {
    waiting: VecDeque<Packet>,
    bytes: u64,
    limit_packets: u32,
    limit_bytes: u64,
    /// The limit in bytes from the configuration, and the one in time that follows the rate.
    follows: Option<(Option<Size>, Duration)>,
}

impl Droptail {
    /// A queue with these limits, for a transmitter of this rate.
    #[must_use]
    pub fn new(words: &Config, rate: Rate, _: Size) -> Self {
        let follows = words.time.filter(|_| words.follow_rate).map(|time| (words.bytes, time));
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            limit_packets: words.packets.map_or(u32::MAX, |packets| packets - u32::from(words.ns2)),
            limit_bytes: limit(words.bytes, words.time, rate),
            follows,
        }
    }
}

/// The lower of two limits, in bytes.
fn limit(bytes: Option<Size>, time: Option<Duration>, rate: Rate) -> u64 {
    let in_time = time.map_or(u64::MAX, |time| {
        let bits = u128::from(rate.as_bps()) * u128::from(time.as_nanos()) / 1_000_000_000;
        u64::try_from(bits / 8).unwrap_or(u64::MAX)
    });
    bytes.map_or(u64::MAX, Size::as_bytes).min(in_time)
}

impl Discipline for Droptail {
    #[inline]
    fn enqueue<P: Probe>(&mut self, packet: Packet, hop: &mut Hop<'_, P>) -> bool {
        let bytes = self.bytes + u64::from(packet.ip_bytes);
        if self.waiting.len() as u32 >= self.limit_packets || bytes > self.limit_bytes {
            hop.refuse(packet, DropReason::Full);
            return false;
        }
        self.bytes = bytes;
        self.waiting.push_back(packet);
        true
    }
    #[inline]
    fn dequeue<P: Probe>(&mut self, _: &mut Hop<'_, P>) -> Served {
        // Copied in place, in one piece.
        let Some(&packet) = self.waiting.front() else { return Served::Empty };
        self.waiting.pop_front();
        self.bytes -= u64::from(packet.ip_bytes);
        Served::Packet(packet)
    }
    fn set_rate(&mut self, rate: Rate) {
        if let Some((bytes, time)) = self.follows {
            self.limit_bytes = limit(bytes, Some(time), rate);
        }
    }
    #[inline]
    fn passes_when_idle(&self) -> bool {
        true
    }
    #[inline]
    fn packets(&self) -> u32 {
        self.waiting.len() as u32
    }
    #[inline]
    fn bytes(&self) -> u64 {
        self.bytes
    }
}
