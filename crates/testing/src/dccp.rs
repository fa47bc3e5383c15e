//! Pairs of DCCP endpoints, and one endpoint alone.

use talkspurt_proto::dccp::options::{Feature, Opt};
use talkspurt_proto::dccp::{Ccid, Config, Dccp, Kind, Options, Packet, ResetCode, State, WireSeq};
use talkspurt_proto::endpoint::{Arrival, Endpoint, Event, Input, Output};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Damage, Ecn, IpVersion, PacketBox, PathId};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};

use crate::pair::Logged;
pub use crate::{End, Notes, Side, Side::Client, Side::Server, Verdict, at, data, ms};

/// Two DCCP endpoints.
pub type Pair = crate::Pair<Dccp>;
/// A packet in the log.
pub type Sent = crate::Sent<Entry>;

/// A packet in the log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The packet.
    pub packet: Packet,
}

impl Logged for Dccp {
    type Entry = Entry;
    type Memory = ();
    type Delivered = ();
    const HANDSHAKE: u64 = 4;

    fn entry((): &mut (), _: Side, packet: &PacketBox<Packet>) -> Entry {
        Entry { packet: Packet::clone(packet) }
    }
    fn arrives(packet: &PacketBox<Packet>) -> PacketBox<Packet> {
        PacketBox::new(Packet::clone(packet))
    }
    fn ip_bytes(packet: &PacketBox<Packet>) -> u32 {
        ip_bytes(packet) as u32
    }
    fn delivered(&self, _: u64, _: &Frame) {}
    fn is_open(&self) -> bool {
        self.state() == State::Open
    }
}

/// CCID 2 in both directions, and the values of the RFCs.
#[must_use]
pub fn plain() -> Config {
    Config::new(Ccid::Two)
}

impl Sent {
    /// True if it is a packet of this end and type.
    #[must_use]
    pub fn is(&self, from: Side, kind: u8) -> bool {
        self.from == from && self.packet.kind.number() == kind
    }
}

impl Pair {
    /// Two endpoints with the same configuration.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self::of(config, config)
    }

    /// Two endpoints.
    #[must_use]
    pub fn of(client: &Config, server: &Config) -> Self {
        Self::between(
            Dccp::client(client, Rng::new(1, "client")),
            Dccp::listener(server, Rng::new(1, "server")),
        )
    }

    /// Two newly connected endpoints. Each has received one datagram, so that both are in OPEN.
    #[must_use]
    pub fn connected(config: &Config) -> Self {
        let mut pair = Self::new(config);
        pair.send(Client, 10);
        pair.send(Server, 10);
        pair.connect();
        pair.log.clear();
        for side in [Client, Server] {
            let end = pair.end(side);
            end.events.clear();
            end.received.clear();
            end.notes = Notes::default();
        }
        pair
    }

    /// Queues a datagram of virtual bytes.
    pub fn send(&mut self, side: Side, bytes: u32) {
        self.send_virtual(side, bytes);
    }

    /// The end and type of each packet, in order.
    #[must_use]
    pub fn kinds(&self) -> Vec<(Side, u8)> {
        self.log.iter().map(|sent| (sent.from, sent.packet.kind.number())).collect()
    }

    /// The packets of a type from an end.
    #[must_use]
    pub fn of_kind(&self, from: Side, kind: u8) -> Vec<Sent> {
        self.log.iter().filter(|sent| sent.is(from, kind)).cloned().collect()
    }
}

/// DCCP-Request.
pub const REQUEST: u8 = 0;
/// DCCP-Response.
pub const RESPONSE: u8 = 1;
/// DCCP-Data.
pub const DATA: u8 = 2;
/// DCCP-Ack.
pub const ACK: u8 = 3;
/// DCCP-DataAck.
pub const DATA_ACK: u8 = 4;
/// DCCP-CloseReq.
pub const CLOSE_REQ: u8 = 5;
/// DCCP-Close.
pub const CLOSE: u8 = 6;
/// DCCP-Reset.
pub const RESET: u8 = 7;
/// DCCP-Sync.
pub const SYNC: u8 = 8;
/// DCCP-SyncAck.
pub const SYNC_ACK: u8 = 9;
/// DCCP-Listen.
pub const LISTEN: u8 = 10;

/// The arrival of a packet.
pub fn arriving(packet: Packet, ecn: Ecn, damage: Damage) -> Input<PacketBox<Packet>> {
    Input::Packet {
        arrival: Arrival { path: PathId(0), ecn, damage },
        packet: PacketBox::new(packet),
    }
}

/// A sequence number as it is on the wire.
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

/// A feature with a value, as in an option.
pub const fn feature(number: u8, value: &[u8]) -> Feature<'_> {
    Feature { number, value }
}

/// The answer of an agreeing server to the Changes of a client under CCID 2.
pub const CONFIRMS: [Opt<'static>; 3] = [
    Opt::ConfirmR(feature(1, &[2, 2])),
    Opt::ConfirmL(feature(1, &[2, 2])),
    Opt::ConfirmL(feature(6, &[1, 1])),
];

