//! The digest of a run: the same on any machine, with any other probes, and however the notes of different
//! places interleave.
//!
//! Each place has a stream of records, little-endian and of a fixed layout per kind, hashed with XXH3-128
//! as it arrives; the streams' hashes, in order of places, are hashed into the digest. Deliberately
//! excluded: the pool slot of a body (it depends on when slots are recycled); the bytes of recorded speech,
//! of which only the length is hashed (a recording is resampled in floating point if its rate differs from
//! the codec's, and the last bit depends on the processor); and the head-of-line waiting time of messages,
//! which follows from arrivals and deliveries. Reports are represented by their XXH3-64.

use std::net::{IpAddr, Ipv4Addr};

use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::{self, Kind, WireSeq};
use talkspurt_proto::endpoint::Event;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Packet, Payload, Quote};
use talkspurt_proto::probe::{Note, Place, Playout, Probe, Topic};
use talkspurt_proto::sctp::{self, Chunk};
use talkspurt_proto::tcp::Segment;
use talkspurt_proto::tfrc;
use talkspurt_proto::time::Instant;
use talkspurt_proto::wire::{self, Ends};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// A probe that hashes everything.
#[derive(Default)]
pub struct Digest {
    links: Vec<Option<Box<Stream>>>,
    peers: Vec<Option<Box<Stream>>>,
}

struct Stream {
    hash: Xxh3,
    notes: u64,
    /// Records to be hashed together: reading back what has just been written, field by field, takes as
    /// long as all the rest.
    waiting: [u8; WAITING],
    waiting_bytes: usize,
}

const WAITING: usize = 1024;
/// Maximum length of a record in bytes.
const LONGEST: usize = 128;

impl Stream {
    fn new() -> Self {
        Self { hash: Xxh3::new(), notes: 0, waiting: [0; WAITING], waiting_bytes: 0 }
    }

    fn take(&mut self, now: Instant, note: &Note<'_>) {
        let mut place = self.waiting_bytes;
        if place + LONGEST > WAITING {
            self.hash.update(&self.waiting[..place]);
            place = 0;
        }
        let room = self.waiting[place..].first_chunk_mut().expect("there is room for the longest");
        let mut record = Record { room, len: 0 };
        record.u64(now.as_nanos()).note(note);
        self.waiting_bytes = place + record.len;
        self.notes += 1;
    }

    fn digest(&self) -> u128 {
        let mut hash = self.hash.clone();
        hash.update(&self.waiting[..self.waiting_bytes]);
        hash.digest128()
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Digest").field("hex", &self.hex()).finish_non_exhaustive()
    }
}

impl Digest {
    /// The digest of an empty run.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The digest of the notes so far, as 32 hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        let mut all = Xxh3::new();
        let places = [(0_u8, &self.links), (1, &self.peers)];
        for (kind, streams) in places {
            for (index, stream) in streams.iter().enumerate() {
                let Some(stream) = stream else { continue };
                let mut record = Record { room: &mut [0; LONGEST], len: 0 };
                record.u8(kind).u32(index as u32).u64(stream.notes);
                all.update(record.bytes());
                all.update(&stream.digest().to_le_bytes());
            }
        }
        format!("{:032x}", all.digest128())
    }

    fn stream(&mut self, place: Place) -> &mut Stream {
        let (streams, index) = match place {
            Place::Link(index) => (&mut self.links, index as usize),
            Place::Peer(index) => (&mut self.peers, index as usize),
        };
        if index >= streams.len() {
            streams.resize_with(index + 1, || None);
        }
        streams[index].get_or_insert_with(|| Box::new(Stream::new()))
    }
}

impl Probe for Digest {
    fn wants(&self, topic: Topic) -> bool {
        topic != Topic::Order
    }
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        self.stream(place).take(now, note);
    }
}

/// The canonical encoding of one note.
struct Record<'a> {
    room: &'a mut [u8; LONGEST],
    len: usize,
}

