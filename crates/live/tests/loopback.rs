//! Endpoints over real sockets of the loopback interface, in real time: the code that simulations
//! run, driven by a clock. Nothing here depends on the machine's speed.
#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread;

use talkspurt_live::{
    Direction, EchoConfig, EchoReport, EchoTest, Impairments, Line, Setup, UdpPort, Verdict, drive,
};
use talkspurt_proto::body::Body;
use talkspurt_proto::endpoint::Listener;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::udp::{Config, Udp};

const PACKETS: u64 = 40;

fn terms() -> EchoConfig {
    EchoConfig {
        packets: PACKETS,
        bytes: 160,
        interval: Duration::from_millis(10),
        connection: false,
        opens: false,
        closes: false,
        quiet: Duration::from_secs(3),
        linger: Duration::from_millis(100),
        limit: Instant::ZERO + Duration::from_secs(60),
    }
}

fn converse<E: Listener<Packet: Into<Body> + TryFrom<Body>>>(
    port: UdpPort,
    setup: Setup,
    mut endpoint: E,
    terms: EchoConfig,
) -> EchoReport {
    let mut line = Line::new(port, setup);
    let mut app = EchoTest::new(terms);
    drive(&mut endpoint, &mut app, &mut line, &mut ()).expect("loopback works");
    app.tally().clone()
}

/// Both sides exchange UDP; `setup` defines the impairments, and is called for each
/// side.
fn over_udp(address: IpAddr, setup: impl Fn(Setup) -> Setup) -> [EchoReport; 2] {
    let address = SocketAddr::new(address, 0);
    let [a, b] = [(); 2].map(|()| UdpPort::bind(address).expect("a port of the interface"));
    let here = setup(Setup::new(a.local(), Some(b.local())));
    let there = Setup::new(b.local(), Some(a.local()));
    let other = thread::spawn(move || converse(b, there, Udp::new(&Config {}), terms()));
    [converse(a, here, Udp::new(&Config {}), terms()), other.join().expect("it ends")]
}

fn udp_both_ways(address: impl Into<IpAddr>) {
    for tally in over_udp(address.into(), |setup| setup) {
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

/// Losses and delays of a line, in real time.
fn fates(seed: u64) -> (Vec<Verdict>, [EchoReport; 2]) {
    let fates = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&fates);
    let tallies = over_udp(Ipv4Addr::LOCALHOST.into(), move |mut setup| {
        let rng = Rng::new(seed, "outbound");
        let (delay, hold) = (Duration::from_millis(5), Duration::from_millis(30));
        let (loss, held, copied) = (0.2, 0.2, 0.2);
        setup.outbound =
            Impairments { delay, loss, held, hold, copied, rng, ..Impairments::none() };
        let seen = Arc::clone(&seen);
        setup.tap = Some(Box::new(move |_, direction, verdict, _| {
            if direction == Direction::Outbound {
                seen.lock().expect("nobody panics").push(verdict);
            }
        }));
        setup
    });
    let fates = fates.lock().expect("nobody panics").clone();
    (fates, tallies)
}

#[test]
fn mishaps_come_from_the_seed_and_nothing_else_is_lost() {
    let (first, [_, received]) = fates(5);
    let lost = first.iter().filter(|verdict| **verdict == Verdict::Lost).count() as u64;
    let held = first.iter().filter(|verdict| matches!(verdict, Verdict::Held(_))).count();
    let copied = first.iter().filter(|verdict| **verdict == Verdict::Copied).count() as u64;
    assert!(lost > 0 && held > 0 && copied > 0, "{first:?}");
    assert_eq!(received.distinct_packets, PACKETS - lost);
    assert_eq!(received.received_packets, PACKETS - lost + copied);
    assert_eq!(fates(5).0, first);
}
