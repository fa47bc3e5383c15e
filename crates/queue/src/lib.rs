//! Queue disciplines: which packets are queued, sent next, dropped or marked.
//!
//! A discipline is a file here: its configuration ([`Validate`]) and its implementation ([`Discipline`]);
//! a `mod` and one line in `disciplines!` register it. The only way to drop a packet is
//! [`Hop::refuse`], so every drop is counted; the only way to mark one is [`Hop::mark`], so every mark is
//! counted. `docs/adding-a-queue.md` adds a discipline step by step.

// Lets the file in `docs/adding-a-queue.md` compile unchanged both here and as a test.
extern crate self as talkspurt_queue;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-queue.md")]
mod adding_a_queue {}

mod bucket;
pub mod codel;
pub mod drop_tail;
pub mod dualpi2;
pub mod fq_codel;
pub mod pie;
pub mod policer;
pub mod pool;
pub mod priority;
pub mod red;
pub mod shaper;
mod validate;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::packet::{Ecn, Packet};
use talkspurt_proto::probe::{Control, DropReason, Note, Place, Probe, Topic};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::Instant;
use talkspurt_proto::units::{Rate, Size};

use crate::pool::Pool;

pub use dualpi2::Dualpi2;
pub use pie::Pie;
pub use red::Red;
pub use validate::{ConfigError, Validate};

/// What a discipline may access when it handles a packet.
#[derive(Debug)]
pub struct Hop<'a, P> {
    /// True time.
    pub now: Instant,
    /// The link.
    pub place: Place,
    /// Bodies of the packets.
    pub pool: &'a mut Pool,
    /// The observer.
    pub probe: &'a mut P,
    /// Rng of the discipline.
    pub rng: &'a mut Rng,
    /// Counts drops by reason.
    pub drops: &'a mut [u64; DropReason::COUNT],
    /// Counts marks.
    pub marks: &'a mut u64,
    /// When the transmitter is free, or became free if that is past.
    pub free_at: Instant,
}

impl<P: Probe> Hop<'_, P> {
    /// Drops a packet.
    pub fn refuse(&mut self, packet: Packet, why: DropReason) {
        self.drops[why as usize] += 1;
        if self.probe.wants(Topic::Drop) {
            self.probe.record(self.now, self.place, &Note::Dropped { packet: &packet, why });
        }
        self.pool.release(packet.body);
    }

    /// Marks a packet with Congestion Experienced; false if it is not ECN-capable and must be dropped instead
    /// (RFC 3168 §5).
    pub fn mark(&mut self, packet: &mut Packet) -> bool {
        if packet.ecn == Ecn::NotEct {
            return false;
        }
        packet.ecn = Ecn::Ce;
        *self.marks += 1;
        if self.probe.wants(Topic::Drop) {
            self.probe.record(self.now, self.place, &Note::Marked { packet });
        }
        true
    }
}

/// What a discipline returns to the transmitter. It has an explicit tag: with a niche in the label, the
/// compiler splits the label, and reassembling it stalls.
#[derive(Debug)]
#[repr(u8)]
pub enum Served {
    /// This packet is sent.
    Packet(Packet),
    /// No packet before this instant (shapers).
    Wait(Instant),
    /// The queue is empty.
    Empty,
}

