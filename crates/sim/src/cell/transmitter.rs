//! What sends in a cell: the queue of an access point or station, the frame in its hands, and its
//! counters; or a contender, which has always another frame.

use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{DropReason, LinkCounters, Note, Place, Probe, Topic};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};

use super::backoff::Backoff;
use super::rates::Rates;
use crate::discipline::{Discipline, Hop, Queue, Served};
use crate::pool::Pool;

/// What a transmitter is made of.
#[derive(Debug)]
pub struct Parts {
    /// Its index among links, for notes.
    pub link: u32,
    /// What waits.
    pub load: Load,
    /// The choice of rates towards each receiver.
    pub rates: Vec<Rates>,
    /// Rng of the backoff and of rates that are tried.
    pub rng: Rng,
    /// Rng of the queue's discipline.
    pub queue_rng: Rng,
    /// Rng of the channel.
    pub error_rng: Rng,
}

/// Where frames come from.
#[derive(Debug)]
pub enum Load {
    /// From a queue.
    Queue(Box<Queue>),
    /// There is always one of so many bytes of IP packet.
    Saturated(u32),
}

/// A frame that is being sent, again and again if need be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The packet, until it is understood at the other end.
    pub(super) packet: Option<Packet>,
    /// The receiver: a station's number from 1, or 0 for the access point.
    pub(super) to: u16,
    /// Bytes of IP packet.
    pub(super) ip_bytes: u32,
    /// Transmissions that failed, as counted against the short and the long retry limit.
    pub(super) failed: (u32, u32),
    /// Data frames that were not acknowledged.
    pub(super) unacknowledged: u32,
    /// A contender's: it was understood and counted.
    pub(super) counted: bool,
}

/// A working transmitter.
#[derive(Debug)]
pub(super) struct Transmitter {
    pub(super) parts: Parts,
    pub(super) frame: Option<Frame>,
    pub(super) counters: LinkCounters,
    /// Until when its last transmission keeps the channel busy.
    pub(super) sends_until: Instant,
    queue_since: Instant,
    /// By route, the receiver of its packets.
    receivers: Vec<u16>,
}

impl Transmitter {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            parts,
            frame: None,
            counters: LinkCounters::default(),
            sends_until: Instant::ZERO,
            queue_since: Instant::ZERO,
            receivers: Vec::new(),
        }
    }

    pub(super) fn is_saturated(&self) -> bool {
        matches!(self.parts.load, Load::Saturated(_))
    }

    /// Which of its receivers the frame in hand is for: a station has only one.
    pub(super) fn receiver(&self) -> usize {
        self.frame.map_or(0, |frame| usize::from(frame.to).saturating_sub(1))
    }

    /// Packets and bytes waiting.
    pub(super) fn waiting(&self) -> (u32, u64) {
        match &self.parts.load {
            Load::Queue(queue) => (queue.packets(), queue.bytes()),
            Load::Saturated(_) => (0, 0),
        }
    }

    /// Keeps a packet for a receiver, or refuses it.
    pub(super) fn enqueue<P: Probe>(
        &mut self,
        now: Instant,
        (to, packet): (u16, Packet),
        pool: &mut Pool,
        probe: &mut P,
    ) {
        let route = packet.route as usize;
        if self.receivers.len() <= route {
            self.receivers.resize(route + 1, 0);
        }
        self.receivers[route] = to;
        self.note_queue(now);
        let (mut hop, load) = self.hop(now, pool, probe);
        let Load::Queue(queue) = load else { return };
        if queue.enqueue(packet, &mut hop) && probe.wants(Topic::Hop) {
            let (packets, bytes) = self.waiting();
            let note = Note::Enqueued { packet: &packet, packets, bytes };
            probe.record(now, Place::Link(self.parts.link), &note);
        }
    }

    /// Its turn has come: takes the next frame in hand unless there is one. False: there is none now,
    /// and `backoff` knows from when on there may be.
    pub(super) fn takes<P: Probe>(
        &mut self,
        now: Instant,
        backoff: &mut Backoff,
        pool: &mut Pool,
        probe: &mut P,
    ) -> bool {
        if self.frame.is_some() {
            return true;
        }
        self.note_queue(now);
        let (mut hop, load) = self.hop(now, pool, probe);
        let (packet, ip_bytes) = match load {
            Load::Saturated(bytes) => (None, *bytes),
            Load::Queue(queue) => match queue.dequeue(&mut hop) {
                Served::Packet(packet) => (Some(packet), packet.ip_bytes),
                Served::Wait(until) => {
                    backoff.want(until);
                    return false;
                }
                Served::Empty => {
                    backoff.rest();
                    return false;
                }
            },
        };
        let to = packet.map_or(0, |packet| self.receivers[packet.route as usize]);
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(ip_bytes);
        if let Some(packet) = packet.filter(|_| probe.wants(Topic::Hop)) {
            let (packets, bytes) = self.waiting();
            let note = Note::Dequeued { packet: &packet, packets, bytes };
            probe.record(now, Place::Link(self.parts.link), &note);
        }
        let (failed, unacknowledged, counted) = ((0, 0), 0, false);
        self.frame = Some(Frame { packet, to, ip_bytes, failed, unacknowledged, counted });
        true
    }

    /// Gives up the frame in its hands; the packet that is lost by that. What was understood, though
    /// not acknowledged, is not.
    pub(super) fn give_up(&mut self) -> Option<Packet> {
        let frame = self.frame.take()?;
        if frame.packet.is_none() && self.is_saturated() && !frame.counted {
            self.counters.drops[DropReason::Retries as usize] += 1;
        }
        frame.packet
    }

    /// A transmission keeps the channel busy.
    pub(super) fn sends(&mut self, from: Instant, until: Instant) {
        self.counters.busy += until - from;
        self.sends_until = until;
    }

    /// What a discipline may touch, and where frames come from.
    pub(super) fn hop<'a, P: Probe>(
        &'a mut self,
        now: Instant,
        pool: &'a mut Pool,
        probe: &'a mut P,
    ) -> (Hop<'a, P>, &'a mut Load) {
        let place = Place::Link(self.parts.link);
        let LinkCounters { drops, marks, .. } = &mut self.counters;
        // When it will have done with the frame in its hands is not known; not yet.
        let in_hands = self.frame.is_some();
        let free_at = if in_hands { now + Duration::from_nanos(1) } else { self.sends_until };
        let rng = &mut self.parts.queue_rng;
        let hop = Hop { now, place, pool, probe, rng, drops, marks, free_at };
        (hop, &mut self.parts.load)
    }

    /// The counters as they stand at `now`.
    pub(super) fn counters(&self, now: Instant) -> LinkCounters {
        let mut counters = self.counters;
        counters.busy = counters.busy.saturating_sub(self.sends_until.saturating_since(now));
        let (packets, bytes) = self.waiting();
        let span = u128::from(now.saturating_since(self.queue_since).as_nanos());
        counters.queue_area_packets += u128::from(packets) * span;
        counters.queue_area_bytes += u128::from(bytes) * span;
        counters.queue_packets = packets;
        counters.queue_bytes = bytes;
        counters
    }

    /// Brings the integrals of the queue's length up to `now`, before the length changes.
    fn note_queue(&mut self, now: Instant) {
        let (packets, bytes) = self.waiting();
        let span = u128::from((now - self.queue_since).as_nanos());
        self.queue_since = now;
        self.counters.queue_area_packets += u128::from(packets) * span;
        self.counters.queue_area_bytes += u128::from(bytes) * span;
    }
}
