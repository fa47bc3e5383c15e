//! DualPI2 against Linux's `sch_dualpi2`: the fate of each of 10⁵ packets. Its functions ran with the arrivals and
//! random numbers of this file, a queue of 10 Mbit/s behind them; `../data/dualpi2` holds what they decided.

use talkspurt_proto::body::{Bodies, Body};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Ecn, Packet, Payload};
use talkspurt_proto::probe::{DropReason, Note, Place, Probe, Topic};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::Instant;
use talkspurt_proto::units::{Rate, Size};
use talkspurt_scenario::model;
use talkspurt_sim::discipline::{Discipline, Dualpi2, Hop, Served};
use talkspurt_sim::pool::Pool;

/// One digit for each fate, in order of time: sent, marked or dropped from the low-latency queue (0 to 2) or the
/// classic one (3 to 5), refused because the queue is full (6).
#[derive(Default)]
struct Fates(Vec<u8>);

impl Probe for Fates {
    fn wants(&self, topic: Topic) -> bool {
        topic == Topic::Drop
    }
    fn record(&mut self, _: Instant, _: Place, note: &Note<'_>) {
        if let Note::Dropped { packet, why } = note {
            self.0.push(match (why, is_low(packet.ecn)) {
                (DropReason::Full, _) => 6,
                (_, true) => 2,
                (_, false) => 5,
            });
        }
    }
}

const fn is_low(ecn: Ecn) -> bool {
    matches!(ecn, Ecn::Ect1 | Ecn::Ce)
}

/// The generator of arrivals (xorshift64).
struct Script(u64);

impl Script {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }
}

/// A run of Linux's defaults with these keys changed.
fn fates(config: &model::Dualpi2, packets: u32) -> Vec<u8> {
    // 41/256 and 819/256, as Linux stores them: in 2⁻³² for each 64 ns.
    let weight = |units: u64| ((units * u64::from(u32::MAX)) >> 2) / 1_000_000_000;
    let per_second = |units: u64| weight(units) as f64 / 64.0 * 1e9 / 4_294_967_296.0;
    let config = model::Dualpi2 { alpha: per_second(41), beta: per_second(819), ..config.clone() };
    let mut queue = Dualpi2::new(&config, Rate::from_bps(10_000_000), Size::from_bytes(1500));
    let (mut pool, mut rng, mut fates) = (Pool::default(), Rng::new(5, "linux"), Fates::default());
    let (mut drops, mut marks) = ([0; DropReason::COUNT], 0);
    let mut script = Script(88_172_645_463_325_252);
    let (mut arrival, mut free_at, mut busy) = (1000, 0, false);
    let mut arrived = Vec::new();
    while arrived.len() < packets as usize {
        let departs = busy && free_at < arrival;
        let now = Instant::from_nanos(if departs { free_at } else { arrival });
        let mut hop = Hop {
            now,
            place: Place::Link(0),
            pool: &mut pool,
            probe: &mut fates,
            rng: &mut rng,
            drops: &mut drops,
            marks: &mut marks,
            free_at: Instant::from_nanos(free_at),
        };
        if !departs {
            let (random, number) = (script.next(), arrived.len() as u32);
            let (phase, share) = (number / 5000, script.next() % 100);
            let mut ecn = match share < (phase * 37) % 101 {
                true => Ecn::Ect1,
                false if script.next() & 1 == 1 => Ecn::Ect0,
                false => Ecn::NotEct,
            };
            if (random >> 16).is_multiple_of(50) {
                ecn = Ecn::Ce;
            }
            let load = u64::from(60 + (phase * 53) % 120);
            arrival += 64_000_000 / load / 100 * u64::from(script.next() % 201);
            let body = hop.pool.put(|| Body::Udp(Frame::Data(Payload::default())));
            let ip_bytes = 100 + random % 1401;
            queue.enqueue(Packet { body, ip_bytes, number, ecn, ..Packet::default() }, &mut hop);
            arrived.push(ecn);
            if busy {
                continue;
            }
        }
        busy = false;
        if let Served::Packet(packet) = queue.dequeue(&mut hop) {
            let ecn = arrived[packet.number as usize];
            fates.0.push(if is_low(ecn) { 0 } else { 3 } + u8::from(packet.ecn != ecn));
            pool.take(packet.body);
            (free_at, busy) = (now.as_nanos() + u64::from(packet.ip_bytes) * 800, true);
        }
    }
    fates.0
}

/// What Linux's functions decided, two fates a byte.
fn recorded(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/dualpi2/{name}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(path).expect("it is in the repository");
    let digits = bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
    digits.filter(|digit| *digit != 15).collect()
}

#[test]
fn each_fate_is_that_of_linux() {
    let short = model::Dualpi2 {
        drop_overload: false,
        packets: 60,
        step_packets: 1,
        ..model::Dualpi2::default()
    };
    for (name, config, packets) in
        [("defaults.bin", model::Dualpi2::default(), 100_000), ("no-drops.bin", short, 50_000)]
    {
        let (ours, linux) = (fates(&config, packets), recorded(name));
        let differs = ours.iter().zip(&linux).position(|(ours, linux)| ours != linux);
        assert_eq!((differs, ours.len()), (None, linux.len()), "{name}");
        // Every fate occurs: all parts are compared.
        let count = |fate: u8| linux.iter().filter(|one| **one == fate).count();
        let counts: Vec<_> = (0..7).map(count).collect();
        let never = if name == "defaults.bin" { vec![6] } else { vec![2] };
        let rare: Vec<_> = (0..7).filter(|fate| counts[*fate] < 100).collect();
        assert_eq!(rare, never, "{name}: {counts:?}");
    }
}

/// Writes the random numbers of [`fates`] in units of 2⁻³², little endian, for the recording.
#[test]
#[ignore = "for the recording"]
fn write_random_numbers() {
    let mut rng = Rng::new(5, "linux");
    let draws = (0..400_000).flat_map(|_| ((rng.unit() * 4_294_967_296.0) as u32).to_le_bytes());
    let path = std::env::var("TALKSPURT_DRAWS").expect("where to write them");
    std::fs::write(path, draws.collect::<Vec<u8>>()).expect("written");
}
