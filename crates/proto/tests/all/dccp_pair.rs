//! Two DCCP endpoints and the wire between them, in virtual time; and one endpoint alone, talked to
//! by hand-made packets. As in `pair`, tests read as stories: connect, send, drop the n-th packet,
//! drive, look at what was on the wire and when.

use bytes::Bytes;
use talkspurt_proto::dccp::options::{Feature, Opt};
use talkspurt_proto::dccp::{Ccid, Config, Dccp, Kind, Options, Packet, ResetCode, State, WireSeq};
use talkspurt_proto::endpoint::{Arrival, Endpoint, Event, Input, Output, Transmit};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Damage, Ecn, IpVersion, PacketBox, PathId, Payload};
use talkspurt_proto::probe::{Gauge, Note, Place, Probe, RxError, Topic};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
pub const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// CCID 2 both ways, and the RFC's values.
pub fn plain() -> Config {
    Config::new(Ccid::Two)
}

/// Notes of an endpoint, kept.
#[derive(Default)]
pub struct Notes {
    pub rx_error: Vec<RxError>,
    pub gauges: Vec<(Instant, Gauge, f64)>,
}

impl Probe for Notes {
    fn wants(&self, _: Topic) -> bool {
        true
    }
    fn record(&mut self, now: Instant, _: Place, note: &Note<'_>) {
        match note {
            Note::RxError(rx_error) => self.rx_error.push(*rx_error),
            Note::Gauge { gauge, value } => self.gauges.push((now, *gauge, *value)),
            _ => {}
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}
pub use Side::{Client, Server};

impl Side {
    pub const fn other(self) -> Self {
        match self {
            Client => Server,
            Server => Client,
        }
    }
}

/// One end with what its application saw.
pub struct End {
    pub dccp: Dccp,
    pub events: Vec<(Instant, Event)>,
    pub received: Vec<Frame>,
    pub notes: Notes,
    pub wake: Option<Instant>,
    /// Frames the application still wants to send; handed over as room allows.
    pub waiting: std::collections::VecDeque<Frame>,
}

impl End {
    fn new(dccp: Dccp) -> Self {
        Self {
            dccp,
            events: Vec::new(),
            received: Vec::new(),
            notes: Notes::default(),
            wake: None,
            waiting: std::collections::VecDeque::new(),
        }
    }
    pub fn saw(&self, event: Event) -> bool {
        self.events.iter().any(|(_, seen)| *seen == event)
    }
    /// Events without those of room.
    pub fn life(&self) -> Vec<Event> {
        let life = self.events.iter().map(|(_, event)| *event);
        life.filter(|event| *event != Event::Writable).collect()
    }
}

/// A packet as it was put on the wire.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Instant,
    pub from: Side,
    pub ecn: Ecn,
    pub packet: Packet,
    pub dropped: bool,
}

impl Sent {
    pub fn is(&self, from: Side, kind: u8) -> bool {
        self.from == from && self.packet.kind.number() == kind
    }
}

/// What the wire does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Arrive,
    Drop,
    /// Arrives so much later than it should, overtaken by others.
    Late(Duration),
    /// Arrives twice, the second time so much later.
    Twice(Duration),
    /// Marked on the way.
    Mark,
    /// Bits beyond the checksum's coverage are damaged.
    Damage,
}

type Wire = Box<dyn FnMut(&Sent) -> Verdict>;

struct Flight {
    at: Instant,
    order: usize,
    to: Side,
    ecn: Ecn,
    damage: Damage,
    packet: Packet,
}

pub struct Pair {
    pub now: Instant,
    pub client: End,
    pub server: End,
    pub log: Vec<Sent>,
    /// One-way delay.
    pub delay: Duration,
    wire: Wire,
    flying: Vec<Flight>,
    order: usize,
}

impl Pair {
    pub fn new(config: &Config) -> Self {
        Self::of(config, config)
    }
    pub fn of(client: &Config, server: &Config) -> Self {
        Self::between(
            Dccp::client(client, Rng::new(1, "client")),
            Dccp::listener(server, Rng::new(1, "server")),
        )
    }
    pub fn between(client: Dccp, server: Dccp) -> Self {
        Self {
            now: Instant::ZERO,
            client: End::new(client),
            server: End::new(server),
            log: Vec::new(),
            delay: ms(50),
            wire: Box::new(|_| Verdict::Arrive),
            flying: Vec::new(),
            order: 0,
        }
    }

    pub fn end(&mut self, side: Side) -> &mut End {
        match side {
            Client => &mut self.client,
            Server => &mut self.server,
        }
    }

    /// Decides on every packet sent from now on.
    pub fn on_wire(&mut self, wire: impl FnMut(&Sent) -> Verdict + 'static) {
        self.wire = Box::new(wire);
    }

