//! Two endpoints and the wire between them, in virtual time; and one endpoint alone, talked to by
//! hand-made segments. Tests read as stories: connect, send, drop the n-th segment, drive, look at
//! what was on the wire and when.

use bytes::Bytes;
use talkspurt_proto::endpoint::{Arrival, Endpoint, Event, Input, Output};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Damage, Ecn, IpVersion, PathId, Payload, Quote};
use talkspurt_proto::probe::{Gauge, Note, Place, Probe, RxError, Topic};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::tcp::{Config, Controller, Flags, SackBlocks, Segment, State, Tcp};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
pub const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// NewReno with round numbers: 1000-byte segments, no options, every segment acknowledged.
pub fn plain() -> Config {
    let mut config = Config::new(Controller::Newreno);
    config.mss = talkspurt_proto::units::Size::from_bytes(1000);
    config.timestamps = false;
    config.window_scaling = false;
    config.delayed_ack = false;
    config
}

/// The same with selective acknowledgements.
pub fn selective() -> Config {
    Config { controller: Controller::Sack, ..plain() }
}

/// Notes of an endpoint, kept.
#[derive(Default)]
pub struct Notes {
    pub rx_error: Vec<RxError>,
    pub gauges: Vec<(Instant, Gauge, f64)>,
}

impl Notes {
    pub fn last(&self, gauge: Gauge) -> Option<f64> {
        self.gauges.iter().rev().find(|note| note.1 == gauge).map(|note| note.2)
    }
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
    pub tcp: Tcp,
    pub events: Vec<(Instant, Event)>,
    /// Real bytes received.
    pub received: Vec<u8>,
    /// Bytes received, of either kind.
    pub count: u64,
    pub notes: Notes,
    wake: Option<Instant>,
    /// When the wire in front of this end is free again.
    free: Instant,
}

impl End {
    fn new(tcp: Tcp) -> Self {
        Self {
            tcp,
            events: Vec::new(),
            received: Vec::new(),
            count: 0,
            notes: Notes::default(),
            wake: None,
            free: Instant::ZERO,
        }
    }
    pub fn saw(&self, event: Event) -> bool {
        self.events.iter().any(|(_, seen)| *seen == event)
    }
}

/// A segment as it was put on the wire.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Instant,
    pub from: Side,
    /// Relative to the sender's initial sequence number.
    pub seq: u32,
    /// Relative to the receiver's initial sequence number.
    pub ack: u32,
    pub segment: Segment,
    pub dropped: bool,
}

impl Sent {
    pub fn len(&self) -> usize {
        self.segment.payload.len()
    }
    pub fn has(&self, flags: Flags) -> bool {
        self.segment.flags.contains(flags)
    }
}

/// What the wire does with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Arrive,
    Drop,
    /// Arrives so much later than it should, overtaken by others.
    Late(Duration),
    /// Arrives twice, the second time so much later.
    Twice(Duration),
}

type Wire = Box<dyn FnMut(&Sent) -> Verdict>;

pub struct Pair {
    pub now: Instant,
    pub client: End,
    pub server: End,
    pub log: Vec<Sent>,
    /// One-way delay.
    pub delay: Duration,
    /// Rate of the wire, each way; with a queue without end.
    pub rate: Option<Rate>,
    /// Largest IP packet that passes (TCP over IPv4), and what it says then.
    pub mtu: u32,
    wire: Wire,
    flying: Vec<(Instant, usize, Side, Segment)>,
    order: usize,
    isn: [Option<u32>; 2],
}

impl Pair {
    pub fn new(config: &Config) -> Self {
        Self::of(config, config)
    }

    pub fn of(client: &Config, server: &Config) -> Self {
        Self::between(
            Tcp::client(client, Rng::new(1, "client")),
            Tcp::listener(server, Rng::new(1, "server")),
        )
    }

    pub fn between(client: Tcp, server: Tcp) -> Self {
        Self {
            now: Instant::ZERO,
            client: End::new(client),
            server: End::new(server),
            log: Vec::new(),
            delay: ms(50),
            rate: None,
            mtu: u32::MAX,
            wire: Box::new(|_| Verdict::Arrive),
            flying: Vec::new(),
            order: 0,
            isn: [None; 2],
        }
    }

    pub fn end(&mut self, side: Side) -> &mut End {
        match side {
            Client => &mut self.client,
            Server => &mut self.server,
        }
    }

    /// Decides on every segment sent from now on.
    pub fn on_wire(&mut self, wire: impl FnMut(&Sent) -> Verdict + 'static) {
        self.wire = Box::new(wire);
    }