/// A queue discipline.
pub trait Discipline {
    /// A packet arrives; true if it is kept, false if it is refused. Other packets may be dropped to keep it.
    fn enqueue<P: Probe>(&mut self, packet: Packet, hop: &mut Hop<'_, P>) -> bool;
    /// The transmitter is free.
    fn dequeue<P: Probe>(&mut self, hop: &mut Hop<'_, P>) -> Served;
    /// The transmitter's rate is another from now on, above zero. Queued packets stay.
    fn set_rate(&mut self, _: Rate) {}
    /// Whether a packet that finds the queue empty and the transmitter idle bypasses the discipline; constant.
    fn passes_when_idle(&self) -> bool;
    /// Queued packets.
    fn packets(&self) -> u32;
    /// Queued bytes.
    fn bytes(&self) -> u64;
    /// The state of the controller, for the record.
    fn control(&self) -> Control {
        Control::default()
    }
}

macro_rules! disciplines {
    ($($(#[$doc:meta])* $name:ident($file:ident),)*) => {
        /// A queue discipline.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        #[schemars(rename = "Queue")]
        pub enum Config {
            $($(#[$doc])* $name($file::Config),)*
        }

        /// Any discipline, with static dispatch.
        #[derive(Debug)]
        #[repr(u8)]
        pub enum Queue {
            $($(#[$doc])* $name($file::$name),)*
        }

        impl Queue {
            /// The configured queue, for a transmitter of this rate and MTU.
            #[must_use]
            pub fn new(config: &Config, rate: Rate, mtu: Size) -> Self {
                match config {
                    $(Config::$name(config) => Self::$name($file::$name::new(config, rate, mtu)),)*
                }
            }
        }

        impl Validate for Config {
            fn errors_for(&self, mtu: Size) -> Vec<ConfigError> {
                match self {
                    $(Self::$name(config) => config.errors_for(mtu),)*
                }
            }
        }

        impl fmt::Display for Config {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name(config) => config.fmt(f),)*
                }
            }
        }

        macro_rules! dispatch {
            ($queue:expr, $q:ident => $call:expr) => {
                match $queue {
                    $(Queue::$name($q) => $call,)*
                }
            };
        }
    };
}

disciplines! {
    /// First in, first out; arrivals that do not fit are dropped.
    Droptail(drop_tail),
    /// Random early detection (Floyd and Jacobson 1993).
    Red(red),
    /// Controlled delay (RFC 8289).
    Codel(codel),
    /// A CoDel queue per flow, served round robin (RFC 8290).
    FqCodel(fq_codel),
    /// Proportional integral controller, enhanced (RFC 8033).
    Pie(pie),
    /// A low-latency queue and a classic one, coupled (RFC 9332).
    Dualpi2(dualpi2),
    /// Strict priority between classes of code points (RFC 2474).
    Priority(priority),
    /// A token bucket that drops or re-marks the excess, before a queue (RFC 2697, 2698).
    Policer(policer),
    /// A token bucket that delays the excess, behind a queue (RFC 2475 §2.3.3.3).
    Shaper(shaper),
}

impl Config {
    /// Of each limit that is computed from the rate of a link of this `rate`: the rate that counts, and whether
    /// it follows changes.
    #[must_use]
    pub fn rate_limits(&self, rate: Rate) -> Vec<(Rate, bool)> {
        match self {
            Self::Droptail(own) => own.time.map(|_| (rate, own.follow_rate)).into_iter().collect(),
            Self::Red(own) => {
                let computed = own.min_threshold.is_none() || own.weight.is_none();
                let limit = (computed || own.follow_rate).then_some((rate, own.follow_rate));
                limit.into_iter().collect()
            }
            Self::Codel(_) | Self::FqCodel(_) | Self::Pie(_) | Self::Dualpi2(_) => Vec::new(),
            Self::Priority(own) => {
                own.bands.iter().flat_map(|band| band.queue.rate_limits(rate)).collect()
            }
            Self::Policer(own) => own.queue.rate_limits(rate),
            Self::Shaper(own) => own.queue.rate_limits(rate.min(own.rate)),
        }
    }
}

impl Discipline for Queue {
    #[inline(always)]
    fn enqueue<P: Probe>(&mut self, packet: Packet, hop: &mut Hop<'_, P>) -> bool {
        dispatch!(self, queue => queue.enqueue(packet, hop))
    }
    #[inline(always)]
    fn dequeue<P: Probe>(&mut self, hop: &mut Hop<'_, P>) -> Served {
        dispatch!(self, queue => queue.dequeue(hop))
    }
    fn set_rate(&mut self, rate: Rate) {
        dispatch!(self, queue => queue.set_rate(rate));
    }
    #[inline]
    fn passes_when_idle(&self) -> bool {
        dispatch!(self, queue => queue.passes_when_idle())
    }
    #[inline]
    fn packets(&self) -> u32 {
        dispatch!(self, queue => queue.packets())
    }
    #[inline]
    fn bytes(&self) -> u64 {
        dispatch!(self, queue => queue.bytes())
    }
    fn control(&self) -> Control {
        dispatch!(self, queue => queue.control())
    }
}
