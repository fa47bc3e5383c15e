//! The environment of a live endpoint: a [`Port`] that carries IP packets, the clock, and optional
//! [`Impairments`] in between.

use std::collections::BTreeMap;
use std::io;
use std::iter;
use std::mem;
use std::net::{IpAddr, SocketAddr};

use talkspurt_proto::body::Body;
use talkspurt_proto::packet::{IpVersion, Packet, PathId};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::wire::{Ends, Hints, Parsed, WireError, ipv4, ipv6};

use crate::clock::Clock;
use crate::envelope::{self, Encapsulation, Inside};
use crate::impairments::{Impairments, Verdict, Way, mark};
use talkspurt_record::pcapng::Direction;

/// A socket that carries whole IP packets.
pub trait Port {
    /// Sends a packet to the address in its header.
    ///
    /// # Errors
    /// Errors of the socket.
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;
    /// Waits this long (or forever) for a packet, which replaces the contents of `packet`; false if none came.
    ///
    /// # Errors
    /// Errors of the socket.
    fn receive(&mut self, wait: Option<Duration>, packet: &mut Vec<u8>) -> io::Result<bool>;
}

/// Observes every packet on the local side: time sent, received or lost, direction, verdict, bytes.
pub type Tap = Box<dyn FnMut(Instant, Direction, Verdict, &[u8]) + Send>;

/// How a line is set up.
pub struct Setup {
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's. If absent, the first sender becomes the peer, until [`Line::forget_peer`].
    pub remote: Option<SocketAddr>,
    /// Our address and the peer's of each path beyond the first, for multihomed hosts; the ports are those of
    /// the first.
    pub further: Vec<(IpAddr, IpAddr)>,
    /// Outages of paths: from, and until.
    pub cuts: Vec<(PathId, Instant, Instant)>,
    /// Parsing hints.
    pub hints: Hints,
    /// UDP ports around DCCP or SCTP, if it is sent inside UDP.
    pub encapsulation: Option<Encapsulation>,
    /// Impairments of the peer's packets.
    pub inbound: Impairments,
    /// Impairments of our packets.
    pub outbound: Impairments,
    /// The observer.
    pub tap: Option<Tap>,
}

impl Setup {
    /// A line without impairments.
    #[must_use]
    pub fn new(local: SocketAddr, remote: Option<SocketAddr>) -> Self {
        let (inbound, outbound) = (Impairments::none(), Impairments::none());
        Self {
            local,
            remote,
            further: Vec::new(),
            cuts: Vec::new(),
            hints: Hints::default(),
            encapsulation: None,
            inbound,
            outbound,
            tap: None,
        }
    }
}

/// Known addresses of the peer.
#[derive(Clone, Copy)]
struct Peer {
    remote: Option<SocketAddr>,
    /// The UDP port around DCCP (RFC 6773) or SCTP (RFC 6951).
    udp_port: Option<u16>,
}

impl Peer {
    /// As given by the setup.
    fn of(setup: &Setup) -> Self {
        let udp_port = setup.encapsulation.map(|envelope| envelope.remote_port);
        Self { remote: setup.remote, udp_port: udp_port.filter(|port| *port != 0) }
    }
}

/// A port, a clock, and the impairments between them and the endpoint.
pub struct Line<L> {
    port: L,
    clock: Clock,
    setup: Setup,
    inbound: Way,
    outbound: Way,
    peer: Peer,
    /// The UDP source port of the last packet read.
    heard_port: Option<u16>,
    /// Packets in flight, by the time they come out and the order in which they entered.
    underway: BTreeMap<(Instant, u64), (Direction, Verdict, Vec<u8>)>,
    began: u64,
    unsent_packets: u64,
}

