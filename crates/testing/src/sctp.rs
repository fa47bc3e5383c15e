//! Pairs of SCTP endpoints. Every packet is written as bytes and read again on its way.

use bytes::Bytes;
use talkspurt_proto::endpoint::{Arrival, Endpoint, Input, Output};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Damage, Ecn, PacketBox, PathId, Payload};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::sctp::{
    Chunk, Config, Data, Delivered, Init, Packet, Sack, Sctp, Sending, State,
};
use talkspurt_proto::time::Instant;
use talkspurt_proto::units::Size;
use talkspurt_proto::wire::{self, Ends, Hints};

use crate::pair::Logged;
pub use crate::{End, Notes, Side, Side::Client, Side::Server, Verdict, at, ms};

/// Two SCTP endpoints.
pub type Pair = crate::Pair<Sctp>;
/// A packet in the log.
pub type Sent = crate::Sent<Entry>;

/// A packet in the log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The packet.
    pub packet: Packet,
}

impl Entry {
    /// Its DATA chunks.
    pub fn data(&self) -> impl Iterator<Item = &Data> {
        self.packet.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data),
            _ => None,
        })
    }
    /// True if there is a DATA chunk.
    pub fn has_data(&self) -> bool {
        self.data().next().is_some()
    }
    /// Its SACK.
    pub fn sack(&self) -> Option<&Sack> {
        self.packet.chunks.iter().find_map(|chunk| match chunk {
            Chunk::Sack(sack) => Some(sack),
            _ => None,
        })
    }
    /// True if there is a chunk of this type.
    pub fn has(&self, kind: u8) -> bool {
        self.packet.chunks.iter().any(|chunk| chunk.number() == kind)
    }
    /// The types of its chunks.
    pub fn kinds(&self) -> Vec<u8> {
        self.packet.chunks.iter().map(Chunk::number).collect()
    }
}

impl Logged for Sctp {
    type Entry = Entry;
    type Memory = ();
    type Delivered = Delivered;
    const HANDSHAKE: u64 = 4;

    fn entry((): &mut (), _: Side, packet: &PacketBox<Packet>) -> Entry {
        Entry { packet: through_bytes(packet) }
    }
    fn arrives(packet: &PacketBox<Packet>) -> PacketBox<Packet> {
        PacketBox::new(through_bytes(packet))
    }
    fn ip_bytes(packet: &PacketBox<Packet>) -> u32 {
        20 + packet.wire_bytes() as u32
    }
    fn delivered(&self, _: u64, _: &Frame) -> Delivered {
        Sctp::delivered(self)
    }
    fn is_open(&self) -> bool {
        self.state() == State::Established
    }
}

/// Chunks of 1000 bytes of user data fill a packet, and every packet is acknowledged.
#[must_use]
pub fn plain() -> Config {
    Config { mtu: Size::from_bytes(1048), sack_frequency: 1, ..Config::default() }
}

impl End<Sctp> {
    /// The first byte of each message received: the number of the message.
    #[must_use]
    pub fn numbers(&self) -> Vec<u8> {
        self.received.iter().map(|(_, frame)| bytes_of(frame)[0]).collect()
    }
}

/// The bytes of a frame on the wire.
pub fn bytes_of(frame: &Frame) -> Vec<u8> {
    let mut out = Vec::new();
    wire::emit_frame(frame, &mut out);
    out
}

/// A message of this length; its first byte is its number.
pub fn message(number: u8, len: usize) -> Frame {
    let bytes: Vec<u8> = (0..len).map(|i| number.wrapping_add((i % 251) as u8)).collect();
    Frame::Data(Payload::Real(Bytes::from(bytes)))
}

impl Pair {
    /// Two endpoints with the same configuration and one path.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self::on_paths(config, config, 1)
    }

    /// Two endpoints with several paths.
    #[must_use]
    pub fn on_paths(client: &Config, server: &Config, paths: u8) -> Self {
        Self::between(
            Sctp::client(client, Rng::new(1, "client")).on_paths(paths),
            Sctp::listener(server, Rng::new(1, "server")).on_paths(paths),
        )
    }

    /// An established association.
    #[must_use]
    pub fn connected(config: &Config) -> Self {
        let mut pair = Self::new(config);
        pair.connect();
        pair
    }

    /// Drops the packets with data of `from` with these numbers, counted from 1 from now on.
    pub fn drop_data(&mut self, from: Side, numbers: &[usize]) {
        self.drop_counted(from, numbers, Entry::has_data);
    }

    /// Sends a message.
    pub fn send(&mut self, side: Side, number: u8, len: usize) {
        self.input(side, Input::Frame(message(number, len)));
    }

    /// Sends a message with these parameters; returns whether it was accepted.
    pub fn send_how(&mut self, side: Side, number: u8, len: usize, how: &Sending) -> bool {
        let now = self.now;
        let taken = self.end(side).endpoint.send(now, message(number, len), how);
        self.settle(side);
        taken
    }

    /// Delivers a handmade packet as if the other side had sent it.
    pub fn forge(&mut self, to: Side, tag: u32, chunks: Vec<Chunk>) {
        self.input(to, packet(PathId(0), Packet { tag, chunks }));
    }

    /// The packets of an end.
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

/// The arrival of a packet on a path.
pub fn packet(path: PathId, packet: Packet) -> Input<PacketBox<Packet>> {
    Input::Packet {
        arrival: Arrival { path, ecn: Ecn::NotEct, damage: Damage::None },
        packet: PacketBox::new(packet),
    }
}

/// The packet after conversion to bytes and back.
pub fn through_bytes(packet: &Packet) -> Packet {
    let address = |last| std::net::IpAddr::from([10, 0, 0, last]);
    let ends = Ends { src: address(1), dst: address(2), src_port: 1, dst_port: 2 };
    let mut bytes = Vec::new();
    wire::sctp::emit(packet, &ends, &mut bytes).expect("fits");
    let read = wire::sctp::parse(&bytes, ends.src, ends.dst, Hints::default());
    read.expect("a sound packet").1
}

/// The packets that one end sends in answer to an input.
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
