//! Pairs of TCP endpoints, and one endpoint alone.

use talkspurt_proto::endpoint::{Arrival, Endpoint, Event, Input, Output};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Damage, Ecn, PathId, Payload};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::tcp::{Config, Controller, Flags, SackBlocks, Segment, State, Tcp};
use talkspurt_proto::time::Instant;

use crate::pair::Logged;
pub use crate::{End, Notes, Side, Side::Client, Side::Server, Verdict, at, ms, virtually};

/// Two TCP endpoints.
pub type Pair = crate::Pair<Tcp>;
/// A segment in the log.
pub type Sent = crate::Sent<Entry>;

/// A segment in the log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Relative to the sender's initial sequence number.
    pub seq: u32,
    /// Relative to the receiver's initial sequence number.
    pub ack: u32,
    /// The segment.
    pub segment: Segment,
}

impl Entry {
    /// Bytes of data.
    #[must_use]
    pub fn len(&self) -> usize {
        self.segment.payload.len()
    }
    /// Whether there is no data.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// True if it has all these flags.
    #[must_use]
    pub fn has(&self, flags: Flags) -> bool {
        self.segment.flags.contains(flags)
    }
}

impl Logged for Tcp {
    type Entry = Entry;
    /// The initial sequence numbers.
    type Memory = [Option<u32>; 2];
    type Delivered = ();
    const HANDSHAKE: u64 = 3;

    fn entry(isn: &mut [Option<u32>; 2], from: Side, segment: &Segment) -> Entry {
        if segment.flags.contains(Flags::SYN) {
            isn[from as usize] = Some(segment.seq);
        }
        let relative =
            |number: u32, side: Side| number.wrapping_sub(isn[side as usize].unwrap_or(0));
        let has_ack = segment.flags.contains(Flags::ACK);
        Entry {
            seq: relative(segment.seq, from),
            ack: if has_ack { relative(segment.ack, from.other()) } else { 0 },
            segment: segment.clone(),
        }
    }
    fn arrives(segment: &Segment) -> Segment {
        segment.clone()
    }
    fn ip_bytes(segment: &Segment) -> u32 {
        (20 + segment.header_bytes() + segment.payload.len()) as u32
    }
    fn too_big(segment: &Segment, mtu: u32) -> Input<Segment> {
        refusal(mtu, segment.seq)
    }
    fn delivered(&self, before: u64, frame: &Frame) {
        let Frame::Data(payload) = frame else { panic!("TCP delivers bytes, not {frame:?}") };
        assert!(!payload.is_empty(), "an empty delivery");
        if let Payload::Virtual { offset, .. } = payload {
            assert_eq!(*offset, before, "the bytes are out of order");
        }
    }
    fn is_open(&self) -> bool {
        self.state() == State::Established
    }
}

/// NewReno with round numbers: segments of 1000 bytes, no options, every segment acknowledged.
#[must_use]
pub fn plain() -> Config {
    let mut config = Config::new(Controller::Newreno);
    config.mss = talkspurt_proto::units::Size::from_bytes(1000);
    config.timestamps = false;
    config.window_scaling = false;
    config.delayed_ack = false;
    config
}

/// The same with selective acknowledgements.
#[must_use]
pub fn selective() -> Config {
    Config { controller: Controller::Sack, ..plain() }
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
            Tcp::client(client, Rng::new(1, "client")),
            Tcp::listener(server, Rng::new(1, "server")),
        )
    }

    /// An established connection.
    #[must_use]
    pub fn connected(config: &Config) -> Self {
        let mut pair = Self::new(config);
        pair.connect();
        pair
    }

    /// Drops the data segments of `from` with these numbers, counted from 1 from now on.
    pub fn drop_data(&mut self, from: Side, numbers: &[usize]) {
        self.drop_counted(from, numbers, |entry| !entry.is_empty());
    }

    /// Sends virtual bytes.
    pub fn send(&mut self, side: Side, bytes: u32) {
        self.input(side, Input::Frame(Frame::Data(virtually(bytes))));
    }

    /// Data segments of `from`.
    #[must_use]
    pub fn data(&self, from: Side) -> Vec<&Sent> {
        self.sent(from).into_iter().filter(|sent| !sent.is_empty()).collect()
    }

    /// Data segments of `from` as (milliseconds, relative offset in segments of 1000 bytes).
    #[must_use]
    pub fn trace(&self, from: Side) -> Vec<(u64, u32)> {
        let place = |sent: &&Sent| (sent.at.as_nanos() / 1_000_000, (sent.seq - 1) / 1000);
        self.data(from).iter().map(place).collect()
    }
}

