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

use talkspurt_proto::body::Bodies;
use talkspurt_proto::packet::{Packet, Quote};
use talkspurt_proto::probe::{DropReason, LinkCounters, Note, Place, Probe, Topic, UNNUMBERED};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_scenario::model::Framing;

use crate::capacity::Capacity;
use crate::discipline::{Discipline, Hop, Queue, Served};
use crate::flight::Flight;
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
    /// Rng of the medium.
    pub rng: Rng,
    /// Rng of the jitter.
    pub jitter_rng: Rng,
    /// Rng of the queue's discipline.
    pub queue_rng: Rng,
    /// What the medium does besides; then the loss is its business.
    pub medium: Option<Box<Medium>>,
}

/// A working link: what every packet touches, in 128 bytes. All else lies behind a pointer,
/// or the links of five hundred calls would not fit the second cache.
#[derive(Debug)]
// On two lines of the cache and not on parts of three.
#[repr(align(64))]
pub struct Link {
    /// The transmitter is free from this instant on.
    free_at: Instant,
    /// Packets in the queue: asked after each change, not each time.
    waiting: u32,
    mtu: u32,
    framing: Framing,
    up: bool,
    /// Whether a packet that need not wait passes the queue unseen.
    passes_when_idle: bool,
    /// The medium only delays, the same for each packet.
    is_plain: bool,
    /// The medium has ways of its own.
    has_medium: bool,
    delay: Duration,
    capacity: Capacity,
    /// Packets on the medium with their arrivals, in order.
    flight: Flight,
    sent_packets: u64,
    sent_bytes: u64,
    busy: Duration,
    back: Box<Back>,
}

const _: () = assert!(size_of::<Link>() <= 128);

/// What only packets have to do with that wait or get lost, and those on a medium that is not plain.
#[derive(Debug)]
struct Back {
    index: u32,
    queue: Queue,
    queue_rng: Rng,
    /// A shaper's next turn, if its queue said so.
    wait_until: Option<Instant>,
    loss: f64,
    rng: Rng,
    jitter: Duration,
    jitter_rng: Rng,
    medium: Option<Box<Medium>>,
    drops: [u64; DropReason::COUNT],
    marks: u64,
    /// Integrals of the queue's length up to `queue_since`, as [`LinkCounters`] has them.
    area_packets: u128,
    area_bytes: u128,
    queue_since: Instant,
    queue_max_packets: u32,
    /// Copies of packets that the medium made.
    copies: u64,
}

impl Back {
    fn hop<'a, P: Probe>(
        &'a mut self,
        (now, free_at): (Instant, Instant),
        pool: &'a mut Pool,
        probe: &'a mut P,
    ) -> (&'a mut Queue, Hop<'a, P>) {
        let Self { index, queue, queue_rng: rng, drops, marks, .. } = self;
        let place = Place::Link(*index);
        (queue, Hop { now, place, pool, probe, rng, drops, marks, free_at })
    }

    /// Brings the integrals of the queue's length up to `now`, before the length changes.
    #[inline]
    fn note_queue(&mut self, now: Instant, waiting: u32) {
        let span = u128::from((now - self.queue_since).as_nanos());
        self.queue_since = now;
        if waiting > 0 {
            self.area_packets += u128::from(waiting) * span;
            self.area_bytes += u128::from(self.queue.bytes()) * span;
        }
    }
}

/// What happens to a packet offered to a link.
#[derive(Debug)]
pub enum Offered {
    /// It waits or flies, or was refused by the queue.
    Taken,
    /// The same, and what the link next wakes for stays what it was.
    Behind,
    /// It flies, and the link, which had nothing to wake for, now has its arrival; an outage apart, that
    /// stays until it comes.
    First(Instant),
    /// It is longer than the MTU: gone, and its sender is to be told.
    TooBig(Packet, Quote),
}

