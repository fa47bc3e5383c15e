//! The environment of a live endpoint: a [`Port`] that carries IP packets, and the clock.

use std::io;
use std::net::{IpAddr, SocketAddr};

use talkspurt_proto::body::{Body, Layers};
use talkspurt_proto::packet::{BodyId, Ecn, IpVersion, Packet, PathId};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::wire::{Ends, Hints, Parsed, WireError};

use crate::clock::Clock;
use crate::envelope::{self, Encapsulation, Inside};

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

/// How a line is set up.
pub struct Setup {
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's. If absent, the first sender becomes the peer, until [`Line::forget_peer`].
    pub remote: Option<SocketAddr>,
    /// Our address and the peer's of each path beyond the first, for multihomed hosts; the ports are those of
    /// the first.
    pub further: Vec<(IpAddr, IpAddr)>,
    /// Parsing hints.
    pub hints: Hints,
    /// UDP ports around DCCP or SCTP, if it is sent inside UDP.
    pub encapsulation: Option<Encapsulation>,
}

impl Setup {
    /// A line of one path, without encapsulation.
    #[must_use]
    pub fn new(local: SocketAddr, remote: Option<SocketAddr>) -> Self {
        let hints = Hints::default();
        Self { local, remote, further: Vec::new(), hints, encapsulation: None }
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

/// A port and a clock.
pub struct Line<L> {
    port: L,
    clock: Clock,
    setup: Setup,
    peer: Peer,
    /// The UDP source port of the last packet read.
    heard_port: Option<u16>,
    unsent_packets: u64,
}

impl<L: Port> Line<L> {
    /// A line over this port, whose clock starts now.
    #[must_use]
    pub fn new(port: L, setup: Setup) -> Self {
        let (clock, peer) = (Clock::start(), Peer::of(&setup));
        Self { port, clock, peer, heard_port: None, setup, unsent_packets: 0 }
    }

    /// The port.
    #[must_use]
    pub const fn port(&mut self) -> &mut L {
        &mut self.port
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
    pub fn send(&mut self, packet: &Packet, body: &Body) -> io::Result<()> {
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
        match self.port.send(&bytes) {
            Err(error) if is_a_loss(&error) => {
                self.unsent_packets += 1;
                Ok(())
            }
            sent => sent,
        }
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
            let wait = until.map(|at| at.saturating_since(self.now()));
            if self.port.receive(wait, &mut bytes)? {
                if let Some(read) = self.read(&bytes) {
                    return Ok(Some(read));
                }
            } else if until.is_some() {
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
}

/// Errors by which a network may lose a packet without the socket being broken.
#[must_use]
pub fn is_a_loss(error: &io::Error) -> bool {
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

/// The label under which a packet is written and noted; its route is the path.
#[must_use]
pub fn label(
    path: PathId,
    ecn: Ecn,
    body: &Body,
    version: IpVersion,
    number: u32,
    at: Instant,
) -> Packet {
    let Layers { transport, media, payload } = body.layers();
    Packet {
        body: BodyId(0),
        ip_bytes: version.header_bytes() + transport + media + payload,
        route: u32::from(path.0),
        flow: 0,
        number,
        hop: 0,
        ecn,
        dscp: 0,
        version,
        sent: at,
    }
}
