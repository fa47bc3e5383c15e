//! Traces of every link in the text formats of ns-2 and nam. qlog is in `qlog`.
//!
//! Links report packets late, so lines are held until the driver declares that everything before an instant has
//! been reported (`settled`). They are written in order of time, then of event (r, +, -, d), then of link.
//! Memory holds the events between two such calls. A link's note carries only a label: the packet's kind,
//! number and ends are kept from the note of its sending, as the text shared by the ends of all its lines.

mod digits;
mod lines;
mod room;

use std::collections::BTreeMap;
use std::io;

use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::Kind;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Ecn, Packet};
use talkspurt_proto::probe::{Note, Place, Probe, Topic};
use talkspurt_proto::sctp::Chunk;
use talkspurt_proto::tcp::{Flags, Segment};
use talkspurt_proto::tfrc;
use talkspurt_proto::time::Instant;

use crate::file::Output;
use crate::in_flight::InFlight;
use crate::layout::Layout;
use lines::{Act, Lines, Named, Tail, Word};
use room::Room;

pub use lines::Dialect;

/// A probe that writes the events of every link.
#[derive(Debug)]
pub struct Trace {
    lines: Lines,
    output: Output,
    /// By route: its first and last nodes.
    ends: Vec<(u32, u32)>,
    /// By route: ns-2's name for the packets of its source.
    words: Vec<Word>,
    /// By route: sequence number of the SYN seen on it.
    initial: Vec<u32>,
    known: InFlight<Known>,
    waiting: Room,
    next_uid: u32,
}

/// Packet data that the label does not contain.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The end of its lines, valid while its ECN field is `ecn`.
    tail: Tail,
    ecn: Ecn,
    /// ECN-Echo and CWR of its transport header.
    echoes: u8,
    /// The link that enqueued it last.
    link: u32,
    /// Its destination node.
    dst: u32,
}

const NOWHERE: u32 = u32::MAX;

impl Trace {
    /// Writes a trace of this layout's links to `output`.
    #[must_use]
    pub fn new(mut output: Output, layout: &Layout, dialect: Dialect) -> Self {
        let nodes = nodes(layout);
        let node = |name: &String| nodes.get(name).copied().unwrap_or_default();
        let ends = layout.routes.iter().map(|route| {
            let flow = &layout.flows[route.flow as usize];
            let ends = (node(&flow.from), node(&flow.to));
            if route.side == 0 { ends } else { (ends.1, ends.0) }
        });
        let words = layout.routes.iter().map(|route| {
            let side = &layout.flows[route.flow as usize].sides[usize::from(route.side)];
            lines::source(side.as_ref().map(|side| side.source.as_str()))
        });
        let (lines, head) = Lines::new(layout, &nodes, dialect);
        output.write(&head);
        Self {
            lines,
            output,
            ends: ends.collect(),
            words: words.collect(),
            initial: vec![0; layout.routes.len()],
            known: InFlight::default(),
            waiting: Room::default(),
            next_uid: 0,
        }
    }

    /// Whether a write failed, so that the run may stop early.
    #[must_use]
    pub const fn failed(&self) -> bool {
        self.output.failed()
    }

    /// Writes the held lines and completes the file.
    ///
    /// # Errors
    /// The first write error.
    pub fn finish(mut self) -> io::Result<()> {
        self.settled(Instant::from_nanos(u64::MAX));
        self.output.finish()
    }

    fn on_sent(&mut self, packet: &Packet, body: &Body) {
        let route = packet.route as usize;
        let Some((src, dst)) = self.ends.get(route).copied() else { return };
        let plain = self.words[route];
        let mut seq = u64::from(packet.number);
        if let Body::Tcp(segment) = body {
            seq = self.relative(route, segment);
        }
        self.keep(packet, body, plain, seq, (src, dst));
    }

    /// A segment's sequence number relative to its SYN, or its acknowledgement number if it carries no data.
    fn relative(&mut self, route: usize, segment: &Segment) -> u64 {
        if segment.flags.contains(Flags::SYN) {
            self.initial[route] = segment.seq;
        }
        let number = if is_ack(segment) {
            let back = self.initial.get(route ^ 1).copied().unwrap_or_default();
            segment.ack.wrapping_sub(back)
        } else {
            segment.seq.wrapping_sub(self.initial[route])
        };
        u64::from(number)
    }

    fn on_answered(&mut self, link: u32, refused: &Packet, packet: &Packet, body: &Body) {
        let Some((sender, _)) = self.ends.get(refused.route as usize).copied() else { return };
        let router = self.lines.from(link);
        self.keep(packet, body, lines::UDP, 0, (router, sender));
    }

    fn keep(&mut self, packet: &Packet, body: &Body, plain: Word, seq: u64, ends: (u32, u32)) {
        let uid = self.next_uid;
        self.next_uid = uid.wrapping_add(1);
        let ((src, dst), word, echoes) = (ends, word(body, plain), echoes(body));
        let (chunk, flow) = (chunk(body), packet.flow);
        let named = Named { word, chunk, ip_bytes: packet.ip_bytes, flow, src, dst, seq, uid };
        let tail = self.lines.tail(&named, echoes | lines::ecn(packet.ecn));
        self.known.keep(packet, Known { tail, ecn: packet.ecn, echoes, link: NOWHERE, dst });
    }