/// The arrival of a segment.
pub fn packet(segment: Segment) -> Input<Segment> {
    let (path, ecn, damage) = (PathId(0), Ecn::NotEct, Damage::None);
    Input::Packet { arrival: Arrival { path, ecn, damage }, packet: segment }
}

/// A router's report that it dropped the segment with this sequence number.
pub fn refusal(mtu: u32, seq: u32) -> Input<Segment> {
    let quote = crate::quote(talkspurt_proto::wire::tcp::quoted(seq));
    Input::TooBig { path: PathId(0), mtu, quote }
}

/// One endpoint whose peer is played by the test. The peer's numbers begin at [`PEER`].
pub struct Alone {
    /// The endpoint.
    pub endpoint: Tcp,
    /// The current time.
    pub now: Instant,
    /// The segments it sent.
    pub sent: Vec<Segment>,
    /// Its events.
    pub events: Vec<Event>,
    /// Bytes of the data it delivered.
    pub count: u64,
    /// Its notes.
    pub notes: Notes,
    /// Its next deadline.
    pub wake: Option<Instant>,
    /// Our initial sequence number, once sent.
    pub isn: u32,
    /// The peer's timestamp clock, put on segments if set.
    pub clock: Option<u32>,
    /// The peer offers selective acknowledgements.
    pub sack: bool,
    /// The ECN field of packets from the peer.
    pub ecn: Ecn,
    /// The ECN fields of the segments it sent.
    pub marks: Vec<Ecn>,
}

/// The peer's initial sequence number: close to the wrap.
pub const PEER: u32 = u32::MAX - 2000;

impl Alone {
    /// An endpoint that opens.
    pub fn client(config: &Config) -> Self {
        Self::new(Tcp::client(config, Rng::new(3, "alone")))
    }
    /// An endpoint that listens.
    pub fn listener(config: &Config) -> Self {
        Self::new(Tcp::listener(config, Rng::new(3, "alone")))
    }
    fn new(tcp: Tcp) -> Self {
        Self {
            endpoint: tcp,
            now: Instant::ZERO,
            sent: Vec::new(),
            events: Vec::new(),
            count: 0,
            notes: Notes::default(),
            wake: None,
            isn: 0,
            clock: None,
            sack: true,
            ecn: Ecn::NotEct,
            marks: Vec::new(),
        }
    }

    /// Handles an input and returns what was sent in answer.
    pub fn input(&mut self, input: Input<Segment>) -> Vec<Segment> {
        let before = self.sent.len();
        self.endpoint.handle(self.now, input, &mut self.notes);
        loop {
            match self.endpoint.poll(self.now, &mut self.notes) {
                Output::Transmit(transmit) => {
                    let segment = transmit.packet;
                    if segment.flags.contains(Flags::SYN) {
                        self.isn = segment.seq;
                    }
                    self.sent.push(segment);
                    self.marks.push(transmit.ecn);
                }
                Output::Deliver(frame) => self.count += frame.wire_bytes() as u64,
                Output::Event(event) => self.events.push(event),
                Output::Idle { until } => {
                    self.wake = until;
                    return self.sent[before..].to_vec();
                }
            }
        }
    }

    /// Its state, and its events.
    pub fn end(&self) -> (State, &[Event]) {
        (self.endpoint.state(), &self.events)
    }

    /// A segment arrives; returns what was sent in answer.
    pub fn segment(&mut self, segment: Segment) -> Vec<Segment> {
        let (path, damage, ecn) = (PathId(0), Damage::None, self.ecn);
        self.input(Input::Packet { arrival: Arrival { path, ecn, damage }, packet: segment })
    }

