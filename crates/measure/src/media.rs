//! Real time: runs this end's peers of a plan over one UDP socket, with sealed datagrams, and keeps the notes.
//!
//! Besides media, the ends exchange probes, from which the clocks' relation is found, and reports, which drive
//! the circuit breakers. The loop ends at the end of the plan or when it is asked to stop.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use talkspurt_app::peer::Action;
use talkspurt_app::playout::Live;
use talkspurt_app::transport::Transport;
use talkspurt_flow::{Materials, Parts, Peer, hints, parts, peers};
use talkspurt_live::{Clock, Datagram, Encapsulation, UdpPort, emit, label, parse, wrap};
use talkspurt_proto::body::{Bodies, Body};
use talkspurt_proto::dccp;
use talkspurt_proto::endpoint::{Arrival, Endpoint as _};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::gauge::Gauge;
use talkspurt_proto::packet::{BodyId, IpVersion, Packet, PathId, Payload};
use talkspurt_proto::probe::{Note, Probe as _};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;
use talkspurt_proto::wire::{Ends, Hints, udp};
use talkspurt_scenario::Point;

use crate::breaker::{self, Breaker, Trip};
use crate::bucket::Bucket;
use crate::call::Devices;
use crate::channel::Ended;
use crate::notes::{Log, Row, What};
use crate::plan::{LEAD, PROBE, Plan, QUIET_PROBES, REPORT};
use crate::seal::{Header, Key, Kind, OVERHEAD, Opener, Sealer};

/// Longest sleep: how late a request to stop can be seen.
const STEP: Duration = Duration::from_millis(50);
/// Longest sleep before time starts: how much later it can start here than at the client.
const START_STEP: Duration = Duration::from_millis(2);
/// Time between probes beside the flows.
const BUSY_PROBES: Duration = Duration::from_millis(200);
/// Packets beyond the rate limit that may leave at once, as time at the limit, and in packets of the MTU.
const BURST: Duration = Duration::from_millis(100);
const BURST_PACKETS: u32 = 4;
/// For how long a path may hold packets back before they come at once.
const HELD_BACK: Duration = Duration::from_secs(10);
/// Buffer of the socket: a second at 16 Mbit/s, so that a busy machine loses no packets here.
const SOCKET_BUFFER: usize = 2 << 20;

/// Time between samples of a call for those who watch it.
const VIEW: Duration = Duration::from_millis(500);

/// What happened in a call since the last sample.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) at: Instant,
    pub(crate) rows: Vec<Row>,
    /// Frames played so far, by encoding.
    pub(crate) heard: Vec<u64>,
}

/// State shared with the thread that watches the control connection.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Nanoseconds passed at this end.
    pub(crate) passed: AtomicU64,
    /// The clock starts.
    pub(crate) started: AtomicBool,
    over: AtomicBool,
    why: Mutex<Option<String>>,
    /// Of a call, not yet looked at.
    pub(crate) samples: Mutex<Vec<Sample>>,
    /// The state of a call as JSON, for a user who watches it.
    pub(crate) view: Mutex<Option<String>>,
    /// Of a call in agreed codecs, if there are any.
    pub(crate) devices: Mutex<Option<Arc<Devices>>>,
}

