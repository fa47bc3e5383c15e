//! Saturation throughput: one station against the closed form, many against Bianchi's model with our
//! retry limit and EIFS (Wu et al., *Performance of reliable transport protocol over IEEE 802.11
//! wireless LAN: analysis and enhancement*, INFOCOM 2002), and beside both the original (Bianchi,
//! *Performance analysis of the IEEE 802.11 distributed coordination function*, JSAC 2000). The times
//! here are counted in microseconds by hand and not taken from the simulator.

use std::sync::atomic::AtomicBool;

use talkspurt_flow::Materials;
use talkspurt_proto::math;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_sim::build::build;

use crate::support::{flow, link, point, scenario};

/// Goodput of `n` contenders with packets of `bytes` over so many seconds, in bit/s of IP packets.
pub(super) fn goodput(n: u32, bytes: u32, seconds: u64, more: &str) -> f64 {
    let parts = [
        link("wire", "a-b", "1Mbit/s", "1ms", ""),
        flow("talk", "a-b", "udp", "{ kind = 'cbr', rate = '8kbit/s', packet = '100B' }", ""),
        format!(
            "[cells.c]\naccess_point = 'ap'\nstations.s = {{}}\n\
             queue = {{ kind = 'droptail', packets = 10 }}\n\
             contenders = {{ count = {n}, packet = '{bytes}B' }}\n{more}\n"
        ),
    ];
    let point = point(&scenario(&format!("{seconds}s"), &parts));
    let mut world = build(&point.scenario, &point.network, &Materials::default(), ());
    let end = Instant::ZERO + Duration::from_secs(seconds);
    world.run_until(end, &AtomicBool::new(false));
    world.settle();
    world.assert_conservation();
    let tally = world.cells()[0].tally;
    assert_eq!(tally.bytes, tally.packets * u64::from(bytes));
    // All contenders are one link, whose time in a collision counts once.
    let contenders = world.cells()[0].counters(end).last().expect("a link");
    assert!(contenders.collisions > 0 || n == 1);
    assert!(contenders.busy <= Duration::from_secs(seconds), "{:?}", contenders.busy);
    tally.bytes as f64 * 8.0 / seconds as f64
}

/// Inputs of the models; times in microseconds.
struct Model {
    n: u32,
    /// Slots of the smallest window, CWmin + 1.
    window: f64,
    /// How often it doubles.
    doublings: i32,
    /// Maximum transmissions of a frame; `None`: unlimited.
    tries: Option<i32>,
    slot: f64,
    success: f64,
    collision: f64,
    bits: f64,
}

impl Model {
    /// Probability that a station sends in a slot, if its transmissions collide with probability p:
    /// transmissions of a frame over the slots it spends.
    fn sends(&self, p: f64) -> f64 {
        // After 200 transmissions nothing is left even at p = 0.9.
        let stages = 0..self.tries.unwrap_or(200);
        let (mut sent, mut slots) = (0.0, 0.0);
        for stage in stages {
            let reached = math::pow(p, f64::from(stage));
            let window = self.window * math::pow(2.0, f64::from(stage.min(self.doublings)));
            sent += reached;
            slots += reached * (window + 1.0) / 2.0;
        }
        sent / slots
    }

    /// Bit/s.
    fn throughput(&self) -> f64 {
        let (n, others) = (f64::from(self.n), f64::from(self.n) - 1.0);
        let collides = |tau: f64| 1.0 - math::pow(1.0 - tau, others);
        // The fixed point: more collisions, fewer transmissions.
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..100 {
            let p = (low + high) / 2.0;
            if collides(self.sends(p)) > p { low = p } else { high = p }
        }
        let tau = self.sends(low);
        let idle = math::pow(1.0 - tau, n);
        let one = n * tau * math::pow(1.0 - tau, others);
        let mean = idle * self.slot + one * self.success + (1.0 - idle - one) * self.collision;
        one * self.bits / (mean * 1e-6)
    }
}

