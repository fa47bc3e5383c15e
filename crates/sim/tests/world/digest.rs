//! The digest of real runs of every transport: it changes with every change of a single note, however
//! small, and with nothing else.

use std::collections::BTreeMap;
use std::mem::discriminant;
use std::num::NonZeroU32;

use bytes::Bytes;
use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::{self, Kind, WireSeq};
use talkspurt_proto::endpoint::Event;
use talkspurt_proto::external::{Class, Datagram};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Ecn, IpVersion, Packet, PacketBox, Payload, Quote, Quoted};
use talkspurt_proto::probe::{
    DropReason, Gauge, Messages, Note, Place, Playout, Probe, RxError, StackNote,
};
use talkspurt_proto::sctp::{self, Chunk};
use talkspurt_proto::tcp::{self, Flags, SackBlocks};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;
use talkspurt_proto::{rtcp, rtp, tfrc};
use talkspurt_record::Digest;

use crate::external::register_twice;
use crate::support::{self, Look, flow, link, point, scenario};

/// The engine's times have 48 bits of nanoseconds, and IP packets at most 65 535 bytes (RFC 791 §3.1).
const TIME_BITS: u32 = 48;
/// Bits of the bytes in a queue: 281 TB.
const QUEUE_BITS: usize = 48;
/// Bits of offsets in a stream of bytes: 281 TB.
const OFFSET_BITS: u32 = 48;
/// Bits of numbers of flows and routes: 16 million.
const INDEX_BITS: usize = 24;
/// Of what is not in the digest.
const NO_BITS: usize = 0;
/// Bits of numbers of packets: 268 million of one endpoint.
const COUNT_BITS: usize = 28;

/// A note that owns its data.
#[derive(Clone, Debug)]
struct Entry {
    now: Instant,
    note: Owned,
}

impl Entry {
    fn tell(&self, place: Place, digest: &mut Digest) {
        let note = self.note.lent();
        if digest.wants(note.topic()) {
            digest.record(self.now, place, &note);
        }
    }
}

/// All values that differ from this one in a bit of one field, or in the value of an enum.
trait Varied: Clone {
    fn variants(&self) -> Vec<Self>;
}

fn into<T: Varied, U>(value: &T, whole: impl Fn(T) -> U) -> Vec<U> {
    value.variants().into_iter().map(whole).collect()
}

/// Owned notes by kind: what a note borrows, what it has by value, and how many bits of that vary.
macro_rules! notes {
    ($($kind:ident($($lent:ident: $of:ty),*) { $($field:ident: $type:ty $([$bits:ident])?),* })*
     $(; $tuple:ident($only:ty))*) => {
        #[derive(Clone, Debug)]
        enum Owned {
            $($kind { $($lent: $of,)* $($field: $type,)* },)*
            $($tuple($only),)*
        }

        impl Owned {
            fn of(note: &Note<'_>) -> Self {
                match note {
                    $(Note::$kind { $($lent,)* $($field,)* } => Self::$kind {
                        $($lent: <$of>::clone($lent),)*
                        $($field: *$field,)*
                    },)*
                    $(Note::$tuple(it) => Self::$tuple(*it),)*
                }
            }

            fn lent(&self) -> Note<'_> {
                match self {
                    $(Self::$kind { $($lent,)* $($field,)* } => {
                        Note::$kind { $($lent,)* $($field: *$field,)* }
                    })*
                    $(Self::$tuple(it) => Note::$tuple(*it),)*
                }
            }

            fn of_the_same_kind(&self) -> Vec<Self> {
                let mut all = Vec::new();
                macro_rules! vary {
                    ($owner:ident, $part:ident, $values:expr) => {
                        for value in $values {
                            let mut note = self.clone();
                            if let Self::$owner { $part, .. } = &mut note {
                                *$part = value;
                            }
                            all.push(note);
                        }
                    };
                }
                match self {
                    $(Self::$kind { $($lent,)* $($field,)* } => {
                        $(vary!($kind, $lent, $lent.variants());)*
                        $(vary!($kind, $field, $field.variants().into_iter()$(.take($bits))?);)*
                    })*
                    $(Self::$tuple(it) => all.extend(into(it, Self::$tuple)),)*
                }
                all
            }
        }
    };
}
notes! {
    Enqueued(packet: Packet) { packets: u32 [COUNT_BITS], bytes: u64 [QUEUE_BITS] }
    Dequeued(packet: Packet) { packets: u32 [COUNT_BITS], bytes: u64 [QUEUE_BITS] }
    Arrived(packet: Packet) {}
    Dropped(packet: Packet) { why: DropReason }
    Marked(packet: Packet) {}
    Sent(packet: Packet, body: Body) {}
    Received(packet: Packet, body: Body) {}
    Answered(refused: Packet, packet: Packet, body: Body) {}
    Copied(packet: Packet, body: Body) {}
    Cut(packet: Packet, body: Body) { is_more: bool }
    Generated() { index: u32, bytes: u32, captured: Instant }
    HandedOver() { index: u32 }
    Discarded() { index: u32 }
    Delivered() { index: u32, bytes: u32 }
    InOrder() { waited: Duration }
    Decided() { index: u32, playout: Playout }
    Paused() { index: u32, length: Duration }
    Picture() { is_key: bool }
    // Not in the digest: the packet is.
    Repair() { bytes: u32 [NO_BITS], is_padding: bool [NO_BITS] }
    Gauge() { gauge: Gauge, value: f64 }
    ; Event(Event) ; Encoding(u8) ; RxError(RxError) ; Stack(StackNote)
}