impl Link {
    /// A link that is up and empty.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self {
            free_at: Instant::ZERO,
            waiting: 0,
            mtu: parts.mtu,
            framing: parts.framing,
            up: true,
            passes_when_idle: parts.queue.passes_when_idle(),
            is_plain: parts.medium.is_none() && parts.loss == 0.0 && parts.jitter.is_zero(),
            has_medium: parts.medium.is_some(),
            delay: parts.delay,
            capacity: parts.capacity,
            flight: Flight::default(),
            sent_packets: 0,
            sent_bytes: 0,
            busy: Duration::ZERO,
            back: Box::new(Back {
                index: parts.index,
                queue: parts.queue,
                queue_rng: parts.queue_rng,
                wait_until: None,
                loss: parts.loss,
                rng: parts.rng,
                jitter: parts.jitter,
                jitter_rng: parts.jitter_rng,
                medium: parts.medium,
                drops: [0; DropReason::COUNT],
                marks: 0,
                area_packets: 0,
                area_bytes: 0,
                queue_since: Instant::ZERO,
                queue_max_packets: 0,
                copies: 0,
            }),
        }
    }

    /// Longest IP packet it takes.
    #[must_use]
    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// When it wants to be woken: the next arrival at its far end, or the turn of what waits.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        match self.flight.first() {
            Some((arrival, _)) if !self.has_medium => Some(*arrival),
            Some((arrival, _)) => Some(self.next_of_medium(*arrival)),
            None if self.up && self.waiting > 0 => Some(self.turn()),
            None => None,
        }
    }

    /// When what waits may leave.
    fn turn(&self) -> Instant {
        self.back.wait_until.unwrap_or(self.free_at)
    }

    /// The next arrival, or, where packets overtake, when what still waits could arrive at the
    /// earliest.
    #[inline(never)]
    fn next_of_medium(&self, arrival: Instant) -> Instant {
        match &self.back.medium {
            Some(medium) if medium.reorder && self.up && self.waiting > 0 => {
                arrival.min(self.turn() + medium.least_delay)
            }
            _ => arrival,
        }
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
            let back = &mut *self.back;
            // What waited for its turn when the link went down goes no earlier than it came up.
            let turn = back.wait_until.take().map_or(self.free_at, |turn| turn.max(self.free_at));
            if turn > now {
                back.wait_until = Some(turn);
                return;
            }
            back.note_queue(turn, self.waiting);
            let (queue, mut hop) = back.hop((turn, self.free_at), pool, probe);
            let served = queue.dequeue(&mut hop);
            self.waiting = queue.packets();
            match served {
                Served::Packet(packet) => self.transmit(turn, &packet, pool, probe),
                Served::Wait(until) => {
                    self.back.wait_until = Some(until);
                    self.free_at = turn;
                }
                Served::Empty => return,
            }
        }
    }

    /// A packet reaches the link's queue.
    #[inline(always)]
    pub fn offer<P: Probe>(
        &mut self,
        now: Instant,
        packet: &Packet,
        pool: &mut Pool,
        probe: &mut P,
    ) -> Offered {
        let (flying, waiting) = (self.flight.len(), self.waiting);
        self.advance(now, pool, probe);
        if !self.up {
            self.refuse(now, *packet, DropReason::Down, (pool, probe));
            return Offered::Taken;
        }
        if packet.ip_bytes > self.mtu {
            let quote = Quote::of(packet, pool.peek(packet.body));
            self.refuse(now, *packet, DropReason::TooBig, (pool, probe));
            // A router's own message is refused in silence; what flies may wake from the lane.
            let silent = if flying > 0 { Offered::Behind } else { Offered::Taken };
            return quote.map_or(silent, |quote| Offered::TooBig(*packet, quote));
        }
        let idle = self.free_at <= now && self.waiting == 0;
        if idle && self.passes_when_idle {
            self.note_enqueued(now, packet, 1, u64::from(packet.ip_bytes), probe);
            self.transmit(now, packet, pool, probe);
        } else {
            self.enqueue(now, *packet, idle, pool, probe);
        }
        // Where packets keep their order, what comes behind others changes nothing.
        if flying > 0 && !self.has_medium {
            return Offered::Behind;
        }
        match self.flight.first() {
            Some((arrival, _)) if waiting == 0 && self.is_plain => Offered::First(*arrival),
            _ => Offered::Taken,
        }
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
        self.back.note_queue(now, self.waiting);
        let (queue, mut hop) = self.back.hop((now, self.free_at), pool, probe);
        let kept = queue.enqueue(packet, &mut hop);
        let bytes = queue.bytes();
        self.waiting = queue.packets();
        if kept {
            if !idle {
                self.back.queue_max_packets = self.back.queue_max_packets.max(self.waiting);
            }
            self.note_enqueued(now, &packet, self.waiting, bytes, probe);
        }
        // A shaper that waits is asked again: the newcomer may go before those that lack tokens.
        if idle || self.back.wait_until.take().is_some() {
            self.free_at = now;
            self.advance(now, pool, probe);
        }
    }

    /// The packet that arrives at the far end at `now`, if one does; then [`Link::let_go`].
    #[inline]
    pub fn arrived(&self, now: Instant) -> Option<&Packet> {
        self.flight.first().filter(|(arrival, _)| *arrival <= now).map(|(_, packet)| packet)
    }

    /// The packet that arrived leaves the link.
    #[inline]
    pub fn let_go<P: Probe>(&mut self, now: Instant, packet: &Packet, probe: &mut P) {
        if probe.wants(Topic::Hop) {
            probe.record(now, Place::Link(self.back.index), &Note::Arrived { packet });
        }
        self.flight.pop();
    }

    /// The link goes down: what is on the medium is lost, what waits goes on waiting.
    pub fn go_down<P: Probe>(&mut self, now: Instant, pool: &mut Pool, probe: &mut P) {
        self.advance(now, pool, probe);
        self.up = false;
        if self.free_at > now {
            self.busy = self.busy.saturating_sub(self.free_at - now);
            self.free_at = now;
            self.capacity.break_off();
        }
        while let Some((_, packet)) = self.flight.first().copied() {
            self.flight.pop();
            self.refuse(now, packet, DropReason::Down, (pool, probe));
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
        let back = &*self.back;
        let (packets, bytes) = (self.waiting, back.queue.bytes());
        let span = u128::from(now.saturating_since(back.queue_since).as_nanos());
        LinkCounters {
            sent_packets: self.sent_packets,
            sent_bytes: self.sent_bytes,
            drops: back.drops,
            marks: back.marks,
            busy: self.busy.saturating_sub(self.free_at.saturating_since(now)),
            queue_area_packets: back.area_packets + u128::from(packets) * span,
            queue_area_bytes: back.area_bytes + u128::from(bytes) * span,
            queue_packets: packets,
            queue_bytes: bytes,
            queue_max_packets: back.queue_max_packets,
            control: back.queue.control(),
            ..LinkCounters::default()
        }
    }

    /// Restarts the record of the longest queue.
    pub fn forget_maximum(&mut self) {
        self.back.queue_max_packets = self.waiting;
    }

    /// Packets inside: waiting or on the medium.
    #[must_use]
    pub fn inside(&self) -> u64 {
        u64::from(self.waiting) + self.flight.len() as u64
    }

    /// Packets whose transmission was begun.
    #[must_use]
    pub fn sent_packets(&self) -> u64 {
        self.sent_packets
    }

    /// Packets that came into being here: copies made by the medium.
    #[must_use]
    pub fn copies(&self) -> u64 {
        self.back.copies
    }

    /// Packets dropped, for whatever reason.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        self.back.drops.iter().sum()
    }

    fn refuse<P: Probe>(
        &mut self,
        now: Instant,
        packet: Packet,
        why: DropReason,
        (pool, probe): (&mut Pool, &mut P),
    ) {
        self.back.hop((now, self.free_at), pool, probe).1.refuse(packet, why);
    }

    #[inline(always)]
    fn transmit<P: Probe>(
        &mut self,
        start: Instant,
        packet: &Packet,
        pool: &mut Pool,
        probe: &mut P,
    ) {
        if probe.wants(Topic::Hop) {
            let (packets, bytes) = (self.waiting, self.back.queue.bytes());
            let note = Note::Dequeued { packet, packets, bytes };
            probe.record(start, Place::Link(self.back.index), &note);
        }
        let wire_bytes = u64::from(framed(self.framing, packet.ip_bytes));
        let finish = self.capacity.finish(start, wire_bytes).unwrap_or(Instant::HORIZON);
        self.sent_packets += 1;
        self.sent_bytes += u64::from(packet.ip_bytes);
        self.busy += finish - start;
        self.free_at = finish;
        if !self.is_plain {
            return self.cross(start, finish, wire_bytes, *packet, pool, probe);
        }
        // Counted where it lies: a byte changed in a label about to be copied stalls the copy.
        self.flight.push(finish + self.delay, packet).hop += 1;
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
        let back = &mut *self.back;
        let Some(medium) = &mut back.medium else {
            if back.loss > 0.0 && back.rng.chance(back.loss) {
                return self.refuse(start, packet, DropReason::Medium, (pool, probe));
            }
            packet.hop += 1;
            return self.fly(finish + self.delay, packet, false);
        };
        let reorder = medium.reorder;
        let Some(delay) = medium.crosses(finish, wire_bytes, self.delay) else {
            return self.refuse(start, packet, DropReason::Medium, (pool, probe));
        };
        let twice = medium.copies();
        packet.hop += 1;
        self.fly(finish + delay, packet, reorder);
        if twice {
            self.back.copies += 1;
            let body = pool.peek(packet.body).clone();
            let copy = Packet { body: pool.put(|| body), number: UNNUMBERED, ..packet };
            if probe.wants(Topic::Packet) {
                let note = Note::Copied { packet: &copy, body: pool.peek(copy.body) };
                probe.record(start, Place::Link(self.back.index), &note);
            }
            self.fly(finish + delay, copy, reorder);
        }
    }

    /// Gives a packet its place among those that fly.
    fn fly(&mut self, earliest: Instant, packet: Packet, reorder: bool) {
        let mut arrival = earliest;
        let back = &mut *self.back;
        if !back.jitter.is_zero() {
            arrival += back.jitter_rng.span(back.jitter);
        }
        if reorder {
            self.flight.insert(arrival, &packet);
        } else {
            let before = self.flight.last_arrival();
            self.flight.push(before.map_or(arrival, |before| arrival.max(before)), &packet);
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
            probe.record(now, Place::Link(self.back.index), &note);
        }
    }
}

/// Bytes on the wire of an IP packet of this length.
#[inline(always)]
#[must_use]
pub fn framed(framing: Framing, ip_bytes: u32) -> u32 {
    if framing == Framing::None { ip_bytes } else { with_frame(framing, ip_bytes) }
}

#[inline(never)]
fn with_frame(framing: Framing, ip_bytes: u32) -> u32 {
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