    pub fn input(&mut self, side: Side, input: Input<PacketBox<Packet>>) {
        let now = self.now;
        let end = self.end(side);
        end.dccp.handle(now, input, &mut end.notes);
        self.settle(side);
    }

    /// Opens and lets the handshake pass.
    pub fn connect(&mut self) {
        self.input(Client, Input::Open);
        self.drive_for(self.delay * 4);
        assert_eq!(self.client.dccp.state(), State::Open);
        assert_eq!(self.server.dccp.state(), State::Open);
    }
    /// Connected, and nothing remembered of it. The client has sent one datagram, so that both are
    /// in OPEN.
    pub fn connected(config: &Config) -> Self {
        let mut pair = Self::new(config);
        pair.send(Client, 10);
        pair.send(Server, 10);
        pair.connect();
        pair.log.clear();
        for side in [Client, Server] {
            pair.end(side).events.clear();
            pair.end(side).received.clear();
            pair.end(side).notes = Notes::default();
        }
        pair
    }

    /// Queues a datagram of virtual bytes.
    pub fn send(&mut self, side: Side, bytes: u32) {
        self.send_frame(side, data(bytes));
    }
    /// Queues a datagram of real bytes.
    pub fn send_real(&mut self, side: Side, bytes: &[u8]) {
        self.send_frame(side, Frame::Data(Payload::Real(Bytes::copy_from_slice(bytes))));
    }
    pub fn send_frame(&mut self, side: Side, frame: Frame) {
        self.end(side).waiting.push_back(frame);
        self.settle(side);
    }

    /// Lets time pass until nothing is in flight and no timer runs, or until `limit`.
    pub fn drive_until(&mut self, limit: Instant) {
        while let Some(next) = self.next().filter(|next| *next <= limit) {
            self.now = self.now.max(next);
            self.step();
        }
        self.now = self.now.max(limit);
    }
    pub fn drive_for(&mut self, span: Duration) {
        self.drive_until(self.now + span);
    }

    fn next(&self) -> Option<Instant> {
        let flying = self.flying.iter().map(|flight| flight.at).min();
        [flying, self.client.wake, self.server.wake].into_iter().flatten().min()
    }

    fn step(&mut self) {
        let first = (0..self.flying.len())
            .min_by_key(|i| (self.flying[*i].at, self.flying[*i].order))
            .filter(|i| self.flying[*i].at <= self.now);
        if let Some(i) = first {
            let Flight { to, ecn, damage, packet, .. } = self.flying.swap_remove(i);
            return self.input(to, arriving(packet, ecn, damage));
        }
        for side in [Client, Server] {
            let now = self.now;
            if self.end(side).wake.is_some_and(|wake| wake <= now) {
                return self.input(side, Input::Timeout);
            }
        }
    }

    fn settle(&mut self, side: Side) {
        let now = self.now;
        for turn in 0.. {
            assert!(turn < 10_000, "the endpoint never comes to rest");
            let end = self.end(side);
            match end.dccp.poll(now, &mut end.notes) {
                Output::Transmit(transmit) => self.put(side, transmit),
                Output::Deliver(frame) => end.received.push(frame),
                Output::Event(event) => end.events.push((now, event)),
                Output::Idle { until } => {
                    assert!(
                        until.is_none_or(|until| until >= now),
                        "deadlines do not lie in the past"
                    );
                    end.wake = until;
                    let room = end.dccp.send_capacity();
                    let fits = |frame: &Frame| room > 0 && frame.wire_bytes() <= room;
                    if !end.waiting.front().is_some_and(fits) {
                        return;
                    }
                    let frame = end.waiting.pop_front().expect("looked at just now");
                    end.dccp.handle(now, Input::Frame(frame), &mut end.notes);
                }
            }
        }
    }

    fn put(&mut self, from: Side, transmit: Transmit<PacketBox<Packet>>) {
        let packet = transmit.packet;
        let mut sent = Sent {
            at: self.now,
            from,
            ecn: transmit.ecn,
            packet: packet.into_inner(),
            dropped: false,
        };
        let verdict = (self.wire)(&sent);
        sent.dropped = verdict == Verdict::Drop;
        let arrives = self.now + self.delay;
        let mut fly = |at, ecn, damage| {
            self.order += 1;
            let packet = sent.packet.clone();
            let order = self.order;
            self.flying.push(Flight { at, order, to: from.other(), ecn, damage, packet });
        };
        match verdict {
            Verdict::Drop => {}
            Verdict::Arrive => fly(arrives, sent.ecn, Damage::None),
            Verdict::Mark => fly(arrives, Ecn::Ce, Damage::None),
            Verdict::Damage => fly(arrives, sent.ecn, Damage::Payload),
            Verdict::Late(late) => fly(arrives + late, sent.ecn, Damage::None),
            Verdict::Twice(later) => {
                fly(arrives, sent.ecn, Damage::None);
                fly(arrives + later, sent.ecn, Damage::None);
            }
        }
        self.log.push(sent);
    }

