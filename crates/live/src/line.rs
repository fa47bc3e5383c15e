//! What a live endpoint hangs on: a [`Port`] that carries IP packets, the clock, and between the
//! two, if asked for, [`Mishaps`].

use std::collections::BTreeMap;
use std::io;
use std::iter;
use std::mem;
use std::net::SocketAddr;

use talkspurt_proto::packet::{Body, IpVersion, Packet};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::wire::{Ends, Hints, Parsed, WireError};

use crate::clock::Clock;
use crate::envelope::{self, Encapsulation};
use crate::mishaps::{Fate, Mishaps, Passage, Way, mark};

/// A socket that carries whole IP packets.
pub trait Port {
    /// Sends a packet to the address in its header.
    ///
    /// # Errors
    /// The socket's.
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;
    /// Waits this long (or for ever) for a packet and puts it in the place of what `packet` holds;
    /// false if none came.
    ///
    /// # Errors
    /// The socket's.
    fn receive(&mut self, wait: Option<Duration>, packet: &mut Vec<u8>) -> io::Result<bool>;
}

/// Sees every packet on our side of the path: when it left or came (or was lost), which way, what
/// became of it, its bytes.
pub type Tap = Box<dyn FnMut(Instant, Passage, Fate, &[u8]) + Send>;

/// How a line is set up.
pub struct Setup {
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's. If not given, whoever sends first is the peer, until [`Line::forget_peer`].
    pub remote: Option<SocketAddr>,
    /// What bytes do not say.
    pub hints: Hints,
    /// UDP ports around DCCP, if it is sent inside UDP.
    pub encapsulation: Option<Encapsulation>,
    /// What befalls packets of the peer.
    pub inbound: Mishaps,
    /// What befalls ours.
    pub outbound: Mishaps,
    /// Who looks on.
    pub tap: Option<Tap>,
}

impl Setup {
    /// A line without mishaps.
    #[must_use]
    pub fn new(local: SocketAddr, remote: Option<SocketAddr>) -> Self {
        let (inbound, outbound) = (Mishaps::none(), Mishaps::none());
        Self {
            local,
            remote,
            hints: Hints::default(),
            encapsulation: None,
            inbound,
            outbound,
            tap: None,
        }
    }
}

/// Who the peer is, as far as is known.
#[derive(Clone, Copy)]
struct Peer {
    remote: Option<SocketAddr>,
    /// The UDP port around DCCP (RFC 6773).
    udp_port: Option<u16>,
}

impl Peer {
    /// As far as the setup says.
    fn of(setup: &Setup) -> Self {
        let udp_port = setup.encapsulation.map(|envelope| envelope.remote_port);
        Self { remote: setup.remote, udp_port: udp_port.filter(|port| *port != 0) }
    }
}