impl Record<'_> {
    fn bytes(&self) -> &[u8] {
        &self.room[..self.len]
    }
    #[inline]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) -> &mut Self {
        self.room[self.len..self.len + N].copy_from_slice(&bytes);
        self.len += N;
        self
    }
    fn u8(&mut self, value: u8) -> &mut Self {
        self.put([value])
    }
    fn u16(&mut self, value: u16) -> &mut Self {
        self.put(value.to_le_bytes())
    }
    fn u32(&mut self, value: u32) -> &mut Self {
        self.put(value.to_le_bytes())
    }
    fn u64(&mut self, value: u64) -> &mut Self {
        self.put(value.to_le_bytes())
    }

    /// Numbers of kinds never change: a new kind of note takes a new number.
    fn note(&mut self, note: &Note<'_>) -> &mut Self {
        match *note {
            Note::Enqueued { packet, packets, bytes } => {
                self.u8(0).label(packet).u32(packets).u64(bytes)
            }
            Note::Dequeued { packet, packets, bytes } => {
                self.u8(1).label(packet).u32(packets).u64(bytes)
            }
            Note::Arrived { packet } => self.u8(2).label(packet),
            Note::Dropped { packet, why } => self.u8(3).label(packet).u8(why as u8),
            Note::Sent { packet, body } => self.u8(4).label(packet).body(body),
            Note::Received { packet, body } => self.u8(5).label(packet).body(body),
            Note::Generated { index, bytes, captured } => {
                self.u8(6).u32(index).u32(bytes).u64(captured.as_nanos())
            }
            Note::HandedOver { index } => self.u8(7).u32(index),
            Note::Discarded { index } => self.u8(8).u32(index),
            Note::Delivered { index, bytes } => self.u8(9).u32(index).u32(bytes),
            Note::Decided { index, playout } => self.u8(10).u32(index).playout(playout),
            Note::Paused { index, length } => self.u8(18).u32(index).u64(length.as_nanos()),
            Note::Gauge { gauge, value } => self.u8(11).u8(gauge as u8).u64(value.to_bits()),
            Note::Event(event) => self.u8(12).u8(event_number(event)),
            // Numbers from 6 on are rungs.
            Note::Encoding(rung) => self.u8(12).u8(6 + rung),
            Note::RxError(rx_error) => self.u8(13).u8(rx_error as u8),
            Note::InOrder { waited } => self.u8(17).u64(waited.as_nanos()),
            Note::Marked { packet } => self.u8(15).label(packet),
            Note::Copied { packet, body } => self.u8(16).label(packet).body(body),
            // The label of the refused packet is in the note of its drop.
            Note::Answered { packet, body, .. } => self.u8(14).label(packet).body(body),
        }
    }

    fn label(&mut self, packet: &Packet) -> &mut Self {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let bytes = [packet.hop, packet.ecn as u8, packet.dscp, packet.version as u8];
        self.u64(pair(packet.ip_bytes, packet.route))
            .u64(pair(packet.flow, packet.number))
            .put(bytes)
            .u64(packet.sent.as_nanos())
    }

    fn playout(&mut self, playout: Playout) -> &mut Self {
        match playout {
            Playout::Played(at) => self.u8(0).u64(at.as_nanos()),
            Playout::Late(at) => self.u8(1).u64(at.as_nanos()),
            Playout::Duplicate => self.u8(2).u64(0),
            Playout::Recovered(at) => self.u8(3).u64(at.as_nanos()),
        }
    }

    fn body(&mut self, body: &Body) -> &mut Self {
        match body {
            Body::Udp(frame) => self.frame(frame),
            Body::Tcp(segment) => self.u8(3).segment(segment),
            Body::Dccp(packet) => self.u8(5).dccp(packet),
            Body::Tfrc(packet) => self.u8(6).tfrc(packet),
            Body::Sctp(packet) => self.u8(7).sctp(packet),
            Body::TooBig { mtu, quote } => self.u8(4).u32(*mtu).quote(quote),
            #[allow(
                unreachable_patterns,
                reason = "for packet formats without an arm of their own"
            )]
            other => self.u8(8).as_bytes(other),
        }
    }

    /// A packet by its bytes on the wire.
    fn as_bytes(&mut self, body: &Body) -> &mut Self {
        let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let ends = Ends { src: nobody, dst: nobody, src_port: 0, dst_port: 0 };
        let mut bytes = Vec::new();
        let tail = wire::emit_body(nobody, body, &ends, &mut bytes).unwrap_or_default();
        self.u32(body.layers().total()).u64(xxh3_64(&bytes)).u64(tail.offset).u32(tail.len)
    }

    /// The frame of a datagram, or of a packet of another transport.
    fn frame(&mut self, frame: &Frame) -> &mut Self {
        match frame {
            Frame::Data(payload) => self.u8(0).payload(payload),
            Frame::Rtp(packet) => {
                self.u8(if packet.csrc.is_some() { 3 } else { 1 })
                    .u8(packet.payload_type)
                    .u8(u8::from(packet.marker))
                    .u16(packet.sequence)
                    .u32(packet.timestamp)
                    .u32(packet.ssrc);
                let csrc = packet.csrc.map(u32::from);
                csrc.into_iter().fold(self, Self::u32).payload(&packet.payload)
            }
            Frame::Rtcp(_) => {
                let mut bytes = Vec::with_capacity(frame.wire_bytes());
                wire::emit_frame(frame, &mut bytes);
                self.u8(2).u64(xxh3_64(&bytes))
            }
        }
    }

    fn quote(&mut self, quote: &Quote) -> &mut Self {
        self.u8(quote.version as u8)
            .u32(quote.ip_bytes)
            .u32(quote.mark)
            .u8(quote.ttl)
            .u8(quote.dscp)
            .u8(quote.ecn as u8);
        let quoted = &quote.transport;
        if let Some(seq) = quoted.word(wire::tcp::PROTOCOL) {
            self.u8(1).u32(seq)
        } else if let Some(tag) = quoted.word(wire::sctp::PROTOCOL) {
            self.u8(3).u32(tag)
        } else if let Some(seq) = wire::dccp::quoted_seq(quoted) {
            // RFC 4340 §5.1, behind the ports: Data Offset, CCVal and CsCov, checksum, Type and X.
            let header = quoted.behind_ports();
            let (ccval, cscov) = (header[1] >> 4, header[1] & 0xf);
            self.u8(2).number(seq).u8(header[4] >> 1 & 0xf).u8(header[0]).u8(ccval).u8(cscov)
        } else {
            self.u8(0).u32(0)
        }
    }

    fn dccp(&mut self, packet: &dccp::Packet) -> &mut Self {
        let dccp::Packet { seq, ccval, cscov, kind, options, payload } = packet;
        self.number(*seq).u8(*ccval).u8(*cscov).u8(kind.number());
        if let Some(ack) = kind.ack() {
            self.number(ack);
        }
        match *kind {
            Kind::Request { service }
            | Kind::Response { service, .. }
            | Kind::Listen { service } => self.u32(service),
            Kind::Reset { code, data: [first, second, third], .. } => {
                self.u8(code.0).u8(first).u8(second).u8(third)
            }
            _ => self,
        };
        let options = options.as_bytes();
        self.u16(options.len() as u16).u64(xxh3_64(options)).frame(payload)
    }

    /// A DCCP sequence number: its form, and its value.
    fn number(&mut self, seq: WireSeq) -> &mut Self {
        match seq {
            WireSeq::Extended(seq) => self.u8(1).u64(seq),
            WireSeq::Short(seq) => self.u8(0).u64(seq.into()),
        }
    }

    /// Chunks are represented by the hash of their records: a packet holds as many as fit.
    fn sctp(&mut self, packet: &sctp::Packet) -> &mut Self {
        let mut chunks = Xxh3::new();
        for chunk in &packet.chunks {
            let mut record = Record { room: &mut [0; LONGEST], len: 0 };
            record.chunk(chunk);
            chunks.update(record.bytes());
        }
        self.u32(packet.tag).u16(packet.chunks.len() as u16).u64(chunks.digest())
    }

    /// A DATA chunk is encoded by its fields and its frame, any other by the hash of its bytes.
    fn chunk(&mut self, chunk: &Chunk) -> &mut Self {
        let Chunk::Data(data) = chunk else {
            return self.u8(chunk.number()).u64(xxh3_64(&wire::sctp::chunk_bytes(chunk)));
        };
        let (message, part) = match data.number {
            sctp::Number::Ssn(ssn) => (ssn.into(), 0),
            sctp::Number::Mid(mid, fsn) => (mid, fsn),
        };
        self.u8(chunk.number())
            .u8(u8::from(data.immediate))
            .u8(u8::from(data.unordered))
            .u8(u8::from(data.beginning))
            .u8(u8::from(data.ending))
            .u32(data.tsn)
            .u16(data.stream)
            .u32(message)
            .u32(part)
            .u32(data.ppid)
            .frame(&data.payload)
    }

    fn tfrc(&mut self, packet: &tfrc::Packet) -> &mut Self {
        match packet {
            tfrc::Packet::Data(tfrc::Data { seq, timestamp, rtt, payload }) => {
                self.u8(0).u32(*seq).u32(*timestamp).u32(*rtt).frame(payload)
            }
            tfrc::Packet::Feedback(feedback) => self
                .u8(1)
                .u32(feedback.timestamp)
                .u32(feedback.delay)
                .u32(feedback.receive_rate)
                .u32(feedback.loss_event_rate),
        }
    }

    fn segment(&mut self, segment: &Segment) -> &mut Self {
        let (value, echo) = segment.timestamps.unwrap_or_default();
        self.u32(segment.seq)
            .u32(segment.ack)
            .u16(segment.window)
            .u8(segment.flags.0)
            .u8(u8::from(segment.mss.is_some()))
            .u16(segment.mss.unwrap_or_default())
            .u8(u8::from(segment.window_scale.is_some()))
            .u8(segment.window_scale.unwrap_or_default())
            .u8(u8::from(segment.timestamps.is_some()))
            .u32(value)
            .u32(echo)
            .payload(&segment.payload)
            .selective(segment)
    }

    /// The SACK fields of a segment; nothing for a segment without SACK.
    fn selective(&mut self, segment: &Segment) -> &mut Self {
        let blocks = segment.sack.as_ref().map_or(&[][..], |sack| sack.as_slice());
        if segment.sack_permitted || !blocks.is_empty() {
            self.u8(u8::from(segment.sack_permitted)).u8(blocks.len() as u8);
        }
        for (left, right) in blocks {
            self.u32(*left).u32(*right);
        }
        self
    }

    fn payload(&mut self, payload: &Payload) -> &mut Self {
        match payload {
            Payload::Virtual { offset, len } => self.u8(0).u64(*offset).u32(*len as u32),
            Payload::Real(bytes) => self.u8(1).u64(0).u32(bytes.len() as u32),
        }
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
        // The first is 6; see `Note::Encoding`.
        Event::TargetRate(_) => 254,
        Event::Restarted => 255,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_without_an_arm_differ_by_their_bytes() {
        let record = |payload| {
            let mut record = Record { room: &mut [0; LONGEST], len: 0 };
            record.as_bytes(&Body::Udp(Frame::Data(payload)));
            record.bytes().to_vec()
        };
        let real = |bytes: &'static [u8]| Payload::Real(bytes.into());
        assert_eq!(record(real(b"abc")), record(real(b"abc")));
        assert_ne!(record(real(b"abc")), record(real(b"abd")));
        assert_ne!(record(real(b"abc")), record(Payload::Virtual { offset: 0, len: 3 }));
    }
}
