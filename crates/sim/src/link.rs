//! One direction of a link: a queue, a transmitter and a medium, processed late.
//!
//! The end of a transmission is not an event. Before each arrival, delivery and sample, [`Link::advance`]
//! performs every due dequeue in order, each at its own instant; departures precede arrivals at equal times. A
//! hop is then one event, for any work-conserving discipline, with the same result as two events per hop.
//!
//! The medium holds packets in order of arrival. With reordering, a queued packet could arrive before one in
//! flight: it leaves no earlier than the transmitter is free and takes at least the minimum delay, so the link
//! also wakes when both have passed. This adds no event if the next arrival comes first, and otherwise at most
//! one per minimum delay.

use talkspurt_proto::body::Bodies;
use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{DropReason, LinkCounters, Note, Place, Probe, Topic, UNNUMBERED};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_scenario::model::Framing;

use crate::capacity::Capacity;
use crate::discipline::{Discipline, Hop, Queue, Served};
use crate::flight::Flight;
use crate::medium::Medium;
use crate::pool::Pool;

/// The parts of a link.
#[derive(Debug)]
pub struct Parts {
    /// Its index, for notes.
    pub index: u32,
    /// The queue.
    pub queue: Queue,
    /// How fast it sends.
    pub capacity: Capacity,
    /// Propagation delay.
    pub delay: Duration,
    /// Upper bound of the random extra delay; order is kept unless the medium allows reordering.
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
    /// Further effects of the medium, which then also handles the loss.
    pub medium: Option<Box<Medium>>,
}

/// A running link: the state every packet touches, in 128 bytes. The rest is behind a pointer; otherwise the
/// links of five hundred calls would not fit the L2 cache.
#[derive(Debug)]
// Aligned to two cache lines instead of spanning three.
#[repr(align(64))]
pub struct Link {
    /// The transmitter is free from this instant on.
    free_at: Instant,
    /// Its number in notes.
    index: u32,
    /// Packets in the queue, cached after each change.
    waiting: u32,
    /// Longest IP packet it takes.
    pub mtu: u32,
    framing: Framing,
    up: bool,
    /// Whether a packet that need not wait bypasses the queue.
    passes_when_idle: bool,
    /// The medium only adds a constant delay.
    is_plain: bool,
    /// There is a [`Medium`].
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

/// State used only by packets that wait or are lost, and by a medium that is not plain.
#[derive(Debug)]
struct Back {
    queue: Queue,
    queue_rng: Rng,
    /// Changes of the rate that the queue knows.
    rates_seen: usize,
    /// A shaper's next turn, if its queue said so.
    wait_until: Option<Instant>,
    loss: f64,
    rng: Rng,
    jitter: Duration,
    jitter_rng: Rng,
    medium: Option<Box<Medium>>,
    drops: [u64; DropReason::COUNT],
    marks: u64,
    /// Integral of the rate over the time before the last outage, as in [`LinkCounters`].
    capacity: u128,
    /// The integral of the rate up to the end of that outage, which counts outages too.
    capacity_up: u128,
    /// Integrals of the queue length up to `queue_since`, as in [`LinkCounters`].
    area_packets: u128,
    area_bytes: u128,
    queue_since: Instant,
    queue_max_packets: u32,
    /// Copies of packets made by the medium.
    copies: u64,
}

impl Back {
    fn hop<'a, P: Probe>(
        &'a mut self,
        index: u32,
        (now, free_at): (Instant, Instant),
        pool: &'a mut Pool,
        probe: &'a mut P,
    ) -> (&'a mut Queue, Hop<'a, P>) {
        let Self { queue, queue_rng: rng, drops, marks, .. } = self;
        let place = Place::Link(index);
        (queue, Hop { now, place, pool, probe, rng, drops, marks, free_at })
    }

