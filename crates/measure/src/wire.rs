//! The way to the other end: a UDP socket with sealed datagrams, the streams of flows over TCP, and the raw
//! sockets of those directly over IP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::atomic::Ordering;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::{TimeSpec, TimeValLike as _};
use talkspurt_live::{Clock, Datagram, UdpPort};
use talkspurt_proto::time::Duration;
use talkspurt_proto::wire::Ends;

use crate::Failure;
use crate::direct::{Direct, ReceivedPacket, SOCKET_BUFFER, UnboundSocket};
use crate::plan::{PROBE, Plan};
use crate::protocol::Protocol;
use crate::seal::{Header, Key, Kind, Opener, Sealer};
use crate::shared::Shared;
use crate::stream::{Stream, StreamListener, connect};

/// Longest sleep before time starts: how much later it can start here than at the client.
const START_STEP: Duration = Duration::from_millis(2);

/// The socket of one end, with keys.
pub(crate) struct Wire {
    socket: UdpPort,
    sealer: Sealer,
    opener: Opener,
    /// Once known.
    remote: Option<SocketAddr>,
    pub(crate) refused: u64,
    pub(crate) unsent: u64,
    /// Those of them that were longer than the MTU of the route.
    too_long: u64,
    /// Datagrams that found the socket's buffer full.
    overruns: u32,
    /// Of flows over TCP.
    pub(crate) streams: Vec<Stream>,
    entrance: Option<StreamListener>,
    /// Of flows directly over IP.
    pub(crate) direct: Option<Direct>,
}

impl Wire {
    /// A socket on this address; `ours` seals what we send.
    pub(crate) fn bind(local: SocketAddr, ours: &Key, theirs: &Key) -> io::Result<Self> {
        let socket = UdpPort::bind(local)?;
        // The system gives what it permits.
        let _ = socket.socket().set_recv_buffer_size(SOCKET_BUFFER);
        Ok(Self {
            socket,
            sealer: Sealer::new(ours),
            opener: Opener::new(theirs),
            remote: None,
            refused: 0,
            unsent: 0,
            too_long: 0,
            overruns: 0,
            streams: Vec::new(),
            entrance: None,
            direct: None,
        })
    }

