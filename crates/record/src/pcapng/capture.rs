//! The probe that captures links: each packet is written when its transmission begins, with the
//! TTL, ECN field and DSCP it has there.
//!
//! A link's notes carry the label only, so the body is kept from the note of its sending until it
//! is received or dropped, under its handle in the driver's pool ([`Packet::body`]), which is one
//! packet's alone for that time. Flow, route and number are kept beside it and compared, so a body
//! is never taken for another's. Addresses and ports come from a table by (flow, route): a route
//! is one direction, and ports are a flow's. A router's answer has the ends of the packet it
//! refused, turned round, and the router's address for its source.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use talkspurt_proto::packet::{Body, IpVersion, Packet};
use talkspurt_proto::probe::{Note, Place, Probe, Topic};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::wire::{self, Ends};

use super::{Pcapng, Remarks};

/// Captures of chosen links, one file for one or more of them (a link's two directions).
#[derive(Debug, Default)]
pub struct CaptureProbe {
    ends: BTreeMap<(u32, u32), Ends>,
    routers: Vec<Router>,
    taps: BTreeMap<u32, Tap>,
    files: Vec<Sorted>,
    bodies: BTreeMap<u32, Kept>,
    now: Instant,
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
    identity: Identity,
    /// Source address: that of `ends`, or a router's.
    src: IpAddr,
    ends: Ends,
    body: Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    flow: u32,
    route: u32,
    number: u32,
}

impl Identity {
    const fn of(packet: &Packet) -> Self {
        Self { flow: packet.flow, route: packet.route, number: packet.number }
    }
}

/// A file whose packets wait until no earlier one can come: readers such as Wireshark's TCP
/// analysis go by the order of the file, and links tell of their packets late.
#[derive(Debug)]
struct Sorted {
    file: Pcapng,
    lag: Duration,
    next: u64,
    waiting: BTreeMap<(Instant, u64), (u32, Vec<u8>)>,
}

impl Sorted {
    fn push(&mut self, now: Instant, interface: u32, bytes: Vec<u8>) {
        self.waiting.insert((now, self.next), (interface, bytes));
        self.next += 1;
    }

    fn write_until(&mut self, until: Instant) {
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 <= until
        {
            let ((at, _), (interface, bytes)) = first.remove_entry();
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

    /// Captures these links into `file`, the first as its interface 0, and so on. `lag` is how
    /// long after a transmission began a link may tell of it at the latest (its propagation delay
    /// and the transmission of its longest packet); the file is then in order of time.
    pub fn tap(&mut self, file: Pcapng, links: &[u32], lag: Duration) {
        let index = self.files.len();
        self.files.push(Sorted { file, lag, next: 0, waiting: BTreeMap::new() });
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
            sorted.write_until(Instant::from_nanos(u64::MAX));
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
        let kept = Kept { identity: Identity::of(packet), src, ends, body: body.clone() };
        self.bodies.insert(packet.body.0, kept);
    }

    fn release(&mut self, packet: &Packet) {
        if self.kept(packet).is_some() {
            self.bodies.remove(&packet.body.0);
        }
    }

    fn kept(&self, packet: &Packet) -> Option<&Kept> {
        self.bodies.get(&packet.body.0).filter(|kept| kept.identity == Identity::of(packet))
    }

    fn bytes(&self, packet: &Packet) -> Option<Vec<u8>> {
        let Kept { src, ends, body, .. } = self.kept(packet)?;
        let mut bytes = Vec::new();
        wire::emit_from(*src, packet, body, ends, &mut bytes).ok()?;
        Some(bytes)
    }

    fn on_dequeued(&mut self, now: Instant, link: u32, packet: &Packet) {
        let Some(tap) = self.taps.get(&link).copied() else { return };
        let bytes = self.bytes(packet);
        let sorted = &mut self.files[tap.file];
        match bytes {
            Some(bytes) => sorted.push(now, tap.interface, bytes),
            None => self.unwritten += 1,
        }
        let settled = self.now.as_nanos().saturating_sub(sorted.lag.as_nanos());
        sorted.write_until(Instant::from_nanos(settled));
    }
}

impl Probe for CaptureProbe {
    fn wants(&self, topic: Topic) -> bool {
        matches!(topic, Topic::Packet | Topic::Hop | Topic::Drop) && !self.taps.is_empty()
    }

    fn record(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        self.now = self.now.max(now);
        match (place, note) {
            (_, Note::Sent { packet, body } | Note::Copied { packet, body }) => {
                self.on_sent(packet, body);
            }
            (Place::Link(link), Note::Answered { refused, packet, body }) => {
                self.on_answered(link, refused, packet, body);
            }
            (_, Note::Received { packet, .. } | Note::Dropped { packet, .. }) => {
                self.release(packet);
            }
            (Place::Link(link), Note::Dequeued { packet, .. }) => {
                self.on_dequeued(now, link, packet);
            }
            _ => {}
        }
    }
}
