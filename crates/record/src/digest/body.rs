//! What packets carry, as words. The words of a body start with its form, so that no body's words are the
//! beginning of another's.

use std::net::{IpAddr, Ipv4Addr};

use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::{self, Kind, WireSeq};
use talkspurt_proto::external::Datagram;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Payload, Quote};
use talkspurt_proto::rtp;
use talkspurt_proto::sctp::{self, Chunk};
use talkspurt_proto::tcp::Segment;
use talkspurt_proto::tfrc;
use talkspurt_proto::wire::{self, Ends};

use super::hash::{Hash, halves, quarters};

/// Number of a packet format, which is in the first word of a record; it never changes.
pub(super) const fn number(body: &Body) -> u8 {
    match body {
        Body::Udp(_) => 0,
        Body::Tcp(_) => 1,
        Body::Dccp(_) => 2,
        Body::Tfrc(_) => 3,
        Body::Sctp(_) => 4,
        Body::TooBig { .. } => 5,
        Body::External(_) => 7,
        #[allow(unreachable_patterns, reason = "for packet formats without an arm of their own")]
        _ => 6,
    }
}

/// Adds a body of any format.
#[inline(never)]
pub(super) fn add(hash: Hash, body: &Body) -> Hash {
    match body {
        Body::Udp(packet) => add_frame(hash, packet),
        Body::Tcp(packet) => add_segment(hash, packet),
        Body::Dccp(packet) => add_dccp(hash, packet),
        Body::Tfrc(packet) => add_tfrc(hash, packet),
        Body::Sctp(packet) => add_sctp(hash, packet),
        Body::TooBig { mtu, quote } => add_quote(hash, *mtu, quote),
        Body::External(datagram) => {
            let Datagram { header, content, class, media, payload } = datagram;
            let hash = hash.pair(halves(*media, *payload), *class as u64).bytes(header);
            add_frame(hash, content)
        }
        #[allow(unreachable_patterns, reason = "for packet formats without an arm of their own")]
        other => add_bytes(hash, other),
    }
}

/// A packet by its bytes on the wire.
fn add_bytes(hash: Hash, body: &Body) -> Hash {
    let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let ends = Ends { src: nobody, dst: nobody, src_port: 0, dst_port: 0 };
    let mut bytes = Vec::new();
    let tail = wire::emit_body(nobody, body, &ends, &mut bytes).unwrap_or_default();
    hash.pair(halves(body.layers().total(), tail.len), tail.offset).bytes(&bytes)
}

/// Offset and length of a payload, and whether its bytes are real. The bytes of recorded speech do not count.
#[inline(always)]
fn extent(payload: &Payload) -> (u64, u32, bool) {
    match payload {
        Payload::Virtual { offset, len } => (*offset, *len as u32, false),
        Payload::Real(bytes) => (0, bytes.len() as u32, true),
    }
}

/// The frame of a datagram, or of a packet of another transport.
#[inline(always)]
pub(super) fn add_frame(hash: Hash, frame: &Frame) -> Hash {
    match frame {
        Frame::Data(payload) => {
            let (offset, len, real) = extent(payload);
            hash.pair(halves(quarters([0, real.into(), 0, 0]), len), offset)
        }
        Frame::Rtp(packet) => add_rtp(hash, packet),
        Frame::Rtcp(_) => add_rtcp(hash, frame),
    }
}

#[inline]
fn add_rtp(hash: Hash, packet: &rtp::Packet) -> Hash {
    let (offset, len, real) = extent(&packet.payload);
    let [first, second] = packet.sequence.to_le_bytes();
    let form = 1 | u8::from(real) << 2 | u8::from(packet.marker) << 3;
    let fixed = quarters([form, packet.payload_type, first, second]);
    // No contributing source is 0, and so is no extension.
    let csrc = packet.csrc.map_or(0, u32::from);
    let transport = packet.transport.map_or(0, |number| 1 << 16 | u32::from(number));
    let rare = halves(csrc, transport << 8 | u32::from(packet.padding));
    hash.pair(halves(fixed, len), offset).pair(halves(packet.timestamp, packet.ssrc), rare)
}

#[inline(never)]
fn add_rtcp(hash: Hash, frame: &Frame) -> Hash {
    let mut bytes = Vec::with_capacity(frame.wire_bytes());
    wire::emit_frame(frame, &mut bytes);
    hash.pair(2, 0).bytes(&bytes)
}

/// A segment. Most have neither options nor real bytes; only these are added in place.
#[inline(always)]
pub(super) fn add_segment(hash: Hash, segment: &Segment) -> Hash {
    match segment.payload {
        Payload::Virtual { offset, len }
            if segment.timestamps.is_none() && !has_rare_options(segment) =>
        {
            add_fields(hash, segment, 0, (offset, len as u32), (0, 0))
        }
        _ => add_any_segment(hash, segment),
    }
}

#[inline(never)]
fn add_any_segment(hash: Hash, segment: &Segment) -> Hash {
    let (offset, len, real) = extent(&segment.payload);
    let has_options = has_rare_options(segment);
    let timed = segment.timestamps.is_some();
    let form = u8::from(real) | u8::from(timed) << 1 | u8::from(has_options) << 2;
    let times = segment.timestamps.unwrap_or_default();
    let hash = add_fields(hash, segment, form, (offset, len), times);
    if has_options { add_options(hash, segment) } else { hash }
}

