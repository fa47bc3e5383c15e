//! One direction of a link: a queue, a transmitter and a medium, serving late.
//!
//! A link does no event of its own when a transmission ends. Before each arrival, each delivery
//! and each sample, [`Link::advance`] performs every dequeue whose turn has come, in order, each at
//! its own instant; departures precede arrivals at equal times. A hop is then one event, for any
//! work-conserving discipline, with the same result as two events a hop.
//!
//! The medium holds packets in order of arrival. Where they may overtake, what still waits could
//! arrive before what flies: nothing leaves before the transmitter is free and nothing crosses in
//! less than the least delay, so the link also looks again when both have passed. That is no further
//! event as long as the next arrival comes first, and else at most one in the least delay.

use std::collections::VecDeque;

use talkspurt_proto::dice::Dice;
use talkspurt_proto::packet::{Packet, Quote};
use talkspurt_proto::probe::{DropReason, LinkCounters, Note, Place, Probe, Topic, UNNUMBERED};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_scenario::model::Framing;

use crate::capacity::Capacity;
use crate::discipline::{Discipline, Hop, Queue, Served};
use crate::medium::Medium;
use crate::pool::Pool;

/// What a link is made of.
#[derive(Debug)]
pub struct Parts {
    /// Its index, for notes.
    pub index: u32,
    /// What waits.
    pub queue: Queue,
    /// How fast it sends.
    pub capacity: Capacity,
    /// Propagation delay.
    pub delay: Duration,
    /// Bound of the further delay drawn for each packet; order is kept unless the medium lets it go.
    pub jitter: Duration,
    /// Bytes added per packet.
    pub framing: Framing,
    /// Longest IP packet.
    pub mtu: u32,
    /// Probability of loss on the medium.
    pub loss: f64,
    /// Dice of the medium.
    pub dice: Dice,
    /// Dice of the jitter.
    pub jitter_dice: Dice,
    /// Dice of the queue's discipline.
    pub queue_dice: Dice,
    /// What the medium does besides; then the loss is its business.
    pub medium: Option<Box<Medium>>,
}

/// A working link.
#[derive(Debug)]
pub struct Link {
    parts: Parts,
    up: bool,
    /// Packets in the queue: asked after each change, not each time.
    waiting: u32,
    /// Whether a packet that need not wait passes the queue unseen.
    passes_when_idle: bool,
    /// The medium only delays, the same for each packet.
    is_plain: bool,
    /// The transmitter is free from this instant on.
    free_at: Instant,
    /// A shaper's next turn, if its queue said so.
    wait_until: Option<Instant>,
    /// Packets on the medium with their arrivals, in order.
    flight: VecDeque<(Instant, Packet)>,
    counters: LinkCounters,
    queue_since: Instant,
    /// Copies of packets that the medium made.
    copies: u64,
}

/// What happens to a packet offered to a link.
#[derive(Debug)]
pub enum Offered {
    /// It waits or flies, or was refused by the queue.
    Taken,
    /// The same, and what the link next wakes for stays what it was.
    Behind,
    /// It is longer than the MTU: gone, and its sender is to be told.
    TooBig(Packet, Quote),
}