impl Varied for Entry {
    fn variants(&self) -> Vec<Self> {
        let mut all = into(&self.now, |now| Self { now, note: self.note.clone() });
        all.extend(into(&self.note, |note| Self { now: self.now, note }));
        all
    }
}

impl Varied for Owned {
    fn variants(&self) -> Vec<Self> {
        let mut all = self.of_the_same_kind();
        match self.clone() {
            Self::Enqueued { packet, packets, bytes } => {
                all.extend([Self::Dequeued { packet, packets, bytes }, Self::Arrived { packet }]);
            }
            Self::Arrived { packet } => all.push(Self::Marked { packet }),
            Self::Dropped { packet, .. } => all.push(Self::Arrived { packet }),
            Self::Sent { packet, body } => all.extend([
                Self::Received { packet, body: body.clone() },
                Self::Copied { packet, body: body.clone() },
                Self::Cut { packet, is_more: false, body },
            ]),
            Self::HandedOver { index } => all.push(Self::Discarded { index }),
            Self::RxError(_) => all.push(Self::Encoding(0)),
            _ => {}
        }
        all
    }
}

macro_rules! numbers {
    ($($type:ty)*) => {
        $(impl Varied for $type {
            fn variants(&self) -> Vec<Self> {
                (0..Self::BITS).map(|bit| self ^ 1 << bit).collect()
            }
        })*
    };
}
numbers! { u8 u16 u32 u64 }

/// The fields that vary, some only in their lower bits.
macro_rules! fields {
    ($($type:ty { $($field:ident $([$bits:expr])?),* })*) => {
        $(impl Varied for $type {
            fn variants(&self) -> Vec<Self> {
                let mut all = Vec::new();
                $(for value in self.$field.variants().into_iter()$(.take($bits))? {
                    let mut varied = self.clone();
                    varied.$field = value;
                    all.push(varied);
                })*
                all
            }
        })*
    };
}
fields! {
    Packet {
        ip_bytes [16], route [INDEX_BITS], flow [INDEX_BITS], number [COUNT_BITS], hop, dscp, sent, version,
        ecn
    }
    tcp::Segment {
        seq, ack, window, flags, mss, window_scale, sack_permitted, timestamps, sack, payload
    }
    dccp::Packet { ccval [4], cscov [4], seq, kind, options, payload }
    tfrc::Feedback { timestamp, delay, receive_rate, loss_event_rate }
    tfrc::Data { seq, timestamp, rtt, payload }
    sctp::Packet { tag, chunks }
    sctp::Data { tsn, stream, ppid, immediate, unordered, beginning, ending, payload }
    sctp::Sack { cumulative, a_rwnd, gaps }
    Datagram { media, payload, class, header, content }
    Quote { ip_bytes, mark, ttl, dscp, transport }
    rtp::Packet {
        payload_type, sequence, timestamp, ssrc, marker, csrc, transport, padding, payload
    }
    rtcp::Compound { ssrc, bye }
    Messages {
        accepted [COUNT_BITS], delivered [COUNT_BITS], discarded [COUNT_BITS], lost [COUNT_BITS],
        open [COUNT_BITS]
    }
}

