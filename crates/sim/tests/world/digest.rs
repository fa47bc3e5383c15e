//! The digest of real runs of every transport: it changes with every change of a single note, however
//! small, and with nothing else.

use std::collections::BTreeMap;
use std::mem::discriminant;

use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::{self, Kind, WireSeq};
use talkspurt_proto::endpoint::Event;
use talkspurt_proto::external::Class;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Ecn, IpVersion, Packet, Payload};
use talkspurt_proto::probe::{
    DropReason, Gauge, Messages, Note, Place, Playout, Probe, RxError, StackNote,
};
use talkspurt_proto::sctp::Chunk;
use talkspurt_proto::tcp::SackBlocks;
use talkspurt_proto::tfrc;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_record::Digest;

use crate::external::register_twice;
use crate::support::{self, Look, flow, link, point, scenario};

/// The engine's times have 48 bits of nanoseconds, and IP packets at most 65 535 bytes (RFC 791 §3.1).
const TIME_BITS: u32 = 48;
/// Bits of the bytes in a queue: 281 TB.
const QUEUE_BITS: u32 = 48;
/// Bits of offsets in a stream of bytes: 281 TB.
const OFFSET_BITS: u32 = 48;
/// Bits of numbers of flows and routes: 16 million.
const INDEX_BITS: u32 = 24;
/// Bits of numbers of packets: 268 million of one endpoint.
const COUNT_BITS: u32 = 28;

/// A note that owns its data.
#[derive(Clone, Debug)]
struct Entry {
    now: Instant,
    note: Owned,
}

#[derive(Clone, Debug)]
enum Owned {
    Enqueued(Packet, u32, u64),
    Dequeued(Packet, u32, u64),
    Arrived(Packet),
    Dropped(Packet, DropReason),
    Marked(Packet),
    Sent(Packet, Body),
    Received(Packet, Body),
    Answered(Packet, Packet, Body),
    Copied(Packet, Body),
    Cut(Packet, bool, Body),
    Generated(u32, u32, Instant),
    HandedOver(u32),
    Discarded(u32),
    Delivered(u32, u32),
    InOrder(Duration),
    Decided(u32, Playout),
    Paused(u32, Duration),
    Gauge(Gauge, f64),
    Event(Event),
    Encoding(u8),
    RxError(RxError),
    Stack(StackNote),
}

impl Entry {
    fn of(now: Instant, note: &Note<'_>) -> Self {
        let note = match *note {
            Note::Enqueued { packet, packets, bytes } => Owned::Enqueued(*packet, packets, bytes),
            Note::Dequeued { packet, packets, bytes } => Owned::Dequeued(*packet, packets, bytes),
            Note::Arrived { packet } => Owned::Arrived(*packet),
            Note::Dropped { packet, why } => Owned::Dropped(*packet, why),
            Note::Marked { packet } => Owned::Marked(*packet),
            Note::Sent { packet, body } => Owned::Sent(*packet, body.clone()),
            Note::Received { packet, body } => Owned::Received(*packet, body.clone()),
            Note::Answered { refused, packet, body } => {
                Owned::Answered(*refused, *packet, body.clone())
            }
            Note::Copied { packet, body } => Owned::Copied(*packet, body.clone()),
            Note::Cut { packet, is_more, body } => Owned::Cut(*packet, is_more, body.clone()),
            Note::Generated { index, bytes, captured } => Owned::Generated(index, bytes, captured),
            Note::HandedOver { index } => Owned::HandedOver(index),
            Note::Discarded { index } => Owned::Discarded(index),
            Note::Delivered { index, bytes } => Owned::Delivered(index, bytes),
            Note::InOrder { waited } => Owned::InOrder(waited),
            Note::Decided { index, playout } => Owned::Decided(index, playout),
            Note::Paused { index, length } => Owned::Paused(index, length),
            Note::Gauge { gauge, value } => Owned::Gauge(gauge, value),
            Note::Event(event) => Owned::Event(event),
            Note::Encoding(rung) => Owned::Encoding(rung),
            Note::RxError(error) => Owned::RxError(error),
            Note::Stack(note) => Owned::Stack(note),
        };
        Self { now, note }
    }