impl<L: Port> Line<L> {
    /// A line over this port, whose clock starts now.
    #[must_use]
    pub fn new(port: L, setup: Setup) -> Self {
        Self {
            port,
            clock: Clock::start(),
            inbound: Way::new(setup.inbound.clone()),
            outbound: Way::new(setup.outbound.clone()),
            peer: Peer::of(&setup),
            heard_port: None,
            setup,
            underway: BTreeMap::new(),
            began: 0,
            unsent_packets: 0,
        }
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }
    /// IP version of its packets.
    #[must_use]
    pub const fn version(&self) -> IpVersion {
        if self.setup.local.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 }
    }
    /// The peer, once known.
    #[must_use]
    pub const fn remote(&self) -> Option<SocketAddr> {
        self.peer.remote
    }
    /// Identifies both ends as far as known: addresses and both pairs of ports (RFC 6773 §3.8).
    #[must_use]
    pub fn ends(&self) -> Vec<u8> {
        let ports = self.setup.encapsulation.map(|ours| (ours.local_port, self.peer.udp_port));
        format!("{} {:?} {ports:?}", self.setup.local, self.peer.remote).into_bytes()
    }
    /// Forgets a peer that was not in the setup but learnt from its first packet.
    pub fn forget_peer(&mut self) {
        self.peer = Peer::of(&self.setup);
    }
    /// Confirms that the last packet read is the peer's: a changed UDP port, for example behind a NAT, becomes
    /// the destination of further packets (RFC 6951 §5.4).
    pub fn follow_peer(&mut self) {
        self.peer.udp_port = self.heard_port;
    }
    /// The path between the addresses of a packet of the peer.
    #[must_use]
    pub fn path_of(&self, ends: &Ends) -> Option<PathId> {
        let pair = (ends.dst, ends.src);
        if let Some(index) = self.setup.further.iter().position(|further| *further == pair) {
            return Some(PathId(index as u8 + 1));
        }
        let its = self.peer.remote.is_none_or(|remote| remote.ip() == ends.src);
        (its && self.setup.local.ip() == ends.dst).then_some(PathId(0))
    }
    /// Packets that could not be sent: no buffer, no route, too long, host unreachable.
    #[must_use]
    pub const fn unsent_packets(&self) -> u64 {
        self.unsent_packets
    }

    /// Sends a packet on the path numbered by its route. One that cannot be written, is refused by the socket,
    /// or has no known peer yet is lost.
    ///
    /// # Errors
    /// The socket failed permanently.
    pub fn send(&mut self, now: Instant, packet: &Packet, body: &Body) -> io::Result<()> {
        let path = PathId(packet.route as u8);
        let Some(ends) = self.addressed(path) else {
            self.unsent_packets += 1;
            return Ok(());
        };
        let mut bytes = Vec::new();
        let remote_port = self.peer.udp_port.unwrap_or(0);
        let envelope = self.setup.encapsulation.map(|ours| Encapsulation { remote_port, ..ours });
        if envelope::emit(packet, body, &ends, envelope, &mut bytes).is_err() {
            self.unsent_packets += 1;
            return Ok(());
        }
        let (verdict, through) = self.meet(now, Direction::Outbound, Some(path), bytes.len());
        self.look(now, Direction::Outbound, verdict, &bytes);
        if !verdict.arrives() {
            return Ok(());
        }
        if through > now {
            self.begin(through, Direction::Outbound, verdict, bytes);
            return Ok(());
        }
        for bytes in passing(verdict, bytes) {
            self.transmit(&bytes)?;
        }
        Ok(())
    }

    /// Waits for a packet of the peer until this instant (or forever); `None` if none came. Packets not for us
    /// or not from the peer are skipped.
    ///
    /// # Errors
    /// The socket failed.
    pub fn receive(
        &mut self,
        until: Option<Instant>,
    ) -> io::Result<Option<Result<Parsed, WireError>>> {
        let mut bytes = Vec::new();
        loop {
            let now = self.now();
            if let Some((verdict, bytes)) = self.release(now)? {
                self.look(now, Direction::Inbound, verdict, &bytes);
                if let Some(read) = self.read(&bytes) {
                    return Ok(Some(read));
                }
                continue;
            }
            let due = self.underway.keys().next().map(|key| key.0);
            let wake = until.into_iter().chain(due).min();
            let wait = wake.map(|at| at.saturating_since(now));
            if self.port.receive(wait, &mut bytes)? {
                self.accept(mem::take(&mut bytes));
            } else if until.is_some() && wake == until && wake != due {
                return Ok(None);
            }
        }
    }

    /// Parses the bytes unless they are not for us or not from the peer.
    fn read(&mut self, bytes: &[u8]) -> Option<Result<Parsed, WireError>> {
        let inside = self.setup.encapsulation.map(|envelope| envelope.inside);
        let (parsed, udp_port) = match envelope::parse(bytes, self.setup.hints, inside) {
            Err(error) => return Some(Err(error)),
            Ok(read) => read,
        };
        let Ends { src, src_port, dst_port, .. } = parsed.ends;
        let Peer { remote, udp_port: known_port } = self.peer;
        let path = self.path_of(&parsed.ends)?;
        // Addresses and both pairs of ports identify a connection (RFC 6773 §3.8); an association's UDP ports
        // may change (RFC 6951 §5.4).
        let follows = inside == Some(Inside::Sctp);
        let its = remote.is_none_or(|remote| remote.port() == src_port)
            && (follows || known_port.is_none_or(|port| udp_port == Some(port)));
        // Port 0 cannot be answered.
        if dst_port != self.setup.local.port() || !its || udp_port == Some(0) {
            return None;
        }
        if remote.is_none() && path == PathId(0) {
            self.peer.remote = Some(SocketAddr::new(src, src_port));
        }
        self.peer.udp_port = known_port.or(udp_port);
        self.heard_port = udp_port;
        Some(Ok(parsed))
    }

    /// Addresses and ports of a packet that leaves on this path, if the peer is known.
    fn addressed(&self, path: PathId) -> Option<Ends> {
        let (local, remote) = (self.setup.local, self.peer.remote?);
        let (src, dst) = match usize::from(path.0).checked_sub(1) {
            None => (local.ip(), remote.ip()),
            Some(further) => *self.setup.further.get(further)?,
        };
        Some(Ends { src, dst, src_port: local.port(), dst_port: remote.port() })
    }

    /// Sends all outbound packets in flight at once: the end of a run loses no packet.
    ///
    /// # Errors
    /// The socket failed.
    pub fn flush(&mut self) -> io::Result<()> {
        for (direction, _, bytes) in mem::take(&mut self.underway).into_values() {
            if direction == Direction::Outbound {
                self.transmit(&bytes)?;
            }
        }
        Ok(())
    }

    /// The impairments of a packet on a path, and when it comes out; random numbers are drawn even during an
    /// outage.
    fn meet(
        &mut self,
        now: Instant,
        direction: Direction,
        path: Option<PathId>,
        bytes: usize,
    ) -> (Verdict, Instant) {
        let way = match direction {
            Direction::Inbound => &mut self.inbound,
            Direction::Outbound => &mut self.outbound,
        };
        let met = way.take(now, bytes);
        let cut = |(of, from, until): &(PathId, Instant, Instant)| {
            Some(*of) == path && (*from..*until).contains(&now)
        };
        if self.setup.cuts.iter().any(cut) { (Verdict::Lost, now) } else { met }
    }

    /// Handles a packet from the socket.
    fn accept(&mut self, bytes: Vec<u8>) {
        let now = self.now();
        let path = addresses(&bytes).and_then(|ends| self.path_of(&ends));
        let (verdict, through) = self.meet(now, Direction::Inbound, path, bytes.len());
        if !verdict.arrives() {
            return self.look(now, Direction::Inbound, verdict, &bytes);
        }
        self.begin(through, Direction::Inbound, verdict, bytes);
    }

    fn look(&mut self, now: Instant, direction: Direction, verdict: Verdict, bytes: &[u8]) {
        if let Some(tap) = &mut self.setup.tap {
            tap(now, direction, verdict, bytes);
        }
    }

    fn begin(
        &mut self,
        through: Instant,
        direction: Direction,
        mut verdict: Verdict,
        bytes: Vec<u8>,
    ) {
        for bytes in passing(verdict, bytes) {
            self.began += 1;
            self.underway.insert((through, self.began), (direction, verdict, bytes));
            // The tap counts a packet's impairment once.
            verdict = Verdict::Passed;
        }
    }

    /// Releases packets that are due: sends ours; returns the first of the peer's.
    fn release(&mut self, now: Instant) -> io::Result<Option<(Verdict, Vec<u8>)>> {
        while let Some(first) = self.underway.first_entry()
            && first.key().0 <= now
        {
            match first.remove() {
                (Direction::Inbound, verdict, bytes) => return Ok(Some((verdict, bytes))),
                (Direction::Outbound, _, bytes) => self.transmit(&bytes)?,
            }
        }
        Ok(None)
    }

    fn transmit(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.port.send(bytes) {
            Err(error) if is_a_loss(&error) => {
                self.unsent_packets += 1;
                Ok(())
            }
            sent => sent,
        }
    }
}