/// Each type with an expression for the variants of a value.
macro_rules! values {
    ($($type:ty: |$it:ident| $variants:expr;)*) => {
        $(impl Varied for $type {
            fn variants(&self) -> Vec<Self> {
                let $it = self;
                $variants
            }
        })*
    };
}
values! {
    bool: |it| vec![!it];
    f64: |it| into(&it.to_bits(), Self::from_bits);
    Rate: |it| into(&it.as_bps(), Self::from_bps);
    Flags: |it| into(&it.0, Self);
    Instant: |it| (0..TIME_BITS).map(|bit| Self::from_nanos(it.as_nanos() ^ 1 << bit)).collect();
    Duration: |it| (0..TIME_BITS).map(|bit| Self::from_nanos(it.as_nanos() ^ 1 << bit)).collect();
    IpVersion: |it| vec![if *it == Self::V4 { Self::V6 } else { Self::V4 }];
    Ecn: |it| [1, 2]
        .map(|bit| [Self::NotEct, Self::Ect1, Self::Ect0, Self::Ce][*it as usize ^ bit])
        .to_vec();
    DropReason: |it| vec![if *it == Self::Full { Self::Early } else { Self::Full }];
    Gauge: |it| vec![if *it == Self::Cwnd { Self::Pipe } else { Self::Cwnd }];
    RxError: |_it| vec![];
    Class: |it| [Self::Data, Self::Retransmission, Self::Control]
        .into_iter()
        .filter(|class| class != it)
        .collect();
    Bytes: |_it| vec![vec![0].into()];
    Option<NonZeroU32>: |it| into(&it.map_or(0, u32::from), NonZeroU32::new);
    Option<Box<SackBlocks>>: |it| {
        let blocks = it.as_ref().map_or(vec![(0, 0)], |sack| sack.as_slice().to_vec());
        into(&blocks, SackBlocks::of)
    };
    dccp::Options: |it| into(&it.as_bytes().to_vec(), |bytes| Self::from_bytes(&bytes));
    Quoted: |it| {
        into(&it.behind_ports().to_vec(), |bytes| Self::new(it.protocol(), &bytes))
    };
    Event: |it| {
        let mut all = vec![if *it == Self::Writable { Self::Connected } else { Self::Writable }];
        if let Self::TargetRate(rate) = it {
            all.extend(into(rate, Self::TargetRate));
        }
        all
    };
    Playout: |it| match it {
        Self::Played(at) => {
            let mut all = into(at, Self::Played);
            all.extend([Self::Late(*at), Self::Recovered(*at)]);
            all
        }
        _ => vec![],
    };
    StackNote: |it| match *it {
        Self::Is { name, version } => [("other", version), (name, "other"), (version, name)]
            .map(|(name, version)| Self::Is { name, version })
            .to_vec(),
        Self::Gauge { name, value } => {
            let mut all = into(&value, |value| Self::Gauge { name, value });
            all.push(Self::Gauge { name: "other", value });
            all
        }
        Self::Messages(messages) => into(&messages, Self::Messages),
    };
    WireSeq: |it| {
        let number = match *it {
            Self::Extended(seq) => seq,
            Self::Short(seq) => seq.into(),
        };
        (0..48).map(|bit| Self::Extended(number ^ 1 << bit)).collect()
    };
    Kind: |it| match it {
        Self::Ack { ack: ack @ WireSeq::Extended(_) }
        | Self::DataAck { ack: ack @ WireSeq::Extended(_) } => into(ack, |ack| Self::Ack { ack }),
        _ => vec![],
    };
    Chunk: |it| match it {
        Self::Data(data) => into(data, Self::Data),
        Self::Sack(sack) => {
            let mut all = into(sack, Self::Sack);
            let (mut doubled, mut gapped) = (sack.clone(), sack.clone());
            doubled.duplicates.push(0);
            gapped.gaps.push((0, 0));
            all.extend([Self::Sack(doubled), Self::Sack(gapped)]);
            all
        }
        _ => vec![Self::Ecne { lowest: 7 }],
    };
    Frame: |it| match it {
        Self::Data(payload) => into(payload, Self::Data),
        Self::Rtp(packet) => into(packet, Self::Rtp),
        Self::Rtcp(compound) => into(&**compound, |it| Self::Rtcp(Box::new(it))),
    };
    // Of real bytes the content does not count, only the length.
    Payload: |it| match it {
        Self::Virtual { offset, len } => {
            let at = (0..OFFSET_BITS).map(|bit| (offset ^ 1 << bit, *len));
            at.chain((0..16).map(|bit| (*offset, len ^ 1 << bit)))
                .map(|(offset, len)| Self::Virtual { offset, len })
                .collect()
        }
        Self::Real(bytes) => vec![Self::Real(vec![0; bytes.len() + 1].into())],
    };
    Body: |it| match it {
        Self::Udp(frame) => into(frame, Self::Udp),
        Self::Tcp(segment) => into(segment, Self::Tcp),
        Self::Dccp(packet) => into(&**packet, |it| Self::Dccp(PacketBox::new(it))),
        Self::Sctp(packet) => {
            let mut fewer = packet.clone();
            fewer.chunks.pop();
            let mut all = into(&**packet, |it| Self::Sctp(PacketBox::new(it)));
            all.push(Self::Sctp(fewer));
            all
        }
        Self::Tfrc(tfrc::Packet::Feedback(it)) => {
            into(it, |it| Self::Tfrc(tfrc::Packet::Feedback(it)))
        }
        Self::Tfrc(tfrc::Packet::Data(it)) => into(it, |it| Self::Tfrc(tfrc::Packet::Data(it))),
        Self::External(datagram) => into(datagram, Self::External),
        Self::TooBig { mtu, quote } => {
            let mut all = into(mtu, |mtu| Self::TooBig { mtu, quote: *quote });
            all.extend(into(quote, |quote| Self::TooBig { mtu: *mtu, quote }));
            all
        }
        Self::Real(_) => unreachable!("no real packet is simulated"),
    };
}

