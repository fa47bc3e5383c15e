//! A source that can send at any rate, with rate controllers, over a path that loses every hundredth packet: it
//! must send what RFC 5348 allows.

use std::sync::Arc;

use talkspurt_proto::packet::Payload;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;
use talkspurt_proto::validate::{ConfigError, Validate};
use talkspurt_proto::{dccp, tfrc};

use super::ladder_tests::{Shelf, parts};
use super::{Action, Parts, Peer};
use crate::playout;
use crate::source::{self, External, Generator, Material, Setting, Source, SourceConfig, Unit};
use crate::transport::{self, Side};

const MS: Duration = Duration::from_millis(1);
/// Bytes per packet: the source changes the interval.
const BYTES: u64 = 200;
const DELAY: Duration = Duration::from_millis(30);

/// Its configuration: whether it declares that it can follow any rate.
#[derive(Debug)]
struct ElasticConfig {
    any_rate: bool,
}

impl Validate for ElasticConfig {
    fn errors(&self) -> Vec<ConfigError> {
        Vec::new()
    }
}

impl SourceConfig for ElasticConfig {
    fn build(&self, _: &Material, _: u32, setting: Setting) -> Source {
        let Setting { start, stop, .. } = setting;
        let rate = Rate::from_bps(16_000);
        Source::Other(Box::new(Elastic { rate, due: start, stop, sent: 0 }))
    }
    fn any_rate(&self) -> bool {
        self.any_rate
    }
}

#[derive(Debug)]
struct Elastic {
    rate: Rate,
    due: Instant,
    stop: Instant,
    sent: u32,
}

impl Generator for Elastic {
    fn due(&self) -> Option<Instant> {
        (self.due <= self.stop).then_some(self.due)
    }
    fn take(&mut self, now: Instant) -> Option<Unit> {
        let captured = self.due().filter(|due| *due <= now)?;
        let index = self.sent;
        self.sent += 1;
        self.due = captured + self.rate.time_for(BYTES).unwrap_or(Duration::from_secs(1));
        Some(Unit {
            index,
            slot: index.into(),
            encoding: 0,
            keep_alive: false,
            marker: false,
            captured,
            payload: Payload::Virtual { offset: u64::from(index) * BYTES, len: BYTES },
        })
    }
    fn set_target_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }
}

fn side(side: Side, transport: &transport::Config, any_rate: bool) -> Parts {
    let mut parts = parts(side, playout::Config::fixed(Duration::from_millis(60)));
    let config = source::Config::External(External(Arc::new(ElasticConfig { any_rate })));
    parts.transport = transport.clone();
    parts.source = (side == Side::Opens).then_some((config, Material::None));
    parts.sink = None;
    parts.stop = Instant::ZERO + Duration::from_secs(40);
    parts
}

/// Packets delivered in the second half of 40 s; every hundredth of the first peer is lost.
fn delivered(transport: &transport::Config, any_rate: bool) -> u32 {
    let mut from = Peer::new(side(Side::Opens, transport, any_rate));
    let mut to = Peer::new(side(Side::Answers, transport, any_rate));
    let (mut shelf, mut wire) = (Shelf::default(), [Vec::<(Instant, _, _)>::new(), Vec::new()]);
    let (mut sent, mut counted) = (0_u32, 0);
    for tick in 0..160_000_u64 {
        let now = Instant::ZERO + Duration::from_micros(250) * tick;
        for (way, peer) in [&mut from, &mut to].into_iter().enumerate() {
            let due: Vec<_> = wire[1 - way].extract_if(.., |(at, ..)| *at <= now).collect();
            for (_, how, mut body) in due {
                peer.receive(now, how, &mut body, &mut ());
                while let Action::Send { path, ecn, .. } = peer.poll(now, &mut shelf, &mut ()) {
                    wire[way].push((now + DELAY, (path, ecn), shelf.take()));
                }
            }
            peer.wake(now, &mut ());
            while let Action::Send { path, ecn, .. } = peer.poll(now, &mut shelf, &mut ()) {
                let body = shelf.take();
                if way == 0 {
                    sent += 1;
                    if sent % 100 == 0 {
                        continue;
                    }
                    counted += u32::from(now >= Instant::ZERO + MS * 20_000);
                }
                wire[way].push((now + DELAY, (path, ecn), body));
            }
        }
    }
    counted
}

/// RFC 5348 §3.1 with s = 200 bytes, R = 60 ms, p = 0.01, over 20 s, in packets.
fn equation() -> f64 {
    let (p, r) = (0.01_f64, 0.06_f64);
    let f = (2.0 * p / 3.0).sqrt() + 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p);
    20.0 / (r * f)
}

#[test]
fn a_source_that_can_follow_any_rate_sends_what_the_equation_gives() {
    let tfrc = transport::Config::Tfrc(tfrc::Config::default());
    let share = f64::from(delivered(&tfrc, true)) / equation();
    assert!((0.9..1.1).contains(&share), "{share}");
}

#[test]
fn it_follows_dccp_as_well() {
    let config = dccp::Config::new(dccp::Ccid::Three);
    let share = f64::from(delivered(&transport::Config::Dccp(Box::new(config)), true)) / equation();
    assert!((0.8..1.1).contains(&share), "{share}");
}

#[test]
fn who_cannot_follow_is_asked_nothing() {
    let tfrc = transport::Config::Tfrc(tfrc::Config::default());
    // 16 kbit/s in packets of 200 bytes: 10 per second for 20 s; one in 100 is lost.
    assert_eq!(delivered(&tfrc, false), 198);
}