impl Link {
    /// A link that is up and empty.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let is_plain = parts.medium.is_none() && parts.loss == 0.0 && parts.jitter.is_zero();
        Self {
            waiting: 0,
            passes_when_idle: parts.queue.passes_when_idle(),
            is_plain,
            parts,
            up: true,
            free_at: Instant::ZERO,
            wait_until: None,
            flight: VecDeque::new(),
            counters: LinkCounters::default(),
            queue_since: Instant::ZERO,
            copies: 0,
        }
    }

    /// Longest IP packet it takes.
    #[must_use]
    pub fn mtu(&self) -> u32 {
        self.parts.mtu
    }

    /// When it wants to be woken: the next arrival at its far end, or the turn of what waits.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        match self.flight.front() {
            Some((arrival, _)) => match &self.parts.medium {
                Some(medium) if medium.reorder => Some(self.overtaken(*arrival, medium)),
                _ => Some(*arrival),
            },
            None if self.up && self.waiting > 0 => Some(self.wait_until.unwrap_or(self.free_at)),
            None => None,
        }
    }

    /// The next arrival, or when what still waits could arrive at the earliest.
    fn overtaken(&self, arrival: Instant, medium: &Medium) -> Instant {
        if !self.up || self.waiting == 0 {
            return arrival;
        }
        arrival.min(self.wait_until.unwrap_or(self.free_at) + medium.least_delay)
    }

    /// Performs every dequeue whose turn is at or before `now`.
    #[inline]
    pub fn advance<P: Probe>(&mut self, now: Instant, pool: &mut Pool, probe: &mut P) {
        if self.waiting > 0 && self.free_at <= now && self.up {
            self.serve(now, pool, probe);
        }
    }

    /// [`Link::advance`], where something waits.
    #[inline(never)]
    fn serve<P: Probe>(&mut self, now: Instant, pool: &mut Pool, probe: &mut P) {
        while self.waiting > 0 && self.free_at <= now {
            // What waited for its turn when the link went down goes no earlier than it came up.
            let turn = self.wait_until.take().map_or(self.free_at, |turn| turn.max(self.free_at));
            if turn > now {
                self.wait_until = Some(turn);
                return;
            }
            self.note_queue(turn);
            let mut hop = Hop {
                now: turn,
                place: Place::Link(self.parts.index),
                pool: &mut *pool,
                probe: &mut *probe,
                dice: &mut self.parts.queue_dice,
                drops: &mut self.counters.drops,
                marks: &mut self.counters.marks,
                free_at: self.free_at,
            };
            let served = self.parts.queue.dequeue(&mut hop);
            self.waiting = self.parts.queue.packets();
            match served {
                Served::Packet(packet) => self.transmit(turn, packet, pool, probe),
                Served::Wait(until) => {
                    self.wait_until = Some(until);
                    self.free_at = turn;
                }
                Served::Empty => return,
            }
        }
    }

    /// A packet reaches the link's queue.
    #[inline]
    pub fn offer<P: Probe>(
        &mut self,
        now: Instant,
        packet: Packet,
        pool: &mut Pool,
        probe: &mut P,
    ) -> Offered {
        self.advance(now, pool, probe);
        if !self.up {
            self.hop(now, pool, probe).refuse(packet, DropReason::Down);
            return Offered::Taken;
        }
        if packet.ip_bytes > self.parts.mtu {
            let quote = Quote::of(&packet, pool.peek(packet.body));
            self.hop(now, pool, probe).refuse(packet, DropReason::TooBig);
            return quote.map_or(Offered::Taken, |quote| Offered::TooBig(packet, quote));
        }
        let idle = self.free_at <= now && self.waiting == 0;
        if idle && self.passes_when_idle {
            self.note_enqueued(now, &packet, 1, u64::from(packet.ip_bytes), probe);
            self.transmit(now, packet, pool, probe);
        } else {
            self.enqueue(now, packet, idle, pool, probe);
        }
        // Where packets keep their order, what comes behind others changes nothing.
        if self.flight.len() > 1 && self.parts.medium.is_none() {
            return Offered::Behind;
        }
        Offered::Taken
    }

    /// [`Link::offer`], where the queue is asked. `idle`: nothing waits and the transmitter is free.
    #[inline(never)]
    fn enqueue<P: Probe>(
        &mut self,
        now: Instant,
        packet: Packet,
        idle: bool,
        pool: &mut Pool,
        probe: &mut P,
    ) {
        self.note_queue(now);
        let mut hop = Hop {
            now,
            place: Place::Link(self.parts.index),
            pool: &mut *pool,
            probe: &mut *probe,
            dice: &mut self.parts.queue_dice,
            drops: &mut self.counters.drops,
            marks: &mut self.counters.marks,
            free_at: self.free_at,
        };
        let kept = self.parts.queue.enqueue(packet, &mut hop);
        self.waiting = self.parts.queue.packets();
        if kept {
            if !idle {
                self.counters.queue_max_packets = self.counters.queue_max_packets.max(self.waiting);
            }
            self.note_enqueued(now, &packet, self.waiting, self.parts.queue.bytes(), probe);
        }
        // A shaper that waits is asked again: the newcomer may go before those that lack tokens.
        if idle || self.wait_until.take().is_some() {
            self.free_at = now;
            self.advance(now, pool, probe);
        }
    }

    /// The packet that arrives at the far end at `now`, if one does; then [`Link::let_go`].
    #[inline]
    pub fn arrived(&self, now: Instant) -> Option<&Packet> {
        self.flight.front().filter(|(arrival, _)| *arrival <= now).map(|(_, packet)| packet)
    }

    /// The packet that arrived leaves the link.
    #[inline]
    pub fn let_go<P: Probe>(&mut self, now: Instant, packet: &Packet, probe: &mut P) {
        if probe.wants(Topic::Hop) {
            probe.record(now, Place::Link(self.parts.index), &Note::Arrived { packet });
        }
        self.flight.pop_front();
    }

    /// The link goes down: what is on the medium is lost, what waits goes on waiting.
    pub fn go_down<P: Probe>(&mut self, now: Instant, pool: &mut Pool, probe: &mut P) {
        self.advance(now, pool, probe);
        self.up = false;
        if self.free_at > now {
            self.counters.busy = self.counters.busy.saturating_sub(self.free_at - now);
            self.free_at = now;
            self.parts.capacity.break_off();
        }
        while let Some((_, packet)) = self.flight.pop_front() {
            self.hop(now, pool, probe).refuse(packet, DropReason::Down);
        }
    }

    /// The link works again.
    pub fn come_up<P: Probe>(&mut self, now: Instant, pool: &mut Pool, probe: &mut P) {
        self.up = true;
        self.free_at = self.free_at.max(now);
        self.advance(now, pool, probe);
    }

    /// The counters as they stand at `now`, to which the link has been advanced.
    #[must_use]
    pub fn counters(&self, now: Instant) -> LinkCounters {
        let mut counters = self.counters;
        counters.busy = counters.busy.saturating_sub(self.free_at.saturating_since(now));
        let (packets, bytes) = (self.waiting, self.parts.queue.bytes());
        let span = u128::from(now.saturating_since(self.queue_since).as_nanos());
        counters.queue_area_packets += u128::from(packets) * span;
        counters.queue_area_bytes += u128::from(bytes) * span;
        counters.queue_packets = packets;
        counters.queue_bytes = bytes;
        counters.control = self.parts.queue.control();
        counters
    }

    /// Starts the record of the longest queue anew.
    pub fn forget_maximum(&mut self) {
        self.counters.queue_max_packets = self.waiting;
    }

    /// Packets inside: waiting or on the medium.
    #[must_use]
    pub fn inside(&self) -> u64 {
        u64::from(self.waiting) + self.flight.len() as u64
    }

    /// Packets whose transmission was begun.
    #[must_use]
    pub fn sent_packets(&self) -> u64 {
        self.counters.sent_packets
    }

    /// Packets that came into being here: copies made by the medium.
    #[must_use]
    pub fn copies(&self) -> u64 {
        self.copies
    }

    /// Packets dropped, for whatever reason.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        self.counters.drops.iter().sum()
    }

    fn hop<'a, P: Probe>(
        &'a mut self,
        now: Instant,
        pool: &'a mut Pool,
        probe: &'a mut P,
    ) -> Hop<'a, P> {
        let place = Place::Link(self.parts.index);
        let LinkCounters { drops, marks, .. } = &mut self.counters;
        let (dice, free_at) = (&mut self.parts.queue_dice, self.free_at);
        Hop { now, place, pool, probe, dice, drops, marks, free_at }
    }

    #[inline]
    fn transmit<P: Probe>(
        &mut self,
        start: Instant,
        packet: Packet,
        pool: &mut Pool,
        probe: &mut P,
    ) {
        if probe.wants(Topic::Hop) {
            let (packets, bytes) = (self.waiting, self.parts.queue.bytes());
            let note = Note::Dequeued { packet: &packet, packets, bytes };
            probe.record(start, Place::Link(self.parts.index), &note);
        }
        let wire_bytes = u64::from(framed(self.parts.framing, packet.ip_bytes));
        let finish = self.parts.capacity.finish(start, wire_bytes).unwrap_or(Instant::HORIZON);
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(packet.ip_bytes);
        self.counters.busy += finish - start;
        self.free_at = finish;
        if !self.is_plain {
            return self.cross(start, finish, wire_bytes, packet, pool, probe);
        }
        self.flight.push_back((finish + self.parts.delay, packet));
        // Counted where it lies: a byte changed in a label about to be copied stalls the copy.
        if let Some((_, flying)) = self.flight.back_mut() {
            flying.hop += 1;
        }
    }

    /// A packet leaves the transmitter for a medium that has its own ways.
    #[inline(never)]
    fn cross<P: Probe>(
        &mut self,
        start: Instant,
        finish: Instant,
        wire_bytes: u64,
        mut packet: Packet,
        pool: &mut Pool,
        probe: &mut P,
    ) {
        let Some(medium) = &mut self.parts.medium else {
            if self.parts.loss > 0.0 && self.parts.dice.chance(self.parts.loss) {
                return self.hop(start, pool, probe).refuse(packet, DropReason::Medium);
            }
            packet.hop += 1;
            return self.fly(finish + self.parts.delay, packet, false);
        };
        let reorder = medium.reorder;
        let Some(delay) = medium.crosses(finish, wire_bytes, self.parts.delay) else {
            return self.hop(start, pool, probe).refuse(packet, DropReason::Medium);
        };
        let twice = medium.copies();
        packet.hop += 1;
        self.fly(finish + delay, packet, reorder);
        if twice {
            self.copies += 1;
            let body = pool.peek(packet.body).clone();
            let copy = Packet { body: pool.put(body), number: UNNUMBERED, ..packet };
            if probe.wants(Topic::Packet) {
                let note = Note::Copied { packet: &copy, body: pool.peek(copy.body) };
                probe.record(start, Place::Link(self.parts.index), &note);
            }
            self.fly(finish + delay, copy, reorder);
        }
    }

    /// Gives a packet its place among those that fly.
    fn fly(&mut self, earliest: Instant, packet: Packet, reorder: bool) {
        let mut arrival = earliest;
        if !self.parts.jitter.is_zero() {
            arrival += self.parts.jitter_dice.span(self.parts.jitter);
        }
        if reorder {
            let place = self.flight.partition_point(|(other, _)| *other <= arrival);
            self.flight.insert(place, (arrival, packet));
        } else {
            let before = self.flight.back().map(|(before, _)| *before);
            self.flight.push_back((before.map_or(arrival, |before| arrival.max(before)), packet));
        }
    }

    /// Brings the integrals of the queue's length up to `now`, before the length changes.
    #[inline]
    fn note_queue(&mut self, now: Instant) {
        let span = u128::from((now - self.queue_since).as_nanos());
        self.queue_since = now;
        if self.waiting > 0 {
            self.counters.queue_area_packets += u128::from(self.waiting) * span;
            self.counters.queue_area_bytes += u128::from(self.parts.queue.bytes()) * span;
        }
    }

    #[inline]
    fn note_enqueued<P: Probe>(
        &self,
        now: Instant,
        packet: &Packet,
        packets: u32,
        bytes: u64,
        probe: &mut P,
    ) {
        if probe.wants(Topic::Hop) {
            let note = Note::Enqueued { packet, packets, bytes };
            probe.record(now, Place::Link(self.parts.index), &note);
        }
    }
}