/// One endpoint whose peer is played by the test. The peer's numbers begin at [`PEER`].
pub struct Alone {
    /// The endpoint.
    pub endpoint: Dccp,
    /// The current time.
    pub now: Instant,
    /// The packets it sent.
    pub sent: Vec<Packet>,
    /// Its events.
    pub events: Vec<Event>,
    /// The data it delivered.
    pub received: Vec<Frame>,
    /// Its notes.
    pub notes: Notes,
    /// Its next deadline.
    pub wake: Option<Instant>,
    /// The endpoint's first number.
    pub isn: u64,
    /// The endpoint's last number.
    pub last: u64,
    /// The peer's last number.
    pub seq: u64,
}

/// The peer's initial sequence number: close to the wrap.
pub const PEER: u64 = (1 << 48) - 20;
const MASK: u64 = (1 << 48) - 1;

impl Alone {
    /// An endpoint that opens.
    pub fn client(config: &Config) -> Self {
        Self::new(Dccp::client(config, Rng::new(3, "alone")))
    }
    /// An endpoint that listens.
    pub fn listener(config: &Config) -> Self {
        Self::new(Dccp::listener(config, Rng::new(3, "alone")))
    }
    /// Wraps this endpoint.
    pub fn new(dccp: Dccp) -> Self {
        let mut alone = Self {
            endpoint: dccp,
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

    /// An endpoint that has sent its Request.
    pub fn opening(config: &Config) -> Self {
        let mut alone = Self::client(config);
        alone.input(Input::Open);
        alone
    }

    /// Its state, and its events.
    pub fn end(&self) -> (State, &[Event]) {
        (self.endpoint.state(), &self.events)
    }

    /// Handles an input and returns what was sent in answer.
    pub fn input(&mut self, input: Input<PacketBox<Packet>>) -> Vec<Packet> {
        self.endpoint.handle(self.now, input, &mut self.notes);
        self.settle()
    }

    /// Polls until it is idle, and returns what it sent.
    pub fn settle(&mut self) -> Vec<Packet> {
        let before = self.sent.len();
        for turn in 0.. {
            assert!(turn < 10_000, "the endpoint never comes to rest");
            match self.endpoint.poll(self.now, &mut self.notes) {
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
    /// A packet arrives; returns what was sent in answer.
    pub fn packet(&mut self, packet: Packet) -> Vec<Packet> {
        self.input(arriving(packet, Ecn::NotEct, Damage::None))
    }
    /// The peer's next packet.
    pub fn arrive(&mut self, kind: Kind, list: &[Opt<'_>]) -> Vec<Packet> {
        self.arrive_data(kind, list, 0)
    }
    /// The peer's next packet, with data.
    pub fn arrive_data(&mut self, kind: Kind, list: &[Opt<'_>], bytes: u32) -> Vec<Packet> {
        self.seq = (self.seq + 1) & MASK;
        self.packet(Self::make(self.seq, kind, list, bytes))
    }
    /// An acknowledgement of the last packet seen.
    pub fn ack(&self) -> WireSeq {
        WireSeq::Extended(self.last)
    }
    /// An acknowledgement of a packet this many before.
    pub fn ack_back(&self, count: u64) -> WireSeq {
        WireSeq::Extended(self.last.wrapping_sub(count) & MASK)
    }

    /// A client in OPEN (the peer confirms what CCID 2 requests), with empty logs.
    pub fn open_client(config: &Config, list: &[Opt<'_>]) -> Self {
        let mut alone = Self::opening(config);
        let service = config.service.0;
        let confirms = if config.ccid == Ccid::Two { &CONFIRMS[..] } else { &[] };
        let list = [confirms, list].concat();
        alone.arrive(Kind::Response { ack: alone.ack(), service }, &list);
        assert_eq!(alone.endpoint.state(), State::PartOpen);
        alone.arrive(Kind::Ack { ack: alone.ack() }, &[]);
        alone.forget()
    }
    /// A server opened by a Request with these options.
    pub fn open_server(config: &Config, list: &[Opt<'_>]) -> Self {
        let mut alone = Self::listener(config);
        alone.arrive(Kind::Request { service: config.service.0 }, list);
        alone.arrive(Kind::Ack { ack: alone.ack() }, &[]);
        alone.forget()
    }
    fn forget(mut self) -> Self {
        assert_eq!(self.endpoint.state(), State::Open);
        self.sent.clear();
        self.events.clear();
        self.notes = Notes::default();
        self
    }

    /// Sends a datagram; there must be room.
    pub fn send(&mut self, bytes: u32) -> Vec<Packet> {
        self.input(Input::Frame(data(bytes)))
    }
    /// Waits for the next deadline, and returns what was sent then.
    pub fn wait(&mut self) -> Vec<Packet> {
        self.now = self.wake.expect("a timer runs");
        self.input(Input::Timeout)
    }
    /// Lets time pass, and returns what was sent meanwhile.
    pub fn pass(&mut self, span: Duration) -> Vec<Packet> {
        let (before, until) = (self.sent.len(), self.now + span);
        while self.wake.is_some_and(|wake| wake <= until) {
            self.wait();
        }
        self.now = until;
        self.sent[before..].to_vec()
    }
}

/// The types of these packets.
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