impl<T: Varied + Default> Varied for Option<T> {
    fn variants(&self) -> Vec<Self> {
        into(&self.clone().unwrap_or_default(), Some)
    }
}

impl<A: Varied, B: Varied> Varied for (A, B) {
    fn variants(&self) -> Vec<Self> {
        let mut all = into(&self.0, |first| (first, self.1.clone()));
        all.extend(into(&self.1, |second| (self.0.clone(), second)));
        all
    }
}

impl<T: Varied> Varied for Vec<T> {
    fn variants(&self) -> Vec<Self> {
        let mut all = Vec::new();
        for at in 0..self.len() {
            for value in self[at].variants() {
                let mut varied = self.clone();
                varied[at] = value;
                all.push(varied);
            }
        }
        all
    }
}

/// At least as many links and peers as a script has.
const PLACES: usize = 64;

/// The notes of a run by place.
type Script = BTreeMap<Place, Vec<Entry>>;

fn digest_of(script: &Script) -> String {
    let mut digest = Digest::new(PLACES, PLACES);
    for (place, entries) in script {
        entries.iter().for_each(|entry| entry.tell(*place, &mut digest));
    }
    digest.hex()
}

fn digest_at(place: Place, entries: &[Entry]) -> String {
    let mut digest = Digest::new(PLACES, PLACES);
    entries.iter().for_each(|entry| entry.tell(place, &mut digest));
    digest.hex()
}

