//! Endpoints over real sockets of the loopback interface, in real time: the code that simulations
//! run, driven by a clock. Nothing here depends on how fast the machine is.
#![cfg(target_os = "linux")]

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;

use talkspurt_live::{Exchange, Line, Setup, Tally, Terms, UdpPort, drive};
use talkspurt_proto::endpoint::Endpoint;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::udp::{Config, Udp};

const PACKETS: u64 = 50;

fn terms() -> Terms {
    Terms {
        packets: PACKETS,
        bytes: 160,
        interval: Duration::from_millis(20),
        connection: false,
        opens: false,
        closes: false,
        quiet: Duration::from_secs(2),
        linger: Duration::ZERO,
        limit: Instant::ZERO + Duration::from_secs(60),
    }
}

fn converse<E: Endpoint>(
    port: UdpPort,
    remote: SocketAddr,
    mut endpoint: E,
    terms: Terms,
) -> Tally {
    let setup = Setup::new(port.local(), Some(remote));
    let mut line = Line::new(port, setup);
    let mut app = Exchange::new(terms);
    drive(&mut endpoint, &mut app, &mut line, &mut ()).expect("loopback works");
    app.tally().clone()
}

fn udp_both_ways(address: impl Into<std::net::IpAddr>) {
    let address = SocketAddr::new(address.into(), 0);
    let [a, b] =
        [(); 2].map(|()| UdpPort::bind(address).expect("a port of the loopback interface"));
    let (at_a, at_b) = (a.local(), b.local());
    let there = thread::spawn(move || converse(b, at_a, Udp::new(&Config {}), terms()));
    let here = converse(a, at_b, Udp::new(&Config {}), terms());
    for tally in [here, there.join().expect("the other side ends")] {
        assert_eq!((tally.sent_packets, tally.distinct_packets), (PACKETS, PACKETS));
        assert_eq!((tally.received_bytes, tally.foreign_packets), (PACKETS * 160, 0));
        assert!(!tally.gave_up);
    }
}

#[test]
fn udp_over_ipv4() {
    udp_both_ways(Ipv4Addr::LOCALHOST);
}

#[test]
fn udp_over_ipv6() {
    udp_both_ways(Ipv6Addr::LOCALHOST);
}