    /// Who sent which type, in order.
    pub fn kinds(&self) -> Vec<(Side, u8)> {
        self.log.iter().map(|sent| (sent.from, sent.packet.kind.number())).collect()
    }
    /// The packets of a type from a side.
    pub fn of_kind(&self, from: Side, kind: u8) -> Vec<Sent> {
        self.log.iter().filter(|sent| sent.is(from, kind)).cloned().collect()
    }
}

pub const REQUEST: u8 = 0;
pub const RESPONSE: u8 = 1;
pub const DATA: u8 = 2;
pub const ACK: u8 = 3;
pub const DATA_ACK: u8 = 4;
pub const CLOSE_REQ: u8 = 5;
pub const CLOSE: u8 = 6;
pub const RESET: u8 = 7;
pub const SYNC: u8 = 8;
pub const SYNC_ACK: u8 = 9;
pub const LISTEN: u8 = 10;

pub fn arriving(packet: Packet, ecn: Ecn, damage: Damage) -> Input<PacketBox<Packet>> {
    Input::Packet {
        arrival: Arrival { path: PathId(0), ecn, damage },
        packet: PacketBox::new(packet),
    }
}

pub fn data(bytes: u32) -> Frame {
    Frame::Data(Payload::Virtual { offset: 0, len: bytes.into() })
}

pub fn wire(seq: WireSeq) -> u64 {
    match seq {
        WireSeq::Extended(seq) => seq,
        WireSeq::Short(seq) => seq.into(),
    }
}

/// The options of a packet without padding.
pub fn options(packet: &Packet) -> Vec<Opt<'_>> {
    let options = packet.options.iter().map(|option| option.expect("we send sound options"));
    options.filter(|option| *option != Opt::Padding).collect()
}

/// Options from a list.
pub fn with(list: &[Opt<'_>]) -> Options {
    let mut options = Options::default();
    list.iter().for_each(|option| options.push(*option));
    options
}

pub const fn feature(number: u8, value: &[u8]) -> Feature<'_> {
    Feature { number, value }
}

/// What a server that agrees answers to the Changes of a client under CCID 2.
pub const CONFIRMS: [Opt<'static>; 3] = [
    Opt::ConfirmR(feature(1, &[2, 2])),
    Opt::ConfirmL(feature(1, &[2, 2])),
    Opt::ConfirmL(feature(6, &[1, 1])),
];

/// One endpoint, and a peer played by the test. The peer's numbers begin at [`PEER`].
pub struct Alone {
    pub dccp: Dccp,
    pub now: Instant,
    pub sent: Vec<Packet>,
    pub events: Vec<Event>,
    pub received: Vec<Frame>,
    pub notes: Notes,
    pub wake: Option<Instant>,
    /// The first number seen of the endpoint.
    pub isn: u64,
    /// The last.
    pub last: u64,
    /// The peer's last number.
    pub seq: u64,
}

/// The played peer's initial sequence number: close to the wrap.
pub const PEER: u64 = (1 << 48) - 20;
const MASK: u64 = (1 << 48) - 1;

impl Alone {
    pub fn client(config: &Config) -> Self {
        Self::new(Dccp::client(config, Rng::new(3, "alone")))
    }
    pub fn listener(config: &Config) -> Self {
        Self::new(Dccp::listener(config, Rng::new(3, "alone")))
    }
    pub fn new(dccp: Dccp) -> Self {
        let mut alone = Self {
            dccp,
            now: Instant::ZERO,
            sent: Vec::new(),
            events: Vec::new(),
            received: Vec::new(),
            notes: Notes::default(),
            wake: None,
            isn: 0,
            last: 0,
            seq: PEER - 1,
        };
        alone.settle();
        alone
    }

    /// Hands in and gives back what was sent in answer.
    pub fn input(&mut self, input: Input<PacketBox<Packet>>) -> Vec<Packet> {
        self.dccp.handle(self.now, input, &mut self.notes);
        self.settle()
    }

