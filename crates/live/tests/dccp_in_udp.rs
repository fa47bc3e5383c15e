//! DCCP inside UDP (RFC 6773) over the loopback interface in real time: connections with each CCID,
//! messages both ways, closed by either side. The endpoint is the one that simulations run. Nothing
//! here depends on how fast the machine is: sides wait for what must come, with long limits.
#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread;

use talkspurt_live::{Encapsulation, Exchange, Line, Passage, Setup, Tally, Terms, UdpPort, drive};
use talkspurt_proto::dccp::{Ccid, Config, Dccp};
use talkspurt_proto::dice::Dice;
use talkspurt_proto::time::{Duration, Instant};

const PACKETS: u64 = 50;
/// DCCP's own ports: the server's and the client's.
const PORTS: [u16; 2] = [5004, 40_004];

fn terms(opens: bool, closes: bool) -> Terms {
    Terms {
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

fn side(port: UdpPort, server: Option<u16>, terms: Terms, config: &Config, sent: &Sent) -> Tally {
    let at = |port_number| SocketAddr::new(port.local().ip(), port_number);
    // A server knows neither of the client's ports; a client knows both of the server's.
    let [here, there] = if server.is_some() { [PORTS[1], PORTS[0]] } else { PORTS };
    let mut setup = Setup::new(at(here), server.map(|_| at(there)));
    let remote_port = server.unwrap_or(0);
    setup.encapsulation = Some(Encapsulation { local_port: port.local().port(), remote_port });
    let sent = Arc::clone(sent);
    setup.tap = Some(Box::new(move |_, passage, _, bytes| {
        if passage == Passage::Outbound {
            sent.lock().expect("nobody panics").push(bytes.to_vec());
        }
    }));
    let dice = Dice::new(1, if server.is_some() { "client" } else { "server" });
    let mut line = Line::new(port, setup);
    let endpoint =
        if server.is_some() { Dccp::client(config, dice) } else { Dccp::listener(config, dice) };
    let mut app = Exchange::new(terms);
    drive(&mut endpoint.over(line.version()), &mut app, &mut line, &mut ())
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
