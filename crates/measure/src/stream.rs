//! Flows over the kernel's TCP: each has a stream of its own, from the client to the server's media port. Units
//! of the application are sealed as datagrams are, under keys of their own, and follow their length in two
//! bytes.
//!
//! The client's first unit proves the keys, which it has from the control connection. The server answers
//! nothing before that, and closes a connection that does not prove them within a second.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use talkspurt_proto::endpoint::{Input, Output, Transmit};
use talkspurt_proto::external::{self, Datagram, Stack};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Ecn, PathId};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Size;

use crate::Failure;
use crate::controller::Controller;
use crate::end_report::StreamEnd;
use crate::plan::{Plan, Traffic};
use crate::seal::{Header, Key, Kind, OVERHEAD, Opener, Sealer, derived};
use crate::tcp_info::{Diagnosis, TcpInfo};
use crate::timed::{IntoStd as _, Timed};
use crate::transport::{STREAM_LENGTH as LENGTH, Transport};

/// Longest sealed unit: no unit is longer than the longest packet of a plan.
const LONGEST: usize = OVERHEAD + 9000;
/// Bytes of units that a stream takes at once: more than the longest unit.
const CHUNK: usize = 16 * 1024;
/// Unsent bytes of bulk in the socket: enough for a loop that is some milliseconds late, and a short wait.
const UNSENT: u32 = 32 * 1024;
/// First bytes of the client: the number of its flow, and an empty unit.
const HELLO: usize = 1 + LENGTH + OVERHEAD;
/// Connections of the client's address that have not proved the keys.
const MAX_PENDING: usize = 64;
/// Time for the proof.
const PROOF: Duration = Duration::from_secs(1);
/// Time for a connection and the server's answer: shorter than a firewall's silence is bearable.
const CONNECT: Duration = Duration::from_secs(2);

/// A flow over TCP as one end has it.
#[derive(Clone, Copy, Debug)]
struct ExpectedStream {
    flow: u8,
    /// Whether this end sends bulk.
    bulk: bool,
    /// That of an end that sends, if it is not the system's.
    controller: Option<Controller>,
}

/// The flows of a plan over TCP, as one end has them.
fn wanted(plan: &Plan, client: bool) -> Vec<ExpectedStream> {
    let flows = plan.flows.iter().enumerate().filter_map(|(number, flow)| {
        let Transport::Tcp(controller) = &flow.transport else { return None };
        let traffic = if client { &flow.up } else { &flow.down };
        let bulk = matches!(traffic, Some(Traffic::Bulk { .. }));
        let controller = controller.filter(|_| traffic.is_some());
        Some(ExpectedStream { flow: number as u8, bulk, controller })
    });
    flows.collect()
}

/// The key of a stream, different from those of datagrams and of other streams.
fn stream_key(key: &Key, flow: u8) -> Key {
    derived(key, &[b"stream".as_slice(), &[flow]].concat())
}

/// One end of the stream of a flow.
pub(crate) struct Stream {
    pub(crate) flow: u8,
    socket: TcpStream,
    sealer: Sealer,
    opener: Opener,
    deframer: Deframer,
    /// Bytes of units that the socket has not taken.
    out: Vec<u8>,
    room: Arc<AtomicUsize>,
    /// Ours and that of the other end.
    addresses: [SocketAddr; 2],
    /// The latest.
    info: Option<TcpInfo>,
    /// It broke; nothing more is sent or received.
    pub(crate) is_lost: bool,
}

/// A unit of the other end.
pub(crate) struct Unit {
    pub(crate) header: Header,
    pub(crate) payload: Vec<u8>,
}

impl Stream {
    fn new(
        socket: TcpStream,
        wanted: ExpectedStream,
        sealer: Sealer,
        opener: Opener,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let options = SockRef::from(&socket);
        // What the socket still holds at the end is not sent: media stops.
        options.set_linger(Some(std::time::Duration::ZERO))?;
        if wanted.bulk {
            options.set_tcp_notsent_lowat(UNSENT)?;
            // As programs that transfer files: the ends of units make no short segments.
            options.set_tcp_nodelay(false)?;
        }
        let addresses = [socket.local_addr()?, socket.peer_addr()?];
        Ok(Self {
            flow: wanted.flow,
            socket,
            sealer,
            opener,
            deframer: Deframer::default(),
            out: Vec::new(),
            room: Arc::default(),
            addresses,
            info: None,
            is_lost: false,
        })
    }

