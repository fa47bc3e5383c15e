//! Queue disciplines: who may wait for a transmitter, who goes next, and who is dropped or marked.
//!
//! A discipline is a file here: its configuration ([`Validate`]) and its implementation ([`Discipline`]);
//! a `mod` and one line in `disciplines!` register it. The only way to drop a packet is
//! [`Hop::refuse`], so none can vanish; the only way to mark one is [`Hop::mark`], so each is counted.
//! `docs/adding-a-queue.md` adds one step by step.

// So that the file in `docs/adding-a-queue.md` reads the same here and as the test that compiles it.
extern crate self as talkspurt_queue;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-queue.md")]
mod adding_a_queue {}

mod bucket;
pub mod codel;
pub mod drop_tail;
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

pub use pie::Pie;
pub use red::Red;
pub use validate::{ConfigError, Validate};

/// What a discipline may touch at one packet's turn.
#[derive(Debug)]
pub struct Hop<'a, P> {
    /// True time.
    pub now: Instant,
    /// The link this is.
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
    /// From when on the transmitter is free, or has been if that is past.
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

    /// Marks a packet with Congestion Experienced; false if its ends do not understand that, so
    /// that it must be dropped instead (RFC 3168 §5).
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

/// What a discipline gives the transmitter. It has a tag of its own: one hidden in the label's takes the
/// label apart, and to put it together again stalls.
#[derive(Debug)]
#[repr(u8)]
pub enum Served {
    /// This packet goes.
    Packet(Packet),
    /// None before this instant (shapers).
    Wait(Instant),
    /// Nothing waits.
    Empty,
}

/// A queue discipline.
pub trait Discipline {
    /// A packet arrives; it is kept (true) or refused. What else is dropped to keep it is no matter.
    fn enqueue<P: Probe>(&mut self, packet: Packet, hop: &mut Hop<'_, P>) -> bool;
    /// The transmitter is free.
    fn dequeue<P: Probe>(&mut self, hop: &mut Hop<'_, P>) -> Served;
    /// Whether a packet that finds the queue empty and the transmitter idle passes unseen; the same
    /// for all its life.
    fn passes_when_idle(&self) -> bool;
    /// Packets waiting.
    fn packets(&self) -> u32;
    /// Bytes waiting.
    fn bytes(&self) -> u64;
    /// What it makes of the queue by now, for the record.
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

        /// Any discipline, without a virtual call.
        #[derive(Debug)]
        #[repr(u8)]
        pub enum Queue {
            $($(#[$doc])* $name($file::$name),)*
        }

        impl Queue {
            /// The queue that a scenario asks for, before a transmitter of this rate and MTU.
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
    /// First in, first out, dropping what does not fit.
    Droptail(drop_tail),
    /// Random early detection (Floyd and Jacobson 1993).
    Red(red),
    /// Controlled delay (RFC 8289).
    Codel(codel),
    /// A queue with controlled delay for each flow, served in turns (RFC 8290).
    FqCodel(fq_codel),
    /// Proportional integral controller, enhanced (RFC 8033).
    Pie(pie),
    /// Strict priority between classes by their code points (RFC 2474).
    Priority(priority),
    /// A token bucket that drops or re-marks what exceeds it, before a queue (RFC 2697, 2698).
    Policer(policer),
    /// A token bucket that delays what exceeds it, behind a queue (RFC 2475 §2.3.3.3).
    Shaper(shaper),
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
