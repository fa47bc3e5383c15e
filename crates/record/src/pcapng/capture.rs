//! The probe that captures links: each packet is written when its transmission begins, with the
//! TTL, ECN field and DSCP it has there.
//!
//! A link's notes carry the label only, so the body is kept from the note of its sending until it
//! is received or dropped. On the first captured link it becomes bytes, and the next ones have but to
//! change what hops change. Links tell of their packets late; they wait until all that was before has
//! been told (`settled`), and the file is in order of time: memory holds what was sent since.
//!
//! Addresses and ports come from a table by (flow, route): a route is one direction, and ports are a
//! flow's. A router's answer has the ends of the packet it refused, turned round, and the router's
//! address for its source.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use talkspurt_proto::packet::{Body, IpVersion, Packet};
use talkspurt_proto::probe::{Note, Place, Probe, Topic};
use talkspurt_proto::time::Instant;
use talkspurt_proto::wire::{self, Ends};

use super::{Pcapng, block_bytes, write_block};
use crate::in_order::InOrder;
use crate::under_way::UnderWay;

/// Captures of chosen links, one file for one or more of them (a link's two directions).
#[derive(Debug, Default)]
pub struct CaptureProbe {
    /// By route: its flow, and the ends of its packets.
    ends: Vec<Option<(u32, Ends)>>,
    routers: Vec<Router>,
    /// By link.
    taps: Vec<Option<Tap>>,
    files: Vec<Pcapng>,
    /// Blocks by the number of their file, which wait until no earlier one can come: readers such as
    /// Wireshark's TCP analysis go by the order of the file, and links tell of their packets late.
    waiting: InOrder,
    kept: UnderWay<Kept>,
    /// Rooms of packets that are gone, for others.
    spare: Vec<Vec<u8>>,
    unwritten: u64,
}

/// The addresses under which the node before a link speaks.
pub type Router = (Ipv4Addr, Ipv6Addr);

/// Where the packets of a link go.
#[derive(Clone, Copy, Debug)]
struct Tap {
    file: usize,
    interface: u32,
}

#[derive(Debug)]
enum Kept {
    /// Not yet seen on a captured link. Its source address is that of `ends`, or a router's.
    Body { src: IpAddr, ends: Ends, body: Body },
    /// As it was on the last captured link.
    Bytes(Vec<u8>),
}

impl CaptureProbe {
    /// A probe that knows where the packets of each (flow, route) come from and go to; those of
    /// others are not captured.
    #[must_use]
    pub fn new(ends: impl IntoIterator<Item = ((u32, u32), Ends)>) -> Self {
        let mut by_route = Vec::new();
        for ((flow, route), ends) in ends {
            put(&mut by_route, route, (flow, ends));
        }
        Self { ends: by_route, ..Self::default() }
    }

    /// Tells it the routers before all links, by the link's number; without them their answers are
    /// not captured.
    #[must_use]
    pub fn with_routers(mut self, routers: Vec<Router>) -> Self {
        self.routers = routers;
        self
    }

    /// Captures these links into `file`, the first as its interface 0, and so on.
    pub fn tap(&mut self, file: Pcapng, links: &[u32]) {
        let index = self.files.len();
        self.files.push(file);
        for (link, interface) in links.iter().zip(0..) {
            put(&mut self.taps, *link, Tap { file: index, interface });
        }
    }

    /// Whether a file could not be written, so that the run may stop early.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.files.iter().any(Pcapng::failed)
    }

    /// Packets seen on a captured link but not written: their sending was not noted, their ends
    /// are not known, or they fit no IP packet.
    #[must_use]
    pub const fn unwritten(&self) -> u64 {
        self.unwritten
    }

    /// Completes all files.
    ///
    /// # Errors
    /// The first that could not be written; the others are completed all the same.
    pub fn finish(mut self) -> io::Result<()> {
        self.settled(Instant::from_nanos(u64::MAX));
        // All are finished before the first failure is told.
        let finished: Vec<_> = self.files.into_iter().map(Pcapng::finish).collect();
        finished.into_iter().collect()
    }

    fn ends(&self, packet: &Packet) -> Option<Ends> {
        let (flow, ends) = self.ends.get(packet.route as usize).copied().flatten()?;
        (flow == packet.flow).then_some(ends)
    }

    fn on_sent(&mut self, packet: &Packet, body: &Body) {
        if let Some(ends) = self.ends(packet) {
            self.keep(packet, ends.src, ends, body);
        }
    }

    fn on_answered(&mut self, link: u32, refused: &Packet, packet: &Packet, body: &Body) {
        let ends = self.ends(refused);
        let router = self.routers.get(link as usize).copied();
        if let (Some(ends), Some((v4, v6))) = (ends, router) {
            let src = match refused.version {
                IpVersion::V4 => IpAddr::V4(v4),
                IpVersion::V6 => IpAddr::V6(v6),
            };
            self.keep(packet, src, ends.reversed(), body);
        }
    }

    fn keep(&mut self, packet: &Packet, src: IpAddr, ends: Ends, body: &Body) {
        self.kept.keep(packet, Kept::Body { src, ends, body: body.clone() });
    }

    fn forget(&mut self, packet: &Packet) {
        if let Some(Kept::Bytes(mut bytes)) = self.kept.take(packet) {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    fn on_dequeued(&mut self, now: Instant, link: u32, packet: &Packet) {
        let Some(tap) = self.taps.get(link as usize).copied().flatten() else { return };
        let kept = self.kept.get_mut(packet);
        let Some(bytes) = kept.and_then(|kept| kept.on_link(packet, &mut self.spare)) else {
            self.unwritten += 1;
            return;
        };
        let kept = self.files[tap.file].kept(bytes);
        let length = block_bytes(kept.len());
        // In a file packets of one instant stay in the order in which they were told.
        self.waiting.tell(now, tap.file as u32, length, |block| {
            write_block(tap.interface, now, kept, bytes.len(), block);
            length
        });
    }
}

impl Kept {
    /// The packet's bytes as they are on this link.
    fn on_link(&mut self, packet: &Packet, spare: &mut Vec<Vec<u8>>) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => wire::relabel(packet, bytes),
            Self::Body { src, ends, body } => {
                let mut bytes = spare.pop().unwrap_or_default();
                wire::emit_from(*src, packet, body, ends, &mut bytes).ok()?;
                *self = Self::Bytes(bytes);
            }
        }
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Body { .. } => None,
        }
    }
}

/// Puts a value at its place, which may be beyond those that there are.
fn put<T: Clone>(all: &mut Vec<Option<T>>, place: u32, value: T) {
    let place = place as usize;
    if place >= all.len() {
        all.resize(place + 1, None);
    }
    all[place] = Some(value);
}

impl Probe for CaptureProbe {
    fn wants(&self, topic: Topic) -> bool {
        matches!(topic, Topic::Packet | Topic::Hop | Topic::Drop) && !self.taps.is_empty()
    }

    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        match (place, note) {
            (_, Note::Sent { packet, body } | Note::Copied { packet, body }) => {
                self.on_sent(packet, body);
            }
            (Place::Link(link), Note::Answered { refused, packet, body }) => {
                self.on_answered(link, refused, packet, body);
            }
            (_, Note::Received { packet, .. } | Note::Dropped { packet, .. }) => {
                self.forget(packet);
            }
            (Place::Link(link), Note::Dequeued { packet, .. }) => {
                self.on_dequeued(now, link, packet);
            }
            _ => {}
        }
    }

    fn settled(&mut self, now: Instant) {
        let Self { files, waiting, .. } = self;
        waiting.write_before(now, |file, block| files[file as usize].output.write(block));
    }
}