    /// A segment of the peer: `seq` and `ack` relative to the initial numbers, window 20 000.
    pub fn make(&self, flags: Flags, seq: u32, ack: u32, len: u32) -> Segment {
        Segment {
            seq: PEER.wrapping_add(seq),
            ack: if flags.contains(Flags::ACK) { self.isn.wrapping_add(ack) } else { 0 },
            window: 20_000,
            flags,
            timestamps: self.clock.map(|clock| (clock, 0)),
            payload: virtually(len),
            ..Segment::default()
        }
    }

    /// A segment of the peer arrives; the numbers are relative.
    pub fn arrive(&mut self, flags: Flags, seq: u32, ack: u32, len: u32) -> Vec<Segment> {
        self.segment(self.make(flags, seq, ack, len))
    }

    /// An acknowledgement of all below `ack`, with blocks received beyond, all relative.
    pub fn sack(&mut self, ack: u32, blocks: &[(u32, u32)]) -> Vec<Segment> {
        let isn = self.isn;
        let wire = |(left, right): &(u32, u32)| (isn.wrapping_add(*left), isn.wrapping_add(*right));
        let sack = SackBlocks::of(blocks.iter().map(wire));
        self.segment(Segment { sack, ..self.make(Flags::ACK, 1, ack, 0) })
    }

    /// The same where segments have 1000 bytes and numbers from 0; the numbers of the answer.
    pub fn sack_numbers(&mut self, ack: u32, blocks: &[(u32, u32)]) -> Vec<u32> {
        let wire = |number: u32| 1 + 1000 * number;
        let wires = |(left, right): &(u32, u32)| (wire(*left), wire(*right));
        let sent = self.sack(wire(ack), &blocks.iter().map(wires).collect::<Vec<_>>());
        self.numbers(&sent)
    }

    /// Numbers of these segments, if all have 1000 bytes.
    pub fn numbers(&self, sent: &[Segment]) -> Vec<u32> {
        sent.iter().map(|segment| (self.place(segment) - 1) / 1000).collect()
    }

    /// A SYN of the peer.
    pub fn syn(&self, flags: Flags, ack: u32) -> Segment {
        Segment {
            mss: Some(1000),
            sack_permitted: self.sack,
            timestamps: self.clock.map(|clock| (clock, 0)),
            ..self.make(flags, 0, ack, 0)
        }
    }

    /// An endpoint that has sent its SYN.
    pub fn opening(config: &Config) -> Self {
        let mut alone = Self::client(config);
        alone.input(Input::Open);
        alone
    }

    /// Opened from this side, with empty logs.
    pub fn established(config: &Config) -> Self {
        Self::opened_at(Instant::ZERO, config)
    }

    /// The same, with the answer to its SYN at this time.
    pub fn opened_at(now: Instant, config: &Config) -> Self {
        let mut alone = Self::opening(config);
        alone.now = now;
        let answer = alone.syn(Flags::SYN | Flags::ACK, 1);
        alone.segment(answer);
        assert_eq!(alone.endpoint.state(), State::Established);
        alone.sent.clear();
        alone.marks.clear();
        alone.events.clear();
        alone
    }

    /// Sends virtual bytes; returns what was sent.
    pub fn send(&mut self, bytes: u32) -> Vec<Segment> {
        self.input(Input::Frame(Frame::Data(virtually(bytes))))
    }

    /// Waits for the next deadline, and returns what was sent then.
    pub fn wait(&mut self) -> Vec<Segment> {
        self.now = self.wake.expect("a timer runs");
        self.input(Input::Timeout)
    }

    /// Relative sequence number of a segment we sent.
    pub fn place(&self, segment: &Segment) -> u32 {
        segment.seq.wrapping_sub(self.isn)
    }
    /// Relative acknowledgement of a segment we sent.
    pub fn acked(segment: &Segment) -> u32 {
        segment.ack.wrapping_sub(PEER)
    }
}
