//! A transmitter in a cell: the queue of an access point or station, its current frame and its counters; or a
//! contender, which always has another frame.

use talkspurt_proto::packet::Packet;
use talkspurt_proto::probe::{DropReason, LinkCounters, Note, Place, Probe, Topic};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};

use super::backoff::Backoff;
use super::rates::Rates;
use crate::discipline::{Discipline, Hop, Queue, Served};
use crate::pool::Pool;

/// The parts of a transmitter.
#[derive(Debug)]
pub struct Parts {
    /// Its index among links, for notes.
    pub link: u32,
    /// Source of its frames.
    pub load: Load,
    /// The rate control towards each receiver.
    pub rates: Vec<Rates>,
    /// Rng of the backoff and of sampled rates.
    pub rng: Rng,
    /// Rng of the queue's discipline.
    pub queue_rng: Rng,
    /// Rng of the channel.
    pub error_rng: Rng,
}

/// Source of frames.
#[derive(Debug)]
pub enum Load {
    /// From a queue.
    Queue(Box<Queue>),
    /// Always another frame, with an IP packet of this many bytes.
    Saturated(u32),
}

/// A frame that is being sent, including retries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The packet, until it is received at the other end.
    pub(super) packet: Option<Packet>,
    /// The receiver: a station's number from 1, or 0 for the access point.
    pub(super) to: u16,
    /// Bytes of IP packet.
    pub(super) ip_bytes: u32,
    /// Failed transmissions, as counted against the short and the long retry limit.
    pub(super) failed: (u32, u32),
    /// Data frames that were not acknowledged.
    pub(super) unacknowledged: u32,
    /// A contender's: it was received and counted.
    pub(super) counted: bool,
}

/// A running transmitter.
#[derive(Debug)]
pub(super) struct Transmitter {
    pub(super) parts: Parts,
    pub(super) frame: Option<Frame>,
    pub(super) counters: LinkCounters,
    /// When its last transmission releases the channel.
    pub(super) sends_until: Instant,
    queue_since: Instant,
    /// The receiver of packets by route.
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

    /// Which of its receivers the current frame is for; a station has only one.
    pub(super) fn receiver(&self) -> usize {
        self.frame.map_or(0, |frame| usize::from(frame.to).saturating_sub(1))
    }

    /// Queued packets and bytes.
    pub(super) fn waiting(&self) -> (u32, u64) {
        match &self.parts.load {
            Load::Queue(queue) => (queue.packets(), queue.bytes()),
            Load::Saturated(_) => (0, 0),
        }
    }

    /// Queues a packet for a receiver, or refuses it.
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

    /// Its turn: takes the next frame unless it has one. False if there is none now; `backoff` then knows when
    /// there may be one.
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

    /// Gives up the current frame; returns the packet lost by this. A packet that was received but not
    /// acknowledged is not lost.
    pub(super) fn give_up(&mut self) -> Option<Packet> {
        let frame = self.frame.take()?;
        if frame.packet.is_none() && self.is_saturated() && !frame.counted {
            self.counters.drops[DropReason::Retries as usize] += 1;
        }
        frame.packet
    }

    /// Records a transmission that occupies the channel.
    pub(super) fn sends(&mut self, from: Instant, until: Instant) {
        self.counters.busy += until - from;
        self.sends_until = until;
    }

    /// The context for a discipline, and the source of frames.
    pub(super) fn hop<'a, P: Probe>(
        &'a mut self,
        now: Instant,
        pool: &'a mut Pool,
        probe: &'a mut P,
    ) -> (Hop<'a, P>, &'a mut Load) {
        let place = Place::Link(self.parts.link);
        let LinkCounters { drops, marks, .. } = &mut self.counters;
        // When the current frame will be finished is not known yet.
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

    /// Updates the integrals of the queue length to `now`, before the length changes.
    fn note_queue(&mut self, now: Instant) {
        let (packets, bytes) = self.waiting();
        let span = u128::from((now - self.queue_since).as_nanos());
        self.queue_since = now;
        self.counters.queue_area_packets += u128::from(packets) * span;
        self.counters.queue_area_bytes += u128::from(bytes) * span;
    }
}
