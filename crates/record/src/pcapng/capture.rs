//! The probe that captures links: each packet is written when its transmission begins, with the
//! TTL, ECN field and DSCP it has there.
//!
//! A link's notes carry the label only, so the body is kept from the note of its sending until it
//! is received or dropped. Links tell of their packets late; they wait until all that was before has
//! been told (`settled`), and the file is in order of time: memory holds what was sent since.
//!
//! Addresses and ports come from a table by (flow, route): a route is one direction, and ports are a
//! flow's. A router's answer has the ends of the packet it refused, turned round, and the router's
//! address for its source.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use talkspurt_proto::packet::{Body, IpVersion, Packet};
use talkspurt_proto::probe::{Note, Place, Probe, Topic};
use talkspurt_proto::time::Instant;
use talkspurt_proto::wire::{self, Ends};

use super::{Pcapng, Remarks};
use crate::under_way::UnderWay;

/// Captures of chosen links, one file for one or more of them (a link's two directions).
#[derive(Debug, Default)]
pub struct CaptureProbe {
    ends: BTreeMap<(u32, u32), Ends>,
    routers: Vec<Router>,
    taps: BTreeMap<u32, Tap>,
    files: Vec<Sorted>,
    bodies: UnderWay<Kept>,
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
struct Kept {
    /// Source address: that of `ends`, or a router's.
    src: IpAddr,
    ends: Ends,
    body: Body,
}

/// A file whose packets wait until no earlier one can come: readers such as Wireshark's TCP
/// analysis go by the order of the file, and links tell of their packets late.
#[derive(Debug)]
struct Sorted {
    file: Pcapng,
    /// When, on which interface, what.
    waiting: Vec<(Instant, u32, Vec<u8>)>,
}

impl Sorted {
    fn write_before(&mut self, now: Instant) {
        self.waiting.sort_by_key(|(at, ..)| *at);
        let ready = self.waiting.partition_point(|(at, ..)| *at < now);
        for (at, interface, bytes) in self.waiting.drain(..ready) {
            self.file.packet(interface, at, &bytes, bytes.len() as u32, Remarks::default());
        }
    }
}

impl CaptureProbe {
    /// A probe that knows where the packets of each (flow, route) come from and go to; those of
    /// others are not captured.
    #[must_use]
    pub fn new(ends: impl IntoIterator<Item = ((u32, u32), Ends)>) -> Self {
        Self { ends: ends.into_iter().collect(), ..Self::default() }
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
        self.files.push(Sorted { file, waiting: Vec::new() });
        self.taps.extend(
            links.iter().zip(0..).map(|(link, interface)| (*link, Tap { file: index, interface })),
        );
    }

    /// Whether a file could not be written, so that the run may stop early.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.files.iter().any(|sorted| sorted.file.failed())
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
    pub fn finish(self) -> io::Result<()> {
        let finished = self.files.into_iter().map(|mut sorted| {
            sorted.write_before(Instant::from_nanos(u64::MAX));
            sorted.file.finish()
        });
        // All are finished before the first failure is told.
        finished.collect::<Vec<_>>().into_iter().collect()
    }

    fn on_sent(&mut self, packet: &Packet, body: &Body) {
        if let Some(ends) = self.ends.get(&(packet.flow, packet.route)).copied() {
            self.keep(packet, ends.src, ends, body);
        }
    }

    fn on_answered(&mut self, link: u32, refused: &Packet, packet: &Packet, body: &Body) {
        let ends = self.ends.get(&(refused.flow, refused.route)).copied();
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
        self.bodies.keep(packet, Kept { src, ends, body: body.clone() });
    }

    fn bytes(&self, packet: &Packet) -> Option<Vec<u8>> {
        let Kept { src, ends, body, .. } = self.bodies.get(packet)?;
        let mut bytes = Vec::new();
        wire::emit_from(*src, packet, body, ends, &mut bytes).ok()?;
        Some(bytes)
    }

    fn on_dequeued(&mut self, now: Instant, link: u32, packet: &Packet) {
        let Some(tap) = self.taps.get(&link).copied() else { return };
        let bytes = self.bytes(packet);
        match bytes {
            Some(bytes) => self.files[tap.file].waiting.push((now, tap.interface, bytes)),
            None => self.unwritten += 1,
        }
    }
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
                self.bodies.take(packet);
            }
            (Place::Link(link), Note::Dequeued { packet, .. }) => {
                self.on_dequeued(now, link, packet);
            }
            _ => {}
        }
    }

    fn settled(&mut self, now: Instant) {
        self.files.iter_mut().for_each(|sorted| sorted.write_before(now));
    }
}