    fn tell(&self, place: Place, digest: &mut Digest) {
        let note = match self.note {
            Owned::Enqueued(ref packet, packets, bytes) => {
                Note::Enqueued { packet, packets, bytes }
            }
            Owned::Dequeued(ref packet, packets, bytes) => {
                Note::Dequeued { packet, packets, bytes }
            }
            Owned::Arrived(ref packet) => Note::Arrived { packet },
            Owned::Dropped(ref packet, why) => Note::Dropped { packet, why },
            Owned::Marked(ref packet) => Note::Marked { packet },
            Owned::Sent(ref packet, ref body) => Note::Sent { packet, body },
            Owned::Received(ref packet, ref body) => Note::Received { packet, body },
            Owned::Answered(ref refused, ref packet, ref body) => {
                Note::Answered { refused, packet, body }
            }
            Owned::Copied(ref packet, ref body) => Note::Copied { packet, body },
            Owned::Cut(ref packet, is_more, ref body) => Note::Cut { packet, is_more, body },
            Owned::Generated(index, bytes, captured) => Note::Generated { index, bytes, captured },
            Owned::HandedOver(index) => Note::HandedOver { index },
            Owned::Discarded(index) => Note::Discarded { index },
            Owned::Delivered(index, bytes) => Note::Delivered { index, bytes },
            Owned::InOrder(waited) => Note::InOrder { waited },
            Owned::Decided(index, playout) => Note::Decided { index, playout },
            Owned::Paused(index, length) => Note::Paused { index, length },
            Owned::Gauge(gauge, value) => Note::Gauge { gauge, value },
            Owned::Event(event) => Note::Event(event),
            Owned::Encoding(rung) => Note::Encoding(rung),
            Owned::RxError(error) => Note::RxError(error),
            Owned::Stack(note) => Note::Stack(note),
        };
        if digest.wants(note.topic()) {
            digest.record(self.now, place, &note);
        }
    }

    fn label(&mut self) -> Option<&mut Packet> {
        match &mut self.note {
            Owned::Enqueued(packet, ..)
            | Owned::Dequeued(packet, ..)
            | Owned::Arrived(packet)
            | Owned::Dropped(packet, _)
            | Owned::Marked(packet)
            | Owned::Sent(packet, _)
            | Owned::Received(packet, _)
            | Owned::Answered(_, packet, _)
            | Owned::Copied(packet, _)
            | Owned::Cut(packet, ..) => Some(packet),
            _ => None,
        }
    }

    fn body(&mut self) -> Option<&mut Body> {
        match &mut self.note {
            Owned::Sent(_, body)
            | Owned::Received(_, body)
            | Owned::Answered(_, _, body)
            | Owned::Copied(_, body) => Some(body),
            _ => None,
        }
    }