/// A port, a clock, and what lies between them and the endpoint.
pub struct Line<L> {
    port: L,
    clock: Clock,
    setup: Setup,
    inbound: Way,
    outbound: Way,
    peer: Peer,
    /// What is on its way, by the instant it is through and in the order it began.
    underway: BTreeMap<(Instant, u64), (Passage, Fate, Vec<u8>)>,
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
            setup,
            underway: BTreeMap::new(),
            began: 0,
            unsent_packets: 0,
        }
    }

    /// What the clock shows.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }
    /// Version of its packets.
    #[must_use]
    pub const fn version(&self) -> IpVersion {
        if self.setup.local.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 }
    }
    /// The peer, once known.
    #[must_use]
    pub const fn remote(&self) -> Option<SocketAddr> {
        self.peer.remote
    }
    /// Whoever was not named in the setup but became the peer by sending first is it no more.
    pub fn forget_peer(&mut self) {
        self.peer = Peer::of(&self.setup);
    }
    /// Packets that could not leave: no buffer, no route, too long, nobody there.
    #[must_use]
    pub const fn unsent_packets(&self) -> u64 {
        self.unsent_packets
    }

    /// Sends a packet. One that cannot be written, that the socket refuses, or that has no peer yet
    /// to go to, is lost.
    ///
    /// # Errors
    /// The socket failed for good.
    pub fn send(&mut self, now: Instant, packet: &Packet, body: &Body) -> io::Result<()> {
        let Some(remote) = self.peer.remote else {
            self.unsent_packets += 1;
            return Ok(());
        };
        let ends = ends(self.setup.local, remote);
        let mut bytes = Vec::new();
        let remote_port = self.peer.udp_port.unwrap_or(0);
        let envelope = self.setup.encapsulation.map(|ours| Encapsulation { remote_port, ..ours });
        if envelope::emit(packet, body, &ends, envelope, &mut bytes).is_err() {
            self.unsent_packets += 1;
            return Ok(());
        }
        let (fate, through) = self.outbound.take(now, bytes.len());
        self.look(now, Passage::Outbound, fate, &bytes);
        if !fate.arrives() {
            return Ok(());
        }
        if through > now {
            self.begin(through, Passage::Outbound, fate, bytes);
            return Ok(());
        }
        for bytes in passing(fate, bytes) {
            self.transmit(&bytes)?;
        }
        Ok(())
    }

    /// Waits for a packet of the peer until this instant (or for ever); `None` if none came. What
    /// is not for us, or not of the peer, is passed over.
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
            if let Some((fate, bytes)) = self.release(now)? {
                self.look(now, Passage::Inbound, fate, &bytes);
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

    /// What the bytes say, unless they are not for us or not of the peer.
    fn read(&mut self, bytes: &[u8]) -> Option<Result<Parsed, WireError>> {
        match envelope::parse(bytes, self.setup.hints, self.setup.encapsulation.is_some()) {
            Err(error) => Some(Err(error)),
            Ok((parsed, udp_port)) => {
                let Ends { src, dst, src_port, dst_port } = parsed.ends;
                let (from, to) = (SocketAddr::new(src, src_port), SocketAddr::new(dst, dst_port));
                let Peer { remote, udp_port: known_port } = self.peer;
                // Addresses and both pairs of ports name a connection (RFC 6773 §3.8).
                let its = remote.is_none_or(|remote| remote == from)
                    && known_port.is_none_or(|port| udp_port == Some(port));
                // To port 0 nobody can answer.
                if to != self.setup.local || !its || udp_port == Some(0) {
                    return None;
                }
                self.peer = Peer { remote: Some(from), udp_port };
                Some(Ok(parsed))
            }
        }
    }

    /// Lets go at once what is underway of ours: the end of a run loses no packet.
    ///
    /// # Errors
    /// The socket failed.
    pub fn flush(&mut self) -> io::Result<()> {
        for (passage, _, bytes) in mem::take(&mut self.underway).into_values() {
            if passage == Passage::Outbound {
                self.transmit(&bytes)?;
            }
        }
        Ok(())
    }

    /// Takes a packet that the socket gave.
    fn accept(&mut self, bytes: Vec<u8>) {
        let now = self.now();
        let (fate, through) = self.inbound.take(now, bytes.len());
        if !fate.arrives() {
            return self.look(now, Passage::Inbound, fate, &bytes);
        }
        self.begin(through, Passage::Inbound, fate, bytes);
    }

    fn look(&mut self, now: Instant, passage: Passage, fate: Fate, bytes: &[u8]) {
        if let Some(tap) = &mut self.setup.tap {
            tap(now, passage, fate, bytes);
        }
    }

    fn begin(&mut self, through: Instant, passage: Passage, mut fate: Fate, bytes: Vec<u8>) {
        for bytes in passing(fate, bytes) {
            self.began += 1;
            self.underway.insert((through, self.began), (passage, fate, bytes));
            // Who looks on counts what befell a packet once.
            fate = Fate::Passed;
        }
    }

    /// Lets go what is through by now: ours leave; the first of the peer's is given.
    fn release(&mut self, now: Instant) -> io::Result<Option<(Fate, Vec<u8>)>> {
        while let Some(first) = self.underway.first_entry()
            && first.key().0 <= now
        {
            match first.remove() {
                (Passage::Inbound, fate, bytes) => return Ok(Some((fate, bytes))),
                (Passage::Outbound, _, bytes) => self.transmit(&bytes)?,
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

/// What goes on of a packet: itself, perhaps marked, perhaps twice.
fn passing(fate: Fate, mut bytes: Vec<u8>) -> impl Iterator<Item = Vec<u8>> {
    if fate == Fate::Marked {
        mark(&mut bytes);
    }
    let copy = (fate == Fate::Copied).then(|| bytes.clone());
    iter::once(bytes).chain(copy)
}

fn ends(from: SocketAddr, to: SocketAddr) -> Ends {
    Ends { src: from.ip(), dst: to.ip(), src_port: from.port(), dst_port: to.port() }
}

/// What a network may do to a packet without the socket being broken.
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
