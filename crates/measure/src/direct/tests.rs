//! Sealed packets against everything that a network or an attacker can do to them.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use proptest::prelude::*;
use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::{self, Kind as DccpKind, Options, ResetCode, WireSeq};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Ecn, IpVersion, Packet, PacketBox, Payload};
use talkspurt_proto::sctp::{self, Chunk, Data, Init, Number, Sack};
use talkspurt_proto::wire::{self, Ends, Hints, Parsed};

use super::fuzz::{inside, sum};
use super::packet::{OpenedPacket, open, seal};
use super::{Direct, Protocol, ports};
use crate::seal::{Header, Kind, Opener, Sealer};

const HEADER: Header = Header { kind: Kind::Media, flow: 2, number: 9, sent: 1 << 41 };
const SPEECH: &[u8] = b"what is said in this call";

fn ends(ipv6: bool) -> Ends {
    let address = |last: u8| match ipv6 {
        false => IpAddr::from([192, 0, 2, last]),
        true => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last)]),
    };
    Ends { src: address(1), dst: address(2), src_port: 40_000, dst_port: 7862 }
}

fn written(ipv6: bool, body: &Body) -> Vec<u8> {
    let version = if ipv6 { IpVersion::V6 } else { IpVersion::V4 };
    let label = Packet { number: 9, ecn: Ecn::Ect0, dscp: 46, version, ..Packet::default() };
    let mut packet = Vec::new();
    wire::emit(&label, body, &ends(ipv6), &mut packet).expect("it has a form");
    packet
}

fn speech() -> Frame {
    Frame::Data(Payload::Real(SPEECH.to_vec().into()))
}

fn of_dccp(kind: DccpKind, payload: Frame) -> Body {
    let seq = WireSeq::Extended(0x0001_0203_0405);
    let options = Options::from_bytes(&[32, 4, 1, 2]);
    Body::Dccp(PacketBox::new(dccp::Packet { seq, ccval: 3, cscov: 0, kind, options, payload }))
}

fn of_sctp(chunks: Vec<Chunk>) -> Body {
    Body::Sctp(PacketBox::new(sctp::Packet { tag: 77, chunks }))
}

fn data(number: Number, tsn: u32) -> Chunk {
    Chunk::Data(Data {
        immediate: false,
        unordered: true,
        beginning: true,
        ending: true,
        tsn,
        stream: 1,
        number,
        ppid: 0,
        payload: speech(),
    })
}

/// Packets of every form: with and without data, of several chunks, and those that must be alone.
fn bodies() -> Vec<(Protocol, Body)> {
    let ack = WireSeq::Extended(3);
    let unknown = sctp::Parameter::Unknown { kind: 0x8008, value: Bytes::from_static(&[192]) };
    let init = Init {
        tag: 5,
        a_rwnd: 1 << 16,
        outbound: 2,
        inbound: 2,
        tsn: 6,
        parameters: vec![unknown],
    };
    let reset = DccpKind::Reset { ack, code: ResetCode(1), data: [0; 3] };
    let dccp = [
        of_dccp(DccpKind::Request { service: 42 }, speech()),
        of_dccp(DccpKind::Response { ack, service: 42 }, speech()),
        of_dccp(DccpKind::Data, speech()),
        of_dccp(DccpKind::Ack { ack }, Frame::default()),
        of_dccp(reset, Frame::default()),
    ];
    let sctp = [
        vec![Chunk::Init(init.clone())],
        vec![Chunk::InitAck(init)],
        vec![Chunk::CookieEcho(Bytes::from_static(b"cookie")), data(Number::Ssn(0), 6)],
        vec![Chunk::Sack(Sack::default()), data(Number::Ssn(1), 7), data(Number::Mid(1, 0), 8)],
        vec![Chunk::Abort { reflected: false, causes: Vec::new() }],
        vec![Chunk::Sack(Sack::default()), Chunk::Abort { reflected: true, causes: Vec::new() }],
        vec![Chunk::ShutdownComplete { reflected: true }],
    ];
    let dccp = dccp.map(|body| (Protocol::Dccp, body));
    dccp.into_iter().chain(sctp.map(|it| (Protocol::Sctp, of_sctp(it)))).collect()
}

/// Every packet as written, and sealed.
fn sealed() -> Vec<(Protocol, Vec<u8>, Vec<u8>)> {
    let mut sealer = Sealer::new(&[1; 32]);
    let mut all = Vec::new();
    for ipv6 in [false, true] {
        for (protocol, body) in bodies() {
            let packet = written(ipv6, &body);
            let sealed = seal(&mut sealer, protocol, &HEADER, &packet).expect("it is a packet");
            all.push((protocol, packet, sealed));
        }
    }
    all
}