/// Addresses of an IP packet.
fn addresses(bytes: &[u8]) -> Option<Ends> {
    let (src, dst) = if bytes.first()? >> 4 == 4 {
        let (header, _) = ipv4::Header::parse(bytes).ok()?;
        (header.src.into(), header.dst.into())
    } else {
        let (header, _) = ipv6::Header::parse(bytes).ok()?;
        (header.src.into(), header.dst.into())
    };
    Some(Ends { src, dst, src_port: 0, dst_port: 0 })
}

/// Copies of a packet to forward: one, possibly marked, or two.
fn passing(verdict: Verdict, mut bytes: Vec<u8>) -> impl Iterator<Item = Vec<u8>> {
    if verdict == Verdict::Marked {
        mark(&mut bytes);
    }
    let copy = (verdict == Verdict::Copied).then(|| bytes.clone());
    iter::once(bytes).chain(copy)
}

/// Errors by which a network may lose a packet without the socket being broken.
fn is_a_loss(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionRefused
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
            | Kind::PermissionDenied
            | Kind::WouldBlock
    ) || matches!(error.raw_os_error(), Some(NO_BUFFER | TOO_LONG))
}

/// Linux: ENOBUFS.
const NO_BUFFER: i32 = 105;
/// Linux: EMSGSIZE.
const TOO_LONG: i32 = 90;
