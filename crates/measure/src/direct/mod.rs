//! Flows over DCCP and SCTP directly over IP (protocols 33 and 132), so that a measurement finds what the
//! network does with these protocols. [`packet`] seals their packets, [`sockets`] are the raw sockets for them,
//! [`mtu`] knows what the route carries, and [`blocked()`] finds flows of which nothing arrived.
//!
//! The flows of a session have the server's media port at the server, and ports from the number of the client's
//! UDP port on at the client.

mod blocked;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod packet;
mod route;
mod sockets;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use talkspurt_live::Port as _;
use talkspurt_proto::time::Duration;
use talkspurt_proto::wire::Ends;

use crate::plan::Plan;
use crate::protocol::Protocol;
use crate::seal::{Header, Key, Opener, Sealer, derived};
pub(crate) use blocked::{blocked, name};
pub(crate) use route::mtu;
use sockets::BoundSocket;
pub(crate) use sockets::{Pool, SOCKET_BUFFER, UnboundSocket, check, open};

/// The flows of a session that are directly over IP, at one end.
pub(crate) struct Direct {
    sockets: Vec<BoundSocket>,
    sealer: Sealer,
    opener: Opener,
    /// Our address with the port of our datagrams, which is the media port at the server.
    local: SocketAddr,
    /// The other end's, once known.
    remote: Option<SocketAddr>,
    client: bool,
    /// The socket that is read first, in turn.
    next: usize,
    /// By flow of the plan, from here to the other end, once it is known.
    flows: Vec<Option<(Protocol, Option<Ends>)>>,
}

/// A packet from the other end.
pub(crate) struct ReceivedPacket {
    pub(crate) header: Header,
    /// As it would be without the seal.
    pub(crate) packet: Vec<u8>,
    /// Its length on the wire.
    pub(crate) bytes: u32,
}

/// Ports of the client for so many flows: from that of its UDP socket on, without the server's.
fn ports(first: u16, server: u16, flows: usize) -> impl Iterator<Item = u16> {
    (first..=u16::MAX).chain(1024..).filter(move |port| *port != server).take(flows)
}

impl Direct {
    /// The flows of a plan on these sockets; `None` without sockets. `ours` seals what we send, `server` is the
    /// media port, and a client knows the other end already.
    pub(crate) fn bind(
        plan: &Plan,
        sockets: Vec<UnboundSocket>,
        [ours, theirs]: [&Key; 2],
        local: SocketAddr,
        remote: Option<SocketAddr>,
    ) -> io::Result<Option<Self>> {
        if sockets.is_empty() {
            return Ok(None);
        }
        let client = remote.is_some();
        let server = remote.unwrap_or(local).port();
        let mut at = local;
        at.set_ip(local.ip().to_canonical());
        let sockets = sockets.into_iter().map(|it| it.bind(at, server, client));
        let [sealer, opener] = [ours, theirs].map(|key| derived(key, b"directly over IP"));
        let flows = plan.flows.iter().map(|flow| Some((flow.transport.direct()?, None)));
        let mut direct = Self {
            sockets: sockets.collect::<io::Result<_>>()?,
            sealer: Sealer::new(&sealer),
            opener: Opener::new(&opener),
            local,
            remote: None,
            client,
            next: 0,
            flows: flows.collect(),
        };
        if let Some(remote) = remote {
            direct.meet(remote);
        }
        Ok(Some(direct))
    }

    /// The other end is at this address, with this UDP port.
    pub(crate) fn meet(&mut self, remote: SocketAddr) {
        self.remote = Some(remote);
        for socket in &self.sockets {
            socket.hear(remote.ip().to_canonical());
        }
        let (client, server) = match self.client {
            true => (self.local.port(), remote.port()),
            false => (remote.port(), self.local.port()),
        };
        let ports = ports(client, server, self.flows.len());
        for (flow, port) in self.flows.iter_mut().zip(ports) {
            let (src_port, dst_port) = if self.client { (port, server) } else { (server, port) };
            let (src, dst) = (self.local.ip().to_canonical(), remote.ip().to_canonical());
            if let Some((_, ends)) = flow {
                *ends = Some(Ends { src, dst, src_port, dst_port });
            }
        }
    }

    /// Protocol, addresses and ports of a flow, if it is directly over IP.
    pub(crate) fn of(&self, flow: u8) -> Option<(Protocol, Ends)> {
        let (protocol, ends) = (*self.flows.get(usize::from(flow))?)?;
        Some((protocol, ends?))
    }

    pub(crate) fn seal(
        &mut self,
        protocol: Protocol,
        header: &Header,
        whole: &[u8],
    ) -> Option<Vec<u8>> {
        packet::seal(&mut self.sealer, protocol, header, whole).ok()
    }

    /// Sends a sealed packet.
    pub(crate) fn send(&mut self, protocol: Protocol, sealed: &[u8]) -> io::Result<()> {
        let socket = self.sockets.iter_mut().find(|it| it.protocol == protocol);
        socket.map_or_else(|| Err(io::ErrorKind::NotFound.into()), |it| it.raw.send(sealed))
    }

    /// The MTU of the route to the other end, if it is known.
    pub(crate) fn mtu(&self) -> Option<u32> {
        mtu(self.local.ip(), self.remote?.ip())
    }

    /// A packet that has come, without waiting; `Some(None)` if it is not from the other end.
    pub(crate) fn receive(&mut self) -> io::Result<Option<Option<ReceivedPacket>>> {
        let mut bytes = Vec::new();
        let sockets = self.sockets.len();
        for turn in 0..sockets {
            let at = (self.next + turn) % sockets;
            if self.sockets[at].raw.receive(Some(Duration::ZERO), &mut bytes)? {
                // A flood of one protocol does not keep packets of the other waiting.
                self.next = at + 1;
                return Ok(Some(self.open(self.sockets[at].protocol, &bytes)));
            }
        }
        Ok(None)
    }

    /// A copy from another address is not opened, or the genuine one would be a repeated one.
    fn open(&mut self, protocol: Protocol, bytes: &[u8]) -> Option<ReceivedPacket> {
        let remote = self.remote?.ip().to_canonical();
        if packet::source(bytes) != Some(remote) {
            return None;
        }
        let opened = packet::open(&mut self.opener, protocol, bytes)?;
        let packet::OpenedPacket { header, src_port, packet } = opened;
        let (of, ends) = self.flows.get_mut(usize::from(header.flow))?.as_mut()?;
        if *of != protocol {
            return None;
        }
        // A NAT may have given it another port.
        if let Some(ends) = ends
            && self.opener.newest
        {
            ends.dst_port = src_port;
        }
        Some(ReceivedPacket { header, packet, bytes: bytes.len() as u32 })
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(|it| std::os::fd::AsFd::as_fd(it.raw.socket()))
    }

    pub(crate) fn overruns(&self) -> u32 {
        self.sockets.iter().map(BoundSocket::overruns).sum()
    }
}