impl Shared {
    /// Ends the measurement early; the first reason stays.
    pub(crate) fn stop(&self, why: &str) {
        let mut said = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        said.get_or_insert_with(|| why.to_owned());
        self.over.store(true, Ordering::Release);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(crate) fn why(&self) -> Option<String> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The socket of one end, with keys.
pub(crate) struct Wire {
    socket: UdpPort,
    sealer: Sealer,
    opener: Opener,
    /// Once known.
    remote: Option<SocketAddr>,
    refused: u64,
    unsent: u64,
    /// Datagrams that found the socket's buffer full.
    overruns: u32,
}

impl Wire {
    /// A socket on this address; `ours` seals what we send.
    pub(crate) fn bind(local: SocketAddr, ours: &Key, theirs: &Key) -> io::Result<Self> {
        let socket = UdpPort::bind(local)?;
        // The system gives what it permits.
        let _ = socket.socket().set_recv_buffer_size(SOCKET_BUFFER);
        let (sealer, opener) = (Sealer::new(ours), Opener::new(theirs));
        Ok(Self { socket, sealer, opener, remote: None, refused: 0, unsent: 0, overruns: 0 })
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
            self.send(Kind::Hello, 0, sent.len() as u32, Instant::ZERO, &[0; PROBE], 0);
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

    /// Server: answers greetings from this address until time starts; false if it never does.
    pub(crate) fn be_greeted(&mut self, client: IpAddr, shared: &Shared) -> io::Result<bool> {
        while !shared.started.load(Ordering::Acquire) {
            if shared.is_over() {
                return Ok(false);
            }
            let Some(datagram) = self.socket.receive_datagram(Some(START_STEP))? else { continue };
            // The control connection has proved that the client is at its address.
            let at_home = datagram.from.ip() == client;
            // Other datagrams come if the client's clock has started before ours.
            if let Some((Header { kind: Kind::Hello, number, .. }, _)) =
                self.open(&datagram, at_home)
            {
                self.remote = Some(datagram.from);
                self.send(Kind::Welcome, 0, number, Instant::ZERO, &[], 0);
            }
        }
        Ok(self.remote.is_some())
    }

    /// Sends a datagram; false if the system refuses it.
    fn send(
        &mut self,
        kind: Kind,
        flow: u8,
        number: u32,
        now: Instant,
        payload: &[u8],
        class: u8,
    ) -> bool {
        let Some(to) = self.remote else { return false };
        let header = Header { kind, flow, number, sent: now.as_nanos() };
        let datagram = self.sealer.seal(&header, payload);
        let left = self.socket.send_datagram(&datagram, to, class).is_ok();
        self.unsent += u64::from(!left);
        left
    }

    /// Waits for a datagram from the other end.
    fn receive(&mut self, wait: Duration) -> io::Result<Option<(Header, Vec<u8>, Datagram)>> {
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

/// A peer of this end.
struct Own {
    peer: Peer,
    /// As in [`talkspurt_proto::probe::Place::Peer`].
    number: usize,
    hints: Hints,
    encapsulation: Option<Encapsulation>,
    wake: Option<Instant>,
    /// Of a sender without congestion control.
    breaker: Option<Breaker>,
    tripped: Option<(Instant, Trip)>,
    /// Packets sent.
    sent: u32,
    /// One more than the highest number received, and the number of packets received.
    highest: u64,
    received: u64,
}

/// The packet between a peer and the socket.
#[derive(Default)]
struct Slot(Option<Body>);

impl Bodies for Slot {
    fn put(&mut self, body: impl FnOnce() -> Body) -> BodyId {
        self.0 = Some(body());
        BodyId(0)
    }
}

/// Agrees on codecs: takes the application data of the other end's Request or Response, and returns the parts
/// of our peer and, for the answering end, the data of its Response.
pub(crate) type Agree<'a> = dyn FnMut(&[u8]) -> Result<(Parts, Vec<u8>), String> + Send + 'a;

/// A call whose codecs are offered and agreed in DCCP's handshake (RFC 4340 §8.1.1, §8.1.3).
pub(crate) struct Opening<'a> {
    /// Application data of the opening end's Request.
    pub(crate) offer: Vec<u8>,
    pub(crate) agree: Box<Agree<'a>>,
}

/// What is left of an end when it is over.
pub(crate) struct Ran {
    pub(crate) log: Log,
    pub(crate) ended: Ended,
    pub(crate) peers: Vec<Peer>,
}

/// One end of a measurement.
pub(crate) struct Media<'a> {
    plan: &'a Plan,
    wire: Wire,
    shared: &'a Shared,
    clock: Clock,
    own: Vec<Own>,
    log: Log,
    client: bool,
    version: IpVersion,
    rtt: Duration,
    next_probe: Instant,
    next_report: Instant,
    /// Our part of the session's limit, and the other end's.
    outgoing: Bucket,
    incoming: Bucket,
    /// Limit of answers: what a sound end asks.
    answers: Bucket,
    policed: u64,
    /// Until codecs are agreed on.
    opening: Option<Opening<'a>>,
    /// Of a call: when the next sample is due, and the bytes of the log up to the last one.
    next_view: Option<Instant>,
    viewed: usize,
    /// What plays on a loudspeaker.
    player: Option<(Live, Arc<Devices>)>,
}

impl<'a> Media<'a> {
    /// This end of the plan, before time starts; both ends together send no more than `limit`. In a call with
    /// an `opening`, the plan's codecs are placeholders.
    pub(crate) fn new(
        plan: &'a Plan,
        (point, materials): (&Point, &Materials),
        wire: Wire,
        client: bool,
        limit: Rate,
        opening: Option<Opening<'a>>,
        shared: &'a Shared,
    ) -> Self {
        let all = match &opening {
            None => peers(&point.scenario, &point.network, materials),
            Some(opening) => silent(point, opening),
        };
        let mine =
            |number: usize| number.is_multiple_of(2) == (plan.client_opens(number / 2) == client);
        let own = all.into_iter().enumerate().filter(|(number, _)| mine(*number));
        let own = own.map(|(number, peer)| {
            let flow = &plan.flows[number / 2];
            let sends = if client { &flow.up } else { &flow.down };
            let watched = sends.is_some() && !flow.transport.is_responsive();
            Own {
                peer,
                number,
                hints: hints(&point.scenario.flows[number / 2]),
                encapsulation: flow.transport.encapsulation(),
                wake: Some(Instant::ZERO),
                breaker: watched.then(Breaker::default),
                tripped: None,
                sent: 0,
                highest: 0,
                received: 0,
            }
        });
        let [up, down] = plan.shares(limit);
        let (ours, theirs) = if client { (up, down) } else { (down, up) };
        let burst = BURST_PACKETS * u32::from(plan.mtu);
        Self {
            plan,
            wire,
            shared,
            clock: Clock::start(),
            own: own.collect(),
            log: Log::default(),
            client,
            version: if plan.ipv6 { IpVersion::V6 } else { IpVersion::V4 },
            rtt: Duration::ZERO,
            next_probe: Instant::ZERO,
            next_report: Instant::ZERO + breaker::INTERVAL,
            outgoing: Bucket::new(ours, BURST, burst),
            incoming: Bucket::new(theirs, HELD_BACK, burst),
            answers: Bucket::new(plan.answers(), HELD_BACK, burst),
            policed: 0,
            opening,
            next_view: plan.is_call().then_some(Instant::ZERO),
            viewed: 0,
            player: None,
        }
    }

    /// Runs to the end; time begins now.
    pub(crate) fn run(mut self) -> Ran {
        self.clock = Clock::start();
        let end = self.plan.end();
        let mut failed = None;
        loop {
            let now = self.clock.now();
            self.shared.passed.store(now.as_nanos(), Ordering::Relaxed);
            if now >= end || self.shared.is_over() {
                break;
            }
            for at in 0..self.own.len() {
                if self.own[at].wake.is_some_and(|wake| wake <= now) {
                    self.own[at].peer.wake(now, &mut self.log);
                    self.send_all(at);
                }
            }
            self.exchange(now);
            if self.next_view.is_some_and(|at| at <= now) {
                self.show(now);
            }
            let wakes = self.own.iter().filter_map(|own| own.wake);
            let due = [end, now + STEP, self.next_probe, self.next_report];
            let wake = wakes.chain(due).min().unwrap_or(end);
            match self.wire.receive(wake.saturating_since(self.clock.now())) {
                Ok(Some((header, payload, datagram))) => {
                    self.receive(&header, &payload, &datagram);
                    self.play();
                }
                Ok(None) => {}
                Err(error) => {
                    failed = Some(format!("the socket failed: {error}"));
                    break;
                }
            }
        }
        let now = self.clock.now().min(end);
        for own in &mut self.own {
            own.peer.finish(now, &mut self.log);
        }
        let flow = |own: &Own| (own.number / 2) as u8;
        let tripped = self.own.iter().filter_map(|own| {
            let (at, trip) = own.tripped?;
            Some((flow(own), at.as_nanos(), trip.words().to_owned()))
        });
        let ended = Ended {
            at: now.as_nanos(),
            early: failed.or_else(|| self.shared.why()),
            tripped: tripped.collect(),
            policed_packets: self.policed,
            unsent_packets: self.wire.unsent,
            refused_datagrams: self.wire.refused,
            overrun_datagrams: self.wire.overruns.into(),
        };
        self.show(now);
        Ran { log: self.log, ended, peers: self.own.into_iter().map(|own| own.peer).collect() }
    }

    /// Hands to a loudspeaker what the buffer has decided to play.
    fn play(&mut self) {
        if self.next_view.is_none() {
            return;
        }
        if self.player.is_none() {
            let devices = self.shared.devices.lock().unwrap_or_else(PoisonError::into_inner);
            let player = devices.as_ref().and_then(|it| it.player().zip(Some(Arc::clone(it))));
            self.player = player;
        }
        let Some((live, devices)) = &mut self.player else { return };
        if let Some(own) = self.own.first()
            && let Some(timeline) = own.peer.timeline()
        {
            devices.play(live.play(own.peer.played(), timeline));
        }
    }

    /// Leaves a sample for whoever watches a call.
    fn show(&mut self, now: Instant) {
        let Some(next) = &mut self.next_view else { return };
        *next = now + VIEW;
        let rows = Log::rows(&self.log.bytes()[self.viewed..]).unwrap_or_default();
        self.viewed = self.log.bytes().len();
        let heard = self.own.first().map_or_else(Vec::new, |own| own.peer.heard());
        let mut samples = self.shared.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.push(Sample { at: now, rows, heard });
    }

    /// Takes the codecs from DCCP's handshake. False if the call ends here.
    fn agree(&mut self, at: usize, packet: &dccp::Packet) -> bool {
        let Some(opening) = &mut self.opening else { return true };
        let (expected, empty) = match packet.kind {
            dccp::Kind::Request { .. } => (!self.client, "the other end offered no codecs"),
            dccp::Kind::Response { .. } => (self.client, "the other end agreed to no codec"),
            _ => return true,
        };
        if !expected {
            return true;
        }
        let data = match &packet.payload {
            Frame::Data(Payload::Real(bytes)) if !bytes.is_empty() => Ok(bytes),
            _ => Err(empty.to_owned()),
        };
        let peer = &mut self.own[at].peer;
        match data.and_then(|data| (opening.agree)(data)) {
            Ok((parts, answer)) => {
                self.opening = None;
                peer.converse(&parts);
                if !self.client {
                    set_opening_data(peer, answer);
                }
                true
            }
            Err(why) => {
                self.shared.stop(&why);
                false
            }
        }
    }

    /// Sends what a peer has to send, and notes when it wants to be woken.
    fn send_all(&mut self, at: usize) {
        let mut slot = Slot::default();
        loop {
            let now = self.clock.now();
            let Self { own, log, .. } = self;
            match own[at].peer.poll(now, &mut slot, log) {
                Action::Send { path, ecn, .. } => {
                    let body = slot.0.take().expect("a packet to send has a body");
                    let own = &self.own[at];
                    if own.tripped.is_none() {
                        let (dscp, version) = own.peer.header();
                        let label = label(path, ecn, &body, version, own.sent, now);
                        self.transmit(at, now, &Packet { dscp, ..label }, &body);
                    }
                }
                Action::Idle { until } => {
                    self.own[at].wake = until;
                    return;
                }
            }
        }
    }

    /// Sends a packet of a flow. One that does not leave is neither numbered nor noted, or it would count as
    /// lost on the path.
    fn transmit(&mut self, at: usize, now: Instant, packet: &Packet, body: &Body) {
        let own = &mut self.own[at];
        let ends = ends(self.version, self.client);
        let mut whole = Vec::new();
        if emit(packet, body, &ends, own.encapsulation, &mut whole).is_err() {
            self.wire.unsent += 1;
            return;
        }
        let headers = self.version.header_bytes() as usize + udp::HEADER;
        let payload = &whole[headers..];
        let bytes = (headers + OVERHEAD + payload.len()) as u32;
        if !self.outgoing.take(now, bytes) {
            self.policed += 1;
            return;
        }
        let flow = (own.number / 2) as u8;
        let class = packet.dscp << 2 | packet.ecn as u8;
        if !self.wire.send(Kind::Media, flow, packet.number, now, payload, class) {
            return;
        }
        self.log.sent(now, own.number, &Packet { ip_bytes: bytes, ..*packet }, body);
        own.sent = own.sent.wrapping_add(1);
        if let Some(breaker) = &mut own.breaker {
            breaker.on_sent(now, bytes);
        }
    }

    /// Sends what keeps the measurement going, within the limit or not; its rate is a part of our share.
    fn control(&mut self, kind: Kind, now: Instant, payload: &[u8]) {
        self.outgoing.charge(now, self.plan.outer() as u32 + payload.len() as u32);
        self.wire.send(kind, 0, 0, now, payload, 0);
    }

    /// Sends probes and reports that are due, and watches for missing reports.
    fn exchange(&mut self, now: Instant) {
        if now >= self.next_probe {
            self.control(Kind::Probe, now, &[0; PROBE]);
            let quiet = now < Instant::ZERO + LEAD || now >= self.plan.stop();
            self.next_probe = now + if quiet { QUIET_PROBES } else { BUSY_PROBES };
        }
        if now >= self.next_report {
            let mut payload = Vec::new();
            for own in &self.own {
                payload.push((own.number / 2) as u8);
                payload.extend(own.highest.to_be_bytes());
                payload.extend(own.received.to_be_bytes());
            }
            self.control(Kind::Report, now, &payload);
            self.next_report += breaker::INTERVAL;
        }
        // After the sources have stopped nothing more is sent that could do harm.
        if now < self.plan.stop() {
            for own in &mut self.own {
                let trip = own.breaker.as_ref().and_then(|breaker| breaker.on_time(now));
                own.trip(now, trip);
            }
        }
    }

    fn receive(&mut self, header: &Header, payload: &[u8], datagram: &Datagram) {
        let now = self.clock.now();
        let bytes = self.plan.outer() as u32 + payload.len() as u32;
        // Whoever sends more than agreed must not fill our memory with notes.
        if !self.incoming.take(now, bytes) {
            self.wire.refused += 1;
            return;
        }
        match header.kind {
            Kind::Media => self.receive_media(now, header, payload, datagram),
            // The answer is no longer than the question.
            Kind::Probe if payload.len() < PROBE => self.wire.refused += 1,
            Kind::Probe => {
                self.log.add(now, 0, What::Heard { sent: header.sent });
                let mut answer = [0; PROBE];
                answer[..8].copy_from_slice(&header.sent.to_be_bytes());
                answer[8..].copy_from_slice(&now.as_nanos().to_be_bytes());
                if self.answers.take(now, bytes) {
                    self.control(Kind::Answer, self.clock.now(), &answer);
                }
            }
            Kind::Answer => self.on_answer(now, header, payload),
            Kind::Report => self.on_report(now, payload),
            // A greeting that came late.
            Kind::Hello | Kind::Welcome => {}
        }
    }

    fn on_answer(&mut self, now: Instant, header: &Header, payload: &[u8]) {
        let (Some(asked), Some(came)) = (number(payload, 0), number(payload, 8)) else { return };
        self.log.add(now, 0, What::Heard { sent: header.sent });
        self.log.add(now, 0, What::Answered { asked, came });
        let there_and_back = now.as_nanos().saturating_sub(asked);
        let nanos = there_and_back.saturating_sub(header.sent.saturating_sub(came));
        self.log.add(now, 0, What::RoundTrip { nanos });
        self.rtt = Duration::from_nanos(nanos);
        let value = self.rtt.as_secs_f64();
        // Other transports measure it themselves.
        for own in self.own.iter().filter(|own| own.breaker.is_some() && !own.hints.media) {
            let note = Note::Gauge { gauge: Gauge::RtcpRtt, value };
            self.log.record(now, own.peer.place(), &note);
        }
    }

    fn on_report(&mut self, now: Instant, payload: &[u8]) {
        for entry in payload.chunks_exact(REPORT) {
            let (Some(highest), Some(received)) = (number(entry, 1), number(entry, 9)) else {
                continue;
            };
            let flow = usize::from(entry[0]);
            let rtt = self.rtt;
            if let Some(own) = self.own.iter_mut().find(|own| own.number / 2 == flow) {
                let breaker = own.breaker.as_mut();
                let trip = breaker.and_then(|it| it.on_report(now, highest, received, rtt));
                own.trip(now, trip);
            }
        }
    }

    fn receive_media(
        &mut self,
        now: Instant,
        header: &Header,
        payload: &[u8],
        datagram: &Datagram,
    ) {
        let flow = usize::from(header.flow);
        let Some(at) = self.own.iter().position(|own| own.number / 2 == flow) else { return };
        let own = &mut self.own[at];
        own.highest = own.highest.max(u64::from(header.number) + 1);
        own.received += 1;
        let bytes =
            (self.version.header_bytes() as usize + udp::HEADER + datagram.bytes.len()) as u32;
        let what = What::Received { number: header.number, bytes, sent: header.sent };
        self.log.add(now, own.number, what);
        let mut ends = ends(self.version, !self.client);
        if let Some(Encapsulation { local_port, remote_port, .. }) = own.encapsulation {
            (ends.src_port, ends.dst_port) = (remote_port, local_port);
        }
        let mut whole = Vec::new();
        wrap(&ends, datagram.class, payload, &mut whole);
        let inside = own.encapsulation.map(|it| it.inside);
        match parse(&whole, own.hints, inside) {
            Ok((parsed, _)) => {
                let mut body = parsed.body;
                let arrival = Arrival { path: PathId(0), ecn: parsed.ecn, damage: parsed.damage };
                if let Body::Dccp(packet) = &body
                    && packet.get().is_some_and(|packet| !self.agree(at, packet))
                {
                    return;
                }
                let own = &mut self.own[at];
                if own.peer.transport().is_listening() {
                    own.peer.transport().between(b"sealed");
                }
                own.peer.receive_from_wire(now, arrival, &mut body, &mut self.log);
            }
            Err(error) => {
                self.log.record(now, own.peer.place(), &Note::RxError(error.rx_error()));
            }
        }
        self.send_all(at);
    }
}

impl Own {
    fn trip(&mut self, now: Instant, trip: Option<Trip>) {
        if let (Some(trip), None) = (trip, self.tripped) {
            self.tripped = Some((now, trip));
        }
    }
}

/// Both peers of a call, without source and sink.
fn silent(point: &Point, opening: &Opening<'_>) -> Vec<Peer> {
    let both = parts(&point.scenario, &point.network, &Materials::default(), 0);
    let both = both.into_iter().flatten().map(|parts| {
        let mut peer = Peer::new(Parts { source: None, sink: None, ..parts });
        set_opening_data(&mut peer, opening.offer.clone());
        peer
    });
    both.collect()
}

fn set_opening_data(peer: &mut Peer, data: Vec<u8>) {
    if let Transport::Dccp(dccp) = peer.transport() {
        dccp.set_opening_data(Bytes::from(data));
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

/// Addresses inside the sealed datagrams, where they only take part in checksums: those of documentation (RFC
/// 5737, RFC 3849).
fn ends(version: IpVersion, from_client: bool) -> Ends {
    let address = |last: u8| match version {
        IpVersion::V4 => IpAddr::from([192, 0, 2, last]),
        IpVersion::V6 => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last)]),
    };
    let (src, dst) = if from_client { (1, 2) } else { (2, 1) };
    Ends { src: address(src), dst: address(dst), src_port: 5004, dst_port: 5004 }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::thread;

    use super::*;

    fn at(last: u8) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, last], 0))
    }

    fn bound(last: u8) -> UdpSocket {
        UdpSocket::bind(at(last)).expect("loopback has ports")
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
                let mut held = std::collections::VecDeque::new();
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
            assert!(greeted.join().expect("no panic").expect("no error"));
            carried.join().expect("no panic");
        });
        assert!(server.refused > 0 && client.refused > 0);
    }
}
