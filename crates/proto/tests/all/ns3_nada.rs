//! NADA's profile `ns3-rmcat` against the controller of the RFC's authors, report by report.
//!
//! `validation/rmcat/nada.sh` fetches, compiles and feeds their controller with the reports of this test, which
//! it asks for by `TALKSPURT_NADA_REPORTS`, and writes the reference rates.

use std::fmt::Write as _;

use talkspurt_proto::media::nada::{Config, Nada, Profile};
use talkspurt_proto::media::{FeedbackInfo, MediaController, Sent};
use talkspurt_proto::rtcp::PacketReport;
use talkspurt_proto::{Duration, Ecn, Gauge, Instant, Rng};

const FEEDBACKS: usize = 100_000;
/// Every so many feedback packets the rate is compared.
const COMPARED: usize = 50;
/// Rates in bit/s of the authors' controller, compiled with `double` in place of `float`.
const REFERENCE: &str = include_str!("../data/ns3-rmcat/rates.txt");

/// One feedback packet: what was sent since the last one, and what it reports.
struct Step {
    now: Instant,
    sent: Vec<(Instant, Sent)>,
    reports: Vec<PacketReport>,
}

/// A path whose capacity, queue and losses change every few seconds, with pauses of the source. Times are whole
/// microseconds, as there. The load does not depend on the controller, so that one error is not hidden by the
/// next.
struct Path {
    rng: Rng,
    now: u64,
    sequence: u64,
    capacity: f64,
    load: f64,
    loss: f64,
    queue_free: u64,
    changes: u64,
}

impl Path {
    fn new() -> Self {
        let rng = Rng::new(8698, "nada");
        Self {
            rng,
            now: 1_000_000,
            sequence: 1 << 16,
            capacity: 1e6,
            load: 1e6,
            loss: 0.0,
            queue_free: 0,
            changes: 0,
        }
    }

