//! Hosts that send any bytes, by a script: whole packets, packets with any options, extension headers and
//! fragments, answers to what arrived, and noise. Nothing panics, what arrives is a packet, every packet is
//! accounted for, and the tables balance.
//!
//! Shared by the tests, which play random scripts and those kept in `fuzz/seeds`, and by the target in `fuzz/`,
//! which looks for scripts that reach what none has reached.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::LazyLock;

use talkspurt_experiment::conclude;
use talkspurt_flow::Materials;
use talkspurt_proto::time::Duration;
use talkspurt_proto::wire::{checksum::Sum, ipv4, ipv6};
use talkspurt_record::Tables;
use talkspurt_scenario::Point;
use talkspurt_testing::fuzz::Script;

use crate::engine::Engine;
use crate::packet::parse;
use crate::{Host, engine};

/// Steps of a script that are played; more would only be slower.
const MAX_STEPS: usize = 200;
/// Packets that arrived and may be answered.
const MAX_ARRIVED: usize = 16;

/// A small MTU in the middle, a copying and losing medium, and marks.
const NETWORK: &str = "
title = 'Hostile hosts'
duration = '60s'
record = { sojourn = true }
[links.near]
from = 'a'
to = 'r'
rate = '10Mbit/s'
delay = '3ms'
duplicate = 0.2
queue = { kind = 'codel', ecn = true }
[links.far]
from = 'r'
to = 'b'
rate = '10Mbit/s'
delay = '20ms'
mtu = '600B'
loss = 0.05
queue = { kind = 'droptail', packets = 20 }
[links.further]
from = 'r'
to = 'c'
rate = '2Mbit/s'
delay = '1ms'
mtu = '300B'
queue = { kind = 'fq_codel', ecn = true }
[flows.call]
from = 'b'
to = 'a'
transport = { kind = 'udp' }
source = { kind = 'speech', codec = 'pcmu' }
playout = { kind = 'fixed' }
";
const HOSTS: [&str; 3] = ["a", "b", "c"];

static POINT: LazyLock<Point> = LazyLock::new(|| {
    let study = talkspurt_scenario::load(NETWORK, "fuzz", Path::new("."), &[], None);
    study.unwrap_or_else(|problems| panic!("{problems}")).points.remove(0)
});

/// Plays a script.
pub fn play(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let point = &*POINT;
    let mut programs = Vec::new();
    let hosts = HOSTS.map(|node| {
        let (program, device) = UnixDatagram::pair().expect("a pair of sockets");
        for socket in [&program, &device] {
            socket.set_nonblocking(true).expect("a socket");
        }
        programs.push(program);
        Host { node: node.to_owned(), device: OwnedFd::from(device) }
    });
    let made = engine(point, &Materials::default(), hosts.into(), None, Tables::memory());
    let (mut engine, _) = made.expect("all hosts have routes");
    let mut arrived = Vec::new();
    for _ in 0..MAX_STEPS {
        if script.is_over() {
            break;
        }
        step(&mut engine, &programs, &mut script, &mut arrived);
    }
    conclude_all(engine, point);
}

