//! Associations under random conditions: despite loss, delay and duplication, all reliable messages
//! arrive once and in order, and no state remains at the end.

use bytes::Bytes;
use std::collections::BTreeMap;
use talkspurt_proto::endpoint::{Endpoint, Event};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{PathId, Payload};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::sctp::{Config, Scheduler, Sending};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;
use talkspurt_testing::sctp::{Client, Pair, Server, Verdict, bytes_of, ms, plain};

/// Content of a message: its number and stream, and a length.
fn message(number: u32, stream: u16, len: usize) -> Frame {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend((bytes.len()..len.max(6)).map(|at| (at as u32 ^ number) as u8));
    Frame::Data(Payload::Real(Bytes::from(bytes)))
}

fn drawn_config(rng: &mut Rng) -> Config {
    let mut pick = |most: u64| rng.bits() % most;
    Config {
        interleaving: pick(2) == 0,
        scheduler: [Scheduler::Fcfs, Scheduler::RoundRobin, Scheduler::Priority][pick(3) as usize],
        sack_frequency: 1 + pick(2) as u32,
        bundling: pick(4) > 0,
        nagle: pick(4) == 0,
        ack_clocked: pick(6) == 0,
        ecn: pick(3) == 0,
        mtu: Size::from_bytes([576, 1048, 1500, 9000][pick(4) as usize]),
        receive_buffer: Size::from_bytes([60_000, 4_000_000][pick(2) as usize]),
        potentially_failed: [None, Some(0)][pick(2) as usize],
        heartbeat_interval: Duration::from_secs([0, 5, 30][pick(3) as usize]),
        max_burst: [1, 4, 100][pick(3) as usize],
        rto_min: ms([20, 200, 1000][pick(3) as usize]),
        rto_max: Duration::from_secs(4),
        association_max_retrans: 10_000,
        max_init_retransmits: 200,
        ..plain()
    }
}

fn run(seed: u64) {
    let mut rng = Rng::new(seed, "stress");
    let config = drawn_config(&mut rng);
    let paths = 1 + (rng.bits() % 3) as u8;
    let mut pair = Pair::on_paths(&config, &config, paths);
    pair.delay = ms([1, 5, 40, 150, 500][(rng.bits() % 5) as usize]);
    let loss = rng.bits() % 31;
    let (doubled, late) = (rng.bits() % 5, rng.bits() % 10);
    let outage = (paths > 1 && rng.bits().is_multiple_of(2)).then(|| rng.bits() % 8);
    let spread = pair.delay;
    let mut draws = Rng::new(seed, "wire");
    pair.on_wire(move |sent| {
        let second = sent.at.as_nanos() / 1_000_000_000;
        if sent.path == PathId(0) && outage.is_some_and(|from| (from..from + 20).contains(&second))
        {
            return Verdict::Drop;
        }
        match draws.bits() % 100 {
            one if one < loss => Verdict::Drop,
            one if one < loss + doubled => Verdict::Twice(ms(0)),
            one if one < loss + doubled + late => Verdict::Late(spread * (draws.bits() % 4)),
            _ => Verdict::Arrive,
        }
    });
    pair.input(Client, talkspurt_proto::endpoint::Input::Open);
    pair.drive_for(Duration::from_secs(60));
    assert!(pair.client.saw(Event::Connected), "{seed}: no association");
    let partial = rng.bits().is_multiple_of(2);
    let unordered = rng.bits().is_multiple_of(3);
    let streams = 1 + (rng.bits() % 4) as u16;
    let mut reliable = Vec::new();
    let count = 60;
    for number in 0..count {
        let stream = (rng.bits() % u64::from(streams)) as u16;
        let given_up = partial && rng.bits().is_multiple_of(2);
        let limited = given_up && rng.bits().is_multiple_of(2);
        let how = Sending {
            stream,
            ppid: 0,
            unordered,
            lifetime: (given_up && !limited).then(|| ms(rng.bits() % 800 + 1)),
            max_retransmissions: limited.then(|| (rng.bits() % 3) as u32),
            priority: None,
        };
        let len = [6, 100, 1000, 1440, 5000, 20_000][(rng.bits() % 6) as usize];
        let now = pair.now;
        assert!(pair.client.endpoint.send(now, message(number, stream, len), &how));
        pair.settle(Client);
        pair.drive_for(ms(rng.bits() % 60));
        if !given_up {
            reliable.push((number, stream, len));
        }
    }
    for _ in 0..100 {
        pair.drive_for(Duration::from_secs(120));
        if pair.client.endpoint.send_capacity() as u64 == config.send_buffer.as_bytes() {
            break;
        }
    }
    pair.drive_for(Duration::from_secs(60));
    let mut seen = BTreeMap::<u32, usize>::new();
    let mut last = BTreeMap::<u16, u32>::new();
    for (_, frame) in &pair.server.received {
        let bytes = bytes_of(frame);
        let number = u32::from_be_bytes(bytes[..4].try_into().unwrap());
        let stream = u16::from_be_bytes(bytes[4..6].try_into().unwrap());
        assert_eq!(bytes, bytes_of(&message(number, stream, bytes.len())), "{seed}: {number}");
        assert!(seen.insert(number, bytes.len()).is_none(), "{seed}: {number} came twice");
        if !unordered && let Some(before) = last.insert(stream, number) {
            assert!(before < number, "{seed}: {number} came after {before} on stream {stream}");
        }
    }
    let what = format!("seed {seed}, loss {loss} %, {paths} paths, {config:?}");
    for (number, _, len) in &reliable {
        assert_eq!(seen.get(number), Some(len), "message {number}: {what}");
    }
    // No state remains: the send buffer is free, the full window is offered, nothing is repeated.
    assert_eq!(
        pair.client.endpoint.send_capacity() as u64,
        config.send_buffer.as_bytes(),
        "{what}"
    );
    let sack = pair.sent_by(Server).filter_map(|sent| sent.sack()).last().unwrap();
    assert_eq!(u64::from(sack.a_rwnd), config.receive_buffer.as_bytes(), "{what}");
    let from = pair.now;
    pair.drive_for(Duration::from_secs(100));
    let late = pair.log.iter().filter(|sent| sent.at > from);
    assert_eq!(late.filter(|sent| !sent.has(4) && !sent.has(5)).count(), 0, "{what}");
}

#[test]
fn what_is_reliable_arrives_once_and_nothing_is_kept() {
    let runs = std::env::var("STRESS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(60);
    let from = std::env::var("STRESS_FROM").ok().and_then(|from| from.parse().ok()).unwrap_or(0);
    for seed in from..from + runs {
        run(seed);
    }
}
