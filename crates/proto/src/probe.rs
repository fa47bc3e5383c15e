//! Passive observation: every component reports to a [`Probe`], which changes nothing.
//!
//! `()` is the probe that declines every note and compiles away; a pair of probes is a probe.

use crate::body::Body;
use crate::endpoint::Event;
use crate::gauge::{EndpointNote, EndpointProbe};
pub use crate::gauge::{Gauge, Messages, RxError, StackNote, Topic};
use crate::packet::Packet;
use crate::time::{Duration, Instant};

/// [`Packet::number`] of a packet that no peer sent, such as a router's Packet Too Big or a copy made
/// by a medium: it counts for no flow.
pub const UNNUMBERED: u32 = u32::MAX;

/// Where a note was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The link with this index.
    Link(u32),
    /// The peer with this index: twice the flow's number, plus one at the answering side.
    Peer(u32),
}

/// Why a link dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DropReason {
    /// The queue was full.
    Full = 0,
    /// The discipline dropped it before the queue was full.
    Early = 1,
    /// Lost or damaged on the medium.
    Medium = 2,
    /// The link was down.
    Down = 3,
    /// Longer than the link's MTU (a Packet Too Big went back).
    TooBig = 4,
    /// Not acknowledged within a radio's retry limit.
    Retries = 5,
}

impl DropReason {
    /// How many reasons there are: the length of a table indexed by them.
    pub const COUNT: usize = 6;
}

/// State of a queue discipline at a sample; `None` for quantities it does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Control {
    /// Average queue in packets; in byte mode, in packets of mean length (RED).
    pub average_packets: Option<f64>,
    /// Probability of a drop or mark by the average or the controller alone, 0 to 1 (RED: p_b; RFC 8033
    /// §4.2: drop_prob; RFC 9332 Figure 6: p_C).
    pub drop_probability: Option<f64>,
    /// Drops or marks per second according to the control law, 0 while it does not drop (RFC 8289
    /// §5.5: √count/interval; summed if each flow has its own law).
    pub drops_per_second: Option<f64>,
    /// Token bucket level in bytes (RFC 2697 §3: Tc) at the last request.
    pub tokens_bytes: Option<f64>,
}

/// Counters of one direction of a link since the start of the run, as of a sample. Sums never
/// decrease, so that a span's values are the differences between its two ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkCounters {
    /// Packets whose transmission began.
    pub sent_packets: u64,
    /// Their bytes of IP packet.
    pub sent_bytes: u64,
    /// Packets dropped, by [`DropReason`].
    pub drops: [u64; DropReason::COUNT],
    /// Packets that a queue marked with Congestion Experienced.
    pub marks: u64,
    /// Radio transmissions of a frame after its first.
    pub retries: u64,
    /// Radio transmissions that collided.
    pub collisions: u64,
    /// Time the transmitter has been busy; for a radio, the channel time of its transmissions and of
    /// the responses to them.
    pub busy: Duration,
    /// Integral over time of the rate at which it could send, zero during outages, in bit/s times
    /// nanoseconds; `None` for a radio, whose rate depends on the other stations.
    pub capacity: Option<u128>,
    /// Integral of the queue's length over time, in packets times nanoseconds.
    pub queue_area_packets: u128,
    /// Integral of the queue's length over time, in bytes times nanoseconds.
    pub queue_area_bytes: u128,
    /// Packets waiting now, excluding the one in transmission.
    pub queue_packets: u32,
    /// Their bytes of IP packet.
    pub queue_bytes: u64,
    /// Maximum number of packets waiting since the last sample, including those waiting then.
    pub queue_max_packets: u32,
    /// State of the queue discipline.
    pub control: Control,
}

/// Outcome of a frame at the playout buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Playout {
    /// In time; its first sample is played at this instant, in true time.
    Played(Instant),
    /// Never arrived in time, but its sound was in a later packet; its first sample is played at this instant,
    /// in true time.
    Recovered(Instant),
    /// Discarded: it arrived after this playout instant.
    Late(Instant),
    /// Seen before.
    Duplicate,
}