    /// The transport of the peer whose units it carries.
    pub(crate) fn transport(&self) -> external::Config {
        let room = Arc::clone(&self.room);
        external::Config::new(external::Kind {
            name: "tcp",
            version: "",
            header_bytes: 0,
            mtu: Size::from_bytes(65_535),
            max_message: usize::MAX,
            has_handshake: false,
            has_window: true,
            build: Box::new(move |_, _| Box::new(Carrier::new(Arc::clone(&room)))),
        })
    }

    pub(crate) const fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Whether the socket has not taken everything.
    pub(crate) const fn is_blocked(&self) -> bool {
        !self.out.is_empty()
    }

    /// Whether its peer may be given more room.
    pub(crate) fn wants_room(&self) -> bool {
        !self.is_lost && !self.is_blocked() && self.room.load(Ordering::Relaxed) < CHUNK
    }

    pub(crate) fn give_room(&self) {
        self.room.store(CHUNK, Ordering::Relaxed);
    }

    /// Adds a unit to the bytes that are written next.
    pub(crate) fn queue(&mut self, header: &Header, payload: &[u8]) {
        append(&mut self.out, &self.sealer.seal(header, payload));
    }

    /// Writes what the socket takes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let mut written = 0;
        let result = loop {
            if written == self.out.len() {
                break Ok(());
            }
            match self.socket.write(&self.out[written..]) {
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.out.drain(..written);
        result
    }

    /// Units of what has come; an error says why nothing more will.
    pub(crate) fn receive(&mut self) -> Result<Vec<Unit>, String> {
        let mut bytes = [0; CHUNK];
        match self.socket.read(&mut bytes) {
            Ok(0) => return Err("the other end closed it".to_owned()),
            Ok(length) => self.deframer.push(&bytes[..length]),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Ok(Vec::new());
            }
            Err(error) => return Err(error.to_string()),
        }
        let mut units = Vec::new();
        while let Some(sealed) = self.deframer.next()? {
            let opened = self.opener.open(sealed);
            let (header, payload) = opened.ok_or("a unit is not authentic")?;
            units.push(Unit { header, payload });
        }
        Ok(units)
    }

    /// Nothing more is sent or received.
    pub(crate) fn lose(&mut self) {
        self.is_lost = true;
        self.room.store(0, Ordering::Relaxed);
        self.out.clear();
    }

    /// What the kernel tells of it now.
    pub(crate) fn ask(&mut self, diagnosis: &Diagnosis) -> Option<TcpInfo> {
        let [ours, theirs] = self.addresses;
        let told = diagnosis.ask(ours, theirs);
        self.info = told.or(self.info);
        told
    }

    /// What is known of this end when it is over.
    pub(crate) fn end(&self) -> StreamEnd {
        let name = SockRef::from(&self.socket).tcp_congestion().unwrap_or_default();
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        StreamEnd {
            flow: self.flow,
            controller: String::from_utf8_lossy(name).into_owned(),
            segments: self.info.map(|info| (info.segments, info.retransmitted)),
        }
    }
}

fn append(out: &mut Vec<u8>, sealed: &[u8]) {
    out.extend((sealed.len() as u16).to_be_bytes());
    out.extend(sealed);
}

/// Cuts a stream of bytes into sealed units.
#[derive(Debug, Default)]
pub(crate) struct Deframer {
    bytes: Vec<u8>,
    /// Bytes that were taken.
    taken: usize,
}

impl Deframer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend(bytes);
    }

    /// The next unit, if it has come completely. After an error nothing can be found in the stream.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, String> {
        let left = &self.bytes[self.taken..];
        let Some((length, rest)) = left.split_first_chunk::<LENGTH>() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes(*length));
        if !(OVERHEAD..=LONGEST).contains(&length) {
            return Err(format!("a unit of {length} bytes: expected {OVERHEAD} to {LONGEST}"));
        }
        let unit = rest.get(..length);
        self.taken += unit.map_or(0, |unit| LENGTH + unit.len());
        Ok(unit)
    }
}

