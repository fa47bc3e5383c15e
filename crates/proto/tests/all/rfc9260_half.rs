//! A rig: one end of an SCTP association, and the packets a test hands to it.

use bytes::Bytes;
use talkspurt_proto::endpoint::Input;
use talkspurt_proto::packet::PacketBox;
use talkspurt_proto::packet::PathId;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::sctp::{Chunk, Config, Data, Init, Number, Packet, Parameter, Sctp};
use talkspurt_testing::sctp::{answers, at, packet};

pub fn listener(config: &Config) -> Sctp {
    Sctp::listener(config, Rng::new(1, "server"))
}

pub fn init(tag: u32) -> Init {
    Init { tag, a_rwnd: 100_000, outbound: 10, inbound: 10, tsn: 1000, parameters: Vec::new() }
}

pub fn from(chunks: Vec<Chunk>, tag: u32) -> Input<PacketBox<Packet>> {
    packet(PathId(0), Packet { tag, chunks })
}

pub fn data(tsn: u32, bytes: &'static [u8]) -> Data {
    Data {
        immediate: false,
        unordered: false,
        beginning: true,
        ending: true,
        tsn,
        stream: 0,
        number: Number::Ssn(0),
        ppid: 0,
        payload: talkspurt_proto::frame::Frame::Data(talkspurt_proto::packet::Payload::Real(
            Bytes::from_static(bytes),
        )),
    }
}

/// A listener that an INIT with this tag was sent to: its answer, and the cookie in it.
pub fn invited(server: &mut Sctp, tag: u32) -> (Init, Bytes) {
    let sent = answers(server, at(0), from(vec![Chunk::Init(init(tag))], 0));
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].tag, tag);
    let Chunk::InitAck(ack) = &sent[0].chunks[0] else { panic!("no INIT ACK") };
    let cookie = ack.parameters.iter().find_map(|parameter| match parameter {
        Parameter::StateCookie(cookie) => Some(cookie.clone()),
        _ => None,
    });
    (ack.clone(), cookie.expect("a cookie"))
}