/// Whether a segment has options besides timestamps.
#[inline(always)]
fn has_rare_options(segment: &Segment) -> bool {
    segment.sack_permitted
        | segment.mss.is_some()
        | segment.window_scale.is_some()
        | segment.sack.is_some()
}

/// What all segments have.
#[inline(always)]
fn add_fields(
    hash: Hash,
    segment: &Segment,
    form: u8,
    (offset, len): (u64, u32),
    (value, echo): (u32, u32),
) -> Hash {
    let fixed =
        u32::from(segment.window) | u32::from(segment.flags.0) << 16 | u32::from(form) << 24;
    hash.pair(halves(fixed, len), offset)
        .pair(halves(segment.seq, segment.ack), halves(value, echo))
}

#[inline(never)]
fn add_options(hash: Hash, segment: &Segment) -> Hash {
    let blocks = segment.sack.as_ref().map_or(&[][..], |sack| sack.as_slice());
    let present = u8::from(segment.sack_permitted)
        | u8::from(segment.mss.is_some()) << 1
        | u8::from(segment.window_scale.is_some()) << 2;
    let scale = segment.window_scale.unwrap_or_default();
    let fixed = quarters([present, scale, blocks.len() as u8, 0]);
    let mss = segment.mss.unwrap_or_default().into();
    let mut words = blocks.iter().map(|(left, right)| halves(*left, *right));
    let mut hash = hash.pair(halves(fixed, mss), words.next().unwrap_or(0));
    while let Some(word) = words.next() {
        hash = hash.pair(word, words.next().unwrap_or(0));
    }
    hash
}

fn add_quote(hash: Hash, mtu: u32, quote: &Quote) -> Hash {
    let Quote { version, ip_bytes, mark, ttl, dscp, ecn, transport } = quote;
    hash.pair(halves(mtu, *ip_bytes), (*mark).into())
        .pair(halves(quarters([*version as u8, *ttl, *dscp, *ecn as u8]), 0), 0)
        .pair(transport.protocol().into(), 0)
        .bytes(transport.behind_ports())
}

fn add_dccp(hash: Hash, packet: &dccp::Packet) -> Hash {
    let dccp::Packet { seq, ccval, cscov, kind, options, payload } = packet;
    let (seq_form, seq) = number_of(*seq);
    let (ack_form, ack) = kind.ack().map_or((0, 0), number_of);
    let own = match *kind {
        Kind::Request { service } | Kind::Response { service, .. } | Kind::Listen { service } => {
            service
        }
        Kind::Reset { code, data: [first, second, third], .. } => {
            quarters([code.0, first, second, third])
        }
        _ => 0,
    };
    let fixed = quarters([kind.number(), *ccval, *cscov, seq_form | ack_form << 2]);
    let hash = hash.pair(halves(fixed, own), seq).pair(ack, 0).bytes(options.as_bytes());
    add_frame(hash, payload)
}

/// A DCCP sequence number: its form, and its value.
fn number_of(seq: WireSeq) -> (u8, u64) {
    match seq {
        WireSeq::Extended(seq) => (1, seq),
        WireSeq::Short(seq) => (2, seq.into()),
    }
}

fn add_tfrc(hash: Hash, packet: &tfrc::Packet) -> Hash {
    match packet {
        tfrc::Packet::Data(tfrc::Data { seq, timestamp, rtt, payload, .. }) => {
            add_frame(hash.pair(halves(*seq, 0), halves(*timestamp, *rtt)), payload)
        }
        tfrc::Packet::Feedback(feedback) => hash.pair(halves(feedback.delay, 1), 0).pair(
            halves(feedback.timestamp, feedback.receive_rate),
            feedback.loss_event_rate.into(),
        ),
    }
}

fn add_sctp(hash: Hash, packet: &sctp::Packet) -> Hash {
    let hash = hash.pair(halves(packet.tag, packet.chunks.len() as u32), 0);
    packet.chunks.iter().fold(hash, add_chunk)
}

/// DATA and SACK chunks are added by their fields, any other by its bytes.
fn add_chunk(hash: Hash, chunk: &Chunk) -> Hash {
    let kind = chunk.number();
    match chunk {
        Chunk::Data(data) => {
            let flags = u8::from(data.immediate)
                | u8::from(data.unordered) << 1
                | u8::from(data.beginning) << 2
                | u8::from(data.ending) << 3;
            let (message, part) = match data.number {
                sctp::Number::Ssn(ssn) => (ssn.into(), 0),
                sctp::Number::Mid(mid, fsn) => (mid, fsn),
            };
            let [first, second] = data.stream.to_le_bytes();
            let fixed = quarters([kind, flags, first, second]);
            let hash =
                hash.pair(halves(fixed, data.tsn), halves(message, part)).pair(data.ppid.into(), 0);
            add_frame(hash, &data.payload)
        }
        Chunk::Sack(sack) => {
            let counts = halves(sack.gaps.len() as u32, sack.duplicates.len() as u32);
            let hash =
                hash.pair(halves(kind.into(), sack.cumulative), counts).pair(sack.a_rwnd.into(), 0);
            let gap = |&(start, end): &(u16, u16)| u32::from(start) | u32::from(end) << 16;
            let words = sack.gaps.iter().map(gap).chain(sack.duplicates.iter().copied());
            words.fold(hash, |hash, word| hash.pair(word.into(), 0))
        }
        other => hash.pair(kind.into(), 0).bytes(&wire::sctp::chunk_bytes(other)),
    }
}