/// The endpoint of a flow over TCP: units pass it as far as the stream has room.
#[derive(Debug)]
struct Carrier {
    room: Arc<AtomicUsize>,
    /// As of the last poll.
    seen: usize,
    out: VecDeque<Frame>,
    come: VecDeque<Datagram>,
}

impl Carrier {
    const fn new(room: Arc<AtomicUsize>) -> Self {
        Self { room, seen: 0, out: VecDeque::new(), come: VecDeque::new() }
    }
}

impl Stack for Carrier {
    fn handle(&mut self, _: Instant, input: Input<Datagram>) {
        match input {
            Input::Frame(frame) => {
                let left = self.send_capacity().saturating_sub(frame.wire_bytes());
                self.room.store(left, Ordering::Relaxed);
                self.out.push_back(frame);
            }
            Input::Packet { packet, .. } => self.come.push_back(packet),
            Input::Open | Input::Path(..) | Input::TooBig { .. } => {}
            Input::Timeout | Input::Close | Input::Abort => {}
        }
    }

    fn poll(&mut self, now: Instant, _: &mut dyn FnMut(external::Note)) -> Output<Datagram> {
        if let Some(packet) = self.out.pop_front().map(Datagram::from) {
            let (path, ecn) = (PathId(0), Ecn::NotEct);
            return Output::Transmit(Transmit { path, ecn, packet });
        }
        if let Some(datagram) = self.come.pop_front() {
            return Output::Deliver(datagram.content);
        }
        let room = self.send_capacity();
        let more = room > self.seen;
        self.seen = room;
        // A peer looks for room after a timeout.
        Output::Idle { until: more.then_some(now) }
    }

    fn send_capacity(&self) -> usize {
        self.room.load(Ordering::Relaxed)
    }
}

/// Opens the client's streams of a plan, all at the same time; calls `meanwhile` until that is done.
pub(crate) fn connect(
    plan: &Plan,
    [up, down]: &[Key; 2],
    (from, to): (SocketAddr, SocketAddr),
    mut meanwhile: impl FnMut(),
) -> Result<Vec<Stream>, Failure> {
    std::thread::scope(|scope| {
        let opening = wanted(plan, true)
            .into_iter()
            .map(|wanted| scope.spawn(move || open(wanted, [up, down], from, to)));
        let opening: Vec<_> = opening.collect();
        while !opening.iter().all(|thread| thread.is_finished()) {
            std::thread::sleep(std::time::Duration::from_millis(1));
            meanwhile();
        }
        let opened = opening.into_iter().map(|thread| thread.join().expect("it does not panic"));
        opened.collect()
    })
}

/// Opens a stream and proves its keys.
fn open(
    wanted: ExpectedStream,
    keys: [&Key; 2],
    from: SocketAddr,
    to: SocketAddr,
) -> Result<Stream, Failure> {
    let opened = || -> io::Result<Stream> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        if let Some(controller) = wanted.controller {
            socket.set_tcp_congestion(controller.name().as_bytes())?;
        }
        socket.bind(&from.into())?;
        socket.connect_timeout(&to.into(), CONNECT.into_std())?;
        socket.set_tcp_nodelay(true)?;
        let socket = TcpStream::from(socket);
        let [up, down] = keys.map(|key| stream_key(key, wanted.flow));
        let (mut sealer, mut opener) = (Sealer::new(&up), Opener::new(&down));
        let mut hello = vec![wanted.flow];
        append(&mut hello, &sealer.seal(&greeting(Kind::Hello, wanted.flow), &[]));
        let mut timed = Timed::new(&socket, CONNECT);
        timed.write(&hello)?;
        let mut answer = [0; LENGTH + OVERHEAD];
        timed.read(&mut answer)?;
        let answer = opener.open(&answer[LENGTH..]).filter(|(it, _)| it.kind == Kind::Welcome);
        answer.ok_or(ErrorKind::InvalidData)?;
        Stream::new(socket, wanted, sealer, opener)
    };
    let words = |error: io::Error| match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            format!("{to}: no TCP connection came about within 2 s: is a firewall in between?")
        }
        ErrorKind::ConnectionRefused => {
            format!("{to}: the TCP connection of a flow was refused: is a firewall in between?")
        }
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::InvalidData => {
            format!("{to}: the TCP connection of a flow was not answered by the server")
        }
        _ => format!("{to}: no TCP connection: {error}"),
    };
    opened().map_err(|error| Failure::Unreachable(words(error)))
}