    /// The wires of a client and a server that have met, for tests.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn pair() -> io::Result<[Self; 2]> {
        let (local, up, down) = (SocketAddr::from(([127, 0, 0, 1], 0)), [1; 32], [2; 32]);
        let (mut client, mut server) =
            (Self::bind(local, &up, &down)?, Self::bind(local, &down, &up)?);
        (client.remote, server.remote) = (Some(server.local()), Some(client.local()));
        Ok([client, server])
    }

    /// Server: the same, with a TCP port of this number if the plan has flows over TCP.
    pub(crate) fn listen(
        local: SocketAddr,
        [up, down]: &[Key; 2],
        plan: &Plan,
    ) -> io::Result<Self> {
        let mut wire = Self::bind(local, down, up)?;
        wire.entrance = StreamListener::bind(wire.local(), plan, &[*up, *down])?;
        Ok(wire)
    }

    /// Uses these raw sockets for the flows of the plan that are directly over IP. A client knows the server
    /// already.
    pub(crate) fn use_raw(
        &mut self,
        plan: &Plan,
        sockets: Vec<UnboundSocket>,
        [up, down]: &[Key; 2],
        server: Option<SocketAddr>,
    ) -> io::Result<()> {
        let keys = if server.is_some() { [up, down] } else { [down, up] };
        self.direct = Direct::bind(plan, sockets, keys, self.local(), server)?;
        Ok(())
    }

    /// Protocol, addresses and ports of a flow directly over IP, if it is one.
    pub(crate) fn direct(&self, flow: u8) -> Option<(Protocol, Ends)> {
        self.direct.as_ref()?.of(flow)
    }

    /// Sends a sealed IP packet; false if the system refuses it.
    pub(crate) fn send_packet(&mut self, protocol: Protocol, sealed: &[u8]) -> bool {
        let Some(direct) = &mut self.direct else { return false };
        let sent = direct.send(protocol, sealed);
        let code = sent.as_ref().err().and_then(io::Error::raw_os_error);
        self.unsent += u64::from(sent.is_err());
        self.too_long += u64::from(code == Some(nix::libc::EMSGSIZE));
        sent.is_ok()
    }

    /// Packets directly over IP that were longer than the MTU of the route, and this MTU, if there were any.
    pub(crate) fn too_long(&self) -> Option<(u64, Option<u32>)> {
        (self.too_long > 0).then(|| (self.too_long, self.direct.as_ref().and_then(Direct::mtu)))
    }

    /// An IP packet of a flow directly over IP, without waiting.
    pub(crate) fn receive_packet(&mut self) -> io::Result<Option<ReceivedPacket>> {
        let Some(direct) = &mut self.direct else { return Ok(None) };
        let received = direct.receive()?;
        self.refused += u64::from(matches!(received, Some(None)));
        Ok(received.flatten())
    }

    /// Whether there is more to wait for than datagrams.
    pub(crate) const fn has_more(&self) -> bool {
        !self.streams.is_empty() || self.direct.is_some()
    }

    /// Datagrams and packets that found a socket's buffer full.
    pub(crate) fn overruns(&self) -> u32 {
        self.overruns + self.direct.as_ref().map_or(0, Direct::overruns)
    }

    /// Client: opens the streams of a plan to the server's media port; calls `meanwhile` until that is done.
    pub(crate) fn open_streams(
        &mut self,
        plan: &Plan,
        keys: &[Key; 2],
        to: SocketAddr,
        meanwhile: impl FnMut(),
    ) -> Result<(), Failure> {
        let mut from = self.local();
        from.set_port(0);
        self.streams = connect(plan, keys, (from, to), meanwhile)?;
        Ok(())
    }

    /// The stream of a flow, if it is over TCP.
    pub(crate) fn stream(&mut self, flow: u8) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.flow == flow)
    }

    /// Waits for this long until a datagram or packet has come, or a stream can be written again or, if wanted,
    /// read.
    pub(crate) fn wait(&self, wait: Duration, reads: bool) -> io::Result<()> {
        let mut files = vec![PollFd::new(self.socket.socket().as_fd(), PollFlags::POLLIN)];
        let raw = self.direct.iter().flat_map(Direct::descriptors);
        files.extend(raw.map(|file| PollFd::new(file, PollFlags::POLLIN)));
        for stream in self.streams.iter().filter(|stream| !stream.is_lost) {
            let mut events = PollFlags::empty();
            events.set(PollFlags::POLLIN, reads);
            events.set(PollFlags::POLLOUT, stream.is_blocked());
            // A broken stream would end the wait at once, though nothing is to be done with it now.
            if !events.is_empty() {
                files.push(PollFd::new(stream.socket().as_fd(), events));
            }
        }
        let nanos = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
        match ppoll(&mut files, Some(TimeSpec::nanoseconds(nanos)), None) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) const fn local(&self) -> SocketAddr {
        self.socket.local()
    }

    /// Client: makes our address known to the server; returns the round-trip time if UDP passes both ways.
    pub(crate) fn greet(
        &mut self,
        server: SocketAddr,
        shared: &Shared,
    ) -> io::Result<Option<Duration>> {
        // Shorter than what makes the server give the control connection up.
        const TRIES: usize = 20;
        const WAIT: Duration = Duration::from_millis(100);
        self.remote = Some(server);
        let clock = Clock::start();
        let mut sent = Vec::new();
        while sent.len() < TRIES && !shared.is_over() {
            let now = clock.now();
            let number = sent.len() as u32;
            self.send(&Header { kind: Kind::Hello, flow: 0, number, sent: 0 }, &[0; PROBE], 0);
            sent.push(now);
            // Whatever else comes does not end the wait.
            let until = now + WAIT;
            while clock.now() < until {
                let left = until.saturating_since(clock.now());
                if let Some((Header { kind: Kind::Welcome, number, .. }, ..)) =
                    self.receive(left)?
                    && let Some(sent) = sent.get(number as usize)
                {
                    return Ok(Some(clock.now() - *sent));
                }
            }
        }
        Ok(None)
    }

    /// Server: answers greetings and lets streams in from this address until time starts; false if it never
    /// does.
    pub(crate) fn be_greeted(&mut self, client: IpAddr, shared: &Shared) -> bool {
        let clock = Clock::start();
        while !shared.started.load(Ordering::Acquire) {
            if shared.is_over() {
                return false;
            }
            if let Some(entrance) = &mut self.entrance {
                self.streams.extend(entrance.admit(clock.now(), client));
            }
            let datagram = match self.socket.receive_datagram(Some(START_STEP)) {
                Ok(Some(datagram)) => datagram,
                Ok(None) => continue,
                Err(error) => {
                    shared.stop(&format!("the socket failed: {error}"));
                    return false;
                }
            };
            // The control connection has proved that the client is at its address.
            let at_home = datagram.from.ip() == client;
            // Other datagrams come if the client's clock has started before ours.
            if let Some((Header { kind: Kind::Hello, number, .. }, _)) =
                self.open(&datagram, at_home)
                && self.opener.newest
            {
                self.remote = Some(datagram.from);
                self.send(&Header { kind: Kind::Welcome, flow: 0, number, sent: 0 }, &[], 0);
            }
        }
        self.entrance = None;
        if let (Some(direct), Some(remote)) = (&mut self.direct, self.remote) {
            direct.meet(remote);
        }
        self.remote.is_some()
    }

    /// Sends a datagram; false if the system refuses it.
    pub(crate) fn send(&mut self, header: &Header, payload: &[u8], class: u8) -> bool {
        let Some(to) = self.remote else { return false };
        let datagram = self.sealer.seal(header, payload);
        let left = self.socket.send_datagram(&datagram, to, class).is_ok();
        self.unsent += u64::from(!left);
        left
    }

    /// Waits for a datagram from the other end.
    pub(crate) fn receive(
        &mut self,
        wait: Duration,
    ) -> io::Result<Option<(Header, Vec<u8>, Datagram)>> {
        let Some(datagram) = self.socket.receive_datagram(Some(wait))? else { return Ok(None) };
        self.overruns = self.overruns.max(datagram.overruns);
        let from_peer = Some(datagram.from) == self.remote;
        Ok(self.open(&datagram, from_peer).map(|(header, payload)| (header, payload, datagram)))
    }

    /// Header and payload of a datagram. A copy from another address is not opened, or the genuine one would be
    /// a repeated one.
    fn open(&mut self, datagram: &Datagram, from_peer: bool) -> Option<(Header, Vec<u8>)> {
        let opened = from_peer.then(|| self.opener.open(&datagram.bytes)).flatten();
        self.refused += u64::from(opened.is_none());
        opened
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::net::UdpSocket;
    use std::thread;

    use talkspurt_proto::time::Instant;

    use super::*;

    /// Longest sleep of the path.
    const STEP: Duration = Duration::from_millis(50);

    fn at(last: u8) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, last], 0))
    }

    fn bound(last: u8) -> UdpSocket {
        UdpSocket::bind(at(last)).expect("loopback has ports")
    }

    /// Whoever holds a greeting back and sends it from another port after the next one is not the client.
    #[test]
    fn an_older_greeting_does_not_move_the_client() {
        let (up, down) = ([1; 32], [2; 32]);
        let mut server = Wire::bind(at(1), &down, &up).expect("loopback has ports");
        let (client, other, to) = (bound(1), bound(1), server.local());
        let mut sealer = Sealer::new(&up);
        let [first, second] = [0, 1].map(|number| {
            sealer.seal(&Header { kind: Kind::Hello, flow: 0, number, sent: 0 }, &[0; PROBE])
        });
        let shared = Shared::default();
        thread::scope(|scope| {
            let greeted = scope.spawn(|| server.be_greeted(IpAddr::from([127, 0, 0, 1]), &shared));
            client.send_to(&second, to).expect("it is there");
            client.recv(&mut [0; 200]).expect("a welcome");
            other.send_to(&first, to).expect("it is there");
            other.set_read_timeout(Some(std::time::Duration::from_millis(100))).expect("no zero");
            let welcomed = other.recv(&mut [0; 200]);
            shared.started.store(true, Ordering::Release);
            assert!(welcomed.is_err());
            assert!(greeted.join().expect("no panic"));
        });
        assert_eq!(server.remote, client.local_addr().ok());
    }

    /// A path of 250 ms there: the round-trip time is not that since the latest try. Whoever sees the path
    /// sends a copy of each greeting from another address at once, and 30 datagrams of noise to the client.
    #[test]
    fn a_greeting_passes_noise_copies_and_delays() {
        let (up, down) = ([1; 32], [2; 32]);
        let mut client = Wire::bind(at(1), &up, &down).expect("loopback has ports");
        let mut server = Wire::bind(at(1), &down, &up).expect("loopback has ports");
        let (of_server, of_client) = (server.local(), client.local());
        let (path, other) = (bound(1), bound(2));
        let entry = path.local_addr().expect("it is bound");
        let shared = Shared::default();
        let delay = Duration::from_millis(250);
        let clock = Clock::start();
        thread::scope(|scope| {
            let greeted = scope.spawn(|| server.be_greeted(IpAddr::from([127, 0, 0, 1]), &shared));
            let carried = scope.spawn(|| {
                let mut held = VecDeque::new();
                let mut bytes = [0; 200];
                while !shared.started.load(Ordering::Acquire) {
                    let next = held.front().map_or(STEP, |(due, _): &(Instant, Vec<u8>)| {
                        due.saturating_since(clock.now()).max(Duration::from_millis(1))
                    });
                    let wait = std::time::Duration::from_nanos(next.as_nanos());
                    path.set_read_timeout(Some(wait)).expect("it is no zero");
                    if let Ok((length, from)) = path.recv_from(&mut bytes) {
                        if from == of_server {
                            path.send_to(&bytes[..length], of_client).expect("it is there");
                            continue;
                        }
                        other.send_to(&bytes[..length], of_server).expect("it is there");
                        for _ in 0..30 {
                            path.send_to(b"noise", of_client).expect("it is there");
                        }
                        held.push_back((clock.now() + delay, bytes[..length].to_vec()));
                    }
                    while held.front().is_some_and(|(due, _)| *due <= clock.now()) {
                        let (_, bytes) = held.pop_front().expect("it is there");
                        path.send_to(&bytes, of_server).expect("it is there");
                    }
                }
            });
            let round_trip = client.greet(entry, &shared).expect("no error");
            shared.started.store(true, Ordering::Release);
            assert!(round_trip.is_some_and(|it| it >= delay), "{round_trip:?}");
            assert!(greeted.join().expect("no panic"));
            carried.join().expect("no panic");
        });
        assert!(server.refused > 0 && client.refused > 0);
    }
}