    pub fn settle(&mut self) -> Vec<Packet> {
        let before = self.sent.len();
        for turn in 0.. {
            assert!(turn < 10_000, "the endpoint never comes to rest");
            match self.dccp.poll(self.now, &mut self.notes) {
                Output::Transmit(transmit) => {
                    let packet = transmit.packet;
                    assert!(packet.header_bytes() <= 1020, "§5.1: Data Offset has eight bits");
                    let opens = packet.kind.number() == REQUEST || packet.kind.number() == RESPONSE;
                    self.last = wire(packet.seq);
                    if opens && self.isn == 0 {
                        self.isn = self.last;
                    }
                    self.sent.push(packet.into_inner());
                }
                Output::Deliver(frame) => self.received.push(frame),
                Output::Event(event) => self.events.push(event),
                Output::Idle { until } => {
                    let now = self.now;
                    assert!(
                        until.is_none_or(|until| until >= now),
                        "deadlines do not lie in the past"
                    );
                    self.wake = until;
                    break;
                }
            }
        }
        self.sent[before..].to_vec()
    }

    /// A packet of the peer with this number and these options.
    pub fn make(seq: u64, kind: Kind, list: &[Opt<'_>], bytes: u32) -> Packet {
        Packet {
            seq: WireSeq::Extended(seq & MASK),
            ccval: 0,
            cscov: 0,
            kind,
            options: with(list),
            payload: data(bytes),
        }
    }
    pub fn packet(&mut self, packet: Packet) -> Vec<Packet> {
        self.input(arriving(packet, Ecn::NotEct, Damage::None))
    }
    /// The peer's next packet.
    pub fn arrive(&mut self, kind: Kind, list: &[Opt<'_>]) -> Vec<Packet> {
        self.arrive_data(kind, list, 0)
    }
    pub fn arrive_data(&mut self, kind: Kind, list: &[Opt<'_>], bytes: u32) -> Vec<Packet> {
        self.seq = (self.seq + 1) & MASK;
        self.packet(Self::make(self.seq, kind, list, bytes))
    }
    /// An acknowledgement of the last packet seen.
    pub fn ack(&self) -> WireSeq {
        WireSeq::Extended(self.last)
    }
    /// One of a packet so many before.
    pub fn ack_back(&self, count: u64) -> WireSeq {
        WireSeq::Extended(self.last.wrapping_sub(count) & MASK)
    }

    /// Opened as a client, in OPEN (the peer confirms what CCID 2 asks for), as if nothing had been
    /// sent or told.
    pub fn open_client(config: &Config, list: &[Opt<'_>]) -> Self {
        let mut alone = Self::client(config);
        alone.input(Input::Open);
        let service = config.service.0;
        let confirms = if config.ccid == Ccid::Two { &CONFIRMS[..] } else { &[] };
        let list = [confirms, list].concat();
        alone.arrive(Kind::Response { ack: alone.ack(), service }, &list);
        assert_eq!(alone.dccp.state(), State::PartOpen);
        alone.arrive(Kind::Ack { ack: alone.ack() }, &[]);
        alone.forget()
    }
    /// Opened as a server by a Request with these options.
    pub fn open_server(config: &Config, list: &[Opt<'_>]) -> Self {
        let mut alone = Self::listener(config);
        alone.arrive(Kind::Request { service: config.service.0 }, list);
        alone.arrive(Kind::Ack { ack: alone.ack() }, &[]);
        alone.forget()
    }
    fn forget(mut self) -> Self {
        assert_eq!(self.dccp.state(), State::Open);
        self.sent.clear();
        self.events.clear();
        self.notes = Notes::default();
        self
    }

    /// Sends a datagram; there must be room.
    pub fn send(&mut self, bytes: u32) -> Vec<Packet> {
        self.input(Input::Frame(data(bytes)))
    }
    /// Waits for the next deadline, and gives back what was sent then.
    pub fn wait(&mut self) -> Vec<Packet> {
        self.now = self.wake.expect("a timer runs");
        self.input(Input::Timeout)
    }
    /// Lets time pass, and gives back what was sent meanwhile.
    pub fn pass(&mut self, span: Duration) -> Vec<Packet> {
        let (before, until) = (self.sent.len(), self.now + span);
        while self.wake.is_some_and(|wake| wake <= until) {
            self.wait();
        }
        self.now = until;
        self.sent[before..].to_vec()
    }
}

pub fn kinds(packets: &[Packet]) -> Vec<u8> {
    packets.iter().map(|packet| packet.kind.number()).collect()
}

/// The code and data of the one Reset among these.
pub fn reset(packets: &[Packet]) -> (ResetCode, [u8; 3]) {
    let [Packet { kind: Kind::Reset { code, data, .. }, .. }] = packets else {
        panic!("{packets:?} is not one Reset")
    };
    (*code, *data)
}

/// Bytes of the IP packet.
pub fn ip_bytes(packet: &Packet) -> usize {
    IpVersion::V4.header_bytes() as usize + packet.header_bytes() + packet.payload.wire_bytes()
}
