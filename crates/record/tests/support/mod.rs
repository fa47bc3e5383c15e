//! Scripts of notes for probes, and columns of tables as plain vectors.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::collections::BTreeMap;

use arrow_array::{Array, Float64Array, Int64Array, StringArray};
use bytes::Bytes;
use talkspurt_proto::body::Body;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{BodyId, Packet, PacketBox, Payload, Quote};
use talkspurt_proto::probe::{DropReason, Note, Place, Probe};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::{dccp, rtp, tcp, tfrc};
use talkspurt_record::{FlowInfo, Layout, LinkInfo, RouteInfo, SideInfo, Table};

/// A note that owns its data.
#[derive(Debug)]
pub enum Line {
    Enqueued(Packet, u32, u64),
    Dequeued(Packet, u32, u64),
    Arrived(Packet),
    Dropped(Packet, DropReason),
    Sent(Packet, Body),
    /// What was refused, and the answer.
    Answered(Packet, Packet, Body),
    Received(Packet, Body),
    Plain(Note<'static>),
}

#[derive(Debug)]
pub struct Told {
    pub at: Instant,
    pub place: Place,
    pub line: Line,
}

impl Told {
    pub fn tell<P: Probe>(&self, probe: &mut P) {
        let note = match &self.line {
            Line::Enqueued(packet, packets, bytes) => {
                Note::Enqueued { packet, packets: *packets, bytes: *bytes }
            }
            Line::Dequeued(packet, packets, bytes) => {
                Note::Dequeued { packet, packets: *packets, bytes: *bytes }
            }
            Line::Arrived(packet) => Note::Arrived { packet },
            Line::Dropped(packet, why) => Note::Dropped { packet, why: *why },
            Line::Sent(packet, body) => Note::Sent { packet, body },
            Line::Answered(refused, packet, body) => Note::Answered { refused, packet, body },
            Line::Received(packet, body) => Note::Received { packet, body },
            Line::Plain(note) => {
                if probe.wants(note.topic()) {
                    probe.record(self.at, self.place, note);
                }
                return;
            }
        };
        if probe.wants(note.topic()) {
            probe.record(self.at, self.place, &note);
        }
    }
}

pub fn tell<P: Probe>(script: &[Told], probe: &mut P) {
    script.iter().for_each(|told| told.tell(probe));
}

pub fn ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A label on the route of the same number as its sender.
pub fn packet(peer: u32, number: u32, ip_bytes: u32, sent: Instant) -> Packet {
    Packet {
        body: BodyId(number),
        ip_bytes,
        route: peer,
        flow: peer / 2,
        number,
        sent,
        ..Packet::default()
    }
}

pub fn rtp(index: u32, payload_bytes: usize) -> Body {
    Body::Udp(Frame::Rtp(rtp::Packet {
        payload_type: 0,
        marker: index == 0,
        sequence: index as u16,
        timestamp: 160 * index,
        ssrc: 7,
        payload: Payload::Real(Bytes::from(vec![0; payload_bytes])),
        ..rtp::Packet::default()
    }))
}

/// Control traffic of a datagram flow, as short as it comes.
pub fn control() -> Body {
    Body::Udp(Frame::Data(Payload::default()))
}

pub fn data(len: u32) -> Body {
    Body::Udp(Frame::Data(Payload::Virtual { offset: 0, len: len.into() }))
}

/// DCCP's acknowledgement with an Ack Vector of one run: 16 + 8 + 4 bytes.
pub fn dccp_ack(seq: u64) -> Body {
    let kind = dccp::Kind::Ack { ack: dccp::WireSeq::Extended(seq) };
    dccp(seq, kind, Frame::Data(Payload::default()))
}

/// A frame of speech on a DCCP-Data packet.
pub fn dccp_rtp(index: u32, payload_bytes: usize) -> Body {
    let Body::Udp(frame) = rtp(index, payload_bytes) else { unreachable!("a datagram") };
    dccp(u64::from(index), dccp::Kind::Data, frame)
}

fn dccp(seq: u64, kind: dccp::Kind, payload: Frame) -> Body {
    let mut options = dccp::Options::default();
    if kind.ack().is_some() {
        options.push(dccp::options::Opt::AckVector { nonce: false, cells: &[0] });
    }
    let seq = dccp::WireSeq::Extended(seq);
    Body::Dccp(PacketBox::new(dccp::Packet { seq, ccval: 0, cscov: 0, kind, options, payload }))
}

/// A frame of speech in a datagram of bare TFRC.
pub fn tfrc_rtp(index: u32, payload_bytes: usize) -> Body {
    let Body::Udp(payload) = rtp(index, payload_bytes) else { unreachable!("a datagram") };
    let (timestamp, rtt) = (20_000 * index, 0);
    Body::Tfrc(tfrc::Packet::Data(tfrc::Data { seq: index, timestamp, rtt, timeout: 0, payload }))
}

/// TFRC's feedback: 20 bytes behind UDP's 8.
pub fn tfrc_feedback() -> Body {
    let (timestamp, delay, receive_rate, loss_event_rate) = (1, 2, 3, 4);
    let feedback = tfrc::Feedback { timestamp, delay, receive_rate, loss_event_rate };
    Body::Tfrc(tfrc::Packet::Feedback(feedback))
}

/// A router's report that it dropped a segment.
pub fn refusal(mtu: u32) -> Body {
    let quote = Quote::of(&packet(0, 1, 1500, ms(0)), &segment(1, 1448)).expect("no answer");
    Body::TooBig { mtu, quote }
}

pub fn segment(seq: u32, len: u32) -> Body {
    let payload = Payload::Virtual { offset: seq.into(), len: len.into() };
    Body::Tcp(tcp::Segment { seq, payload, timestamps: Some((1, 2)), ..tcp::Segment::default() })
}

pub fn side(source: &str, frame_ms: Option<u64>) -> Option<SideInfo> {
    Some(SideInfo {
        source: source.into(),
        frame: frame_ms.map(Duration::from_millis),
        deadline: None,
        rests: false,
    })
}

pub fn flow(name: &str, transport: &str, sides: [Option<SideInfo>; 2]) -> FlowInfo {
    FlowInfo {
        name: name.into(),
        group: None,
        transport: transport.into(),
        from: "alice".into(),
        to: "bob".into(),
        sides,
    }
}

/// Two links, `wire` and its way back, and a route per peer.
pub fn layout(flows: Vec<FlowInfo>, from: Instant, to: Instant, end: Instant) -> Layout {
    let link = |name: &str, from: &str, to: &str| LinkInfo {
        name: name.into(),
        from: from.into(),
        to: vec![to.into()],
        receivers: BTreeMap::new(),
        rate_bps: 1_000_000,
        delay: Duration::from_millis(10),
    };
    let routes = (0..flows.len() as u32)
        .flat_map(|flow| [RouteInfo { flow, side: 0 }, RouteInfo { flow, side: 1 }])
        .collect();
    Layout {
        colours: BTreeMap::new(),
        flows,
        links: vec![link("wire", "alice", "bob"), link("wire.back", "bob", "alice")],
        routes,
        from,
        to,
        duration: end - Instant::ZERO,
        interval: Duration::from_secs(1),
    }
}

fn column<T: Array + Clone + 'static>(table: &Table, name: &str) -> Vec<T> {
    let index = table.schema.index_of(name).unwrap_or_else(|_| panic!("no column {name}"));
    let typed = |batch: &arrow_array::RecordBatch| {
        let array = batch.column(index).as_any();
        array.downcast_ref::<T>().unwrap_or_else(|| panic!("type of column {name}")).clone()
    };
    table.batches.iter().map(typed).collect()
}

pub fn floats(table: &Table, name: &str) -> Vec<Option<f64>> {
    column::<Float64Array>(table, name).iter().flat_map(|array| array.iter()).collect()
}

pub fn counts(table: &Table, name: &str) -> Vec<Option<i64>> {
    column::<Int64Array>(table, name).iter().flat_map(|array| array.iter()).collect()
}

pub fn texts(table: &Table, name: &str) -> Vec<Option<String>> {
    let arrays = column::<StringArray>(table, name);
    arrays.iter().flat_map(|array| array.iter().map(|text| text.map(str::to_owned))).collect()
}

/// All columns of a table by name and Arrow type, for comparison with the written contract.
pub fn columns(table: &Table) -> Vec<String> {
    table.schema.fields().iter().map(|field| field.name().clone()).collect()
}

pub fn near(a: Option<f64>, b: Option<f64>, tolerance: f64) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= tolerance,
        (a, b) => a.is_none() && b.is_none(),
    }
}