    /// Drops the data segments of `from` with these numbers, counted from 1 from now on.
    pub fn drop_data(&mut self, from: Side, numbers: &[usize]) {
        let (numbers, mut count) = (numbers.to_vec(), 0);
        self.on_wire(move |sent| {
            if sent.from != from || sent.len() == 0 {
                return Verdict::Arrive;
            }
            count += 1;
            if numbers.contains(&count) { Verdict::Drop } else { Verdict::Arrive }
        });
    }

    pub fn input(&mut self, side: Side, input: Input<Segment>) {
        let now = self.now;
        let end = self.end(side);
        end.tcp.handle(now, input, &mut end.notes);
        self.settle(side);
    }

    pub fn connect(&mut self) {
        self.input(Client, Input::Open);
        self.drive_for(self.delay * 3);
        assert_eq!(self.client.tcp.state(), State::Established);
        assert_eq!(self.server.tcp.state(), State::Established);
    }

    /// Hands over virtual bytes.
    pub fn send(&mut self, side: Side, bytes: u32) {
        self.input(
            side,
            Input::Frame(Frame::Data(Payload::Virtual { offset: 0, len: bytes.into() })),
        );
    }

    /// Hands over real bytes.
    pub fn send_real(&mut self, side: Side, bytes: &[u8]) {
        let bytes = Bytes::copy_from_slice(bytes);
        self.input(side, Input::Frame(Frame::Data(Payload::Real(bytes))));
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
    /// Until nothing more happens.
    pub fn drive(&mut self) {
        while let Some(next) = self.next() {
            assert!(next < Instant::HORIZON, "the pair never comes to rest");
            self.now = self.now.max(next);
            self.step();
        }
    }

    fn next(&self) -> Option<Instant> {
        let flying = self.flying.iter().map(|flight| flight.0).min();
        [flying, self.client.wake, self.server.wake].into_iter().flatten().min()
    }

    fn step(&mut self) {
        let first = (0..self.flying.len()).min_by_key(|i| (self.flying[*i].0, self.flying[*i].1));
        if let Some(i) = first.filter(|i| self.flying[*i].0 <= self.now) {
            let (_, _, to, segment) = self.flying.swap_remove(i);
            return self.input(to, packet(segment));
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
        loop {
            let end = self.end(side);
            match end.tcp.poll(now, &mut end.notes) {
                Output::Transmit(transmit) => {
                    let segment = transmit.packet;
                    self.put(side, segment);
                }
                Output::Deliver(Frame::Data(payload)) => {
                    assert!(!payload.is_empty(), "nothing is no delivery");
                    if let Payload::Virtual { offset, .. } = payload {
                        assert_eq!(offset, end.count, "delivered in order");
                    }
                    end.count += payload.len() as u64;
                    if let Payload::Real(bytes) = payload {
                        end.received.extend_from_slice(&bytes);
                    }
                }
                Output::Deliver(_) => panic!("TCP delivers data"),
                Output::Event(event) => end.events.push((now, event)),
                Output::Idle { until } => {
                    assert!(
                        until.is_none_or(|until| until >= now),
                        "deadlines do not lie in the past"
                    );
                    end.wake = until;
                    return;
                }
            }
        }
    }

    fn put(&mut self, from: Side, segment: Segment) {
        let ip_bytes = (20 + segment.header_bytes() + segment.payload.len()) as u32;
        if segment.flags.contains(Flags::SYN) {
            self.isn[from as usize] = Some(segment.seq);
        }
        let relative = |number: u32, side: Side| {
            self.isn[side as usize].map_or(number, |isn| number.wrapping_sub(isn))
        };
        let mut sent = Sent {
            at: self.now,
            from,
            seq: relative(segment.seq, from),
            ack: if segment.flags.contains(Flags::ACK) {
                relative(segment.ack, from.other())
            } else {
                0
            },
            segment: segment.clone(),
            dropped: false,
        };
        if ip_bytes > self.mtu {
            sent.dropped = true;
            self.log.push(sent);
            let (now, mtu) = (self.now, self.mtu);
            let end = self.end(from);
            let news = refusal(mtu, segment.seq);
            return end.tcp.handle(now, news, &mut end.notes);
        }
        let verdict = (self.wire)(&sent);
        sent.dropped = verdict == Verdict::Drop;
        self.log.push(sent);
        let start = self.now.max(self.end(from).free);
        let gone =
            start + self.rate.and_then(|r| r.time_for(ip_bytes.into())).unwrap_or(Duration::ZERO);
        self.end(from).free = gone;
        let arrival = gone + self.delay;
        let mut fly = |at: Instant, segment: Segment| {
            self.order += 1;
            self.flying.push((at, self.order, from.other(), segment));
        };
        match verdict {
            Verdict::Arrive => fly(arrival, segment),
            Verdict::Drop => {}
            Verdict::Late(late) => fly(arrival + late, segment),
            Verdict::Twice(later) => {
                fly(arrival, segment.clone());
                fly(arrival + later, segment);
            }
        }
    }

    /// What `from` sent since the log was last cleared.
    pub fn sent(&self, from: Side) -> Vec<&Sent> {
        self.log.iter().filter(|sent| sent.from == from).collect()
    }
    /// Data segments of `from`.
    pub fn data(&self, from: Side) -> Vec<&Sent> {
        self.sent(from).into_iter().filter(|sent| sent.len() > 0).collect()
    }
    /// Data segments of `from` as (milliseconds, relative offset in segments of 1000 bytes).
    pub fn trace(&self, from: Side) -> Vec<(u64, u32)> {
        let place = |sent: &&Sent| (sent.at.as_nanos() / 1_000_000, (sent.seq - 1) / 1000);
        self.data(from).iter().map(place).collect()
    }
}

pub fn packet(segment: Segment) -> Input<Segment> {
    let (path, ecn, damage) = (PathId(0), Ecn::NotEct, Damage::None);
    Input::Packet { arrival: Arrival { path, ecn, damage }, packet: segment }
}

/// A router's word that it refused the segment of this sequence number.
pub fn refusal(mtu: u32, seq: u32) -> Input<Segment> {
    let quote = Quote {
        version: IpVersion::V4,
        ip_bytes: 1500,
        mark: 0,
        ttl: 64,
        dscp: 0,
        ecn: Ecn::NotEct,
        transport: talkspurt_proto::wire::tcp::quoted(seq),
    };
    Input::TooBig { path: PathId(0), mtu, quote }
}

pub fn virtually(len: u32) -> Payload {
    Payload::Virtual { offset: 0, len: len.into() }
}

/// One endpoint, and a peer played by the test. The peer's numbers begin at [`PEER`].
pub struct Alone {
    pub tcp: Tcp,
    pub now: Instant,
    pub sent: Vec<Segment>,
    pub events: Vec<Event>,
    pub count: u64,
    pub notes: Notes,
    pub wake: Option<Instant>,
    /// Our initial sequence number, once seen.
    pub isn: u32,
    /// The peer's timestamp clock, put on segments if set.
    pub clock: Option<u32>,
    /// The played peer offers selective acknowledgements.
    pub sack: bool,
    /// The ECN field of what the played peer sends, and of what was sent.
    pub ecn: Ecn,
    pub marks: Vec<Ecn>,
}

/// The played peer's initial sequence number: close to the wrap.
pub const PEER: u32 = u32::MAX - 2000;

impl Alone {
    pub fn client(config: &Config) -> Self {
        Self::new(Tcp::client(config, Rng::new(3, "alone")))
    }
    pub fn listener(config: &Config) -> Self {
        Self::new(Tcp::listener(config, Rng::new(3, "alone")))
    }
    fn new(tcp: Tcp) -> Self {
        Self {
            tcp,
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

    /// Hands in and gives back what was sent in answer.
    pub fn input(&mut self, input: Input<Segment>) -> Vec<Segment> {
        let before = self.sent.len();
        self.tcp.handle(self.now, input, &mut self.notes);
        loop {
            match self.tcp.poll(self.now, &mut self.notes) {
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

    pub fn arrive(&mut self, flags: Flags, seq: u32, ack: u32, len: u32) -> Vec<Segment> {
        self.segment(self.make(flags, seq, ack, len))
    }

    /// An acknowledgement of all below `ack`, with blocks of what came beyond, all relative.
    pub fn sack(&mut self, ack: u32, blocks: &[(u32, u32)]) -> Vec<Segment> {
        let isn = self.isn;
        let wire = |(left, right): &(u32, u32)| (isn.wrapping_add(*left), isn.wrapping_add(*right));
        let sack = SackBlocks::of(blocks.iter().map(wire));
        self.segment(Segment { sack, ..self.make(Flags::ACK, 1, ack, 0) })
    }

    pub fn syn(&self, flags: Flags, ack: u32) -> Segment {
        Segment {
            mss: Some(1000),
            sack_permitted: self.sack,
            timestamps: self.clock.map(|clock| (clock, 0)),
            ..self.make(flags, 0, ack, 0)
        }
    }

    /// Opened from this side; the log is empty afterwards.
    pub fn established(config: &Config) -> Self {
        let mut alone = Self::client(config);
        alone.input(Input::Open);
        let answer = alone.syn(Flags::SYN | Flags::ACK, 1);
        alone.segment(answer);
        assert_eq!(alone.tcp.state(), State::Established);
        alone.sent.clear();
        alone.marks.clear();
        alone.events.clear();
        alone
    }

    pub fn send(&mut self, bytes: u32) -> Vec<Segment> {
        self.input(Input::Frame(Frame::Data(virtually(bytes))))
    }

    /// Waits for the next deadline, and gives back what was sent then.
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
