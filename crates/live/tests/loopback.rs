//! Endpoints over real sockets of the loopback interface, in real time: the code that simulations
//! run, driven by a clock. Nothing here depends on the machine's speed.
#![cfg(target_os = "linux")]

#[path = "../src/bin/peer/rig/mod.rs"]
mod rig;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread;

use talkspurt_live::{Line, Setup, UdpPort};
use talkspurt_proto::body::Body;
use talkspurt_proto::endpoint::Listener;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::udp::{Config, Udp};
use talkspurt_record::pcapng::Direction;

use rig::{EchoConfig, EchoReport, EchoTest, Impaired, Impairing, Impairments, Verdict, drive};

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
    path: Impairing,
    mut endpoint: E,
    terms: EchoConfig,
) -> EchoReport {
    let mut line = Line::new(Impaired::new(port, path), setup);
    let mut app = EchoTest::new(terms);
    drive(&mut endpoint, &mut app, &mut line, &mut ()).expect("loopback works");
    app.tally().clone()
}

/// Both sides exchange UDP; one has these impairments.
fn over_udp(address: IpAddr, path: Impairing) -> [EchoReport; 2] {
    let address = SocketAddr::new(address, 0);
    let [a, b] = [(); 2].map(|()| UdpPort::bind(address).expect("a port of the interface"));
    let here = Setup::new(a.local(), Some(b.local()));
    let there = Setup::new(b.local(), Some(a.local()));
    let other = thread::spawn(move || {
        converse(b, there, Impairing::default(), Udp::new(&Config {}), terms())
    });
    [converse(a, here, path, Udp::new(&Config {}), terms()), other.join().expect("it ends")]
}

fn udp_both_ways(address: impl Into<IpAddr>) {
    for tally in over_udp(address.into(), Impairing::default()) {
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
    let rng = Rng::new(seed, "outbound");
    let (delay, hold) = (Duration::from_millis(5), Duration::from_millis(30));
    let (loss, held, copied) = (0.2, 0.2, 0.2);
    let outbound = Impairments { delay, loss, held, hold, copied, rng, ..Impairments::none() };
    let tap = Box::new(move |_, direction, verdict, _: &[u8]| {
        if direction == Direction::Outbound {
            seen.lock().expect("nobody panics").push(verdict);
        }
    });
    let path = Impairing { outbound, tap: Some(tap), ..Impairing::default() };
    let tallies = over_udp(Ipv4Addr::LOCALHOST.into(), path);
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