    /// Updates the integrals of the queue length to `now`, before the length changes.
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

/// Outcome of offering a packet to a link.
#[derive(Debug)]
pub enum Offered {
    /// It is queued or in flight, or the queue refused it.
    Taken,
    /// The same, and the link's next wake-up is unchanged.
    Behind,
    /// It is in flight, and its arrival is the wake-up of the link, which had none; except for an outage, it
    /// does not change until it comes.
    First(Instant),
    /// It exceeds the MTU: it must be [refused](Link::refuse), and its sender informed.
    TooBig,
}

impl Link {
    /// A link that is up and empty.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self {
            free_at: Instant::ZERO,
            waiting: 0,
            mtu: parts.mtu,
            index: parts.index,
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
                queue: parts.queue,
                queue_rng: parts.queue_rng,
                rates_seen: 0,
                wait_until: None,
                loss: parts.loss,
                rng: parts.rng,
                jitter: parts.jitter,
                jitter_rng: parts.jitter_rng,
                medium: parts.medium,
                drops: [0; DropReason::COUNT],
                marks: 0,
                capacity: 0,
                capacity_up: 0,
                area_packets: 0,
                area_bytes: 0,
                queue_since: Instant::ZERO,
                queue_max_packets: 0,
                copies: 0,
            }),
        }
    }

    /// Its next wake-up: the next arrival at its far end, or the turn of a queued packet.
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

    /// When the next queued packet may leave.
    fn turn(&self) -> Instant {
        self.back.wait_until.unwrap_or(self.free_at)
    }

    /// The next arrival or, with reordering, the earliest possible arrival of a queued packet.
    #[inline(never)]
    fn next_of_medium(&self, arrival: Instant) -> Instant {
        match &self.back.medium {
            Some(medium) if medium.reorder && self.up && self.waiting > 0 => {
                arrival.min(self.turn() + medium.least_delay)
            }
            _ => arrival,
        }
    }

    /// Performs every dequeue due at or before `now`.
    #[inline]
    pub fn advance<P: Probe>(&mut self, now: Instant, pool: &mut Pool, probe: &mut P) {
        if self.waiting > 0 && self.free_at <= now && self.up {
            self.serve(now, pool, probe);
        }
    }

    /// [`Link::advance`] with packets queued.
    #[inline(never)]
    fn serve<P: Probe>(&mut self, now: Instant, pool: &mut Pool, probe: &mut P) {
        while self.waiting > 0 && self.free_at <= now {
            let back = &mut *self.back;
            // A packet due while the link was down leaves no earlier than the link came up.
            let turn = back.wait_until.take().map_or(self.free_at, |turn| turn.max(self.free_at));
            if turn > now {
                back.wait_until = Some(turn);
                return;
            }
            back.note_queue(turn, self.waiting);
            let (queue, mut hop) = back.hop(self.index, (turn, self.free_at), pool, probe);
            let served = queue.dequeue(&mut hop);
            self.waiting = queue.packets();
            match served {
                Served::Packet(packet) => {
                    self.note_dequeued(turn, &packet, probe);
                    self.transmit(turn, &packet, pool, probe);
                }
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
            return Offered::TooBig;
        }
        let idle = self.free_at <= now && self.waiting == 0;
        if idle && self.passes_when_idle {
            if probe.wants(Topic::Hop) {
                let bytes = packet.ip_bytes.into();
                let enqueued = Note::Enqueued { packet, packets: 1, bytes };
                let dequeued = Note::Dequeued { packet, packets: 0, bytes: 0 };
                probe.record_two(now, Place::Link(self.index), &enqueued, &dequeued);
            }
            self.transmit(now, packet, pool, probe);
        } else {
            self.enqueue(now, *packet, idle, pool, probe);
        }
        // Without reordering, a packet behind others does not change the wake-up.
        if flying > 0 && !self.has_medium {
            return Offered::Behind;
        }
        match self.flight.first() {
            Some((arrival, _)) if waiting == 0 && self.is_plain => Offered::First(*arrival),
            _ => Offered::Taken,
        }
    }

    /// [`Link::offer`] through the queue. `idle`: the queue is empty and the transmitter free.
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
        if let Capacity::Stepped(_) = self.capacity {
            self.tell_rate(now);
        }
        let (queue, mut hop) = self.back.hop(self.index, (now, self.free_at), pool, probe);
        let kept = queue.enqueue(packet, &mut hop);
        let bytes = queue.bytes();
        self.waiting = queue.packets();
        if kept {
            if !idle {
                self.back.queue_max_packets = self.back.queue_max_packets.max(self.waiting);
            }
            self.note_enqueued(now, &packet, self.waiting, bytes, probe);
        }
        // A waiting shaper is asked again: the new packet may go before those that lack tokens.
        if idle || self.back.wait_until.take().is_some() {
            self.free_at = now;
            self.advance(now, pool, probe);
        }
    }

    /// Tells the queue of changes of the rate. Only what arrives meets a limit, so that it need not know
    /// before.
    #[inline(never)]
    fn tell_rate(&mut self, now: Instant) {
        let (rate, seen) = self.capacity.changed(self.back.rates_seen, now);
        self.back.rates_seen = seen;
        rate.into_iter().for_each(|rate| self.back.queue.set_rate(rate));
    }

    /// The packet that arrives at the far end at `now`, if any; call [`Link::let_go`] next.
    #[inline]
    pub fn arrived(&self, now: Instant) -> Option<&Packet> {
        self.flight.first().filter(|(arrival, _)| *arrival <= now).map(|(_, packet)| packet)
    }

    /// The packet that arrives after so many others, as far as is known.
    #[inline]
    pub fn next_arrival(&self, others: u32) -> Option<&Packet> {
        self.flight.nth(others)
    }

    /// Requests from memory the packet that arrives after so many others.
    #[inline]
    pub fn prefetch_arrival(&self, others: u32) {
        self.flight.prefetch(others);
    }

    /// Removes the packet that arrived from the link.
    #[inline]
    pub fn let_go<P: Probe>(&mut self, now: Instant, packet: &Packet, probe: &mut P) {
        if probe.wants(Topic::Hop) {
            probe.record(now, Place::Link(self.index), &Note::Arrived { packet });
        }
        self.flight.pop();
    }

    /// The link goes down: packets on the medium are lost, queued packets stay.
    pub fn go_down<P: Probe>(&mut self, now: Instant, pool: &mut Pool, probe: &mut P) {
        self.advance(now, pool, probe);
        self.back.capacity = self.capacity_at(now);
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
        self.back.capacity_up = self.capacity.until(now);
        self.up = true;
        self.free_at = self.free_at.max(now);
        self.advance(now, pool, probe);
    }

    fn capacity_at(&self, now: Instant) -> u128 {
        let back = &*self.back;
        back.capacity + if self.up { self.capacity.until(now) - back.capacity_up } else { 0 }
    }

    /// The counters at `now`, to which the link has been advanced.
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
            capacity: Some(self.capacity_at(now)),
            queue_area_packets: back.area_packets + u128::from(packets) * span,
            queue_area_bytes: back.area_bytes + u128::from(bytes) * span,
            queue_packets: packets,
            queue_bytes: bytes,
            queue_max_packets: back.queue_max_packets,
            control: back.queue.control(),
            ..LinkCounters::default()
        }
    }

    /// Resets the maximum queue length.
    pub fn forget_maximum(&mut self) {
        self.back.queue_max_packets = self.waiting;
    }

    /// Packets inside: queued or on the medium.
    #[must_use]
    pub fn inside(&self) -> u64 {
        u64::from(self.waiting) + self.flight.len() as u64
    }

    /// Transmissions started.
    #[must_use]
    pub fn sent_packets(&self) -> u64 {
        self.sent_packets
    }

    /// Packets created here: copies made by the medium.
    #[must_use]
    pub fn copies(&self) -> u64 {
        self.back.copies
    }

    /// Packets dropped for any reason.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        self.back.drops.iter().sum()
    }

    /// Drops a packet that reached the link.
    pub fn refuse<P: Probe>(
        &mut self,
        now: Instant,
        packet: Packet,
        why: DropReason,
        (pool, probe): (&mut Pool, &mut P),
    ) {
        self.back.hop(self.index, (now, self.free_at), pool, probe).1.refuse(packet, why);
    }

    #[inline(always)]
    fn transmit<P: Probe>(
        &mut self,
        start: Instant,
        packet: &Packet,
        pool: &mut Pool,
        probe: &mut P,
    ) {
        let wire_bytes = u64::from(framed(self.framing, packet.ip_bytes));
        let finish = self.capacity.finish(start, wire_bytes).unwrap_or(Instant::HORIZON);
        self.sent_packets += 1;
        self.sent_bytes += u64::from(packet.ip_bytes);
        self.busy += finish - start;
        self.free_at = finish;
        if !self.is_plain {
            return self.cross(start, finish, wire_bytes, *packet, pool, probe);
        }
        // Counted in place: changing a byte in a label about to be copied stalls the copy.
        self.flight.push(finish + self.delay, packet).hop += 1;
    }

    /// A packet leaves the transmitter for a medium that is not plain.
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
                probe.record(start, Place::Link(self.index), &note);
            }
            self.fly(finish + delay, copy, reorder);
        }
    }

    /// Inserts a packet among those in flight.
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
            probe.record(now, Place::Link(self.index), &note);
        }
    }

    #[inline]
    fn note_dequeued<P: Probe>(&self, now: Instant, packet: &Packet, probe: &mut P) {
        if probe.wants(Topic::Hop) {
            let (packets, bytes) = (self.waiting, self.back.queue.bytes());
            let note = Note::Dequeued { packet, packets, bytes };
            probe.record(now, Place::Link(self.index), &note);
        }
    }
}

/// Bytes on the wire for an IP packet of this length.
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