    fn uniform(&mut self) -> f64 {
        (self.rng.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn step(&mut self) -> Step {
        if self.now >= self.changes {
            self.changes = self.now + (1e6 + 9e6 * self.uniform()) as u64;
            self.capacity = 2e5 + 2.8e6 * self.uniform();
            self.load = self.capacity * (0.5 + 0.6 * self.uniform());
            self.loss = if self.uniform() < 0.5 { 0.0 } else { 0.1 * self.uniform() };
            if self.uniform() < 0.1 {
                // Longer than the window, sometimes longer than what is remembered.
                self.now += (2e6 * self.uniform()) as u64;
            }
        }
        // Most feedback follows after 100 ms, some sooner, some late.
        let interval = match self.uniform() {
            x if x < 0.9 => 100_000,
            x if x < 0.95 => 20_000,
            x => (3e5 * x) as u64,
        };
        let end = self.now + interval;
        let (mut sent, mut reports) = (Vec::new(), Vec::new());
        let mut newest = 0;
        while self.now < end {
            let bytes = 100 + (1100.0 * self.uniform()) as u32;
            let at = micros(self.now);
            sent.push((at, Sent { sequence: self.sequence, bytes }));
            let time = (f64::from(bytes) * 8e6 / self.capacity) as u64;
            // At most 300 ms wait; what finds more is lost.
            let waits = self.queue_free.saturating_sub(self.now);
            let is_lost = waits > 300_000 || self.uniform() < self.loss;
            if waits <= 300_000 {
                self.queue_free = self.queue_free.max(self.now) + time;
            }
            let noise = (500.0 * self.uniform()) as u64;
            // The receiver's clock is an hour ahead.
            let arrived = self.queue_free + 50_000 + noise + 3_600_000_000;
            newest = newest.max(if is_lost { 0 } else { arrived });
            reports.push(PacketReport {
                stream: 1,
                again: false,
                arrived_before: false,
                probe: None,
                sequence: self.sequence,
                sent: at,
                arrived: (!is_lost).then(|| micros(arrived.max(newest))),
                arrived_untimed: false,
                ecn: Ecn::NotEct,
                bytes,
            });
            self.sequence += 1;
            self.now += (f64::from(bytes) * 8e6 / self.load) as u64 + 1;
        }
        // Feedback arrives 50 ms after the newest packet did, and no earlier than the packets were sent.
        let now = micros(self.now.max((newest + 50_000).saturating_sub(3_600_000_000)));
        self.now = now.as_nanos() / 1000;
        Step { now, sent, reports }
    }
}

fn gauge(nada: &Nada, wanted: Gauge) -> f64 {
    let mut found = f64::NAN;
    nada.observe(&mut |gauge, value| found = if gauge == wanted { value } else { found });
    found
}

fn micros(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

#[test]
fn rates_are_those_of_the_authors_controller() {
    let config = Config { profile: Profile::Ns3Rmcat, ..Config::default() };
    let mut nada = Nada::new(&config);
    let mut path = Path::new();
    let mut reference = REFERENCE.lines().map(|line| line.parse::<f64>().expect("a rate"));
    let wanted = std::env::var_os("TALKSPURT_NADA_REPORTS");
    let mut text = String::new();
    let (mut worst, mut compared, mut ramps) = (0.0_f64, 0, 0);
    for number in 1..=FEEDBACKS {
        let Step { now, sent, reports } = path.step();
        for (at, one) in &sent {
            nada.on_sent(*at, one);
            if wanted.is_some() {
                let us = at.as_nanos() / 1000;
                writeln!(text, "S {us} {} {}", one.sequence as u16, one.bytes).expect("memory");
            }
        }
        let before = gauge(&nada, Gauge::TargetRate);
        nada.on_reports(now, &reports, &FeedbackInfo::default());
        ramps += usize::from(gauge(&nada, Gauge::TargetRate) > before);
        if wanted.is_some() {
            let arrived = || reports.iter().filter_map(|one| Some((one.sequence, one.arrived?)));
            write!(text, "F {} {}", now.as_nanos() / 1000, arrived().count()).expect("memory");
            for (sequence, at) in arrived() {
                write!(text, " {} {}", sequence as u16, at.as_nanos() / 1000).expect("memory");
            }
            text.push('\n');
        } else if number % COMPARED == 0 {
            let expected = reference.next().expect("a reference for each");
            worst = worst.max((gauge(&nada, Gauge::TargetRate) / expected - 1.0).abs());
            compared += 1;
        }
    }
    if let Some(file) = wanted {
        return std::fs::write(file, text).expect("a file to write");
    }
    assert_eq!((compared, reference.next()), (FEEDBACKS / COMPARED, None));
    // The path is one on which rates move, both ways.
    assert!((FEEDBACKS / 20..FEEDBACKS * 19 / 20).contains(&ramps), "{ramps}");
    assert!(worst < 1e-6, "{worst}");
}

/// RFC 8698 §4.3: at equilibrium x_curr = PRIO·XREF·RMAX/r_ref. One flow over a queue that its rate fills; each
/// signal is above QEPS, below which the rate ramps up.
#[test]
fn the_congestion_signal_settles_where_section_4_3_says() {
    for (priority, capacity) in [(1.0, 1e6), (1.0, 5e5), (2.0, 8e5), (0.5, 4e5)] {
        let config = Config { priority, ..Config::default() };
        let mut nada = Nada::new(&config);
        let (mut queue, mut now, mut sequence) = (0.0, Instant::ZERO, 0);
        let mut tail = (0.0, 0.0);
        for round in 0..6000 {
            let mut reports = Vec::new();
            for _ in 0..20 {
                // 5 ms of the rate in one packet; queue in bits.
                let bytes = (gauge(&nada, Gauge::TargetRate) * 0.005 / 8.0) as u32;
                let sent = Sent { sequence, bytes };
                nada.on_sent(now, &sent);
                queue = f64::max(0.0, queue + f64::from(bytes) * 8.0 - capacity * 0.005);
                let delay = Duration::from_secs_f64(0.02 + queue / capacity);
                reports.push(PacketReport {
                    stream: 1,
                    again: false,
                    arrived_before: false,
                    probe: None,
                    sequence,
                    sent: now,
                    arrived: Some(now + delay),
                    arrived_untimed: false,
                    ecn: Ecn::NotEct,
                    bytes,
                });
                sequence += 1;
                now += Duration::from_millis(5);
            }
            let rtt = Some(Duration::from_millis(40));
            nada.on_reports(now, &reports, &FeedbackInfo { rtt });
            if round >= 5000 {
                tail = (
                    tail.0 + 1e3 * gauge(&nada, Gauge::CongestionSignal),
                    tail.1 + gauge(&nada, Gauge::TargetRate),
                );
            }
        }
        let (x, rate) = (tail.0 / 1000.0, tail.1 / 1000.0);
        let expected = priority * 10.0 * 1.5e6 / rate;
        assert!((x / expected - 1.0).abs() < 0.05, "{x} for {expected} at {rate}");
        assert!((rate / capacity - 1.0).abs() < 0.02, "{rate} of {capacity}");
    }
}
