//! Two ends of an SCTP association and the paths between them, in virtual time; and one end alone,
//! talked to by hand-made packets. Every packet is written as bytes and read again on its way.

use bytes::Bytes;
use talkspurt_proto::endpoint::{Arrival, Endpoint, Event, Input, Output};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Damage, Ecn, PacketBox, PathId, Payload};
use talkspurt_proto::probe::{Note, Place, Probe, RxError, Topic};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::sctp::{
    Chunk, Config, Data, Delivered, Init, Packet, Sack, Sctp, Sending, State,
};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Size;
use talkspurt_proto::wire::{self, Ends, Hints};

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
pub const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// Chunks of 1000 bytes of user data fill a packet, and every packet is acknowledged.
pub fn plain() -> Config {
    Config { mtu: Size::from_bytes(1048), sack_frequency: 1, ..Config::default() }
}

#[derive(Default)]
pub struct Notes(pub Vec<RxError>);

impl Probe for Notes {
    fn wants(&self, _: Topic) -> bool {
        true
    }
    fn record(&mut self, _: Instant, _: Place, note: &Note<'_>) {
        if let Note::RxError(rx_error) = note {
            self.0.push(*rx_error);
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
    pub sctp: Sctp,
    pub events: Vec<(Instant, Event)>,
    /// Messages received, and when.
    pub received: Vec<(Instant, Frame)>,
    /// What else is known of each.
    pub delivered: Vec<Delivered>,
    pub notes: Notes,
    wake: Option<Instant>,
}

impl End {
    pub fn new(sctp: Sctp) -> Self {
        let (events, received, notes) = (Vec::new(), Vec::new(), Notes::default());
        Self { sctp, events, received, delivered: Vec::new(), notes, wake: None }
    }
    pub fn saw(&self, event: Event) -> bool {
        self.events.iter().any(|(_, seen)| *seen == event)
    }
    /// The first byte of each message received: what tests number them by.
    pub fn numbers(&self) -> Vec<u8> {
        self.received.iter().map(|(_, frame)| bytes_of(frame)[0]).collect()
    }
}

pub fn bytes_of(frame: &Frame) -> Vec<u8> {
    let mut out = Vec::new();
    wire::emit_frame(frame, &mut out);
    out
}

/// A message of so many bytes, the first of which is its number.
pub fn message(number: u8, len: usize) -> Frame {
    let bytes: Vec<u8> = (0..len).map(|i| number.wrapping_add((i % 251) as u8)).collect();
    Frame::Data(Payload::Real(Bytes::from(bytes)))
}

/// A packet as it was put on the wire.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Instant,
    pub from: Side,
    pub path: PathId,
    pub packet: Packet,
    pub dropped: bool,
}

impl Sent {
    pub fn data(&self) -> impl Iterator<Item = &Data> {
        self.packet.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data),
            _ => None,
        })
    }
    pub fn has_data(&self) -> bool {
        self.data().next().is_some()
    }
    pub fn sack(&self) -> Option<&Sack> {
        self.packet.chunks.iter().find_map(|chunk| match chunk {
            Chunk::Sack(sack) => Some(sack),
            _ => None,
        })
    }
    pub fn has(&self, kind: u8) -> bool {
        self.packet.chunks.iter().any(|chunk| chunk.number() == kind)
    }
    pub fn kinds(&self) -> Vec<u8> {
        self.packet.chunks.iter().map(Chunk::number).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Arrive,
    Drop,
    Late(Duration),
    Twice,
}

type Wire = Box<dyn FnMut(&Sent) -> Verdict>;

pub struct Pair {
    pub now: Instant,
    pub client: End,
    pub server: End,
    pub log: Vec<Sent>,
    pub delay: Duration,
    wire: Wire,
    flying: Vec<(Instant, usize, Side, PathId, Packet)>,
    order: usize,
}

impl Pair {
    pub fn new(config: &Config) -> Self {
        Self::on_paths(config, config, 1)
    }

    pub fn on_paths(client: &Config, server: &Config, paths: u8) -> Self {
        Self {
            now: Instant::ZERO,
            client: End::new(Sctp::client(client, Rng::new(1, "client")).on_paths(paths)),
            server: End::new(Sctp::listener(server, Rng::new(1, "server")).on_paths(paths)),
            log: Vec::new(),
            delay: ms(50),
            wire: Box::new(|_| Verdict::Arrive),
            flying: Vec::new(),
            order: 0,
        }
    }

    pub fn connected(config: &Config) -> Self {
        let mut pair = Self::new(config);
        pair.connect();
        pair
    }

    pub fn end(&mut self, side: Side) -> &mut End {
        match side {
            Client => &mut self.client,
            Server => &mut self.server,
        }
    }

    pub fn on_wire(&mut self, wire: impl FnMut(&Sent) -> Verdict + 'static) {
        self.wire = Box::new(wire);
    }

    /// Drops the packets with data of `from` with these numbers, counted from 1 from now on.
    pub fn drop_data(&mut self, from: Side, numbers: &[usize]) {
        let (numbers, mut count) = (numbers.to_vec(), 0);
        self.on_wire(move |sent| {
            if sent.from != from || !sent.has_data() {
                return Verdict::Arrive;
            }
            count += 1;
            if numbers.contains(&count) { Verdict::Drop } else { Verdict::Arrive }
        });
    }

    pub fn input(&mut self, side: Side, input: Input<PacketBox<Packet>>) {
        let now = self.now;
        let end = self.end(side);
        end.sctp.handle(now, input, &mut end.notes);
        self.settle(side);
    }