fn step(
    engine: &mut Engine<'_>,
    programs: &[UnixDatagram],
    script: &mut Script<'_>,
    arrived: &mut Vec<Vec<u8>>,
) {
    let from = usize::from(script.byte()) % HOSTS.len();
    let bytes = match script.byte() % 8 {
        0 | 1 => {
            let time = Duration::from_millis(script.pick(&[1, 10, 30, 100, 1000]));
            engine.pass(time);
            for program in programs {
                receive(program, arrived);
            }
            return;
        }
        2 => {
            let length = usize::from(script.byte());
            script.bytes(length).to_vec()
        }
        3 => {
            let length = usize::from(script.u16());
            let mut bytes = script.bytes(length).to_vec();
            add_sum(&mut bytes);
            bytes
        }
        4 => {
            let Some(mut bytes) = arrived.get(usize::from(script.byte())).cloned() else { return };
            turn_round(&mut bytes);
            for _ in 0..script.byte() % 4 {
                let at = usize::from(script.byte());
                let value = script.byte();
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
            add_sum(&mut bytes);
            bytes
        }
        5 => v6(from as u8, script),
        _ => v4(from as u8, script),
    };
    // An empty datagram would be read as the end.
    if !bytes.is_empty() {
        // What does not fit the socket is not sent.
        let _ = programs[from].send(&bytes);
    }
    engine.pass(Duration::ZERO);
}

fn receive(program: &UnixDatagram, arrived: &mut Vec<Vec<u8>>) {
    let mut bytes = vec![0; 70_000];
    while let Ok(length) = program.recv(&mut bytes) {
        let bytes = bytes[..length].to_vec();
        assert!(parse(&bytes).is_some(), "what arrives is a packet: {bytes:02x?}");
        if arrived.len() < MAX_ARRIVED {
            arrived.push(bytes);
        }
    }
}

/// A payload of any length, with bytes of the script at its beginning.
fn payload(script: &mut Script<'_>) -> Vec<u8> {
    let (written, all) = (usize::from(script.byte()), script.pick(&[0, 8, 64, 600, 1400, 9000]));
    let mut bytes = script.bytes(written).to_vec();
    bytes.resize(bytes.len().max(all), b'x');
    bytes
}

/// A packet of IPv4 whose lengths and checksum are right.
fn v4(from: u8, script: &mut Script<'_>) -> Vec<u8> {
    let words = usize::from(script.byte() % 16).saturating_sub(5);
    let mut options = script.bytes(4 * words).to_vec();
    options.resize(4 * words, 0);
    let address = |last: u8| [10, 0, 0, last];
    // The router is the second node.
    let src = [address(1), address(3), address(4)][usize::from(from)];
    let dst = match script.byte() % 16 {
        0..=3 => address(1),
        4..=8 => address(3),
        9..=12 => address(4),
        13 => address(2),
        14 => [224, 0, 0, 251],
        _ => [255; 4],
    };
    let protocol = script.pick(&[17, 17, 6, 1, 33, 132, 136, 47, 2]);
    let mut bytes = vec![0x45 + words as u8, script.byte(), 0, 0, 0, script.byte()];
    bytes.extend(script.u16().to_be_bytes());
    bytes.extend([script.pick(&[64, 1, 2, 3, 0, 255]), protocol, 0, 0]);
    bytes.extend(src.into_iter().chain(dst).chain(options));
    bytes.extend(payload(script));
    let length = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    add_sum(&mut bytes);
    bytes
}

/// A packet of IPv6 with extension headers, whose length is right.
fn v6(from: u8, script: &mut Script<'_>) -> Vec<u8> {
    let address = |last: u8| {
        let mut address = [0; 16];
        (address[0], address[15]) = (0xfd, last);
        address
    };
    let src = address([1, 3, 4][usize::from(from)]);
    let dst = match script.byte() % 16 {
        0..=4 => address(1),
        5..=9 => address(3),
        10..=13 => address(4),
        14 => address(2),
        _ => [0xff; 16],
    };
    let kinds: Vec<u8> =
        (0..script.byte() % 4).map(|_| script.pick(&[0, 43, 60, 44, 59])).collect();
    let last = script.pick(&[17, 6, 58, 33, 132, 136, 59]);
    let mut bytes = vec![0x60, script.byte(), 0, 0, 0, 0];
    bytes.extend([kinds.first().copied().unwrap_or(last), script.pick(&[64, 1, 2, 0, 255])]);
    bytes.extend(src.into_iter().chain(dst));
    for (at, kind) in kinds.iter().enumerate() {
        let next = kinds.get(at + 1).copied().unwrap_or(last);
        let length = if *kind == 44 { 0 } else { script.byte() % 3 };
        bytes.extend([next, length]);
        let rest = 6 + 8 * usize::from(length);
        let mut content = script.bytes(rest).to_vec();
        content.resize(rest, 0);
        bytes.extend(content);
    }
    bytes.extend(payload(script));
    let length = (bytes.len() - ipv6::HEADER) as u16;
    bytes[4..6].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Completes a header of IPv4, with its options.
fn add_sum(bytes: &mut [u8]) {
    let header = bytes.first().map_or(0, |first| usize::from(first & 0xf) * 4);
    if bytes[..bytes.len().min(1)].iter().any(|first| first >> 4 == 4)
        && (ipv4::HEADER..=bytes.len()).contains(&header)
    {
        bytes[10..12].fill(0);
        let sum = Sum::default().over(&bytes[..header]).finish();
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Exchanges the addresses.
fn turn_round(bytes: &mut [u8]) {
    let (at, length) = if bytes[0] >> 4 == 4 { (12, 4) } else { (8, 16) };
    let (first, second) = bytes[at..at + 2 * length].split_at_mut(length);
    first.swap_with_slice(second);
}

fn conclude_all(engine: Engine<'_>, point: &Point) {
    let (mut world, account) = engine.finish();
    world.finish_playout();
    world.assert_conservation();
    account.assert_balance();
    let (recorder, (_, (_, written))) = world.probe;
    let recording = conclude(&point.scenario, &Materials::default(), recorder, written, true)
        .expect("no file fails");
    for flow in &recording.flows {
        assert_eq!(flow.conservation(), Ok(()), "{}", flow.name);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use talkspurt_testing::fuzz::{cases, replay};

    use super::*;

    #[test]
    fn kept_scripts() {
        replay("emulate", play);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(100), ..ProptestConfig::default() })]

        #[test]
        fn random_scripts(script in prop::collection::vec(any::<u8>(), 0..1000)) {
            play(&script);
        }
    }
}
