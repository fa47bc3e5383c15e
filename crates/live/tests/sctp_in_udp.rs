//! SCTP inside UDP (RFC 6951) over the loopback interface in real time: an association opens, carries
//! messages both ways and closes; it continues when a NAT gives the client another UDP port.
//! Nothing here depends on the machine's speed.
#![cfg(target_os = "linux")]

#[path = "../src/bin/peer/rig/mod.rs"]
mod rig;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use talkspurt_live::{Encapsulation, Inside, Line, Setup, UdpPort};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::sctp::{Config, Sctp};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_record::pcapng::Direction;

use rig::{EchoConfig, EchoReport, EchoTest, Impaired, Impairing, drive};

const PACKETS: u64 = 50;
/// SCTP's own ports: the server's and the client's.
const PORTS: [u16; 2] = [5004, 40_004];

/// UDP ports that the server sent to, in order.
type SentTo = Arc<Mutex<Vec<u16>>>;

fn side(port: UdpPort, server: Option<u16>, sent_to: &SentTo) -> EchoReport {
    let at = |port_number| SocketAddr::new(port.local().ip(), port_number);
    let [here, there] = if server.is_some() { [PORTS[1], PORTS[0]] } else { PORTS };
    let mut setup = Setup::new(at(here), server.map(|_| at(there)));
    let (local_port, remote_port) = (port.local().port(), server.unwrap_or(0));
    setup.encapsulation = Some(Encapsulation { inside: Inside::Sctp, local_port, remote_port });
    let (sent_to, is_server) = (Arc::clone(sent_to), server.is_none());
    let tap = Box::new(move |_, direction, _, bytes: &[u8]| {
        if is_server && direction == Direction::Outbound {
            let udp = if bytes[0] >> 4 == 4 { 20 } else { 40 };
            let to = u16::from_be_bytes([bytes[udp + 2], bytes[udp + 3]]);
            sent_to.lock().expect("nobody panics").push(to);
        }
    });
    let path = Impairing { tap: Some(tap), ..Impairing::default() };
    let (config, client) = (Config::default(), server.is_some());
    let rng = Rng::new(1, if client { "client" } else { "server" });
    let endpoint = if client { Sctp::client(&config, rng) } else { Sctp::listener(&config, rng) };
    let mut line = Line::new(Impaired::new(port, path), setup);
    let mut app = EchoTest::new(EchoConfig {
        packets: PACKETS,
        bytes: 160,
        interval: Duration::from_millis(10),
        connection: true,
        opens: client,
        closes: client,
        quiet: Duration::from_secs(10),
        linger: Duration::from_millis(300),
        limit: Instant::ZERO + Duration::from_secs(60),
    });
    drive(&mut endpoint.over(line.version()), &mut app, &mut line, &mut ())
        .expect("loopback works");
    app.tally().clone()
}

fn all_came(client: &EchoReport, server: &EchoReport) {
    assert_eq!(client.events, ["Connected", "Closed"]);
    assert_eq!(server.events, ["Connected", "PeerClosed", "Closed"]);
    for tally in [client, server] {
        assert_eq!((tally.sent_packets, tally.distinct_packets), (PACKETS, PACKETS));
        assert_eq!((tally.reordered_packets, tally.foreign_packets), (0, 0));
    }
}

fn conversation(address: IpAddr) {
    let [a, b] = [(); 2].map(|()| UdpPort::bind((address, 0).into()).expect("a free port"));
    let (at_a, at_b) = (a.local().port(), b.local().port());
    let sent_to = SentTo::default();
    let theirs = Arc::clone(&sent_to);
    let server = thread::spawn(move || side(b, None, &theirs));
    let client = side(a, Some(at_b), &sent_to);
    all_came(&client, &server.join().expect("it ends"));
    // §5.4: every datagram goes where the client's came from.
    assert!(sent_to.lock().expect("nobody panics").iter().all(|port| *port == at_a));
}

#[test]
fn an_association_over_ipv4() {
    conversation(Ipv4Addr::LOCALHOST.into());
}

#[test]
fn an_association_over_ipv6() {
    conversation(Ipv6Addr::LOCALHOST.into());
}

/// A NAT between client and server that loses its table after this many datagrams of the client:
/// then it sends from another port, and no longer receives on the first.
fn translate(inner: &UdpSocket, outer: [&UdpSocket; 2], server: SocketAddr, over: &AtomicBool) {
    for socket in [inner, outer[0], outer[1]] {
        socket.set_nonblocking(true).expect("a socket");
    }
    let (mut client, mut count, mut bytes) = (None, 0, [0; 2048]);
    while !over.load(Ordering::Relaxed) {
        let face = outer[usize::from(count > 40)];
        if let Ok((length, from)) = inner.recv_from(&mut bytes) {
            (client, count) = (Some(from), count + 1);
            face.send_to(&bytes[..length], server).expect("loopback works");
        } else if let (Ok((length, _)), Some(client)) = (face.recv_from(&mut bytes), client) {
            inner.send_to(&bytes[..length], client).expect("loopback works");
        } else {
            thread::sleep(std::time::Duration::from_micros(200));
        }
    }
}

#[test]
fn section_5_4_the_association_follows_its_peer_to_another_port() {
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let bind = || UdpSocket::bind(address).expect("a free port");
    let (inner, first, second) = (bind(), bind(), bind());
    let port_of = |socket: &UdpSocket| socket.local_addr().expect("bound").port();
    let faces = [port_of(&first), port_of(&second)];
    let at_inner = port_of(&inner);
    let [a, b] = [(); 2].map(|()| UdpPort::bind(address).expect("a free port"));
    let at_server = b.local();
    let over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&over);
    let translator = thread::spawn(move || translate(&inner, [&first, &second], at_server, &until));
    let sent_to = SentTo::default();
    let theirs = Arc::clone(&sent_to);
    let server = thread::spawn(move || side(b, None, &theirs));
    let client = side(a, Some(at_inner), &sent_to);
    let server = server.join().expect("it ends");
    over.store(true, Ordering::Relaxed);
    translator.join().expect("it ends");
    all_came(&client, &server);
    let mut ports = sent_to.lock().expect("nobody panics").clone();
    ports.dedup();
    assert_eq!(ports, faces, "first the one, then the other, and never back");
}
