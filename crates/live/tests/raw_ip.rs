//! DCCP packets over raw IP sockets of the loopback interface: they arrive unchanged, including the
//! ECN field, over IPv4 and IPv6. Without the right to open raw sockets the tests say so and
//! pass.
#![cfg(target_os = "linux")]

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use talkspurt_live::{Line, RawIp, Setup};
use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::{self, Kind, Options, WireSeq};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Ecn, IpVersion, Packet, PacketBox, Payload};
use talkspurt_proto::time::Duration;
use talkspurt_proto::wire::dccp::PROTOCOL;

fn request() -> Body {
    Body::Dccp(PacketBox::new(dccp::Packet {
        seq: WireSeq::Extended(0x0001_0203_0405),
        ccval: 3,
        cscov: 0,
        kind: Kind::Request { service: 42 },
        options: Options::from_bytes(&[32, 4, 1, 2]),
        payload: Frame::Data(Payload::Real(b"hello".to_vec().into())),
    }))
}

fn label(version: IpVersion) -> Packet {
    Packet {
        ip_bytes: version.header_bytes() + 24 + 5,
        number: 7,
        ecn: Ecn::Ect0,
        dscp: 46,
        version,
        sent: talkspurt_proto::time::Instant::ZERO,
        ..Packet::default()
    }
}

/// A line at this port of the address, or nothing where the system grants no raw socket.
fn line(address: IpAddr, port: u16, remote: Option<u16>) -> Option<Line<RawIp>> {
    let at = |port| SocketAddr::new(address, port);
    match RawIp::open(address, PROTOCOL) {
        Ok(raw) => Some(Line::new(raw, Setup::new(at(port), remote.map(at)))),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            eprintln!("skipped: raw sockets need root or CAP_NET_RAW");
            None
        }
        Err(error) => panic!("a raw socket: {error}"),
    }
}

fn arrives_as_sent(address: IpAddr, ports: [u16; 2]) {
    let Some(mut here) = line(address, ports[0], Some(ports[1])) else { return };
    let Some(mut there) = line(address, ports[1], None) else { return };
    let packet = label(here.version());
    here.send(&packet, &request()).expect("loopback works");
    assert_eq!(here.unsent_packets(), 0);
    let until = there.now() + Duration::from_secs(10);
    let received = there.receive(Some(until)).expect("loopback works");
    let parsed = received.expect("the packet comes").expect("and is whole");
    assert_eq!((parsed.body, parsed.ecn, parsed.dscp), (request(), Ecn::Ect0, 46));
    // The first sender is the peer.
    assert_eq!(there.remote(), Some(SocketAddr::new(address, ports[0])));
}

#[test]
fn over_ipv4() {
    arrives_as_sent(Ipv4Addr::LOCALHOST.into(), [7001, 7002]);
}

#[test]
fn over_ipv6() {
    arrives_as_sent(Ipv6Addr::LOCALHOST.into(), [7001, 7002]);
}