/// Bytes on the wire of an IP packet of this length.
#[inline]
#[must_use]
pub fn framed(framing: Framing, ip_bytes: u32) -> u32 {
    match framing {
        Framing::None => ip_bytes,
        // IEEE 802.3 §3.1.1, §4A.4.2: preamble and SFD 8, header 14, data of at least 46, FCS 4,
        // interpacket gap 12.
        Framing::Ethernet => 8 + 14 + ip_bytes.max(46) + 4 + 12,
        // RFC 1662 §3.1: flag 1, address 1, control 1, protocol 2, FCS 2; stuffing not counted.
        Framing::Ppp => ip_bytes + 7,
        Framing::AtmIpoaVcmux => cells(ip_bytes),
        Framing::AtmIpoaLlc => cells(8 + ip_bytes),
        Framing::AtmBridgedVcmux => cells(2 + 14 + ip_bytes),
        Framing::AtmBridgedLlc => cells(8 + 2 + 14 + ip_bytes),
        Framing::AtmPppoaVcmux => cells(2 + ip_bytes),
        Framing::AtmPppoaLlc => cells(4 + 2 + ip_bytes),
        Framing::AtmPppoeVcmux => cells(2 + 14 + 6 + 2 + ip_bytes),
        Framing::AtmPppoeLlc => cells(8 + 2 + 14 + 6 + 2 + ip_bytes),
    }
}

/// ITU-T I.363.5: an AAL5 trailer of 8, padding to whole cells of 48; ITU-T I.361: 5 before each.
fn cells(pdu_bytes: u32) -> u32 {
    (pdu_bytes + 8).div_ceil(48) * 53
}