/// 802.11b, long preamble, 11 Mbit/s, 1500 B in frames of 1536 B.
const DATA: f64 = 192.0 + 1118.0;
/// 14 B at 2 Mbit/s, and at the lowest rate.
const ACK: f64 = 192.0 + 56.0;
const ACK_LOWEST: f64 = 192.0 + 112.0;
const SIFS: f64 = 10.0;
const DIFS: f64 = 50.0;

fn wu(n: u32) -> Model {
    Model {
        n,
        window: 32.0,
        doublings: 5,
        tries: Some(7),
        slot: 20.0,
        success: DATA + SIFS + ACK + DIFS,
        collision: DATA + SIFS + ACK_LOWEST + DIFS,
        bits: 12_000.0,
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "the table stands in the docs")]
fn saturated_stations_share_what_bianchi_and_wu_say() {
    println!("stations  simulated  Wu 2002          Bianchi 2000 (Mbit/s)");
    for n in [1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50] {
        let simulated = goodput(n, 1500, 200, "standard = '802.11b'");
        let of_wu = wu(n).throughput();
        let original = Model { tries: None, collision: DATA + DIFS, ..wu(n) }.throughput();
        let [off, off_original] = [of_wu, original].map(|model| 100.0 * (simulated / model - 1.0));
        println!(
            "{n:8}  {:9.3}  {:7.3} {off:+5.2} %  {:7.3} {off_original:+5.2} %",
            simulated / 1e6,
            of_wu / 1e6,
            original / 1e6,
        );
        assert!(off.abs() < 3.0, "{n} stations: {off:+.2} % of Wu et al.");
    }
}

/// RTS at 2 Mbit/s, 20 B; only they collide.
#[test]
fn with_rts_and_cts_only_short_frames_collide() {
    let (rts, cts) = (192.0 + 80.0, ACK);
    for n in [1, 5, 20, 50] {
        let simulated = goodput(n, 1500, 200, "standard = '802.11b'\nrts_threshold = '0B'");
        let model = Model {
            success: rts + SIFS + cts + SIFS + DATA + SIFS + ACK + DIFS,
            collision: rts + SIFS + ACK_LOWEST + DIFS,
            ..wu(n)
        };
        let off = 100.0 * (simulated / model.throughput() - 1.0);
        assert!(off.abs() < 3.0, "{n} stations: {off:+.2} %");
    }
}