/// A scenario with every transport, and every kind of note that a network makes.
fn busy() -> String {
    let red =
        "queue = { kind = 'red', packets = 60, min_threshold = 5, max_threshold = 15, ecn = true }";
    let core = format!("mtu = '1400B'\nduplicate = 0.02\nloss = 0.01\n{red}");
    let speech = "{ kind = 'speech', codec = 'pcmu', talkspurts = {} }";
    let answer = "reverse = { kind = 'speech', codec = 'pcma' }";
    let sack = "{ kind = 'tcp', controller = 'sack', ecn = true }";
    let lasting = "{ kind = 'sctp', ordered = false, lifetime = '100ms' }";
    let mut parts = vec![
        link("in", "a-l", "10Mbit/s", "2ms", ""),
        link("core", "l-r", "3Mbit/s", "20ms", &core),
        link("out", "r-z", "10Mbit/s", "2ms", ""),
        flow("call", "a-z", "udp", speech, answer),
        flow("upload", "a-z", sack, "{ kind = 'bulk' }", ""),
        flow("bbr", "a-z", "{ kind = 'tcp', controller = 'bbr' }", "{ kind = 'bulk' }", ""),
    ];
    for (name, transport) in [
        ("tcp-call", "tcp"),
        ("sctp-call", lasting),
        ("ccid2-call", "{ kind = 'dccp', ccid = 2 }"),
        ("ccid3-call", "{ kind = 'dccp', ccid = 3 }"),
        ("tfrc-call", "{ kind = 'tfrc' }"),
    ] {
        parts.push(flow(name, "a-z", transport, speech, answer));
    }
    parts.push(flow("sctp-bulk", "z-a", "{ kind = 'sctp' }", "{ kind = 'bulk' }", ""));
    // Its data comes after the other side has closed.
    let (ccid2, few) = ("{ kind = 'dccp', ccid = 2 }", "{ kind = 'bulk', total = '20kB' }");
    parts.push(flow("late", "a-z", ccid2, few, "reverse = { kind = 'bulk' }"));
    // On a link of its own, so that the others meet what they need.
    register_twice();
    let twice = "{ kind = 'external', stack = 'twice' }";
    parts.push(link("own", "s-t", "1Mbit/s", "5ms", ""));
    parts.push(flow("stack-call", "s-t", twice, speech, answer));
    scenario("6s", &parts)
}

/// The run's notes, and its digest.
fn told() -> (Script, String) {
    let mut script = Script::new();
    let run = support::watch(&point(&busy()), &Look::default(), |now, place, note| {
        script.entry(place).or_default().push(Entry { now, note: Owned::of(note) });
    });
    (script, run.digest)
}

/// A few notes around the first of each kind at each place, and the index of that one among them.
fn windows(script: &Script) -> Vec<(Place, &[Entry], usize)> {
    let mut windows = Vec::new();
    for (place, entries) in script {
        let mut seen = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let form = match &entry.note {
                Owned::Sent { body, .. } | Owned::Received { body, .. } => match body {
                    Body::Sctp(packet) => packet.chunks.iter().map(discriminant).count() as u32,
                    Body::Tcp(segment) => 100 + u32::from(segment.sack.is_some()),
                    Body::Udp(Frame::Rtcp(_)) => 200,
                    Body::Tfrc(tfrc::Packet::Feedback(_)) => 201,
                    Body::Dccp(packet) => 300 + u32::from(packet.kind.number()),
                    _ => 202,
                },
                Owned::Stack(StackNote::Is { .. }) => 1,
                Owned::Stack(StackNote::Gauge { .. }) => 2,
                _ => 0,
            };
            let kind = (discriminant(&entry.note), form);
            if !matches!(entry.note, Owned::InOrder { .. }) && !seen.contains(&kind) {
                seen.push(kind);
                let start = index.saturating_sub(3);
                windows.push((
                    *place,
                    &entries[start..entries.len().min(index + 4)],
                    index - start,
                ));
            }
        }
    }
    windows
}

