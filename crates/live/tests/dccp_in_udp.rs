//! DCCP inside UDP (RFC 6773) over the loopback interface in real time: connections with each CCID,
//! messages both ways, closed by either side. The endpoint is the one that simulations run. Nothing
//! here depends on the machine's speed: sides wait with long limits.
#![cfg(target_os = "linux")]

#[path = "../src/bin/peer/rig/mod.rs"]
mod rig;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use talkspurt_live::{Encapsulation, Inside, Line, Setup, UdpPort};
use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::options::Opt;
use talkspurt_proto::dccp::{self, Ccid, Config, Dccp, Kind, Options, ResetCode, Service, WireSeq};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Packet, PacketBox, Payload};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_record::pcapng::Direction;

use rig::{EchoConfig, EchoReport, EchoTest, Impaired, Impairing, drive};

const PACKETS: u64 = 50;
/// DCCP's own ports: the server's and the client's.
const PORTS: [u16; 2] = [5004, 40_004];

fn terms(opens: bool, closes: bool) -> EchoConfig {
    EchoConfig {
        packets: PACKETS,
        bytes: 160,
        interval: Duration::from_millis(10),
        connection: true,
        opens,
        closes,
        quiet: Duration::from_secs(10),
        linger: Duration::from_millis(300),
        limit: Instant::ZERO + Duration::from_secs(60),
    }
}

/// Datagrams of a run: IP packets as sent by one side.
type Sent = Arc<Mutex<Vec<Vec<u8>>>>;

fn side(
    port: UdpPort,
    server: Option<u16>,
    terms: EchoConfig,
    config: &Config,
    sent: &Sent,
) -> EchoReport {
    let at = |port_number| SocketAddr::new(port.local().ip(), port_number);
    // A server knows neither of the client's ports; a client knows both of the server's.
    let [here, there] = if server.is_some() { [PORTS[1], PORTS[0]] } else { PORTS };
    let mut setup = Setup::new(at(here), server.map(|_| at(there)));
    let remote_port = server.unwrap_or(0);
    setup.encapsulation =
        Some(Encapsulation { inside: Inside::Dccp, local_port: port.local().port(), remote_port });
    let sent = Arc::clone(sent);
    let tap = Box::new(move |_, direction, _, bytes: &[u8]| {
        if direction == Direction::Outbound {
            sent.lock().expect("nobody panics").push(bytes.to_vec());
        }
    });
    let path = Impairing { tap: Some(tap), ..Impairing::default() };
    let rng = Rng::new(1, if server.is_some() { "client" } else { "server" });
    let mut line = Line::new(Impaired::new(port, path), setup);
    let endpoint =
        if server.is_some() { Dccp::client(config, rng) } else { Dccp::listener(config, rng) };
    let mut app = EchoTest::new(terms);
    drive(&mut endpoint.over(line.version()).under(8), &mut app, &mut line, &mut ())
        .expect("loopback works");
    app.tally().clone()
}

fn conversation(address: impl Into<IpAddr>, config: &Config, server_closes: bool) -> Vec<Vec<u8>> {
    let address = SocketAddr::new(address.into(), 0);
    let [a, b] = [(); 2].map(|()| UdpPort::bind(address).expect("a port of the interface"));
    let at_b = b.local().port();
    let sent = Sent::default();
    let (their_sent, their_config) = (Arc::clone(&sent), config.clone());
    let server = thread::spawn(move || {
        side(b, None, terms(false, server_closes), &their_config, &their_sent)
    });
    let client = side(a, Some(at_b), terms(true, !server_closes), config, &sent);
    let server = server.join().expect("it ends");
    for (side, tally, closed) in
        [("client", client, server_closes), ("server", server, !server_closes)]
    {
        let told: &[_] = if closed { &["PeerClosed"] } else { &[] };
        assert_eq!(tally.events, [&["Connected"], told, &["Closed"]].concat(), "{side}");
        assert_eq!((tally.sent_packets, tally.distinct_packets), (PACKETS, PACKETS), "{side}");
        assert_eq!((tally.received_bytes, tally.foreign_packets), (PACKETS * 160, 0), "{side}");
        assert!(!tally.gave_up, "{side}");
    }
    Arc::into_inner(sent).expect("both sides ended").into_inner().expect("nobody panics")
}

#[test]
fn ccid_2_over_ipv4_closed_by_the_client() {
    let sent = conversation(Ipv4Addr::LOCALHOST, &Config::new(Ccid::Two), false);
    // RFC 6773 §3.3: in every datagram, behind IP and UDP header, DCCP's checksum is zero.
    assert!(sent.len() > 100);
    assert!(sent.iter().all(|packet| packet[9] == 17 && packet[20 + 8 + 6..][..2] == [0, 0]));
}

#[test]
fn ccid_3_over_ipv4_closed_by_the_server() {
    conversation(Ipv4Addr::LOCALHOST, &Config::new(Ccid::Three), true);
}

#[test]
fn ccid_3_one_way_and_2_the_other_over_ipv6() {
    let config = Config { ccid_back: Some(Ccid::Two), ..Config::new(Ccid::Three) };
    conversation(Ipv6Addr::LOCALHOST, &config, false);
}

/// A line to the server at this UDP port, with the DCCP ports of its client, from a separate UDP
/// port.
fn stray(server_port: u16) -> Line<UdpPort> {
    let port = UdpPort::bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port of the interface");
    let at = |number| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), number);
    let local_port = port.local().port();
    let mut setup = Setup::new(at(PORTS[1]), Some(at(PORTS[0])));
    setup.encapsulation =
        Some(Encapsulation { inside: Inside::Dccp, local_port, remote_port: server_port });
    Line::new(port, setup)
}