    /// All entries that differ from this one in a bit of one field, or in the value of an enum.
    fn variants(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut vary = |bits: u32, flip: &dyn Fn(&mut Self, u64)| {
            for bit in 0..bits {
                let mut entry = self.clone();
                flip(&mut entry, 1 << bit);
                all.push(entry);
            }
        };
        vary(TIME_BITS, &|entry, bit| flip_instant(&mut entry.now, bit));
        let mut own = self.clone();
        if own.label().is_some() {
            let label = |entry: &mut Self, flip: &dyn Fn(&mut Packet)| {
                flip(entry.label().expect("a label"));
            };
            vary(16, &|e, bit| label(e, &|packet| packet.ip_bytes ^= bit as u32));
            vary(INDEX_BITS, &|e, bit| label(e, &|packet| packet.route ^= bit as u32));
            vary(INDEX_BITS, &|e, bit| label(e, &|packet| packet.flow ^= bit as u32));
            vary(COUNT_BITS, &|e, bit| label(e, &|packet| packet.number ^= bit as u32));
            vary(8, &|e, bit| label(e, &|packet| packet.hop ^= bit as u8));
            vary(8, &|e, bit| label(e, &|packet| packet.dscp ^= bit as u8));
            vary(TIME_BITS, &|e, bit| label(e, &|packet| flip_instant(&mut packet.sent, bit)));
            vary(1, &|e, _| {
                label(e, &|packet| {
                    packet.version = match packet.version {
                        IpVersion::V4 => IpVersion::V6,
                        IpVersion::V6 => IpVersion::V4,
                    };
                });
            });
            vary(2, &|e, bit| {
                label(e, &|packet| {
                    let codes = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
                    packet.ecn = codes[packet.ecn as usize ^ bit as usize];
                });
            });
        }
        if let Some(body) = own.body().cloned() {
            vary_body(&body, &mut |bits, flip| {
                vary(bits, &|entry, bit| flip(entry.body().expect("a body"), bit));
            });
        }
        match self.note {
            Owned::Enqueued(_, packets, bytes) => {
                vary(COUNT_BITS, &|e, bit| {
                    e.note = Owned::Enqueued(*label(e), packets ^ bit as u32, bytes);
                });
                vary(QUEUE_BITS, &|e, bit| {
                    e.note = Owned::Enqueued(*label(e), packets, bytes ^ bit)
                });
                vary(1, &|e, _| e.note = Owned::Dequeued(*label(e), packets, bytes));
                vary(1, &|e, _| e.note = Owned::Arrived(*label(e)));
            }
            Owned::Dequeued(_, packets, bytes) => {
                vary(COUNT_BITS, &|e, bit| {
                    e.note = Owned::Dequeued(*label(e), packets ^ bit as u32, bytes);
                });
                vary(QUEUE_BITS, &|e, bit| {
                    e.note = Owned::Dequeued(*label(e), packets, bytes ^ bit)
                });
            }
            Owned::Arrived(_) => vary(1, &|e, _| e.note = Owned::Marked(*label(e))),
            Owned::Dropped(_, why) => {
                let other =
                    if why == DropReason::Full { DropReason::Early } else { DropReason::Full };
                vary(1, &|e, _| e.note = Owned::Dropped(*label(e), other));
                vary(1, &|e, _| e.note = Owned::Arrived(*label(e)));
            }
            Owned::Sent(packet, ref body) => {
                vary(1, &|e, _| e.note = Owned::Received(packet, body.clone()));
                vary(1, &|e, _| e.note = Owned::Copied(packet, body.clone()));
                vary(1, &|e, _| e.note = Owned::Cut(packet, false, body.clone()));
            }
            Owned::Answered(refused, packet, ref body) => vary(TIME_BITS, &|e, bit| {
                let mut refused = refused;
                flip_instant(&mut refused.sent, bit);
                e.note = Owned::Answered(refused, packet, body.clone());
            }),
            Owned::Generated(index, bytes, captured) => {
                vary(32, &|e, bit| e.note = Owned::Generated(index ^ bit as u32, bytes, captured));
                vary(32, &|e, bit| e.note = Owned::Generated(index, bytes ^ bit as u32, captured));
                vary(TIME_BITS, &|e, bit| {
                    let mut captured = captured;
                    flip_instant(&mut captured, bit);
                    e.note = Owned::Generated(index, bytes, captured);
                });
            }
            Owned::HandedOver(index) => {
                vary(32, &|e, bit| e.note = Owned::HandedOver(index ^ bit as u32));
                vary(1, &|e, _| e.note = Owned::Discarded(index));
            }
            Owned::Discarded(index) => {
                vary(32, &|e, bit| e.note = Owned::Discarded(index ^ bit as u32));
            }
            Owned::Delivered(index, bytes) => {
                vary(32, &|e, bit| e.note = Owned::Delivered(index ^ bit as u32, bytes));
                vary(32, &|e, bit| e.note = Owned::Delivered(index, bytes ^ bit as u32));
            }
            Owned::Decided(index, playout) => {
                vary(32, &|e, bit| e.note = Owned::Decided(index ^ bit as u32, playout));
                if let Playout::Played(at) = playout {
                    vary(TIME_BITS, &|e, bit| {
                        let mut at = at;
                        flip_instant(&mut at, bit);
                        e.note = Owned::Decided(index, Playout::Played(at));
                    });
                    vary(1, &|e, _| e.note = Owned::Decided(index, Playout::Late(at)));
                    vary(1, &|e, _| e.note = Owned::Decided(index, Playout::Recovered(at)));
                }
            }
            Owned::Paused(index, length) => {
                vary(32, &|e, bit| e.note = Owned::Paused(index ^ bit as u32, length));
                vary(TIME_BITS, &|e, bit| {
                    let length = Duration::from_nanos(length.as_nanos() ^ bit);
                    e.note = Owned::Paused(index, length);
                });
            }
            Owned::Gauge(gauge, value) => {
                vary(64, &|e, bit| {
                    e.note = Owned::Gauge(gauge, f64::from_bits(value.to_bits() ^ bit));
                });
                let other = if gauge == Gauge::Cwnd { Gauge::Pipe } else { Gauge::Cwnd };
                vary(1, &|e, _| e.note = Owned::Gauge(other, value));
            }
            Owned::Encoding(rung) => vary(8, &|e, bit| e.note = Owned::Encoding(rung ^ bit as u8)),
            Owned::Event(event) => {
                let other =
                    if event == Event::Writable { Event::Connected } else { Event::Writable };
                vary(1, &|e, _| e.note = Owned::Event(other));
                if let Event::TargetRate(rate) = event {
                    vary(64, &|e, bit| {
                        let rate = talkspurt_proto::units::Rate::from_bps(rate.as_bps() ^ bit);
                        e.note = Owned::Event(Event::TargetRate(rate));
                    });
                }
            }
            Owned::RxError(_) => vary(1, &|e, _| e.note = Owned::Encoding(0)),
            Owned::Stack(StackNote::Is { name, version }) => {
                for (name, version) in [("other", version), (name, "other"), (version, name)] {
                    vary(1, &|e, _| e.note = Owned::Stack(StackNote::Is { name, version }));
                }
            }
            Owned::Stack(StackNote::Gauge { name, value }) => {
                vary(64, &|e, bit| {
                    let value = f64::from_bits(value.to_bits() ^ bit);
                    e.note = Owned::Stack(StackNote::Gauge { name, value });
                });
                let name = "other";
                vary(1, &|e, _| e.note = Owned::Stack(StackNote::Gauge { name, value }));
            }
            Owned::Stack(StackNote::Messages(_)) => {
                let field = |entry: &mut Self, flip: &dyn Fn(&mut Messages)| {
                    let Owned::Stack(StackNote::Messages(messages)) = &mut entry.note else {
                        unreachable!("the same note")
                    };
                    flip(messages);
                };
                vary(COUNT_BITS, &|e, bit| field(e, &|it| it.accepted ^= bit));
                vary(COUNT_BITS, &|e, bit| field(e, &|it| it.delivered ^= bit));
                vary(COUNT_BITS, &|e, bit| field(e, &|it| it.discarded ^= bit));
                vary(COUNT_BITS, &|e, bit| field(e, &|it| it.lost ^= bit));
                vary(COUNT_BITS, &|e, bit| {
                    field(e, &|it| it.open = Some(it.open.unwrap_or(0) ^ bit))
                });
            }
            Owned::Marked(_)
            | Owned::Received(..)
            | Owned::Copied(..)
            | Owned::Cut(..)
            | Owned::InOrder(_) => {}
        }
        all
    }
}

