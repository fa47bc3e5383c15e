//! GCC against libwebrtc's `GoogCcNetworkController`, decision by decision.
//!
//! The reference was written by a program that feeds libwebrtc's controller (the source of 2026-08-22, all field
//! trials at their defaults) with the events of this test, which it gets by `TALKSPURT_GCC_EVENTS`.

use std::collections::VecDeque;
use std::fmt::Write as _;

use talkspurt_proto::media::gcc::Config;
use talkspurt_proto::media::{
    FeedbackInfo, MediaController, MediaControllerConfig, ReceiverReport, Sent,
};
use talkspurt_proto::rtcp::PacketReport;
use talkspurt_proto::{Duration, Ecn, Gauge, Instant, Rate, Rng};

/// Time of a run in microseconds, and the runs.
const TIME: u64 = 600_000_000;
const RUNS: u64 = 28;
/// Every so many feedback packets the decision is compared.
const COMPARED: usize = 50;
/// Detector's state, rates in bit/s (target, delay-based, acknowledged, pacing, padding) and number of probe
/// clusters so far.
const REFERENCE: &str = include_str!("../data/goog-cc/decisions.txt");

fn micros(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

/// A packet that was sent: when it was, when it arrived, and whether a report said so.
#[derive(Clone, Copy)]
struct Packet {
    number: u64,
    sent: u64,
    arrived: Option<u64>,
    bytes: u32,
    probe: Option<u32>,
    reported: bool,
}

/// Feedback on its way: when it arrives, and the packets of which it tells.
struct Feedback {
    at: u64,
    reports: Vec<Packet>,
}

/// A path whose capacity, queue, losses and delays change every few seconds, and a source that follows the
/// controller part of the time, leaves capacity unused, sends too much, or pauses.
struct Path {
    rng: Rng,
    controller: Box<dyn MediaController>,
    now: u64,
    number: u64,
    capacity: f64,
    queue: u64,
    loss: f64,
    noise: u64,
    follows: Option<f64>,
    load: f64,
    queue_free: u64,
    changes: u64,
    pauses_until: u64,
    /// Clusters to send: number, rate, bytes and packets sent.
    clusters: Vec<(u32, f64, u64, u32)>,
    count: u32,
    packets: Vec<Packet>,
    on_the_way: Vec<Feedback>,
    next_feedback: u64,
    reported_until: u64,
    in_flight: u64,
    flight: VecDeque<(u64, u64)>,
    /// The receiver limits the rate.
    limits: bool,
    text: String,
    writes: bool,
}

/// The receiver's clock is this far ahead.
const AHEAD: u64 = 3_600_000_000;
const START: u64 = 100_000_000;

impl Path {
    fn new(run: u64, config: &Config, writes: bool) -> Self {
        let mut text = String::new();
        let least = config.min.unwrap_or(Rate::from_bps(30_000));
        let [start, min, max] = [config.start, least, config.max].map(Rate::as_bps);
        let alr = u8::from(config.alr_probing);
        writeln!(text, "init {START} {start} -1 -1 {alr} {max} {min} 0 {}", 1.1_f32)
            .expect("memory");
        let mut controller = config.build();
        controller.on_start(micros(START));
        let mut path = Self {
            rng: Rng::new(run, "goog-cc"),
            controller,
            now: START,
            number: 0,
            capacity: 1e6,
            queue: 300_000,
            loss: 0.0,
            noise: 500,
            follows: Some(1.0),
            load: 1e6,
            queue_free: 0,
            changes: START + 8_000_000,
            pauses_until: 0,
            clusters: Vec::new(),
            count: 0,
            packets: Vec::new(),
            on_the_way: Vec::new(),
            next_feedback: START + 100_000,
            reported_until: 0,
            in_flight: 0,
            flight: VecDeque::new(),
            limits: run % 7 == 3,
            text,
            writes,
        };
        path.take_clusters();
        path
    }

    fn take_clusters(&mut self) {
        while let Some(cluster) = self.controller.take_cluster() {
            self.clusters.push((cluster.id, cluster.rate.as_bps() as f64, 0, 0));
            self.count += 1;
        }
    }

    fn change(&mut self) {
        let mut unit = || self.rng.unit();
        self.changes = self.now + (2e6 + 13e6 * unit()) as u64;
        self.capacity = 1e5 * talkspurt_proto::math::pow(60.0, unit());
        self.queue = (1e6 * unit()) as u64;
        self.loss = match unit() {
            x if x < 0.5 => 0.0,
            x if x < 0.8 => 0.03 * unit(),
            _ => 0.4 * unit(),
        };
        self.noise = if unit() < 0.3 { (30_000.0 * unit()) as u64 } else { 300 };
        self.follows = match unit() {
            x if x < 0.6 => Some(0.9 + 0.2 * unit()),
            x if x < 0.8 => Some(0.2 + 0.5 * unit()),
            _ => None,
        };
        self.load = self.capacity * (0.3 + unit());
        if unit() < 0.1 {
            self.pauses_until = self.now + (6e6 * unit()) as u64;
        }
    }

    fn send(&mut self) {
        let bytes = 150 + (1050.0 * self.rng.unit()) as u32;
        // libwebrtc takes the instants of sending in whole milliseconds.
        self.now = self.now.div_ceil(1000) * 1000;
        let decision = self.controller.decision();
        let probe = self.clusters.first_mut().map(|cluster| {
            (cluster.2, cluster.3) = (cluster.2 + u64::from(bytes), cluster.3 + 1);
            (cluster.0, cluster.1, cluster.2, cluster.3)
        });
        let rate = match (probe, self.follows) {
            (Some((_, rate, ..)), _) => rate,
            (None, Some(share)) => decision.target.as_bps() as f64 * share,
            (None, None) => self.load,
        };
        let mark = probe.map(|(id, rate, ..)| (id, 5, (rate * 0.015 / 8.0).round() as u64));
        if let Some((_, rate, sent, packets)) = probe
            && packets >= 5
            && sent as f64 >= rate * 0.015 / 8.0
        {
            self.clusters.remove(0);
        }
        let waits = self.queue_free.saturating_sub(self.now);
        let is_lost = waits > self.queue || self.rng.unit() < self.loss;
        if waits <= self.queue {
            let time = (f64::from(bytes) * 8e6 / self.capacity) as u64;
            self.queue_free = self.queue_free.max(self.now) + time;
        }
        let noise = (self.noise as f64 * self.rng.unit()) as u64;
        let arrived = (!is_lost).then_some(self.queue_free + 20_000 + noise);
        let packet = Packet {
            number: self.number,
            sent: self.now,
            arrived,
            bytes,
            probe: mark.map(|(id, ..)| id),
            reported: false,
        };
        self.number += 1;
        self.packets.push(packet);
        self.in_flight += u64::from(bytes);
        self.flight.push_back((packet.number, u64::from(bytes)));
        if self.writes {
            let (id, packets, least) = mark
                .map_or((-1, -1, -1), |(id, packets, least)| (id as i64, packets, least as i64));
            let line =
                format!("{} {bytes} {id} {packets} {least} {}", packet.number, self.in_flight);
            writeln!(self.text, "sent {} {line}", self.now).expect("memory");
        }
        let sent = Sent { sequence: packet.number, bytes };
        self.controller.on_sent(micros(self.now), &sent);
        self.now += (f64::from(bytes) * 8e6 / rate.max(2e4)) as u64 + 1;
    }

    /// The receiver reports on all up to the last that arrived, and on what came late.
    fn report(&mut self, at: u64) {
        self.next_feedback = at + (5e4 + 2e5 * self.rng.unit()) as u64;
        let arrived = |packet: &&mut Packet| packet.arrived.is_some_and(|then| then <= at);
        let Some(last) = self.packets.iter_mut().filter(arrived).map(|it| it.number).max() else {
            return;
        };
        let mut reports = Vec::new();
        for packet in self.packets.iter_mut().filter(|packet| packet.number <= last) {
            let is_late = packet.arrived.is_some_and(|then| then <= at) && !packet.reported;
            if packet.number >= self.reported_until || is_late {
                let arrived = packet.arrived.filter(|then| *then <= at);
                packet.reported |= arrived.is_some();
                reports.push(Packet { arrived, ..*packet });
            }
        }
        self.reported_until = self.reported_until.max(last + 1);
        self.packets.retain(|it| it.number + 2000 > last && !(it.reported && it.number <= last));
        let lost = self.rng.unit() < 0.02;
        if !reports.is_empty() && !lost {
            let at = at + 20_000 + (5e3 * self.rng.unit()) as u64;
            let at = at.max(self.on_the_way.last().map_or(0, |feedback| feedback.at));
            self.on_the_way.push(Feedback { at, reports });
        }
    }

    fn on_feedback(&mut self, Feedback { at, reports }: Feedback) {
        let newest = reports.last().expect("a report").number;
        while let Some((_, bytes)) = self.flight.front().filter(|(number, _)| *number <= newest) {
            self.in_flight -= bytes;
            self.flight.pop_front();
        }
        if self.writes {
            writeln!(self.text, "feedback {at} {} {}", reports.len(), self.in_flight)
                .expect("memory");
        }
        let floor = |us: u64| us / 1000 * 1000;
        let mut told = Vec::new();
        for packet in &reports {
            let arrived = packet.arrived.map(|then| floor(then + AHEAD));
            if self.writes {
                let arrived = arrived.map_or(-1, |at| at as i64);
                writeln!(self.text, "{} {arrived}", packet.number).expect("memory");
            }
            told.push(PacketReport {
                stream: 0,
                sequence: packet.number,
                sent: micros(packet.sent),
                arrived: arrived.map(micros),
                arrived_untimed: false,
                again: false,
                arrived_before: false,
                probe: packet.probe,
                ecn: Ecn::NotEct,
                bytes: packet.bytes,
            });
        }
        self.controller.on_reports(micros(at), &told, &FeedbackInfo::default());
    }

    /// The next event before the end; true if it was feedback.
    fn step(&mut self) -> Option<bool> {
        let send = self.now.max(self.pauses_until).div_ceil(1000) * 1000;
        let process = self.controller.deadline().map_or(u64::MAX, |at| at.as_nanos() / 1000);
        let feedback = self.on_the_way.first().map_or(u64::MAX, |feedback| feedback.at);
        let next = send.min(process).min(feedback).min(self.next_feedback);
        if next > START + TIME {
            return None;
        }
        let is_feedback = next == feedback;
        if next == self.next_feedback {
            self.report(next);
        } else if is_feedback {
            let feedback = self.on_the_way.remove(0);
            self.on_feedback(feedback);
        } else if next == process {
            if self.writes {
                writeln!(self.text, "process {next}").expect("memory");
            }
            self.controller.on_timeout(micros(next));
            self.hear(next);
        } else {
            if next >= self.changes {
                self.change();
            }
            self.now = next;
            self.send();
        }
        self.take_clusters();
        Some(is_feedback)
    }

    /// RTCP, once a second.
    fn hear(&mut self, at: u64) {
        if !(at / 25_000).is_multiple_of(40) {
            return;
        }
        let rtt = 40_000 + (2e5 * self.rng.unit()) as u64;
        let (lost, received) = ((20.0 * self.loss) as i64, (30.0 * self.rng.unit()) as i64);
        if self.writes {
            let rtt = (rtt + 500) / 1000 * 1000;
            writeln!(self.text, "rtt {at} {rtt}").expect("memory");
            if received > 0 {
                writeln!(self.text, "loss {at} {lost} {received}").expect("memory");
            }
        }
        if self.limits && self.rng.chance(0.2) {
            let limit = self.rng.below(2_000_000).saturating_sub(500_000);
            if self.writes {
                writeln!(self.text, "remb {at} {limit}").expect("memory");
            }
            self.controller.on_receiver_limit(micros(at), Rate::from_bps(limit));
        }
        let rtt = Some(Duration::from_micros(rtt));
        self.controller.on_receiver_report(micros(at), &ReceiverReport { rtt, lost, received });
    }

    fn decision(&self) -> Vec<i64> {
        let gauge = |wanted| {
            let mut found = -1;
            let mut keep =
                |gauge, value| found = if gauge == wanted { value as i64 } else { found };
            self.controller.observe(&mut keep);
            found
        };
        let gauges = [Gauge::Usage, Gauge::TargetRate, Gauge::DelayRate, Gauge::AcknowledgedRate];
        let decision = self.controller.decision();
        let rates = [decision.pacing, decision.padding].map(|rate| rate.as_bps() as i64);
        gauges.map(gauge).into_iter().chain(rates).chain([i64::from(self.count)]).collect()
    }
}

#[test]
fn decisions_are_those_of_libwebrtc() {
    let wanted = std::env::var_os("TALKSPURT_GCC_EVENTS");
    let mut reference = REFERENCE.lines();
    let mut text = String::new();
    let (mut compared, mut usages) = (0, [0; 3]);
    for run in 0..RUNS {
        let config = Config { alr_probing: run % 2 == 1, ..Config::default() };
        let mut path = Path::new(run, &config, wanted.is_some());
        let mut feedbacks = 0;
        while let Some(is_feedback) = path.step() {
            if !is_feedback {
                continue;
            }
            feedbacks += 1;
            let decision = path.decision();
            usages[decision[0] as usize] += 1;
            if wanted.is_none() && feedbacks % COMPARED == 0 {
                let expected = reference.next().expect("a reference for each");
                let expected: Vec<i64> =
                    expected.split(' ').map(|it| it.parse().expect("a number")).collect();
                assert_eq!(decision, expected, "run {run}, feedback {feedbacks}");
                compared += 1;
            }
        }
        text += &path.text;
    }
    if let Some(file) = wanted {
        return std::fs::write(file, text).expect("a file to write");
    }
    assert_eq!(reference.next(), None);
    // All states occur.
    assert!(compared > 1000 && usages.iter().all(|count| *count > 500), "{compared} {usages:?}");
}

/// libwebrtc's own scenarios whose result its tests assert without a field trial
/// (`goog_cc_network_control_unittest.cc`) and that need no network: the others are in tests/test_gcc.py.
mod asserted {
    use super::*;

    fn controller(start: u64) -> Box<dyn MediaController> {
        let config = Config { start: Rate::from_bps(start), ..Config::default() };
        let mut controller = config.build();
        controller.on_start(micros(START));
        controller
    }

    fn target(controller: &dyn MediaController) -> f64 {
        let mut target = f64::NAN;
        controller.observe(&mut |gauge, value| {
            target = if gauge == Gauge::TargetRate { value } else { target };
        });
        target
    }

    /// Sends at the target over a link, with feedback each 50 ms until `end`.
    fn send(controller: &mut dyn MediaController, number: &mut u64, (begin, end): (u64, u64)) {
        let (capacity, mut free) = (2e6, begin);
        for round in begin / 50_000..end / 50_000 {
            let mut reports = Vec::new();
            let rate = target(controller);
            let count = (rate * 0.05 / 8.0 / 1000.0).round().max(1.0) as u64;
            for place in 0..count {
                let sent = round * 50_000 + place * 50_000 / count / 1000 * 1000;
                controller.on_sent(micros(sent), &Sent { sequence: *number, bytes: 1000 });
                free = free.max(sent) + (8e9 / capacity) as u64;
                reports.push(PacketReport {
                    stream: 0,
                    sequence: *number,
                    sent: micros(sent),
                    arrived: Some(micros(free + 50_000)),
                    arrived_untimed: false,
                    again: false,
                    arrived_before: false,
                    probe: None,
                    ecn: Ecn::NotEct,
                    bytes: 1000,
                });
                *number += 1;
            }
            let now = micros((round + 1) * 50_000);
            controller.on_timeout(now);
            controller.on_reports(
                now + Duration::from_millis(100),
                &reports,
                &FeedbackInfo::default(),
            );
        }
    }

    /// RunRembDipScenario.
    #[test]
    fn a_limit_of_the_receiver_is_forgotten_when_it_is_lifted() {
        let mut controller = controller(1_000_000);
        let (mut number, second) = (0, |count: u64| START + count * 1_000_000);
        send(&mut *controller, &mut number, (second(0), second(10)));
        assert!(target(&*controller) > 1.5e6);
        controller.on_receiver_limit(micros(second(10)), Rate::from_bps(250_000));
        send(&mut *controller, &mut number, (second(10), second(11)));
        assert_eq!(target(&*controller), 250e3);
        controller.on_receiver_limit(micros(second(11)), Rate::from_bps(10_000_000));
        send(&mut *controller, &mut number, (second(11), second(21)));
        assert!(target(&*controller) > 1.5e6);
    }

    /// FallbackToLossBasedBweWithoutPacketFeedback.
    #[test]
    fn without_feedback_on_packets_receiver_reports_decide() {
        let mut controller = controller(1_000_000);
        let mut at = START;
        // A second of video of at most 2.5 Mbit/s over a link of 1 Mbit/s that loses a share of it.
        let mut second = |controller: &mut dyn MediaController, loss: f64| {
            for _ in 0..40 {
                at += 25_000;
                controller.on_timeout(micros(at));
            }
            let carried = (1e6 / target(controller).min(2.5e6)).min(1.0);
            let received = (100.0 * carried * (1.0 - loss)).round() as i64;
            let (lost, rtt) = (100 - received, Some(Duration::from_millis(100)));
            controller.on_receiver_report(micros(at), &ReceiverReport { rtt, lost, received });
        };
        for _ in 0..20 {
            second(&mut *controller, 0.0);
        }
        assert!(target(&*controller) >= 500e3);
        for _ in 0..20 {
            second(&mut *controller, 0.15);
        }
        assert!(target(&*controller) <= 300e3, "{}", target(&*controller));
    }

    /// NoCrashOnVeryLateFeedback.
    #[test]
    fn feedback_that_is_minutes_late_changes_nothing_for_long() {
        let mut controller = controller(300_000);
        let mut number = 0;
        send(&mut *controller, &mut number, (START, START + 5_000_000));
        let late = START + 305_000_000;
        let reports = [PacketReport {
            stream: 0,
            sequence: number,
            sent: micros(START + 5_000_000),
            arrived: Some(micros(START + 5_100_000)),
            arrived_untimed: false,
            again: false,
            arrived_before: false,
            probe: None,
            ecn: Ecn::NotEct,
            bytes: 1000,
        }];
        controller.on_reports(micros(late), &reports, &FeedbackInfo::default());
        number += 1;
        send(&mut *controller, &mut number, (late, late + 10_000_000));
        assert!(target(&*controller) > 100e3);
    }
}