/// One observation.
#[derive(Debug)]
pub enum Note<'a> {
    /// Link: the packet was accepted; its label is as received, and `packets` and `bytes` include it.
    Enqueued {
        /// Its label.
        packet: &'a Packet,
        /// Packets waiting.
        packets: u32,
        /// Bytes waiting.
        bytes: u64,
    },
    /// Link: its transmission began.
    Dequeued {
        /// Its label.
        packet: &'a Packet,
        /// Packets still waiting.
        packets: u32,
        /// Bytes still waiting.
        bytes: u64,
    },
    /// Link: it reached the far end.
    Arrived {
        /// Its label.
        packet: &'a Packet,
    },
    /// Link: the packet was dropped.
    Dropped {
        /// Its label.
        packet: &'a Packet,
        /// Why.
        why: DropReason,
    },
    /// Link: its queue marked it with Congestion Experienced (RFC 3168 §5).
    Marked {
        /// Its label, marked.
        packet: &'a Packet,
    },
    /// Peer: it left towards the first link.
    Sent {
        /// Its label.
        packet: &'a Packet,
        /// What it carries.
        body: &'a Body,
    },
    /// Link: the router before it refused a packet and answered (RFC 1191, RFC 8201).
    Answered {
        /// Label of the packet that was refused.
        refused: &'a Packet,
        /// Label of the answer.
        packet: &'a Packet,
        /// What it carries.
        body: &'a Body,
    },
    /// Link: its medium made a copy of a packet, which arrives too.
    Copied {
        /// Label of the copy.
        packet: &'a Packet,
        /// What it carries.
        body: &'a Body,
    },
    /// Link: the router before it cut a packet of a real host; a note for each fragment. All have the number
    /// of the packet, and the first has its place.
    Cut {
        /// Label of the fragment.
        packet: &'a Packet,
        /// It is not the first: one more packet with this number is on its way.
        is_more: bool,
        /// What it carries.
        body: &'a Body,
    },
    /// Peer: it was received from the last link.
    Received {
        /// Its label.
        packet: &'a Packet,
        /// What it carries.
        body: &'a Body,
    },
    /// Peer: the source made frame `index` of `bytes`, whose first sample is from `captured`.
    Generated {
        /// Number from 0.
        index: u32,
        /// Bytes of payload.
        bytes: u32,
        /// Instant of its first sample.
        captured: Instant,
    },
    /// Peer: the frame made next begins a picture.
    Picture {
        /// It is decodable without those before it.
        is_key: bool,
    },
    /// Peer: a packet of parity or a retransmission left for the transport, or one that only fills the path.
    Repair {
        /// Bytes of the RTP packet.
        bytes: u32,
        /// It repairs nothing.
        is_padding: bool,
    },
    /// Peer: the frame left the send queue for the transport.
    HandedOver {
        /// Number from 0.
        index: u32,
    },
    /// Peer: the frame was dropped from the send queue.
    Discarded {
        /// Number from 0.
        index: u32,
    },
    /// Peer: the transport delivered the frame.
    Delivered {
        /// Number from 0.
        index: u32,
        /// Bytes of payload.
        bytes: u32,
    },
    /// Peer: the transport delivered a message that had waited this long, possibly zero, while
    /// complete for earlier ones of its stream (RFC 9260 §6.6).
    InOrder {
        /// Time since its last fragment arrived.
        waited: Duration,
    },
    /// Peer: the playout buffer decided on a frame.
    Decided {
        /// Number from 0.
        index: u32,
        /// The outcome.
        playout: Playout,
    },
    /// Peer: playout stood still before a frame, filled by concealment: nothing had arrived to play.
    Paused {
        /// Number of the frame from 0.
        index: u32,
        /// For how long.
        length: Duration,
    },
    /// Peer: an internal quantity has this value.
    Gauge {
        /// Which.
        gauge: Gauge,
        /// In the unit its documentation states.
        value: f64,
    },
    /// Peer: something happened to the connection.
    Event(Event),
    /// Peer: from now on it sends in this encoding, by rung of the ladder; 0 is the best.
    Encoding(u8),
    /// Peer: something from the network was not used.
    RxError(RxError),
    /// Peer: its external stack reports this.
    Stack(StackNote),
}

