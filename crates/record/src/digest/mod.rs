//! The digest of a run: the same on any machine, with any other probes, and however the notes of different
//! places interleave.
//!
//! Each place has a stream of records, a fixed sequence of words per kind, which are hashed as they arrive
//! ([`hash`]); the streams' hashes, in order of places, are hashed into the digest. A record contains every
//! field of its note and starts with a pair of words that contains its kind, so that no record is the
//! beginning of another. Deliberately excluded: the pool slot of a body (it depends on when slots are
//! recycled); the bytes of recorded speech, of which only the length is hashed (a recording is resampled in
//! floating point if its rate differs from the codec's, and the last bit depends on the processor); and the
//! head-of-line waiting time of messages, which follows from arrivals and deliveries.

mod body;
mod hash;

use talkspurt_proto::body::Body;
use talkspurt_proto::endpoint::Event;
use talkspurt_proto::packet::Packet;
use talkspurt_proto::prefetch::prefetch;
use talkspurt_proto::probe::{Messages, Note, Place, Playout, Probe, StackNote, Topic, Units};
use talkspurt_proto::time::Instant;

use self::hash::{Hash, halves, quarters};
use crate::layout::Layout;

/// A probe that hashes everything.
pub struct Digest {
    /// By index of the link.
    links: Box<[Link]>,
    /// By number of the peer.
    peers: Box<[Hash]>,
}

/// The hashes of a link: of all its notes, and of those before the last packet that found its queue empty.
#[derive(Clone, Copy)]
struct Link {
    hash: Hash,
    before: Hash,
}

impl Link {
    const EMPTY: Self = Self { hash: Hash::EMPTY, before: Hash::EMPTY };

    #[inline(always)]
    fn take(&mut self, now: Instant, note: &Note<'_>) {
        match *note {
            Note::Enqueued { packets: 1, .. } => self.before = self.hash,
            Note::Dequeued { packet, packets: 0, bytes: 0 } if self.was_enqueued(now, packet) => {
                self.hash = passed(self.before, now, packet);
                return;
            }
            _ => {}
        }
        self.hash = add(self.hash, now, note);
    }

    /// Whether the last note is that this packet was enqueued now, as the only one.
    #[inline(never)]
    fn was_enqueued(&self, now: Instant, packet: &Packet) -> bool {
        let bytes = packet.ip_bytes.into();
        add(self.before, now, &Note::Enqueued { packet, packets: 1, bytes }) == self.hash
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Digest").field("hex", &self.hex()).finish_non_exhaustive()
    }
}

impl Digest {
    /// The digest of an empty run with this many directions of links and peers. Those without a note do not
    /// count. A note of any other place panics.
    #[must_use]
    pub fn new(links: usize, peers: usize) -> Self {
        Self { links: vec![Link::EMPTY; links].into(), peers: vec![Hash::EMPTY; peers].into() }
    }

    /// The digest of an empty run with the places of `layout`.
    #[must_use]
    pub fn of(layout: &Layout) -> Self {
        Self::new(layout.links.len(), 2 * layout.flows.len())
    }

    /// The digest of the notes so far, as 32 hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        let mut all = Hash::EMPTY;
        let links = (0..).zip(&self.links).map(|(index, link)| (0, index, link.hash));
        let peers = (0..).zip(&self.peers).map(|(index, hash)| (1, index, *hash));
        for (kind, index, hash) in links.chain(peers).filter(|(.., hash)| *hash != Hash::EMPTY) {
            all = all.pair(halves(index, kind), 0).hash(hash);
        }
        format!("{:032x}", all.finish())
    }
}

/// The place with this index. An index expression would load the number of places for its message.
#[inline(always)]
fn known<T>(places: &mut [T], index: u32) -> &mut T {
    places.get_mut(index as usize).unwrap_or_else(|| unknown())
}

#[cold]
#[inline(never)]
fn unknown() -> ! {
    panic!("a note of a place that the run does not have");
}

impl Probe for Digest {
    #[inline(always)]
    fn wants(&self, topic: Topic) -> bool {
        topic != Topic::Order
    }
    // Each place in the code that creates a note contains only the branch for its kind.
    #[inline(always)]
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        match place {
            Place::Link(index) => known(&mut self.links, index).take(now, note),
            Place::Peer(index) => {
                let hash = known(&mut self.peers, index);
                *hash = add(*hash, now, note);
            }
        }
    }
    #[inline(always)]
    fn prefetch(&self, peer: u32, _receives: bool) {
        if let Some(hash) = self.peers.get(peer as usize) {
            prefetch(hash, 1);
        }
    }
    #[inline(always)]
    fn record_two(&mut self, now: Instant, place: Place, first: &Note<'_>, second: &Note<'_>) {
        match (place, first, second) {
            (
                Place::Link(index),
                Note::Enqueued { packet, packets: 1, .. },
                Note::Dequeued { packets: 0, bytes: 0, .. },
            ) => {
                let link = known(&mut self.links, index);
                link.hash = passed(link.hash, now, packet);
            }
            _ => {
                self.record(now, place, first);
                self.record(now, place, second);
            }
        }
    }
    #[inline(always)]
    fn record_units(&mut self, now: Instant, place: Place, units: Units) {
        let Place::Peer(index) = place else { unknown() };
        let place = known(&mut self.peers, index);
        let Units { first, end, bytes, captured } = units;
        let (mut hash, mut index) = (*place, first);
        // There is at least one.
        loop {
            let generated = Note::Generated { index, bytes, captured };
            hash = add(add(hash, now, &generated), now, &Note::HandedOver { index });
            index += 1;
            if index >= end {
                break;
            }
        }
        *place = hash;
    }
}