/// The packet with other bytes behind its IP header, and lengths and checksums that fit them.
fn with(protocol: Protocol, packet: &[u8], inside: &[u8]) -> Option<Vec<u8>> {
    let start = if packet[0] >> 4 == 4 { 20 } else { 40 };
    let mut inside = inside.to_vec();
    let ends = ends(start == 40);
    sum(protocol, &mut inside, [ends.src, ends.dst])?;
    let mut whole = [&packet[..start], &inside].concat();
    if start == 20 {
        let (header, _) = wire::ipv4::Header::parse(packet).expect("it is one");
        header.write(&mut whole).expect("it is short");
    } else {
        let (header, _) = wire::ipv6::Header::parse(packet).expect("it is one");
        header.write(&mut whole).expect("it is short");
    }
    Some(whole)
}

fn opened(protocol: Protocol, packet: &[u8]) -> Option<OpenedPacket> {
    open(&mut Opener::new(&[1; 32]), protocol, packet)
}

#[test]
fn a_packet_is_genuine_and_opened_once_and_only_by_the_key() {
    for (protocol, packet, sealed) in sealed() {
        assert_eq!(sealed.len(), packet.len() + protocol.overhead());
        match (wire::parse(&sealed, Hints::default()), protocol) {
            (Ok(Parsed { body: Body::Dccp(_), ecn, dscp, .. }), Protocol::Dccp)
            | (Ok(Parsed { body: Body::Sctp(_), ecn, dscp, .. }), Protocol::Sctp) => {
                assert_eq!((ecn, dscp), (Ecn::Ect0, 46));
            }
            // SHUTDOWN COMPLETE, which has no parameters by the standard.
            (Err(_), Protocol::Sctp) if inside(&sealed)[12] == 14 => {}
            (read, _) => panic!("{read:?}"),
        }
        assert!(!sealed.windows(SPEECH.len()).any(|part| part == SPEECH));
        let mut opener = Opener::new(&[1; 32]);
        let first = open(&mut opener, protocol, &sealed).expect("it is authentic");
        assert_eq!(first, OpenedPacket { header: HEADER, src_port: 40_000, packet });
        assert_eq!(open(&mut opener, protocol, &sealed), None, "a replay");
        assert_eq!(open(&mut Opener::new(&[2; 32]), protocol, &sealed), None);
    }
}

/// RFC 9260 §3.3.7: what is bundled with ABORT is in front of it. RFC 4820 §4: Padding is in INIT only.
#[test]
fn the_seal_of_sctp_is_where_the_standards_permit_it() {
    let mut found = Vec::new();
    for (protocol, _, sealed) in sealed().into_iter().filter(|it| it.0 == Protocol::Sctp) {
        assert_eq!(protocol, Protocol::Sctp);
        let chunks = &inside(&sealed)[12..];
        let parameter = |of: &[u8]| u16::from_be_bytes([of[of.len() - 44], of[of.len() - 43]]);
        let (mut kinds, mut at) = (Vec::new(), 0);
        while at < chunks.len() {
            kinds.push(chunks[at]);
            let length = usize::from(u16::from_be_bytes([chunks[at + 2], chunks[at + 3]]));
            if [1, 2, 14].contains(&chunks[at]) {
                kinds.extend(parameter(&chunks[..length]).to_be_bytes());
            }
            at += length.next_multiple_of(4);
        }
        found.push(kinds);
    }
    let expected: [&[u8]; 7] = [
        &[1, 0x80, 0x05],
        &[2, 0xbf, 0xfe],
        &[10, 0, 0x84],
        &[3, 0, 64, 0x84],
        &[0x84, 6],
        &[3, 0x84, 6],
        &[14, 0xbf, 0xfe],
    ];
    assert_eq!(found, [expected, expected].concat());
}

/// An attacker makes the checksums fit.
#[test]
fn every_bit_but_those_of_ports_and_checksums_is_authenticated() {
    for (protocol, _, sealed) in sealed() {
        let checksum = if protocol == Protocol::Dccp { 6..8 } else { 8..12 };
        for at in 0..inside(&sealed).len() {
            for bit in 0..8 {
                let mut bytes = inside(&sealed).to_vec();
                bytes[at] ^= 1 << bit;
                let Some(tampered) = with(protocol, &sealed, &bytes) else { continue };
                let is_open = at < 4 || checksum.contains(&at);
                let found = opened(protocol, &tampered);
                assert_eq!(found.is_some(), is_open, "{protocol:?} {at} {bit}");
            }
        }
    }
}