fn label(entry: &mut Entry) -> &mut Packet {
    entry.label().expect("a label")
}

fn flip_instant(instant: &mut Instant, bit: u64) {
    *instant = Instant::from_nanos(instant.as_nanos() ^ bit);
}

type Flip<'a> = &'a dyn Fn(&mut Body, u64);

/// Calls `vary` with the number of bits of each field of a body, and with what flips one of them.
fn vary_body(body: &Body, vary: &mut dyn FnMut(u32, Flip<'_>)) {
    macro_rules! fields {
        ($pattern:pat => { $($field:expr, $bits:literal, $as:ty;)* }) => {
            $(vary($bits, &|body, bit| {
                let $pattern = body else { unreachable!("the same body") };
                $field ^= bit as $as;
            });)*
        };
    }
    match body {
        Body::Udp(frame) => vary_frame(frame, vary, &|body| match body {
            Body::Udp(frame) => frame,
            _ => unreachable!("the same body"),
        }),
        Body::Tcp(segment) => {
            fields!(Body::Tcp(segment) => {
                segment.seq, 32, u32;
                segment.ack, 32, u32;
                segment.window, 16, u16;
                segment.flags.0, 8, u8;
                *segment.mss.get_or_insert(0), 16, u16;
                *segment.window_scale.get_or_insert(0), 8, u8;
            });
            vary(1, &|body, _| {
                let Body::Tcp(segment) = body else { unreachable!("the same body") };
                segment.sack_permitted ^= true;
            });
            let (value, echo) = segment.timestamps.unwrap_or_default();
            vary(32, &|body, bit| {
                let Body::Tcp(segment) = body else { unreachable!("the same body") };
                segment.timestamps = Some((value ^ bit as u32, echo));
            });
            vary(32, &|body, bit| {
                let Body::Tcp(segment) = body else { unreachable!("the same body") };
                segment.timestamps = Some((value, echo ^ bit as u32));
            });
            let blocks =
                segment.sack.as_ref().map_or(vec![(0, 0)], |sack| sack.as_slice().to_vec());
            for at in 0..blocks.len() {
                vary(64, &|body, bit| {
                    let Body::Tcp(segment) = body else { unreachable!("the same body") };
                    let mut blocks = blocks.clone();
                    blocks[at].0 ^= bit as u32;
                    blocks[at].1 ^= (bit >> 32) as u32;
                    segment.sack = SackBlocks::of(blocks);
                });
            }
            vary_payload(&segment.payload, vary, &|body| match body {
                Body::Tcp(segment) => &mut segment.payload,
                _ => unreachable!("the same body"),
            });
        }
        Body::Dccp(packet) => {
            fields!(Body::Dccp(packet) => { packet.ccval, 4, u8; packet.cscov, 4, u8; });
            vary(48, &|body, bit| {
                let Body::Dccp(packet) = body else { unreachable!("the same body") };
                packet.seq = match packet.seq {
                    WireSeq::Extended(seq) => WireSeq::Extended(seq ^ bit),
                    WireSeq::Short(seq) => WireSeq::Extended(u64::from(seq) ^ bit),
                };
            });
            if let Kind::Ack { ack: WireSeq::Extended(ack) }
            | Kind::DataAck { ack: WireSeq::Extended(ack) } = packet.kind
            {
                vary(48, &|body, bit| {
                    let Body::Dccp(packet) = body else { unreachable!("the same body") };
                    packet.kind = Kind::Ack { ack: WireSeq::Extended(ack ^ bit) };
                });
            }
            let options = packet.options.as_bytes().to_vec();
            for at in 0..options.len() {
                vary(8, &|body, bit| {
                    let Body::Dccp(packet) = body else { unreachable!("the same body") };
                    let mut options = options.clone();
                    options[at] ^= bit as u8;
                    packet.options = dccp::Options::from_bytes(&options);
                });
            }
            vary_frame(&packet.payload, vary, &|body| match body {
                Body::Dccp(packet) => &mut packet.payload,
                _ => unreachable!("the same body"),
            });
        }
        Body::Tfrc(tfrc::Packet::Feedback(_)) => {
            fields!(Body::Tfrc(tfrc::Packet::Feedback(feedback)) => {
                feedback.timestamp, 32, u32;
                feedback.delay, 32, u32;
                feedback.receive_rate, 32, u32;
                feedback.loss_event_rate, 32, u32;
            });
        }
        Body::Tfrc(tfrc::Packet::Data(data)) => {
            fields!(Body::Tfrc(tfrc::Packet::Data(data)) => {
                data.seq, 32, u32;
                data.timestamp, 32, u32;
                data.rtt, 32, u32;
            });
            vary_frame(&data.payload, vary, &|body| match body {
                Body::Tfrc(tfrc::Packet::Data(data)) => &mut data.payload,
                _ => unreachable!("the same body"),
            });
        }
        Body::Sctp(packet) => {
            fields!(Body::Sctp(packet) => { packet.tag, 32, u32; });
            vary(1, &|body, _| {
                let Body::Sctp(packet) = body else { unreachable!("the same body") };
                packet.chunks.pop();
            });
            for at in 0..packet.chunks.len() {
                vary_chunk(at, &packet.chunks[at], vary);
            }
        }
        Body::External(datagram) => {
            fields!(Body::External(datagram) => {
                datagram.media, 32, u32;
                datagram.payload, 32, u32;
            });
            let classes = [Class::Data, Class::Retransmission, Class::Control];
            for class in classes.into_iter().filter(|class| *class != datagram.class) {
                vary(1, &|body, _| {
                    let Body::External(datagram) = body else { unreachable!("the same body") };
                    datagram.class = class;
                });
            }
            vary(1, &|body, _| {
                let Body::External(datagram) = body else { unreachable!("the same body") };
                datagram.header = vec![0].into();
            });
            vary_frame(&datagram.content, vary, &|body| match body {
                Body::External(datagram) => &mut datagram.content,
                _ => unreachable!("the same body"),
            });
        }
        Body::Real(_) => unreachable!("no real packet is simulated"),
        Body::TooBig { quote, .. } => {
            fields!(Body::TooBig { mtu, .. } => { *mtu, 32, u32; });
            fields!(Body::TooBig { quote, .. } => {
                quote.ip_bytes, 32, u32;
                quote.mark, 32, u32;
                quote.ttl, 8, u8;
                quote.dscp, 8, u8;
            });
            let (protocol, bytes) =
                (quote.transport.protocol(), quote.transport.behind_ports().to_vec());
            for at in 0..bytes.len() {
                vary(8, &|body, bit| {
                    let Body::TooBig { quote, .. } = body else { unreachable!("the same body") };
                    let mut bytes = bytes.clone();
                    bytes[at] ^= bit as u8;
                    quote.transport = talkspurt_proto::packet::Quoted::new(protocol, &bytes);
                });
            }
        }
    }
}

fn vary_chunk(at: usize, chunk: &Chunk, vary: &mut dyn FnMut(u32, Flip<'_>)) {
    let chunk_of = |body: &mut Body, flip: &dyn Fn(&mut Chunk)| {
        let Body::Sctp(packet) = body else { unreachable!("the same body") };
        flip(&mut packet.chunks[at]);
    };
    macro_rules! fields {
        ($pattern:pat => { $($field:expr, $bits:literal, $as:ty;)* }) => {
            $(vary($bits, &|body, bit| chunk_of(body, &|chunk| {
                let $pattern = chunk else { unreachable!("the same chunk") };
                $field ^= bit as $as;
            }));)*
        };
    }
    match chunk {
        Chunk::Data(data) => {
            fields!(Chunk::Data(data) => {
                data.tsn, 32, u32;
                data.stream, 16, u16;
                data.ppid, 32, u32;
            });
            for flag in 0..4 {
                vary(1, &|body, _| {
                    chunk_of(body, &|chunk| {
                        let Chunk::Data(data) = chunk else { unreachable!("the same chunk") };
                        let flags = [
                            &mut data.immediate,
                            &mut data.unordered,
                            &mut data.beginning,
                            &mut data.ending,
                        ];
                        let [i, u, b, e] = flags;
                        *[i, u, b, e][flag] ^= true;
                    });
                });
            }
            vary_frame(&data.payload, vary, &|body| match body {
                Body::Sctp(packet) => match &mut packet.chunks[at] {
                    Chunk::Data(data) => &mut data.payload,
                    _ => unreachable!("the same chunk"),
                },
                _ => unreachable!("the same body"),
            });
        }
        Chunk::Sack(sack) => {
            fields!(Chunk::Sack(sack) => { sack.cumulative, 32, u32; sack.a_rwnd, 32, u32; });
            for gap in 0..sack.gaps.len() {
                fields!(Chunk::Sack(sack) => {
                    sack.gaps[gap].0, 16, u16;
                    sack.gaps[gap].1, 16, u16;
                });
            }
            vary(1, &|body, _| {
                chunk_of(body, &|chunk| {
                    let Chunk::Sack(sack) = chunk else { unreachable!("the same chunk") };
                    sack.duplicates.push(0);
                });
            });
            vary(1, &|body, _| {
                chunk_of(body, &|chunk| {
                    let Chunk::Sack(sack) = chunk else { unreachable!("the same chunk") };
                    sack.gaps.push((0, 0));
                });
            });
        }
        _ => vary(1, &|body, _| chunk_of(body, &|chunk| *chunk = Chunk::Ecne { lowest: 7 })),
    }
}

fn vary_frame(
    frame: &Frame,
    vary: &mut dyn FnMut(u32, Flip<'_>),
    of: &dyn Fn(&mut Body) -> &mut Frame,
) {
    macro_rules! fields {
        ($pattern:pat => { $($field:expr, $bits:literal, $as:ty;)* }) => {
            $(vary($bits, &|body, bit| {
                let $pattern = of(body) else { unreachable!("the same frame") };
                $field ^= bit as $as;
            });)*
        };
    }
    match frame {
        Frame::Data(payload) => vary_payload(payload, vary, &|body| match of(body) {
            Frame::Data(payload) => payload,
            _ => unreachable!("the same frame"),
        }),
        Frame::Rtp(packet) => {
            fields!(Frame::Rtp(packet) => {
                packet.payload_type, 8, u8;
                packet.sequence, 16, u16;
                packet.timestamp, 32, u32;
                packet.ssrc, 32, u32;
            });
            vary(1, &|body, _| {
                let Frame::Rtp(packet) = of(body) else { unreachable!("the same frame") };
                packet.marker ^= true;
            });
            let csrc = packet.csrc.map_or(0, u32::from);
            vary(32, &|body, bit| {
                let Frame::Rtp(packet) = of(body) else { unreachable!("the same frame") };
                packet.csrc = std::num::NonZeroU32::new(csrc ^ bit as u32);
            });
            vary_payload(&packet.payload, vary, &|body| match of(body) {
                Frame::Rtp(packet) => &mut packet.payload,
                _ => unreachable!("the same frame"),
            });
        }
        Frame::Rtcp(_) => {
            fields!(Frame::Rtcp(compound) => { compound.ssrc, 32, u32; });
            vary(1, &|body, _| {
                let Frame::Rtcp(compound) = of(body) else { unreachable!("the same frame") };
                compound.bye ^= true;
            });
        }
    }
}

fn vary_payload(
    payload: &Payload,
    vary: &mut dyn FnMut(u32, Flip<'_>),
    of: &dyn Fn(&mut Body) -> &mut Payload,
) {
    match *payload {
        Payload::Virtual { offset, len } => {
            vary(OFFSET_BITS, &|body, bit| {
                *of(body) = Payload::Virtual { offset: offset ^ bit, len };
            });
            vary(16, &|body, bit| {
                *of(body) = Payload::Virtual { offset, len: len ^ bit };
            });
        }
        // The content does not count, only the length.
        Payload::Real(ref bytes) => {
            let longer = vec![0; bytes.len() + 1];
            vary(1, &|body, _| *of(body) = Payload::Real(longer.clone().into()));
        }
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
        script.entry(place).or_default().push(Entry::of(now, note));
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
                Owned::Sent(_, body) | Owned::Received(_, body) => match body {
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
            if !matches!(entry.note, Owned::InOrder(_)) && !seen.contains(&kind) {
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
            script.retain(|entry| !matches!(entry.note, Owned::InOrder(_)));
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