const fn greeting(kind: Kind, flow: u8) -> Header {
    Header { kind, flow, number: 0, sent: 0 }
}

/// Accepts the streams of a session at a server.
pub(crate) struct StreamListener {
    listener: TcpListener,
    keys: [Key; 2],
    /// Those that have not connected.
    wanted: Vec<ExpectedStream>,
    pending: Vec<Pending>,
}

/// A connection that has not proved the keys.
struct Pending {
    socket: TcpStream,
    since: Instant,
    bytes: Vec<u8>,
}

impl StreamListener {
    /// Listens on this address; `None` if the plan has no flow over TCP.
    pub(crate) fn bind(
        local: SocketAddr,
        plan: &Plan,
        keys: &[Key; 2],
    ) -> io::Result<Option<Self>> {
        let wanted = wanted(plan, false);
        if wanted.is_empty() {
            return Ok(None);
        }
        let listener = TcpListener::bind(local)?;
        listener.set_nonblocking(true)?;
        Ok(Some(Self { listener, keys: *keys, wanted, pending: Vec::new() }))
    }

    /// The streams that this client has opened since the last call.
    pub(crate) fn admit(&mut self, now: Instant, client: IpAddr) -> Vec<Stream> {
        for _ in 0..MAX_PENDING {
            // Nobody is there, or a connection is gone already.
            let Ok((socket, from)) = self.listener.accept() else { break };
            if from.ip().to_canonical() != client || socket.set_nonblocking(true).is_err() {
                continue;
            }
            if self.pending.len() >= MAX_PENDING {
                // At random, so that a flood does not know whose it closes.
                let random = getrandom::u32().expect("the system has random numbers") as usize;
                self.pending.swap_remove(random % MAX_PENDING);
            }
            self.pending.push(Pending { socket, since: now, bytes: Vec::new() });
        }
        let mut streams = Vec::new();
        for mut pending in std::mem::take(&mut self.pending) {
            match pending.hear() {
                Ok(true) => streams.extend(self.accept(pending)),
                Ok(false) if now.saturating_since(pending.since) < PROOF => {
                    self.pending.push(pending);
                }
                Ok(false) | Err(_) => {}
            }
        }
        streams
    }

    /// The stream of a connection that proves the keys of a flow that has none yet.
    fn accept(&mut self, Pending { socket, bytes, .. }: Pending) -> Option<Stream> {
        let (flow, sealed) = (bytes[0], &bytes[1 + LENGTH..]);
        let at = self.wanted.iter().position(|wanted| wanted.flow == flow)?;
        let [up, down] = self.keys.map(|key| stream_key(&key, flow));
        let (mut sealer, mut opener) = (Sealer::new(&down), Opener::new(&up));
        opener.open(sealed).filter(|(header, _)| *header == greeting(Kind::Hello, flow))?;
        let wanted = self.wanted[at];
        let options = SockRef::from(&socket);
        options.set_tcp_nodelay(true).ok()?;
        if let Some(controller) = wanted.controller {
            options.set_tcp_congestion(controller.name().as_bytes()).ok()?;
        }
        let mut answer = Vec::new();
        append(&mut answer, &sealer.seal(&greeting(Kind::Welcome, flow), &[]));
        // A new connection takes so many bytes at once.
        (&socket).write_all(&answer).ok()?;
        let stream = Stream::new(socket, wanted, sealer, opener).ok()?;
        self.wanted.swap_remove(at);
        Some(stream)
    }
}