/// Without a backoff every exchange lasts the same.
#[test]
fn one_station_alone_sends_as_the_intervals_say() {
    // Bytes of IP packet 1428 (payload 1400 in UDP), frame 1464; microseconds by hand.
    let b = |short: bool, ack: f64, data: f64| {
        let preamble = if short { 96.0 } else { 192.0 };
        50.0 + preamble + data + 10.0 + ack
    };
    let symbols = |bytes: f64, bits: f64| 4.0 * ((16.0 + 8.0 * bytes + 6.0) / bits).ceil();
    let cases = [
        ("standard = '802.11b'", 31, b(false, 192.0 + 56.0, 1065.0)),
        ("standard = '802.11b'\nbasic_rates = ['1Mbit/s']", 31, b(false, 304.0, 1065.0)),
        ("standard = '802.11b'\nshort_preamble = true", 31, b(true, 96.0 + 56.0, 1065.0)),
        (
            "standard = '802.11b'\nrate = { kind = 'fixed', rate = '5.5Mbit/s' }",
            31,
            b(false, 192.0 + 56.0, 2130.0),
        ),
        (
            "standard = '802.11g'",
            15,
            28.0 + 20.0 + symbols(1464.0, 216.0) + 6.0 + 10.0 + 20.0 + symbols(14.0, 96.0) + 6.0,
        ),
        (
            "standard = '802.11g'\nlong_slot = true\nrate = { kind = 'fixed', rate = '6Mbit/s' }",
            15,
            50.0 + 20.0 + symbols(1464.0, 24.0) + 6.0 + 10.0 + 20.0 + symbols(14.0, 24.0) + 6.0,
        ),
        (
            "standard = '802.11n'",
            15,
            28.0 + 36.0 + symbols(1466.0, 260.0) + 6.0 + 10.0 + 20.0 + symbols(14.0, 96.0) + 6.0,
        ),
    ];
    for (words, cw_min, exchange) in cases {
        let simulated = goodput(1, 1428, 100, &format!("{words}\ncw_min = 0\ncw_max = 0"));
        let packets = (1e8_f64 / exchange).floor();
        // The last one may be understood while its acknowledgement is still to come.
        let counted = (simulated * 100.0 / 8.0 / 1428.0).round();
        assert!(
            counted == packets || counted == packets + 1.0,
            "{words}: {counted}, not {packets}"
        );
        // With the standard's window, half of it on average: n draws, each of variance (W² − 1) / 12.
        let slot =
            if words.contains("802.11b") || words.contains("long_slot") { 20.0 } else { 9.0 };
        let simulated = goodput(1, 1428, 100, words);
        let mean = exchange + slot * f64::from(cw_min) / 2.0;
        let n = 1e8 / mean;
        let window = f64::from(cw_min) + 1.0;
        let error = slot * ((window * window - 1.0) / 12.0 / n).sqrt() / mean;
        let expected = 1428.0 * 8.0 / mean * 1e6;
        let off = simulated / expected - 1.0;
        assert!(off.abs() < 4.0 * error + 1.0 / n, "{words}: {off} ± {error}");
    }
}

/// What 802.11b carries of payloads of 1400 bytes in UDP: 5.8 Mbit/s with the long preamble and
/// acknowledgements at 1 Mbit/s, 6.6 with the short one, and 7 only with other parameters.
#[test]
fn payloads_of_1400_bytes_on_802_11b() {
    let payload = |more: &str| {
        let words = format!("standard = '802.11b'\n{more}");
        goodput(1, 1428, 100, &words) * 1400.0 / 1428.0 / 1e6
    };
    let near = |value: f64, expected: f64| {
        assert!((value - expected).abs() < 0.02, "{value}, not {expected}");
    };
    near(payload("basic_rates = ['1Mbit/s']"), 5.80);
    near(payload(""), 5.97);
    near(payload("short_preamble = true"), 6.66);
    near(payload("short_preamble = true\ncw_min = 15"), 7.35);
}

/// Stations in ns-3.37 (`validation/cell`), where no preamble of a collision is made out; and, when its
/// receivers are made to try every frame, with EIFS.
#[test]
fn goodput_is_that_of_ns3() {
    let told = include_str!("../../../../../validation/cell/ns3.csv");
    let rows: Vec<Vec<f64>> = told
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .map(|line| line.split(',').map(|cell| cell.parse().expect("a number")).collect())
        .collect();
    assert_eq!(rows.len(), 11);
    for row in rows {
        let (n, detection, rts, ns3) = (row[0] as u32, row[1] == 1.0, row[2] == 1.0, row[3]);
        // Without an association or an address a station of ns-3 does not contend.
        assert_eq!(row[4] as u32, n);
        let words = format!(
            "standard = '802.11b'\neifs_after_collision = {}\n{}",
            !detection,
            if rts { "rts_threshold = '0B'" } else { "" }
        );
        let simulated = goodput(n, 1500, 100, &words) * 1472.0 / 1500.0 / 1e6;
        let off = 100.0 * (simulated / ns3 - 1.0);
        println!("{n} {detection} {rts}: {simulated:.3}, ns-3 {ns3:.3}: {off:+.2} %");
        assert!(off.abs() < 5.0, "{n} stations: {simulated}, ns-3 {ns3}: {off:+.2} %");
    }
}
