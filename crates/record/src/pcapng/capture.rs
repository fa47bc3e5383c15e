//! The probe that captures links: each packet is written when its transmission begins, with its TTL, ECN
//! field and DSCP on that link.
//!
//! A link's notes carry only the label, so a packet is serialised when it is sent, except for a virtual TCP
//! payload; the bytes are kept until the packet is received or dropped and all its records are written. The
//! copy for a link is made in the output buffer, because hops change few bytes.
//!
//! Addresses and ports come from a table by (flow, route): a route is one direction, and ports belong to a
//! flow. A router's answer has the endpoints of the packet it refused, swapped, and the router's address as
//! source.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use talkspurt_proto::body::{Body, RealPacket};
use talkspurt_proto::packet::{IpVersion, Packet};
use talkspurt_proto::probe::{Note, Place, Probe, Topic};
use talkspurt_proto::time::Instant;
use talkspurt_proto::wire::{self, Ends, Hop, INITIAL_TTL, Tail, WireError};

use super::Pcapng;
use super::kept::Packets;
use crate::in_flight::InFlight;
use crate::in_order::InOrder;

/// Captures of chosen links, one file for one or more of them (a link's two directions).
#[derive(Debug, Default)]
pub struct CaptureProbe {
    /// By route: its flow, and the endpoints of its packets.
    ends: Vec<Option<(u32, Ends)>>,
    routers: Vec<Router>,
    /// By link.
    taps: Vec<Option<Tap>>,
    files: Vec<Pcapng>,
    /// Captured records by file number, held until no earlier one can arrive: readers such as Wireshark's
    /// TCP analysis rely on file order, and links report packets late.
    waiting: InOrder<Sight>,
    packets: Packets,
    in_flight: InFlight<Sent>,
    unwritten: u64,
}

/// The addresses from which the node before a link sends.
pub type Router = (Ipv4Addr, Ipv6Addr);

/// The destination of a link's captured packets.
#[derive(Clone, Copy, Debug)]
struct Tap {
    file: u32,
    interface: u16,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Its slot in the store.
    place: u32,
    /// How often it was captured.
    seen: u32,
    /// Its TTL when it left its sender.
    ttl: u8,
}

/// A captured packet.
#[derive(Clone, Copy, Debug, Default)]
struct Sight {
    /// Its slot in the store.
    place: u32,
    interface: u16,
    hop: Hop,
}

impl CaptureProbe {
    /// A probe that knows the endpoints of each (flow, route); other packets are not captured.
    #[must_use]
    pub fn new(ends: impl IntoIterator<Item = ((u32, u32), Ends)>) -> Self {
        let mut by_route = Vec::new();
        for ((flow, route), ends) in ends {
            put(&mut by_route, route, (flow, ends));
        }
        Self { ends: by_route, ..Self::default() }
    }

    /// Sets the router before each link, by link number; without them router answers are not captured.
    #[must_use]
    pub fn with_routers(mut self, routers: Vec<Router>) -> Self {
        self.routers = routers;
        self
    }

    /// Captures these links into `file`: the first as interface 0, and so on.
    pub fn tap(&mut self, file: Pcapng, links: &[u32]) {
        let index = self.files.len() as u32;
        self.files.push(file);
        for (link, interface) in links.iter().zip(0..) {
            put(&mut self.taps, *link, Tap { file: index, interface });
        }
    }

    /// Whether a write failed, so that the run may stop early.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.files.iter().any(Pcapng::failed)
    }

    /// Packets seen on a captured link but not written: their sending was not reported, their endpoints are
    /// unknown, or they fit no IP packet.
    #[must_use]
    pub const fn unwritten(&self) -> u64 {
        self.unwritten
    }

    /// Completes all files.
    ///
    /// # Errors
    /// The first file error; the other files are completed regardless.
    pub fn finish(mut self) -> io::Result<()> {
        self.settled(Instant::from_nanos(u64::MAX));
        // Finish all before reporting the first failure.
        let finished: Vec<_> = self.files.into_iter().map(Pcapng::finish).collect();
        finished.into_iter().collect()
    }

    fn on_sent(&mut self, packet: &Packet, body: &Body) {
        let Self { ends, packets, in_flight, .. } = self;
        if let Body::Real(real) = body {
            return keep_real(packet, real, packets, in_flight);
        }
        if let Some(ends) = find(ends, packet) {
            let emit = |out: &mut Vec<u8>| wire::emit_head(ends.src, packet, body, ends, out);
            keep(packet, INITIAL_TTL, emit, packets, in_flight);
        }
    }

    fn on_answered(&mut self, link: u32, refused: &Packet, packet: &Packet, body: &Body) {
        let Self { ends, routers, packets, in_flight, .. } = self;
        if let Body::Real(answer) = body {
            return keep_real(packet, answer, packets, in_flight);
        }
        if let (Some(ends), Some((v4, v6))) = (find(ends, refused), routers.get(link as usize)) {
            let src = match refused.version {
                IpVersion::V4 => IpAddr::V4(*v4),
                IpVersion::V6 => IpAddr::V6(*v6),
            };
            let ends = ends.reversed();
            let emit = |out: &mut Vec<u8>| wire::emit_head(src, packet, body, &ends, out);
            keep(packet, INITIAL_TTL, emit, packets, in_flight);
        }
    }

    /// The fragment is what is captured from now on.
    fn on_cut(&mut self, packet: &Packet, body: &Body) {
        self.is_gone(packet);
        self.on_sent(packet, body);
    }

    fn is_gone(&mut self, packet: &Packet) {
        if let Some(sent) = self.in_flight.take(packet) {
            self.packets.gone(sent.place, sent.seen);
        }
    }

    fn on_dequeued(&mut self, now: Instant, link: u32, packet: &Packet) {
        let Some(Tap { file, interface }) = self.taps.get(link as usize).copied().flatten() else {
            return;
        };
        let Some(sent) = self.in_flight.get_mut(packet) else {
            self.unwritten += 1;
            return;
        };
        sent.seen += 1;
        let sight = Sight { place: sent.place, interface, hop: Hop::since(sent.ttl, packet) };
        // In a file, packets of one instant stay in the order in which they were reported.
        self.waiting.tell(now, file, sight);
    }
}