#[test]
fn the_order_of_places_does_not_count() {
    let (script, digest) = told();
    // Places one after another instead of in order of time.
    assert_eq!(digest_of(&script), digest);
    let mut backwards = Digest::new(PLACES, PLACES);
    for (place, entries) in script.iter().rev() {
        entries.iter().for_each(|entry| entry.tell(*place, &mut backwards));
    }
    assert_eq!(backwards.hex(), digest);
    // Round robin, each place in its own order.
    let mut mixed = Digest::new(PLACES, PLACES);
    for turn in 0..script.values().map(Vec::len).max().expect("some notes") {
        for (place, entries) in &script {
            entries.iter().skip(turn).take(1).for_each(|entry| entry.tell(*place, &mut mixed));
        }
    }
    assert_eq!(mixed.hex(), digest);
}

#[test]
fn one_bit_of_one_field_of_one_note_changes_it() {
    let (script, _) = told();
    let (mut kinds, mut checked) = (Vec::new(), 0);
    for (place, window, at) in windows(&script) {
        let kind = discriminant(&window[at].note);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
        let mut entries = window.to_vec();
        let mut digests = BTreeMap::from([(digest_at(place, &entries), window[at].clone())]);
        for variant in window[at].variants() {
            entries[at] = variant.clone();
            let other = digests.insert(digest_at(place, &entries), variant.clone());
            assert!(other.is_none(), "{place:?}: {other:?} and {variant:?}");
        }
        checked += digests.len();
    }
    assert_eq!(kinds.len(), 19, "kinds of notes in the run");
    assert!(checked > 50_000, "{checked} changes");
}

#[test]
fn a_note_dropped_doubled_swapped_or_moved_changes_it() {
    let (script, _) = told();
    let mut checked = 0;
    for (place, window, at) in windows(&script) {
        let mut scripts = vec![window.to_vec()];
        for index in 0..window.len() {
            let mut dropped = window.to_vec();
            let entry = dropped.remove(index);
            scripts.push(dropped);
            let mut doubled = window.to_vec();
            doubled.insert(index, entry);
            scripts.push(doubled);
        }
        for index in 1..window.len() {
            let mut swapped = window.to_vec();
            swapped.swap(index - 1, index);
            scripts.push(swapped);
        }
        // Notes that nothing tells apart, and those that do not count, give equal scripts.
        for script in &mut scripts {
            script.retain(|entry| !matches!(entry.note, Owned::InOrder { .. }));
        }
        let mut texts: Vec<String> = scripts.iter().map(|script| format!("{script:?}")).collect();
        let mut digests: Vec<String> =
            scripts.iter().map(|script| digest_at(place, script)).collect();
        for list in [&mut texts, &mut digests] {
            list.sort();
            list.dedup();
        }
        assert_eq!(digests.len(), texts.len(), "{place:?}: {window:?}");
        checked += digests.len();

        let other = match place {
            Place::Link(index) => Place::Link(index ^ 1),
            Place::Peer(index) => Place::Peer(index ^ 1),
        };
        let both = |here: &[Entry], there: &[Entry]| {
            digest_of(&Script::from([(place, here.to_vec()), (other, there.to_vec())]))
        };
        let (here, there) = (&window[..at], &window[at..]);
        assert_ne!(both(here, there), both(&window[..=at], &window[at + 1..]));
        assert_ne!(both(here, there), both(there, here));
    }
    assert!(checked > 2_000, "{checked} changes");
}

#[test]
fn near_identical_streams_do_not_collide() {
    let (script, _) = told();
    let (place, entries) = script
        .iter()
        .max_by_key(|(place, entries)| (matches!(place, Place::Link(_)), entries.len()))
        .expect("a link");
    // Every combination of one small change of each of two neighbours, at several places in a stream.
    let mut digests = Vec::new();
    for start in [0, 100, 500, 1000] {
        let mut window = entries[start..start + 4].to_vec();
        let (first, second) = (window[1].variants(), window[2].variants());
        for a in first.iter().step_by(2) {
            window[1] = a.clone();
            for b in second.iter().step_by(2) {
                window[2] = b.clone();
                digests.push(digest_at(place.to_owned(), &window));
            }
        }
    }
    let count = digests.len();
    assert!(count > 50_000, "{count} streams");
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), count);
}
