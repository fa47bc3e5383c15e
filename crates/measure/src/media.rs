//! Real time: runs this end's peers of a plan over its wire, and keeps the notes.
//!
//! Besides media, the ends exchange probes, from which the clocks' relation is found, and reports, which drive
//! the circuit breakers. The loop ends at the end of the plan or when it is asked to stop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use talkspurt_app::peer::Action;
use talkspurt_app::playout::Live;
use talkspurt_flow::{Materials, Peer, hints};
use talkspurt_live::{Clock, Slot, emit, label, parse};
use talkspurt_proto::body::Body;
use talkspurt_proto::dccp;
use talkspurt_proto::endpoint::{Arrival, Listener as _};
use talkspurt_proto::gauge::Gauge;
use talkspurt_proto::media::breaker::{self, Breaker};
use talkspurt_proto::packet::{IpVersion, Packet, PathId};
use talkspurt_proto::probe::{Note, Probe as _};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::transport::Layers;
use talkspurt_proto::units::Rate;
use talkspurt_proto::wire::udp;
use talkspurt_scenario::Point;

use crate::bucket::Bucket;
use crate::devices::Devices;
use crate::direct::ReceivedPacket;
use crate::end_report::EndReport;
use crate::local_peer::{LocalPeer, ends, peers};
use crate::lock::lock;
use crate::notes::{Log, What};
use crate::opening::{Opening, silent};
use crate::plan::{LEAD, PROBE, Plan, QUIET_PROBES, REPORT};
use crate::seal::{Header, Kind, OVERHEAD};
use crate::shared::{Sample, Shared};
use crate::stream::Stream;
use crate::tcp_info::{Diagnosis, TcpInfo};
use crate::transport::STREAM_LENGTH;
use crate::wire::Wire;

/// Longest sleep: how late a request to stop can be seen.
const STEP: Duration = Duration::from_millis(50);
/// Time between probes beside the flows.
const BUSY_PROBES: Duration = Duration::from_millis(200);
/// Packets beyond the rate limit that may leave at once, as time at the limit, and in packets of the MTU.
const BURST: Duration = Duration::from_millis(100);
const BURST_PACKETS: u32 = 4;
/// For how long a path may hold packets back before they come at once.
const HELD_BACK: Duration = Duration::from_secs(10);
/// A stream that breaks so shortly before an early end did so because of it.
const TOGETHER: Duration = Duration::from_secs(3);
/// Time between questions about TCP, as between samples of simulated runs.
const DIAGNOSES: Duration = Duration::from_millis(100);
/// Time for the first packet directly over IP to come, after which a call ends.
const UNHEARD: Duration = Duration::from_secs(10);
/// Time between samples of a call for those who watch it.
const VIEW: Duration = Duration::from_millis(500);

/// The notes and the state of an end after the measurement.
pub(crate) struct MediaOutcome {
    pub(crate) log: Log,
    pub(crate) ended: EndReport,
    pub(crate) peers: Vec<Peer>,
}