    #[inline]
    fn on_link(&mut self, now: Instant, link: u32, act: Act, packet: &Packet) {
        let Self { lines, known, waiting, .. } = self;
        let Some(known) = known.get_mut(packet) else { return };
        if known.ecn != packet.ecn {
            known.ecn = packet.ecn;
            lines.flag(&mut known.tail, known.echoes | lines::ecn(packet.ecn));
        }
        let to = lines.receiver(link, packet.route, known.dst);
        let mut tell = |act: Act| {
            let rank = (act as u32) << ACT | link;
            waiting.tell(now, rank, lines::MOST, |room| {
                lines.write(act, now.as_nanos(), (link, to), &known.tail, room)
            });
        };
        // A packet dropped at enqueue has not been reported before; ns-2 writes a + for every packet.
        if act == Act::Dropped && known.link != link {
            tell(Act::Enqueued);
        }
        if act == Act::Enqueued {
            known.link = link;
        }
        tell(act);
    }
}

/// The rank of an event at equal times is stored above the link number.
const ACT: u32 = 30;

impl Probe for Trace {
    #[inline]
    fn wants(&self, topic: Topic) -> bool {
        matches!(topic, Topic::Packet | Topic::Hop | Topic::Drop)
    }

    #[inline]
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        match (place, note) {
            (Place::Link(link), Note::Enqueued { packet, .. }) => {
                self.on_link(now, link, Act::Enqueued, packet);
            }
            (Place::Link(link), Note::Dequeued { packet, .. }) => {
                self.on_link(now, link, Act::Dequeued, packet);
            }
            (Place::Link(link), Note::Arrived { packet }) => {
                self.on_link(now, link, Act::Received, packet);
            }
            (Place::Link(link), Note::Dropped { packet, .. }) => {
                self.on_link(now, link, Act::Dropped, packet);
            }
            (Place::Link(link), Note::Answered { refused, packet, body }) => {
                self.on_answered(link, refused, packet, body);
            }
            (_, Note::Sent { packet, body } | Note::Copied { packet, body }) => {
                self.on_sent(packet, body);
            }
            _ => {}
        }
    }

    fn settled(&mut self, now: Instant) {
        self.waiting.write_before(now, |line| self.output.write(line));
    }
}

/// Numbers of the nodes, in the order in which links name them.
fn nodes(layout: &Layout) -> BTreeMap<String, u32> {
    let mut nodes = BTreeMap::new();
    for link in &layout.links {
        for name in std::iter::once(&link.from).chain(&link.to) {
            let next = u32::try_from(nodes.len()).expect("a layout has fewer nodes");
            nodes.entry(name.clone()).or_insert(next);
        }
    }
    nodes
}

/// A segment without data, SYN or FIN: ns-2 calls it an ack.
fn is_ack(segment: &Segment) -> bool {
    let bare = segment.payload.is_empty() && segment.flags.contains(Flags::ACK);
    bare && !segment.flags.contains(Flags::FIN) && !segment.flags.contains(Flags::SYN)
}

/// No data of the flow, whatever carries it.
fn is_rtcp(frame: &Frame) -> bool {
    matches!(frame, Frame::Rtcp(_))
}

/// D for a packet of SCTP with data of the flow.
fn chunk(body: &Body) -> Option<u8> {
    let Body::Sctp(packet) = body else { return None };
    let is_data = |chunk: &Chunk| matches!(chunk, Chunk::Data(data) if !is_rtcp(&data.payload));
    Some(if packet.chunks.iter().any(is_data) { b'D' } else { b'-' })
}

fn word(body: &Body, plain: Word) -> Word {
    match body {
        Body::Udp(Frame::Rtp(_)) => lines::RTP,
        Body::Udp(frame) if is_rtcp(frame) => lines::RTCP,
        Body::Tcp(segment) if is_ack(segment) => lines::ACK,
        Body::Tcp(_) => lines::TCP,
        Body::Sctp(_) => lines::SCTP,
        Body::Tfrc(tfrc::Packet::Data(data)) if is_rtcp(&data.payload) => lines::RTCP,
        Body::Tfrc(tfrc::Packet::Data(_)) => lines::TFRC,
        Body::Tfrc(tfrc::Packet::Feedback(_)) => lines::TFRC_ACK,
        Body::Dccp(packet) => match packet.kind {
            Kind::Request { .. } => lines::DCCP,
            Kind::Response { .. } => lines::DCCP + 1,
            Kind::Ack { .. } => lines::DCCP + 2,
            Kind::Data | Kind::DataAck { .. } if is_rtcp(&packet.payload) => lines::RTCP,
            Kind::Data => lines::DCCP + 3,
            Kind::DataAck { .. } => lines::DCCP + 4,
            Kind::Close { .. } => lines::DCCP + 5,
            Kind::CloseReq { .. } => lines::DCCP + 6,
            Kind::Reset { .. } => lines::DCCP + 7,
            Kind::Sync { .. } | Kind::SyncAck { .. } | Kind::Listen { .. } => lines::DCCP + 8,
        },
        Body::TooBig { .. } => lines::ICMP,
        _ => plain,
    }
}

fn echoes(body: &Body) -> u8 {
    let Body::Tcp(segment) = body else { return 0 };
    let flag = |flag, bit| if segment.flags.contains(flag) { bit } else { 0 };
    flag(Flags::ECE, lines::ECHO) | flag(Flags::CWR, lines::REDUCED)
}
