//! A shaper: packets leave the queue only as fast as tokens arrive, in bursts limited by the depth of the
//! bucket. The next packet leaves the queue before its tokens are available, as in Linux' tbf, and is held
//! separately.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{Control, Probe};
use talkspurt_proto::units::{Rate, Size};

use crate::bucket::Bucket;
use crate::validate::{ConfigError, Validate};
use crate::{Discipline, Hop, Queue, Served};

/// A token bucket behind a queue: in any time t at most `burst` + `rate` · t leaves, in bytes of IP packets. It
/// moves the bottleneck to this queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Token rate, above zero; useful if below the link's rate.
    pub rate: Rate,
    /// Bytes that may leave at once, the link's MTU or more.
    pub burst: Size,
    /// Rate at which a burst leaves, packet by packet; `rate` or more. Absent: the link's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_rate: Option<Rate>,
    /// Queue for the packets.
    pub queue: Box<crate::Config>,
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; shaped to {}, {}", self.queue, self.rate, self.burst)
    }
}

impl Validate for Config {
    fn errors_for(&self, mtu: Size) -> Vec<ConfigError> {
        let mut found = Vec::new();
        if self.rate.as_bps() == 0 {
            found.push(ConfigError::new("rate", "no packet would ever leave"));
        }
        if self.burst < mtu {
            let why = format!("a packet of the link's MTU ({mtu}) never finds its tokens");
            found.push(ConfigError::new("burst", why));
        }
        if let Some(peak) = self.peak_rate.filter(|peak| *peak < self.rate) {
            let why = format!("{peak} is below rate ({})", self.rate);
            found.push(ConfigError::new("peak_rate", why));
        }
        found.extend(self.queue.errors_for(mtu).into_iter().map(|inner| inner.within("queue")));
        found
    }
}

/// A token bucket behind a queue.
#[derive(Debug)]
pub struct Shaper {
    bucket: Bucket,
    /// Bucket of the peak rate, as deep as the longest packet.
    peak: Option<Bucket>,
    queue: Box<Queue>,
    /// Taken from the queue, waiting for tokens.
    next: Option<Packet>,
}

impl Shaper {
    /// A shaper as configured, for a transmitter of this rate and MTU.
    #[must_use]
    pub fn new(config: &Config, rate: Rate, mtu: Size) -> Self {
        Self {
            bucket: Bucket::new(config.rate, config.burst),
            peak: config.peak_rate.map(|rate| Bucket::new(rate, mtu)),
            queue: Box::new(Queue::new(&config.queue, rate.min(config.rate), mtu)),
            next: None,
        }
    }
}

impl Discipline for Shaper {
    fn enqueue<P: Probe>(&mut self, packet: Packet, hop: &mut Hop<'_, P>) -> bool {
        let free_at = hop.free_at;
        if let Some(next) = &self.next {
            // The queue is not idle while a packet taken from it waits for tokens.
            hop.free_at = free_at.max(self.bucket.ready(next.ip_bytes));
        }
        let kept = self.queue.enqueue(packet, hop);
        hop.free_at = free_at;
        kept
    }
    fn dequeue<P: Probe>(&mut self, hop: &mut Hop<'_, P>) -> Served {
        let next = match self.next.take() {
            Some(packet) => packet,
            None => match self.queue.dequeue(hop) {
                Served::Packet(packet) => packet,
                other => return other,
            },
        };
        let bytes = next.ip_bytes;
        let mut ready = hop.now;
        for bucket in [Some(&mut self.bucket), self.peak.as_mut()].into_iter().flatten() {
            bucket.fill(hop.now);
            ready = ready.max(bucket.ready(bytes));
        }
        if ready > hop.now {
            self.next = Some(next);
            return Served::Wait(ready);
        }
        self.bucket.take(bytes);
        self.peak.iter_mut().for_each(|peak| peak.take(bytes));
        Served::Packet(next)
    }
    /// Every packet takes tokens.
    fn passes_when_idle(&self) -> bool {
        false
    }
    fn set_rate(&mut self, rate: Rate) {
        self.queue.set_rate(rate.min(self.bucket.rate()));
    }
    fn packets(&self) -> u32 {
        self.queue.packets() + u32::from(self.next.is_some())
    }
    fn bytes(&self) -> u64 {
        self.queue.bytes() + self.next.as_ref().map_or(0, |next| u64::from(next.ip_bytes))
    }
    fn control(&self) -> Control {
        Control { tokens_bytes: Some(self.bucket.level_bytes()), ..self.queue.control() }
    }
}