/// One end of a measurement.
pub(crate) struct Media<'a> {
    plan: &'a Plan,
    wire: Wire,
    shared: &'a Shared,
    clock: Clock,
    own: Vec<LocalPeer>,
    log: Log,
    client: bool,
    version: IpVersion,
    rtt: Duration,
    next_probe: Instant,
    next_report: Instant,
    /// Of the kernel's TCP, with the time of the next questions.
    diagnosis: Option<(Diagnosis, Instant)>,
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
            None => peers(plan, point, materials, &wire),
            Some(opening) => silent(point, opening),
        };
        let mine =
            |number: usize| number.is_multiple_of(2) == (plan.client_opens(number / 2) == client);
        let own = all.into_iter().enumerate().filter(|(number, _)| mine(*number));
        let own = own.map(|(number, peer)| {
            let flow = &plan.flows[number / 2];
            let sends = if client { &flow.up } else { &flow.down };
            let watched = sends.is_some() && !flow.transport.is_responsive();
            LocalPeer {
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
        let over_tcp = !wire.streams.is_empty();
        let diagnosis = over_tcp.then(|| Some((Diagnosis::open().ok()?, Instant::ZERO))).flatten();
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
            diagnosis,
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
    pub(crate) fn run(mut self) -> MediaOutcome {
        self.clock = Clock::start();
        let mut failed = None;
        while let Some(wake) = self.turn() {
            if let Err(error) = self.attend(wake) {
                failed = Some(format!("the socket failed: {error}"));
                break;
            }
        }
        self.finish(failed)
    }

    /// Does what is due; returns when more will be, `None` if time is over.
    pub(crate) fn turn(&mut self) -> Option<Instant> {
        let (now, end) = (self.clock.now(), self.plan.end());
        self.shared.passed.store(now.as_nanos(), Ordering::Relaxed);
        if now >= end || self.shared.is_over() {
            return None;
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
        let room = self.give_room(now);
        let wakes = self.own.iter().filter_map(|own| own.wake);
        let due = [end, now + STEP, self.next_probe, self.next_report];
        let questions = self.diagnosis.as_ref().map(|(_, next)| *next);
        wakes.chain(due).chain(room).chain(questions).min()
    }

    /// What is left when it is over, for this reason if the loop failed.
    pub(crate) fn finish(mut self, failed: Option<String>) -> MediaOutcome {
        let now = self.clock.now().min(self.plan.end());
        self.diagnose(now);
        for own in &mut self.own {
            own.peer.finish(now, &mut self.log);
        }
        let early = failed.or_else(|| self.shared.why());
        let explained = |at: Instant| early.is_some() && now.saturating_since(at) < TOGETHER;
        let tripped = self.own.iter().filter_map(|own| {
            let (at, why) = own.tripped.clone()?;
            let is_news = own.breaker.is_some() || !explained(at);
            is_news.then(|| (own.flow(), at.as_nanos(), why))
        });
        let ended = EndReport {
            at: now.as_nanos(),
            tripped: tripped.collect(),
            streams: self.wire.streams.iter().map(Stream::end).collect(),
            early,
            policed_packets: self.policed,
            unsent_packets: self.wire.unsent,
            too_long: self.wire.too_long(),
            refused_datagrams: self.wire.refused,
            overrun_datagrams: self.wire.overruns().into(),
        };
        self.show(now);
        MediaOutcome {
            log: self.log,
            ended,
            peers: self.own.into_iter().map(|own| own.peer).collect(),
        }
    }

    /// The next datagram that has come, for a test that hands it over itself.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn next_datagram(&mut self) -> Option<(Header, Vec<u8>, u8)> {
        let received = self.wire.receive(Duration::ZERO).expect("the socket works");
        received.map(|(header, payload, datagram)| (header, payload, datagram.class))
    }

    /// Lets so much time pass for a test.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn pass(&mut self, time: Duration) {
        self.clock = self.clock.ahead(time);
    }

    /// Waits until this instant for a datagram, or for streams to be ready, and handles what has come.
    fn attend(&mut self, wake: Instant) -> io::Result<()> {
        let now = self.clock.now();
        let mut wait = wake.saturating_since(now);
        if self.wire.has_more() {
            // Whoever sends more than agreed is not read.
            let reads = self.incoming.is_positive(now);
            self.wire.wait(wait, reads)?;
            wait = Duration::ZERO;
            for stream in 0..self.wire.streams.len() {
                self.receive_units(stream, reads);
            }
            if let Some(came) = self.wire.receive_packet()? {
                self.receive_packet(&came);
            }
        }
        if let Some((header, payload, datagram)) = self.wire.receive(wait)? {
            self.receive(&header, &payload, datagram.class);
        }
        self.play();
        Ok(())
    }

    /// Gives room to the peers of streams that have written everything; returns when there will be some, if
    /// the limit of the rate is the reason that there is none. Half of a burst is for other flows, which do not
    /// wait.
    fn give_room(&mut self, now: Instant) -> Option<Instant> {
        let mut later = None;
        for stream in 0..self.wire.streams.len() {
            let of = &mut self.wire.streams[stream];
            let flow = of.flow;
            let written = of.flush();
            if let Err(error) = written {
                self.lose(stream, &error.to_string());
            } else if self.wire.streams[stream].wants_room() {
                let wait = self.outgoing.half_full_in(now);
                if wait.is_zero() {
                    self.wire.streams[stream].give_room();
                    if let Some(at) = self.of(flow) {
                        self.send_all(at);
                    }
                } else {
                    later = Some(now + wait);
                }
            }
        }
        later
    }

    /// Takes units from a stream.
    fn receive_units(&mut self, stream: usize, reads: bool) {
        let of = &mut self.wire.streams[stream];
        if of.is_lost || !reads {
            return;
        }
        let flow = of.flow;
        let units = match of.receive() {
            Ok(units) => units,
            Err(why) => return self.lose(stream, &why),
        };
        for unit in units {
            let now = self.clock.now();
            let bytes = self.plan.stream_bytes(unit.payload.len());
            self.incoming.charge(now, bytes);
            if unit.header.kind == Kind::Media && unit.header.flow == flow {
                let bytes = STREAM_LENGTH + OVERHEAD + unit.payload.len();
                self.receive_payload(now, &unit.header, &unit.payload, (0, bytes as u32));
            }
        }
    }

    /// Takes a packet of a flow directly over IP.
    fn receive_packet(&mut self, came: &ReceivedPacket) {
        let now = self.clock.now();
        // As of datagrams.
        if came.header.kind != Kind::Media || !self.incoming.take(now, came.bytes) {
            self.wire.refused += 1;
        } else if let Some(at) = self.of(came.header.flow) {
            self.receive_media(now, at, &came.header, (&came.packet, came.bytes));
        }
    }

    /// A stream broke: its flow stops, unless it was over anyway.
    fn lose(&mut self, stream: usize, why: &str) {
        let of = &mut self.wire.streams[stream];
        let flow = of.flow;
        of.lose();
        let now = self.clock.now();
        if now < self.plan.stop()
            && let Some(own) = self.own.iter_mut().find(|own| own.flow() == flow)
        {
            own.tripped.get_or_insert((now, format!("the TCP connection broke: {why}")));
        }
    }

    /// Hands to a loudspeaker what the buffer has decided to play.
    fn play(&mut self) {
        if self.next_view.is_none() {
            return;
        }
        if self.player.is_none() {
            let devices = lock(&self.shared.devices);
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
        let rows = Log::rows(&self.log.bytes()[self.viewed..], usize::MAX).unwrap_or_default();
        self.viewed = self.log.bytes().len();
        let heard = self.own.first().map_or_else(Vec::new, |own| own.peer.heard());
        let mut samples = lock(&self.shared.samples);
        samples.push(Sample { at: now, rows, heard });
    }

    /// Takes the codecs from DCCP's handshake. False if the call ends here.
    fn agree(&mut self, at: usize, packet: &dccp::Packet) -> bool {
        let Some(opening) = &mut self.opening else { return true };
        match opening.take(self.client, packet, &mut self.own[at].peer) {
            Ok(agreed) => {
                if agreed {
                    self.opening = None;
                }
                true
            }
            Err(why) => {
                self.shared.stop(&why.to_string());
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
                    // A frame may have been encoded since, which takes time.
                    let now = self.clock.now();
                    let own = &self.own[at];
                    if own.tripped.is_none() {
                        let (dscp, version) = own.peer.header();
                        let label = label(path, ecn, &body, version, own.sent, now);
                        self.transmit(at, now, &Packet { dscp, ..label }, &body);
                    }
                }
                Action::Idle { until } => {
                    let own = &mut self.own[at];
                    own.wake = until;
                    if let Some(stream) = self.wire.stream(own.flow()) {
                        // A failure comes again where streams are served.
                        let _ = stream.flush();
                    }
                    return;
                }
            }
        }
    }

    /// Sends a packet of a flow. One that does not leave is neither numbered nor noted, or it would count as
    /// lost on the path.
    fn transmit(&mut self, at: usize, now: Instant, packet: &Packet, body: &Body) {
        let own = &mut self.own[at];
        let (flow, mut layers) = (own.flow(), body.layers());
        let direct = self.wire.direct(flow);
        let ends = direct.map_or_else(|| ends(self.version, self.client), |(_, ends)| ends);
        let mut whole = Vec::new();
        let is_carried = direct.is_some()
            || own.encapsulation.is_some()
            || body.protocol(udp::PROTOCOL) == udp::PROTOCOL;
        if !is_carried || emit(packet, body, &ends, own.encapsulation, &mut whole).is_err() {
            self.wire.unsent += 1;
            return;
        }
        // Those of packets directly over IP are others: an address translator may change their IP version.
        let headers = self.version.header_bytes() as usize + udp::HEADER;
        let header =
            Header { kind: Kind::Media, flow, number: packet.number, sent: now.as_nanos() };
        let bytes = if let Some((protocol, _)) = direct {
            let Some(sealed) =
                self.wire.direct.as_mut().and_then(|it| it.seal(protocol, &header, &whole))
            else {
                self.wire.unsent += 1;
                return;
            };
            let bytes = sealed.len() as u32;
            if !self.outgoing.take(now, bytes) {
                self.policed += 1;
                return;
            }
            if !self.wire.send_packet(protocol, &sealed) {
                return;
            }
            bytes
        } else if let Some(stream) = self.wire.stream(flow) {
            let payload = &whole[headers..];
            // It was given no more room than the limit permits.
            self.outgoing.charge(now, self.plan.stream_bytes(payload.len()));
            stream.queue(&header, payload);
            layers = Layers { transport: 0, ..layers };
            (STREAM_LENGTH + OVERHEAD + payload.len()) as u32
        } else {
            let payload = &whole[headers..];
            let bytes = (headers + OVERHEAD + payload.len()) as u32;
            if !self.outgoing.take(now, bytes) {
                self.policed += 1;
                return;
            }
            let class = packet.dscp << 2 | packet.ecn as u8;
            if !self.wire.send(&header, payload, class) {
                return;
            }
            bytes
        };
        self.log.sent(now, own.number, &Packet { ip_bytes: bytes, ..*packet }, layers);
        own.sent = own.sent.wrapping_add(1);
        if let Some(breaker) = &mut own.breaker {
            breaker.on_sent(now, bytes);
        }
    }

    /// Sends what keeps the measurement going, within the limit or not; its rate is a part of our share.
    fn control(&mut self, kind: Kind, now: Instant, payload: &[u8]) {
        self.outgoing.charge(now, self.plan.outer() as u32 + payload.len() as u32);
        let header = Header { kind, flow: 0, number: 0, sent: now.as_nanos() };
        self.wire.send(&header, payload, 0);
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
        if self.diagnosis.as_ref().is_some_and(|(_, next)| *next <= now) {
            self.diagnose(now);
        }
        if self.plan.is_call()
            && now >= Instant::ZERO + LEAD + UNHEARD
            && let Some(own) = self.own.iter().find(|own| own.received == 0)
            && let Some((protocol, _)) = self.wire.direct(own.flow())
        {
            self.shared.stop(&protocol.unheard(UNHEARD));
        }
        // After the sources have stopped nothing more is sent that could do harm.
        if now < self.plan.stop() {
            for own in &mut self.own {
                let trip = own.breaker.as_ref().and_then(|breaker| breaker.on_time(now));
                own.trip(now, trip);
            }
        }
    }

    /// Notes what the kernel tells of the streams on which this end sends.
    fn diagnose(&mut self, now: Instant) {
        let Some((diagnosis, next)) = &mut self.diagnosis else { return };
        *next = now + DIAGNOSES;
        for stream in self.wire.streams.iter_mut().filter(|stream| !stream.is_lost) {
            let Some(own) = self.own.iter().find(|own| own.flow() == stream.flow) else { continue };
            let flow = &self.plan.flows[usize::from(stream.flow)];
            let sends = if self.client { &flow.up } else { &flow.down };
            let told = sends.as_ref().and_then(|_| stream.ask(diagnosis));
            for (gauge, value) in told.iter().flat_map(TcpInfo::gauges) {
                self.log.record(now, own.peer.place(), &Note::Gauge { gauge, value });
            }
        }
    }

    /// Takes an authentic datagram.
    pub(crate) fn receive(&mut self, header: &Header, payload: &[u8], class: u8) {
        let now = self.clock.now();
        let bytes = self.plan.outer() as u32 + payload.len() as u32;
        // Whoever sends more than agreed must not fill our memory with notes.
        if !self.incoming.take(now, bytes) {
            self.wire.refused += 1;
            return;
        }
        match header.kind {
            Kind::Media if !self.is_in_datagrams(header.flow) => self.wire.refused += 1,
            Kind::Media => self.receive_payload(now, header, payload, (class, bytes)),
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

    /// Our peer of a flow.
    fn of(&self, flow: u8) -> Option<usize> {
        self.own.iter().position(|own| own.flow() == flow)
    }

    fn is_in_datagrams(&mut self, flow: u8) -> bool {
        self.wire.stream(flow).is_none() && self.wire.direct(flow).is_none()
    }

    /// Takes a packet without its IP and UDP headers.
    fn receive_payload(
        &mut self,
        now: Instant,
        header: &Header,
        payload: &[u8],
        (class, bytes): (u8, u32),
    ) {
        if let Some(at) = self.of(header.flow) {
            let ends = ends(self.version, !self.client);
            let whole = self.own[at].wrapped(ends, class, payload);
            self.receive_media(now, at, header, (&whole, bytes));
        }
    }

    fn receive_media(
        &mut self,
        now: Instant,
        at: usize,
        header: &Header,
        (whole, bytes): (&[u8], u32),
    ) {
        let own = &mut self.own[at];
        own.highest = own.highest.max(u64::from(header.number) + 1);
        own.received += 1;
        let inside = own.encapsulation.map(|it| it.inside);
        let parsed = parse(whole, own.hints, inside);
        let payload = parsed.as_ref().map_or(true, |(parsed, _)| parsed.body.layers().payload > 0);
        let what = What::Received { number: header.number, bytes, sent: header.sent, payload };
        self.log.add(now, own.number, what);
        match parsed {
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

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}
