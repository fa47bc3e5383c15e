//! Queue disciplines: who may wait for the transmitter, and who goes next.
//!
//! A new discipline is a file here: a struct with [`Discipline`] and a `new` that reads its words in
//! the scenario; it gets one line in `disciplines!`. The only way to drop a packet is
//! [`Hop::refuse`], so none can vanish; the only way to mark one is [`Hop::mark`], so each is
//! counted.

mod codel;
mod drop_tail;
mod fq_codel;
mod pie;
mod red;

use talkspurt_proto::dice::Dice;
use talkspurt_proto::packet::{Ecn, Packet};
use talkspurt_proto::probe::{DropReason, Note, Place, Probe, Topic};
use talkspurt_proto::time::Instant;
use talkspurt_proto::units::{Rate, Size};
use talkspurt_scenario::model;

use crate::pool::Pool;

pub use codel::Codel;
pub use drop_tail::DropTail;
pub use fq_codel::FqCodel;
pub use pie::Pie;
pub use red::Red;

/// What a discipline may touch at one packet's turn.
#[derive(Debug)]
pub struct Hop<'a, P> {
    /// True time.
    pub now: Instant,
    /// The link this is.
    pub place: Place,
    /// Bodies of the packets.
    pub pool: &'a mut Pool,
    /// Who looks on.
    pub probe: &'a mut P,
    /// Dice of the discipline.
    pub dice: &'a mut Dice,
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
        self.pool.take(packet.body);
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

/// What a discipline gives the transmitter.
#[derive(Debug)]
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
    /// Whether a packet that finds the queue empty and the transmitter idle passes unseen.
    fn passes_when_idle(&self) -> bool;
    /// Packets waiting.
    fn packets(&self) -> u32;
    /// Bytes waiting.
    fn bytes(&self) -> u64;
}

macro_rules! disciplines {
    ($($(#[$doc:meta])* $name:ident <- $words:ident,)*) => {
        /// Any discipline, without a virtual call.
        #[derive(Debug)]
        pub enum Queue {
            $($(#[$doc])* $name($name),)*
        }

        impl Queue {
            /// The queue that a scenario asks for, before a transmitter of this rate and MTU.
            #[must_use]
            pub fn new(words: &model::Queue, rate: Rate, mtu: Size) -> Self {
                match words {
                    $(model::Queue::$words(words) => Self::$name($name::new(words, rate, mtu)),)*
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
    /// First in, first out.
    DropTail <- Droptail,
    /// Random early detection.
    Red <- Red,
    /// Controlled delay.
    Codel <- Codel,
    /// Controlled delay of each flow by itself.
    FqCodel <- FqCodel,
    /// Proportional integral controller, enhanced.
    Pie <- Pie,
}

impl Discipline for Queue {
    #[inline]
    fn enqueue<P: Probe>(&mut self, packet: Packet, hop: &mut Hop<'_, P>) -> bool {
        dispatch!(self, queue => queue.enqueue(packet, hop))
    }
    #[inline]
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
}