impl Note<'_> {
    /// The subject of the note.
    #[must_use]
    pub const fn topic(&self) -> Topic {
        match self {
            Note::Enqueued { .. } | Note::Dequeued { .. } | Note::Arrived { .. } => Topic::Hop,
            Note::Dropped { .. } | Note::Marked { .. } => Topic::Drop,
            Note::Sent { .. }
            | Note::Answered { .. }
            | Note::Copied { .. }
            | Note::Cut { .. }
            | Note::Received { .. } => Topic::Packet,
            Note::Generated { .. }
            | Note::Picture { .. }
            | Note::Repair { .. }
            | Note::HandedOver { .. }
            | Note::Discarded { .. }
            | Note::Delivered { .. }
            | Note::Paused { .. }
            | Note::Decided { .. } => Topic::Frame,
            Note::Gauge { .. } | Note::Stack(StackNote::Gauge { .. }) => Topic::Gauge,
            Note::Event(_) | Note::Encoding(_) | Note::RxError(_) | Note::Stack(_) => Topic::Event,
            Note::InOrder { .. } => Topic::Order,
        }
    }
}

/// Consecutive units of bulk data, at least one, that are generated and handed over at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Units {
    /// Number of the first.
    pub first: u32,
    /// One more than the number of the last.
    pub end: u32,
    /// Bytes of each.
    pub bytes: u32,
    /// When they were captured.
    pub captured: Instant,
}

impl Units {
    /// [`Note::Generated`] and [`Note::HandedOver`] of each.
    pub fn notes(self) -> impl Iterator<Item = (Note<'static>, Note<'static>)> {
        let Self { first, end, bytes, captured } = self;
        let both =
            move |index| (Note::Generated { index, bytes, captured }, Note::HandedOver { index });
        (first..end).map(both)
    }
}

/// An observer.
pub trait Probe {
    /// Whether notes on this topic are wanted; components do not create others.
    fn wants(&self, topic: Topic) -> bool;
    /// Takes a note. Notes of one place are in time order; those of different places may not be.
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>);
    /// Takes two notes of the same place, instant and topic. A probe may handle them faster together.
    #[inline(always)]
    fn record_two(&mut self, now: Instant, place: Place, first: &Note<'_>, second: &Note<'_>) {
        self.record(now, place, first);
        self.record(now, place, second);
    }
    /// Takes the notes of these units. A probe may handle them faster together.
    #[inline(always)]
    fn record_units(&mut self, now: Instant, place: Place, units: Units) {
        for (generated, handed_over) in units.notes() {
            self.record_two(now, place, &generated, &handed_over);
        }
    }
    /// Notes of this peer will come soon, of what it sends or of what it `receives`: a probe may request its
    /// data from memory.
    #[inline(always)]
    fn prefetch(&self, _peer: u32, _receives: bool) {}
    /// All notes before `now` have been recorded; notes held back for sorting can be released.
    fn settled(&mut self, _now: Instant) {}
}

/// Every observer of a run observes endpoints too; the driver of an endpoint supplies the place.
impl<P: Probe + ?Sized> EndpointProbe for P {
    #[inline(always)]
    fn observes(&self, topic: Topic) -> bool {
        self.wants(topic)
    }
    #[inline(always)]
    fn note(&mut self, now: Instant, note: EndpointNote) {
        let note = match note {
            EndpointNote::Gauge { gauge, value } => Note::Gauge { gauge, value },
            EndpointNote::RxError(error) => Note::RxError(error),
            EndpointNote::Stack(note) => Note::Stack(note),
        };
        self.record(now, Place::Peer(0), &note);
    }
}

impl Probe for () {
    #[inline(always)]
    fn wants(&self, _: Topic) -> bool {
        false
    }
    #[inline(always)]
    fn record(&mut self, _: Instant, _: Place, _: &Note<'_>) {}
}

impl<T: Probe + ?Sized> Probe for &mut T {
    #[inline(always)]
    fn wants(&self, topic: Topic) -> bool {
        (**self).wants(topic)
    }
    #[inline(always)]
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        (**self).record(now, place, note);
    }
    #[inline(always)]
    fn record_two(&mut self, now: Instant, place: Place, first: &Note<'_>, second: &Note<'_>) {
        (**self).record_two(now, place, first, second);
    }
    #[inline(always)]
    fn record_units(&mut self, now: Instant, place: Place, units: Units) {
        (**self).record_units(now, place, units);
    }
    #[inline(always)]
    fn prefetch(&self, peer: u32, receives: bool) {
        (**self).prefetch(peer, receives);
    }
    #[inline(always)]
    fn settled(&mut self, now: Instant) {
        (**self).settled(now);
    }
}