/// The word that starts a record: the time, the kind of the note, which is less than 128, and its form.
/// Kind and form are in the lower bits, which are mixed best, and which the time leaves free: it has 48
/// bits in the engine.
#[inline(always)]
const fn head(now: Instant, kind: u8, form: u8) -> u64 {
    now.as_nanos().rotate_left(15) ^ (kind as u64 | (form as u64) << 7)
}

/// Adds a record. Numbers of kinds never change: a new kind of note takes a new number.
#[inline(always)]
fn add(hash: Hash, now: Instant, note: &Note<'_>) -> Hash {
    let short = |kind, form, word| hash.pair(word, head(now, kind, form));
    let long = |kind, form, word, more| short(kind, form, word).pair(more, 0);
    match *note {
        Note::Enqueued { packet, packets, bytes } => {
            label(hash, head(now, 0, 0), packet).pair(bytes, packets.into())
        }
        Note::Dequeued { packet, packets, bytes } => {
            label(hash, head(now, 1, 0), packet).pair(bytes, packets.into())
        }
        Note::Arrived { packet } => label(hash, head(now, 2, 0), packet),
        Note::Dropped { packet, why } => label(hash, head(now, 3, why as u8), packet),
        Note::Sent { packet, body } => packet_and_body(hash, now, 4, packet, body),
        Note::Received { packet, body } => {
            // The label is in memory and is read as four words; otherwise the compiler assembles a word from
            // bytes that it has read before.
            packet_and_body(hash, now, 5, std::hint::black_box(packet), body)
        }
        Note::Generated { index, bytes, captured } => {
            long(6, 0, halves(index, bytes), captured.as_nanos())
        }
        Note::HandedOver { index } => short(7, 0, index.into()),
        Note::Discarded { index } => short(8, 0, index.into()),
        Note::Delivered { index, bytes } => short(9, 0, halves(index, bytes)),
        Note::Decided { index, playout } => {
            let (form, at) = match playout {
                Playout::Played(at) => (0, at),
                Playout::Late(at) => (1, at),
                Playout::Duplicate => (2, Instant::ZERO),
                Playout::Recovered(at) => (3, at),
            };
            long(10, form, index.into(), at.as_nanos())
        }
        Note::Gauge { gauge, value } => short(11, gauge as u8, value.to_bits()),
        Note::Event(event) => {
            let rate = if let Event::TargetRate(rate) = event { rate.as_bps() } else { 0 };
            short(12, event_number(event), rate)
        }
        Note::RxError(error) => short(13, error as u8, 0),
        Note::Stack(note) => add_stack(hash, now, &note),
        Note::Answered { refused, packet, body } => {
            packet_and_body(label(hash, head(now, 14, 0), refused), now, 14, packet, body)
        }
        Note::Marked { packet } => label(hash, head(now, 15, 0), packet),
        Note::Copied { packet, body } => packet_and_body(hash, now, 16, packet, body),
        Note::InOrder { waited } => short(17, 0, waited.as_nanos()),
        Note::Paused { index, length } => long(18, 0, index.into(), length.as_nanos()),
        Note::Encoding(rung) => short(19, rung, 0),
        Note::Cut { packet, body, .. } => packet_and_body(hash, now, 21, packet, body),
        Note::Picture { is_key } => short(23, is_key.into(), 0),
        // The packet itself is in the digest.
        Note::Repair { .. } => hash,
    }
}

/// Adds a note of an external stack.
#[cold]
fn add_stack(hash: Hash, now: Instant, note: &StackNote) -> Hash {
    let short = |form, word| hash.pair(word, head(now, 22, form));
    match *note {
        StackNote::Is { name, version } => {
            short(0, 0).bytes(name.as_bytes()).bytes(version.as_bytes())
        }
        StackNote::Gauge { name, value } => short(1, value.to_bits()).bytes(name.as_bytes()),
        StackNote::Messages(Messages { accepted, delivered, discarded, lost, open }) => {
            // No count is 2⁶⁴ − 1.
            short(2, accepted).pair(delivered, discarded).pair(lost, open.unwrap_or(u64::MAX))
        }
    }
}

/// Adds the one record of the two notes about a packet that passes an idle link.
#[inline(always)]
fn passed(hash: Hash, now: Instant, packet: &Packet) -> Hash {
    label(hash, head(now, 20, 0), packet)
}

/// All of a label but the pool slot. The length of a packet, at most 65 535 bytes, is in the 16 bits of a word
/// that the time leaves free.
#[inline(always)]
fn label(hash: Hash, head: u64, packet: &Packet) -> Hash {
    let Packet { body: _, ip_bytes, route, flow, hop, ecn, dscp, version, number, sent } = packet;
    let sent = sent.as_nanos().rotate_left(16) ^ u64::from(*ip_bytes);
    let header = quarters([*hop, *ecn as u8, *dscp, *version as u8]);
    hash.pair(head, halves(*route, *flow)).pair(sent, halves(header, *number))
}

#[inline(always)]
fn packet_and_body(hash: Hash, now: Instant, kind: u8, packet: &Packet, body: &Body) -> Hash {
    let start = |form| label(hash, head(now, kind, form), packet);
    // The most frequent formats are added in place.
    if let Body::Tcp(segment) = body {
        body::add_segment(start(1), segment)
    } else if let Body::Udp(frame) = body {
        body::add_frame(start(0), frame)
    } else {
        body::add(start(body::number(body)), body)
    }
}

const fn event_number(event: Event) -> u8 {
    match event {
        Event::Connected => 0,
        Event::PeerClosed => 1,
        Event::Closed => 2,
        Event::Reset => 3,
        Event::TimedOut => 4,
        Event::Writable => 5,
        Event::TargetRate(_) => 6,
        Event::Restarted => 7,
    }
}
