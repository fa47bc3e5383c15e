//! BBR version 3 (draft-ietf-ccwg-bbr-06) on the wire.

use crate::pair::*;
use talkspurt_proto::probe::Gauge;
use talkspurt_proto::tcp::{Config, Controller};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;

fn config() -> Config {
    Config { controller: Controller::Bbr, window_scaling: true, ..plain() }
}

/// A bottleneck towards the server of 10 Mbit/s, 20 ms each way, with a buffer of so many bytes.
fn path(config: &Config, buffer: u64, mut lost: impl FnMut(usize) -> bool + 'static) -> Pair {
    let mut pair = Pair::new(config);
    pair.delay = ms(20);
    pair.connect();
    let rate = Rate::from_bps(10_000_000);
    let mut free = Instant::ZERO;
    let mut count = 0;
    pair.on_wire(move |sent| {
        if sent.from != Client || sent.len() == 0 {
            return Fate::Arrive;
        }
        count += 1;
        let bytes = (20 + sent.segment.header_bytes() + sent.len()) as u64;
        let start = sent.at.max(free);
        let waiting = rate.time_for(buffer).unwrap();
        if start - sent.at + rate.time_for(bytes).unwrap() > waiting || lost(count) {
            return Fate::Drop;
        }
        free = start + rate.time_for(bytes).unwrap();
        Fate::Late(free - sent.at)
    });
    pair
}

#[test]
fn look() {
    let mut pair = path(&config(), 1_000_000, |_| false);
    pair.send(Client, 100_000_000);
    pair.drive_for(ms(20_000));
    for (at, gauge, value) in &pair.client.notes.gauges {
        if matches!(gauge, Gauge::Phase | Gauge::MinRtt | Gauge::InflightLongterm) || (*gauge == Gauge::Bandwidth && *at < crate::pair::at(2000)) {
            println!("{at:?} {gauge:?} {value}");
        }
    }
    println!("{}", pair.server.count);
}