#[test]
fn a_truncated_or_longer_packet_is_refused() {
    for (protocol, packet, sealed) in sealed() {
        let whole = inside(&sealed);
        for length in 0..whole.len() {
            let short = with(protocol, &sealed, &whole[..length]);
            assert_eq!(short.and_then(|short| opened(protocol, &short)), None, "{length}");
            assert_eq!(opened(protocol, &sealed[..length]), None);
        }
        let longer = with(protocol, &sealed, &[whole, &[0; 4]].concat());
        assert_eq!(longer.and_then(|it| opened(protocol, &it)), None);
        assert_eq!(opened(protocol, &packet), None, "one without a seal");
    }
}

/// What honest ends send, as seeds of the fuzz target `direct` in the folder `FUZZ_SEEDS`, if there is one:
/// to be sealed, and sealed already.
#[test]
fn genuine_packets() {
    for (number, (protocol, packet, sealed)) in sealed().into_iter().enumerate() {
        let how = u8::from(protocol == Protocol::Sctp) | u8::from(packet[0] >> 4 == 6) << 1;
        let change = [0, number as u8, 3];
        let scripts = [
            [&[how | 0b1100], &change[..], inside(&packet)].concat(),
            [&[how | 0b1000], inside(&sealed)].concat(),
        ];
        for (form, script) in ["plain", "sealed"].into_iter().zip(scripts) {
            crate::fuzz::packet(&script);
            if let Ok(folder) = std::env::var("FUZZ_SEEDS") {
                let name = format!("{folder}/genuine-{number:02}-{form}");
                std::fs::write(name, script).expect("a folder");
            }
        }
    }
}

#[test]
fn a_packet_with_the_ports_of_a_nat_is_opened() {
    for (protocol, _, sealed) in sealed() {
        let mut bytes = inside(&sealed).to_vec();
        bytes[..2].copy_from_slice(&555_u16.to_be_bytes());
        let passed = with(protocol, &sealed, &bytes).expect("it is a packet");
        assert_eq!(opened(protocol, &passed).map(|it| it.src_port), Some(555));
    }
}

/// Whoever holds a packet back and sends it from another port after the next one does not become the other end.
#[test]
fn only_a_packet_newer_than_all_before_moves_the_port() {
    let at = |last: u8, port: u16| SocketAddr::from(([192, 0, 2, last], port));
    let mut sealer = Sealer::new(&[1; 32]);
    let mut direct = Direct {
        sockets: Vec::new(),
        sealer: Sealer::new(&[2; 32]),
        opener: Opener::new(&[1; 32]),
        local: at(2, 7862),
        remote: None,
        client: false,
        next: 0,
        flows: vec![Some((Protocol::Sctp, None))],
    };
    direct.meet(at(1, 40_000));
    let header = Header { flow: 0, ..HEADER };
    let packet = written(false, &of_sctp(vec![data(Number::Ssn(0), 6)]));
    let sealed = [(); 3]
        .map(|()| seal(&mut sealer, Protocol::Sctp, &header, &packet).expect("it is a packet"));
    for (number, port, moved) in [(1, 555, 555), (0, 666, 555), (1, 777, 555), (2, 888, 888)] {
        let mut bytes = inside(&sealed[number]).to_vec();
        bytes[..2].copy_from_slice(&u16::to_be_bytes(port));
        let passed = with(Protocol::Sctp, &sealed[number], &bytes).expect("it is a packet");
        let came = direct.open(Protocol::Sctp, &passed);
        assert_eq!(came.is_some(), port != 777, "a replay is refused");
        assert_eq!(direct.of(0).map(|(_, ends)| ends.dst_port), Some(moved));
    }
}

#[test]
fn ports_are_distinct_and_never_the_servers() {
    assert_eq!(ports(40_000, 40_001, 3).collect::<Vec<_>>(), [40_000, 40_002, 40_003]);
    assert_eq!(ports(65_534, 1024, 4).collect::<Vec<_>>(), [65_534, 65_535, 1025, 1026]);
}

proptest! {
    /// Whatever comes with right checksums: nothing is opened, and nothing panics.
    #[test]
    fn noise_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..120), of in 0_usize..24) {
        let (protocol, _, sealed) = sealed().swap_remove(of);
        prop_assert_eq!(opened(protocol, &bytes), None);
        if let Some(noise) = with(protocol, &sealed, &bytes) {
            prop_assert_eq!(opened(protocol, &noise), None);
        }
        // A genuine beginning with noise behind it.
        let start = bytes.len().min(inside(&sealed).len());
        let mixed = [&inside(&sealed)[..inside(&sealed).len() - start], &bytes].concat();
        if let Some(noise) = with(protocol, &sealed, &mixed) && mixed != inside(&sealed) {
            prop_assert_eq!(opened(protocol, &noise), None);
        }
    }
}
