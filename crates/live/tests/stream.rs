//! TCP in real time against itself: two endpoints, each on a file that carries IP packets like a TUN
//! device (here a socket pair, which needs no privileges), transfer a file each way over an impaired
//! path. Nothing here depends on the machine's speed.
#![cfg(target_os = "linux")]

#[path = "../src/bin/peer/rig/mod.rs"]
mod rig;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::net::UnixDatagram;
use std::thread;

use talkspurt_live::{Line, Setup};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::tcp::{Config, Controller, Tcp};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;

use rig::{Impaired, Impairing, Impairments, Plan, Transfer, Tun, drive};

/// Bytes that do not repeat at short distances.
fn noise(seed: u64, words: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed, "noise");
    (0..words).flat_map(|_| rng.bits().to_be_bytes()).collect()
}

fn path(seed: u64, name: &str) -> Impairments {
    Impairments {
        rate: Some(Rate::from_bps(50_000_000)),
        queue: Duration::from_millis(20),
        delay: Duration::from_millis(2),
        loss: 0.02,
        held: 0.02,
        hold: Duration::from_millis(4),
        copied: 0.02,
        marked: 0.02,
        rng: Rng::new(seed, name),
    }
}

/// One side: the data it received, and the names of its connection's events.
fn side(
    file: UnixDatagram,
    (setup, path): (Setup, Impairing),
    opens: bool,
    send: Vec<u8>,
) -> (Vec<u8>, Vec<String>) {
    // A full socket is a full queue, which loses packets as well.
    file.set_nonblocking(true).expect("a socket can");
    let mut config = Config::new(Controller::Cubic);
    (config.ecn, config.min_rto) = (Some(true), Duration::from_millis(200));
    let rng = Rng::new(u64::from(opens), "tcp");
    let endpoint = if opens { Tcp::client(&config, rng) } else { Tcp::listener(&config, rng) };
    let mut line = Line::new(Impaired::new(Tun::new(file.into()), path), setup);
    let mut endpoint = endpoint.over(line.version());
    let mut app = Transfer::new(Plan {
        opens,
        send: send.into(),
        closes: opens,
        linger: Duration::from_secs(1),
        limit: Instant::ZERO + Duration::from_secs(100),
    });
    drive(&mut endpoint, &mut app, &mut line, &mut ()).expect("the pair works");
    let events = app.record().events.iter().map(|(name, _)| name.clone()).collect();
    (app.received().to_vec(), events)
}

fn both_ways(here: SocketAddr, there: SocketAddr) {
    let (a, b) = UnixDatagram::pair().expect("a pair of sockets");
    let (out, back) = (noise(1, 100_000), noise(2, 60_001));
    let (inbound, outbound) = (path(3, "inbound"), path(3, "outbound"));
    let path = Impairing { inbound, outbound, ..Impairing::default() };
    let ours = (Setup::new(here, Some(there)), path);
    let (sent, theirs) = (back.clone(), (Setup::new(there, None), Impairing::default()));
    let other = thread::spawn(move || side(b, theirs, false, sent));
    let (received, events) = side(a, ours, true, out.clone());
    assert!(received == back, "{} of {} bytes, or others", received.len(), back.len());
    assert_eq!(events, ["Connected", "PeerClosed", "Closed"]);
    let (received, events) = other.join().expect("it ends");
    assert!(received == out, "{} of {} bytes, or others", received.len(), out.len());
    assert_eq!(events, ["Connected", "PeerClosed", "Closed"]);
}

#[test]
fn a_file_each_way_over_ipv4() {
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    both_ways(at(5001), at(5002));
}

#[test]
fn a_file_each_way_over_ipv6() {
    let at = |port| SocketAddr::from((Ipv6Addr::LOCALHOST, port));
    both_ways(at(5001), at(5002));
}