    pub fn connect(&mut self) {
        self.input(Client, Input::Open);
        self.drive_for(self.delay * 4);
        assert_eq!(self.client.sctp.state(), State::Established);
        assert_eq!(self.server.sctp.state(), State::Established);
    }

    pub fn send(&mut self, side: Side, number: u8, len: usize) {
        self.input(side, Input::Frame(message(number, len)));
    }

    pub fn send_how(&mut self, side: Side, number: u8, len: usize, how: &Sending) -> bool {
        let now = self.now;
        let taken = self.end(side).sctp.send(now, message(number, len), how);
        self.settle(side);
        taken
    }

    /// A packet made by hand, as if the other side had sent it.
    pub fn forge(&mut self, to: Side, tag: u32, chunks: Vec<Chunk>) {
        self.input(to, packet(PathId(0), Packet { tag, chunks }));
    }

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
        let flying = self.flying.iter().map(|flight| flight.0).min();
        [flying, self.client.wake, self.server.wake].into_iter().flatten().min()
    }

    fn step(&mut self) {
        let first = (0..self.flying.len()).min_by_key(|i| (self.flying[*i].0, self.flying[*i].1));
        if let Some(i) = first.filter(|i| self.flying[*i].0 <= self.now) {
            let (_, _, to, path, body) = self.flying.remove(i);
            return self.input(to, packet(path, body));
        }
        for side in [Client, Server] {
            let now = self.now;
            if self.end(side).wake.is_some_and(|wake| wake <= now) {
                return self.input(side, Input::Timeout);
            }
        }
    }

    pub fn settle(&mut self, side: Side) {
        let now = self.now;
        for turn in 0.. {
            assert!(turn < 100_000, "an endpoint never comes to rest");
            let end = self.end(side);
            match end.sctp.poll(now, &mut end.notes) {
                Output::Transmit(transmit) => {
                    let packet = transmit.packet;
                    self.put(side, transmit.path, packet.into_inner());
                }
                Output::Deliver(frame) => {
                    end.received.push((now, frame));
                    end.delivered.push(end.sctp.delivered());
                }
                Output::Event(event) => end.events.push((now, event)),
                Output::Idle { until } => {
                    assert!(until.is_none_or(|until| until >= now), "deadlines lie ahead");
                    // A deadline that has come is asked for once more, and then must be gone.
                    end.wake = until;
                    return;
                }
            }
        }
    }

    fn put(&mut self, from: Side, path: PathId, packet: Packet) {
        let packet = through_bytes(&packet);
        let mut sent = Sent { at: self.now, from, path, packet: packet.clone(), dropped: false };
        let verdict = (self.wire)(&sent);
        sent.dropped = verdict == Verdict::Drop;
        self.log.push(sent);
        let arrives = self.now + self.delay;
        let copies = match verdict {
            Verdict::Drop => vec![],
            Verdict::Arrive => vec![arrives],
            Verdict::Late(by) => vec![arrives + by],
            Verdict::Twice => vec![arrives, arrives],
        };
        for arrives in copies {
            self.order += 1;
            self.flying.push((arrives, self.order, from.other(), path, packet.clone()));
        }
    }

    pub fn sent_by(&self, side: Side) -> impl Iterator<Item = &Sent> {
        self.log.iter().filter(move |sent| sent.from == side)
    }
    /// Tags of packets to the client and to the server.
    pub fn tags(&self) -> (u32, u32) {
        let init = |kind: u8| {
            let sent = self.log.iter().find(|sent| sent.has(kind)).expect("a handshake");
            match &sent.packet.chunks[0] {
                Chunk::Init(Init { tag, .. }) | Chunk::InitAck(Init { tag, .. }) => *tag,
                _ => panic!("no INIT"),
            }
        };
        (init(1), init(2))
    }
    /// The Initial TSN of a side.
    pub fn first_tsn(&self, side: Side) -> u32 {
        let kind = if side == Client { 1 } else { 2 };
        let sent = self.log.iter().find(|sent| sent.has(kind)).expect("a handshake");
        match &sent.packet.chunks[0] {
            Chunk::Init(init) | Chunk::InitAck(init) => init.tsn,
            _ => panic!("no INIT"),
        }
    }
}

pub fn packet(path: PathId, packet: Packet) -> Input<PacketBox<Packet>> {
    Input::Packet {
        arrival: Arrival { path, ecn: Ecn::NotEct, damage: Damage::None },
        packet: PacketBox::new(packet),
    }
}

/// What the packet is after a way as bytes.
pub fn through_bytes(packet: &Packet) -> Packet {
    let address = |last| std::net::IpAddr::from([10, 0, 0, last]);
    let ends = Ends { src: address(1), dst: address(2), src_port: 1, dst_port: 2 };
    let mut bytes = Vec::new();
    wire::sctp::emit(packet, &ends, &mut bytes).expect("fits");
    let read = wire::sctp::parse(&bytes, ends.src, ends.dst, Hints::default());
    read.expect("a sound packet").1
}

/// One end alone: what it sends in answer to an input.
pub fn answers(sctp: &mut Sctp, now: Instant, input: Input<PacketBox<Packet>>) -> Vec<Packet> {
    sctp.handle(now, input, &mut ());
    let mut sent = Vec::new();
    loop {
        match sctp.poll(now, &mut ()) {
            Output::Transmit(transmit) => {
                let packet = transmit.packet;
                sent.push(packet.into_inner());
            }
            Output::Idle { .. } => return sent,
            Output::Deliver(_) | Output::Event(_) => {}
        }
    }
}