/// The endpoints of this packet, if known.
fn find<'a>(ends: &'a [Option<(u32, Ends)>], packet: &Packet) -> Option<&'a Ends> {
    let (flow, ends) = ends.get(packet.route as usize)?.as_ref()?;
    (*flow == packet.flow).then_some(ends)
}

/// Stores a packet of a real host as it was sent.
fn keep_real(
    packet: &Packet,
    real: &RealPacket,
    packets: &mut Packets,
    in_flight: &mut InFlight<Sent>,
) {
    let emit = |out: &mut Vec<u8>| {
        out.extend_from_slice(&real.bytes);
        Ok(Tail::default())
    };
    keep(packet, real.ttl, emit, packets, in_flight);
}

/// Stores the packet that `emit` serialises, if it succeeds.
fn keep(
    packet: &Packet,
    ttl: u8,
    emit: impl FnOnce(&mut Vec<u8>) -> Result<Tail, WireError>,
    packets: &mut Packets,
    in_flight: &mut InFlight<Sent>,
) {
    let Some(place) = packets.keep(emit) else { return };
    if let Some(before) = in_flight.keep(packet, Sent { place, seen: 0, ttl }) {
        packets.gone(before.place, before.seen);
    }
}

/// Stores a value at an index, growing the list if needed.
fn put<T: Clone>(all: &mut Vec<Option<T>>, place: u32, value: T) {
    let place = place as usize;
    if place >= all.len() {
        all.resize(place + 1, None);
    }
    all[place] = Some(value);
}

impl Probe for CaptureProbe {
    #[inline]
    fn wants(&self, topic: Topic) -> bool {
        matches!(topic, Topic::Packet | Topic::Hop | Topic::Drop) && !self.taps.is_empty()
    }

    #[inline]
    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        match (place, note) {
            (_, Note::Sent { packet, body } | Note::Copied { packet, body }) => {
                self.on_sent(packet, body);
            }
            (Place::Link(link), Note::Answered { refused, packet, body }) => {
                self.on_answered(link, refused, packet, body);
            }
            (_, Note::Cut { packet, body, .. }) => self.on_cut(packet, body),
            (_, Note::Received { packet, .. } | Note::Dropped { packet, .. }) => {
                self.is_gone(packet);
            }
            (Place::Link(link), Note::Dequeued { packet, .. }) => {
                self.on_dequeued(now, link, packet);
            }
            _ => {}
        }
    }

    fn settled(&mut self, now: Instant) {
        let Self { files, packets, waiting, .. } = self;
        waiting.write_before(now, |at, file, sight| {
            let packet = packets.at(sight.place);
            files[file as usize].sight(sight.interface, at, sight.hop, packet);
            packets.written(sight.place);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkspurt_proto::frame::Frame;
    use talkspurt_proto::packet::{BodyId, Payload};

    #[test]
    fn who_had_the_place_of_a_body_before_is_gone() {
        let packet = |number| Packet { body: BodyId(3), ip_bytes: 38, number, ..Packet::default() };
        let address = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        let ends = Ends { src: address(1), dst: address(2), src_port: 5004, dst_port: 5006 };
        let mut probe = CaptureProbe::new([((0, 0), ends)]);
        let body = Body::Udp(Frame::Data(Payload::Real(vec![7; 10].into())));
        for number in 0..10 {
            probe.on_sent(&packet(number), &body);
        }
        // The newest is stored before its slot is found to have been another's.
        assert_eq!(probe.packets.room(), 2);
    }
}
