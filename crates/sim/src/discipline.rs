//! Queue disciplines: who may wait for the transmitter, and who goes next.
//!
//! A new discipline is a struct with [`Discipline`], a variant of [`Queue`] and a line in
//! `dispatch!`. The only way to drop a packet is [`Hop::refuse`], so none can vanish.

use std::collections::VecDeque;

use talkspurt_proto::dice::Dice;
use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{DropReason, Note, Place, Probe, Topic};
use talkspurt_proto::time::Instant;

use crate::pool::Pool;

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

/// First in, first out; what does not fit is dropped on arrival. The packet in transmission does
/// not count.
#[derive(Debug)]
pub struct DropTail {
    waiting: VecDeque<Packet>,
    bytes: u64,
    limit_packets: u32,
    limit_bytes: u64,
}

impl DropTail {
    /// A queue of at most this many packets and bytes (of IP packets); `None` is no limit.
    #[must_use]
    pub fn new(packets: Option<u32>, bytes: Option<u64>) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            limit_packets: packets.unwrap_or(u32::MAX),
            limit_bytes: bytes.unwrap_or(u64::MAX),
        }
    }
}

impl Discipline for DropTail {
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
        let Some(packet) = self.waiting.pop_front() else { return Served::Empty };
        self.bytes -= u64::from(packet.ip_bytes);
        Served::Packet(packet)
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

/// Any discipline, without a virtual call.
#[derive(Debug)]
pub enum Queue {
    /// DropTail.
    DropTail(DropTail),
}

macro_rules! dispatch {
    ($queue:expr, $q:ident => $call:expr) => {
        match $queue {
            Queue::DropTail($q) => $call,
        }
    };
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