impl<A: Probe, B: Probe> Probe for (A, B) {
    #[inline(always)]
    fn wants(&self, topic: Topic) -> bool {
        self.0.wants(topic) || self.1.wants(topic)
    }
    #[inline(always)]
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        if self.0.wants(note.topic()) {
            self.0.record(now, place, note);
        }
        if self.1.wants(note.topic()) {
            self.1.record(now, place, note);
        }
    }
    #[inline(always)]
    fn record_two(&mut self, now: Instant, place: Place, first: &Note<'_>, second: &Note<'_>) {
        if self.0.wants(first.topic()) {
            self.0.record_two(now, place, first, second);
        }
        if self.1.wants(first.topic()) {
            self.1.record_two(now, place, first, second);
        }
    }
    #[inline(always)]
    fn record_units(&mut self, now: Instant, place: Place, units: Units) {
        if self.0.wants(Topic::Frame) {
            self.0.record_units(now, place, units);
        }
        if self.1.wants(Topic::Frame) {
            self.1.record_units(now, place, units);
        }
    }
    #[inline(always)]
    fn prefetch(&self, peer: u32, receives: bool) {
        self.0.prefetch(peer, receives);
        self.1.prefetch(peer, receives);
    }
    #[inline(always)]
    fn settled(&mut self, now: Instant) {
        self.0.settled(now);
        self.1.settled(now);
    }
}

impl<T: Probe> Probe for Option<T> {
    #[inline(always)]
    fn wants(&self, topic: Topic) -> bool {
        self.as_ref().is_some_and(|probe| probe.wants(topic))
    }
    #[inline(always)]
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        if let Some(probe) = self {
            probe.record(now, place, note);
        }
    }
    #[inline(always)]
    fn record_two(&mut self, now: Instant, place: Place, first: &Note<'_>, second: &Note<'_>) {
        if let Some(probe) = self {
            probe.record_two(now, place, first, second);
        }
    }
    #[inline(always)]
    fn record_units(&mut self, now: Instant, place: Place, units: Units) {
        if let Some(probe) = self {
            probe.record_units(now, place, units);
        }
    }
    #[inline(always)]
    fn prefetch(&self, peer: u32, receives: bool) {
        if let Some(probe) = self {
            probe.prefetch(peer, receives);
        }
    }
    #[inline(always)]
    fn settled(&mut self, now: Instant) {
        if let Some(probe) = self {
            probe.settled(now);
        }
    }
}

/// An endpoint's view of a probe: the endpoint does not know which peer it is, nor true time.
/// This wraps the world's probe and stamps both.
#[derive(Debug)]
pub struct Stamped<'a, P> {
    /// The world's probe.
    pub probe: &'a mut P,
    /// True time.
    pub now: Instant,
    /// Which peer this is, as in [`Place::Peer`].
    pub peer: u32,
}

impl<P> Stamped<'_, P> {
    /// The place of its notes.
    #[inline(always)]
    #[must_use]
    pub const fn place(&self) -> Place {
        Place::Peer(self.peer)
    }
}

impl<P: Probe> Probe for Stamped<'_, P> {
    #[inline(always)]
    fn wants(&self, topic: Topic) -> bool {
        self.probe.wants(topic)
    }
    #[inline(always)]
    fn record(&mut self, _local: Instant, _: Place, note: &Note<'_>) {
        self.probe.record(self.now, self.place(), note);
    }
    #[inline(always)]
    fn record_two(&mut self, _local: Instant, _: Place, first: &Note<'_>, second: &Note<'_>) {
        self.probe.record_two(self.now, self.place(), first, second);
    }
    #[inline(always)]
    fn record_units(&mut self, _local: Instant, _: Place, units: Units) {
        self.probe.record_units(self.now, self.place(), units);
    }
}