impl Pending {
    /// Whether its first unit has come completely; an error if it has closed.
    fn hear(&mut self) -> io::Result<bool> {
        let mut bytes = [0; HELLO];
        match self.socket.read(&mut bytes[self.bytes.len()..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                let start = self.bytes.len();
                self.bytes.extend(&bytes[start..start + length]);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(self.bytes.len() == HELLO)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::FlowPlan;

    const UP: Key = [1; 32];
    const DOWN: Key = [2; 32];

    fn plan(flows: usize) -> Plan {
        let traffic = || Some(Traffic::Bulk { packet: 1200 });
        let flow = |number| FlowPlan {
            name: format!("flow-{number}"),
            transport: Transport::known("tcp"),
            up: traffic(),
            down: traffic(),
        };
        let duration = Duration::from_secs(1).as_nanos();
        Plan { seed: 1, duration, mtu: 1500, ipv6: false, flows: (0..flows).map(flow).collect() }
    }

    fn local() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    fn entrance(plan: &Plan) -> (StreamListener, SocketAddr) {
        let entrance =
            StreamListener::bind(local(), plan, &[UP, DOWN]).expect("loopback has ports");
        let entrance = entrance.expect("there are flows over TCP");
        let at = entrance.listener.local_addr().expect("it is bound");
        (entrance, at)
    }

    /// Serves an entrance for a while, beginning at this instant of its clock.
    fn serve(
        entrance: &mut StreamListener,
        at: Instant,
        until: impl Fn(&[Stream]) -> bool,
    ) -> Vec<Stream> {
        let mut streams = Vec::new();
        while !until(&streams) {
            streams.extend(entrance.admit(at, local().ip()));
            std::thread::yield_now();
        }
        streams
    }

    fn header(number: u32) -> Header {
        Header { kind: Kind::Media, flow: 1, number, sent: 5 }
    }

    #[test]
    fn units_pass_a_stream_both_ways() {
        let plan = plan(2);
        let (mut entrance, at) = entrance(&plan);
        let (mut ours, mut theirs) = std::thread::scope(|scope| {
            let client = scope.spawn(|| connect(&plan, &[UP, DOWN], (local(), at), || {}));
            let theirs = serve(&mut entrance, Instant::ZERO, |streams| streams.len() == 2);
            (client.join().expect("no panic").expect("it is there"), theirs)
        });
        theirs.sort_by_key(|stream| stream.flow);
        let (mut ours, mut theirs) = (ours.remove(1), theirs.remove(1));
        assert_eq!((ours.flow, theirs.flow), (1, 1));
        for up in [true, false] {
            let (from, to) = if up { (&mut ours, &mut theirs) } else { (&mut theirs, &mut ours) };
            let mut units = Vec::new();
            for number in 0..50 {
                from.queue(&header(number), &vec![number as u8; 20 * number as usize]);
                from.flush().expect("it is open");
            }
            while units.len() < 50 {
                from.flush().expect("it is open");
                units.extend(to.receive().expect("it is open"));
            }
            for (number, unit) in units.iter().enumerate() {
                assert_eq!(unit.header, header(number as u32));
                assert_eq!(unit.payload, vec![number as u8; 20 * number]);
            }
        }
        // Bulk that nobody reads blocks; when it ends, the system does not send the rest.
        while !ours.is_blocked() {
            ours.queue(&header(0), &[0; 8000]);
            ours.flush().expect("it is open");
        }
        assert!(!ours.wants_room());
        drop(ours);
        let why = loop {
            if let Err(why) = theirs.receive() {
                break why;
            }
        };
        assert!(why.contains("reset"), "{why}");
    }

    /// Nothing is answered to whoever does not prove the keys of a flow, and nobody is kept for longer than a
    /// second or in larger number than permitted.
    #[test]
    fn strangers_get_no_answer() {
        let plan = plan(1);
        let (mut entrance, at) = entrance(&plan);
        let proof = |key: &Key, flow: u8, kind| {
            let mut bytes = vec![flow];
            let mut sealer = Sealer::new(&stream_key(key, flow));
            append(&mut bytes, &sealer.seal(&greeting(kind, flow), &[]));
            bytes
        };
        let attacks = [
            proof(&DOWN, 0, Kind::Hello),
            proof(&UP, 0, Kind::Welcome),
            proof(&UP, 1, Kind::Hello),
            vec![0; HELLO],
            vec![255; 5000],
        ];
        for attack in attacks {
            let mut stranger = TcpStream::connect(at).expect("it listens");
            stranger.write_all(&attack).expect("it is open");
            stranger.set_nonblocking(true).expect("it is open");
            loop {
                assert!(entrance.admit(Instant::ZERO, local().ip()).is_empty());
                match stranger.read(&mut [0; 100]) {
                    Ok(length) => {
                        assert_eq!(length, 0, "an answer");
                        break;
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => break,
                }
            }
        }
        assert!(entrance.pending.is_empty());
        // Of another address, and a flood that says nothing.
        let others: Vec<_> =
            (0..100).map(|_| TcpStream::connect(at).expect("it listens")).collect();
        let elsewhere = IpAddr::from([127, 0, 0, 9]);
        for _ in 0..2 {
            assert!(entrance.admit(Instant::ZERO, elsewhere).is_empty());
        }
        assert!(entrance.pending.is_empty());
        let flood: Vec<_> = (0..100).map(|_| TcpStream::connect(at).expect("it listens")).collect();
        for _ in 0..10 {
            entrance.admit(Instant::ZERO, local().ip());
            assert!(entrance.pending.len() <= MAX_PENDING);
        }
        assert!(!entrance.pending.is_empty());
        entrance.admit(Instant::ZERO + PROOF, local().ip());
        assert!(entrance.pending.is_empty());
        drop((others, flood));
    }

    #[test]
    fn a_carrier_asks_for_a_timeout_when_it_has_more_room() {
        let room = Arc::new(AtomicUsize::new(0));
        let mut carrier = Carrier::new(Arc::clone(&room));
        let poll = |carrier: &mut Carrier| carrier.poll(Instant::ZERO, &mut |_| {});
        assert!(matches!(poll(&mut carrier), Output::Idle { until: None }));
        room.store(100, Ordering::Relaxed);
        assert!(matches!(poll(&mut carrier), Output::Idle { until: Some(_) }));
        assert!(matches!(poll(&mut carrier), Output::Idle { until: None }));
        carrier.handle(Instant::ZERO, Input::Frame(Frame::default()));
        assert!(matches!(poll(&mut carrier), Output::Transmit(_)));
    }

    proptest! {
        /// Any bytes are units or an error, and however units are cut, they come back whole.
        #[test]
        fn units_come_back_from_any_pieces(
            lengths in prop::collection::vec(OVERHEAD..=LONGEST, 0..6),
            piece in 1_usize..5000,
            noise: Vec<u8>,
        ) {
            let mut bytes = Vec::new();
            for length in &lengths {
                append(&mut bytes, &vec![*length as u8; *length]);
            }
            let (mut deframer, mut found) = (Deframer::default(), Vec::new());
            for piece in bytes.chunks(piece) {
                deframer.push(piece);
                while let Some(unit) = deframer.next().expect("every length is permitted") {
                    prop_assert!(unit.iter().all(|byte| *byte == unit.len() as u8));
                    found.push(unit.len());
                }
                prop_assert!(deframer.bytes.len() - deframer.taken <= LENGTH + LONGEST);
            }
            prop_assert_eq!(found, lengths);
            let mut deframer = Deframer::default();
            deframer.push(&noise);
            while let Ok(Some(unit)) = deframer.next() {
                prop_assert!((OVERHEAD..=LONGEST).contains(&unit.len()));
            }
        }

        /// Lengths that no unit has are refused.
        #[test]
        fn other_lengths_are_refused(length: u16) {
            let mut deframer = Deframer::default();
            deframer.push(&length.to_be_bytes());
            let permitted = (OVERHEAD..=LONGEST).contains(&usize::from(length));
            prop_assert_eq!(deframer.next().is_ok(), permitted);
        }
    }
}