/// Sends a packet without a connection.
fn disturb(stray: &mut Line<UdpPort>) {
    send(stray, 77, Kind::Data, Options::default(), b"stray");
}

fn send(stray: &mut Line<UdpPort>, seq: u64, kind: Kind, options: Options, payload: &[u8]) {
    let packet = dccp::Packet {
        seq: WireSeq::Extended(seq),
        ccval: 0,
        cscov: 0,
        kind,
        options,
        payload: Frame::Data(Payload::Real(payload.to_vec().into())),
    };
    let bytes = 20 + 8 + packet.header_bytes() + payload.len();
    let body = Body::Dccp(PacketBox::new(packet));
    let label = Packet { ip_bytes: bytes as u32, version: stray.version(), ..Packet::default() };
    stray.send(&label, &body).expect("loopback works");
}

/// What comes next.
fn answer(line: &mut Line<UdpPort>) -> dccp::Packet {
    let until = line.now() + Duration::from_secs(10);
    let received = line.receive(Some(until)).expect("loopback works");
    match received.expect("an answer comes").expect("and is whole").body {
        Body::Dccp(packet) => packet.into_inner(),
        other => panic!("{other:?}"),
    }
}

/// The Reset that comes next.
fn refusal(line: &mut Line<UdpPort>) -> ResetCode {
    match answer(line).kind {
        Kind::Reset { code, .. } => code,
        other => panic!("{other:?}"),
    }
}

/// RFC 4340 §8.1.4, RFC 6773 §3.8: an Init Cookie proves its holder's address only if it is invalid
/// for others. The second client has the first one's DCCP ports and cookie, but another UDP
/// port.
#[test]
fn a_cookie_opens_nothing_for_another_caller() {
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let listening = UdpPort::bind(address).expect("a port of the interface");
    let server_port = listening.local().port();
    let config = Config { init_cookie: true, ..Config::new(Ccid::Two) };
    let service = config.service.0;
    let server = thread::spawn(move || {
        side(listening, None, terms(false, false), &config, &Sent::default())
    });

    let [mut caller, mut other] = [(); 2].map(|()| stray(server_port));
    send(&mut caller, 100, Kind::Request { service }, Options::default(), b"");
    let response = answer(&mut caller);
    assert!(matches!(response.kind, Kind::Response { .. }), "{response:?}");
    let mut shown = Options::default();
    for option in response.options.iter().filter_map(Result::ok) {
        if matches!(option, Opt::InitCookie(_)) {
            shown.push(option);
        }
    }
    assert!(!shown.as_bytes().is_empty(), "{response:?}");
    let ack = Kind::Ack { ack: response.seq };
    send(&mut other, 101, ack, shown.clone(), b"");
    assert_eq!(refusal(&mut other), ResetCode::BAD_INIT_COOKIE);

    send(&mut caller, 101, ack, shown, b"");
    send(&mut caller, 102, Kind::Close { ack: response.seq }, Options::default(), b"");
    let code = loop {
        match answer(&mut caller).kind {
            Kind::Reset { code, .. } => break code,
            kind => assert!(kind.is_data() || matches!(kind, Kind::Ack { .. }), "{kind:?}"),
        }
    };
    assert_eq!(code, ResetCode::CLOSED);
    assert_eq!(server.join().expect("it ends").events, ["Connected", "PeerClosed", "Closed"]);
}

#[test]
fn strangers_and_refused_clients_neither_bar_a_client_nor_divert_its_connection() {
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let bind = move || UdpPort::bind(address).expect("a port of the interface");
    let (listening, config) = (bind(), Config::new(Ccid::Two));
    let (server_port, server_config) = (listening.local().port(), config.clone());
    let server = thread::spawn(move || {
        side(listening, None, terms(false, false), &server_config, &Sent::default())
    });

    // RFC 4340 §8.5 step 3: a listener answers an invalid cookie with No Connection.
    let mut stray = stray(server_port);
    disturb(&mut stray);
    assert_eq!(refusal(&mut stray), ResetCode::NO_CONNECTION);

    // RFC 4340 §8.1.2: other services are refused.
    let elsewhere = Config { service: Service(43), ..config.clone() };
    let refused = side(bind(), Some(server_port), terms(true, true), &elsewhere, &Sent::default());
    assert_eq!((refused.events, refused.gave_up), (vec!["Reset".to_owned()], false));

    // RFC 6773 §3.8: the stranger's UDP port names another connection than the client's, though
    // DCCP's ports are the same.
    let over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&over);
    let client = thread::spawn(move || {
        let client = side(bind(), Some(server_port), terms(true, true), &config, &Sent::default());
        until.store(true, Ordering::Relaxed);
        client
    });
    while !over.load(Ordering::Relaxed) {
        disturb(&mut stray);
        thread::sleep(std::time::Duration::from_millis(5));
    }
    let (client, server) = (client.join().expect("it ends"), server.join().expect("it ends"));
    assert_eq!(client.events, ["Connected", "Closed"]);
    assert_eq!(server.events, ["Connected", "PeerClosed", "Closed"]);
    for tally in [client, server] {
        assert_eq!((tally.sent_packets, tally.distinct_packets), (PACKETS, PACKETS));
        assert_eq!((tally.foreign_packets, tally.gave_up), (0, false));
    }
}
