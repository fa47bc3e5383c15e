//! Replays what happened to a sender through our GCC, and prints what it decided.
//!
//! Reads lines from standard input; times are microseconds, rates bit/s:
//!
//! ```text
//! init TIME START - - ALR MAX MIN      begins; ALR is 1 if it probes while sources leave capacity unused
//! sent TIME NUMBER BYTES CLUSTER       a packet left, in this cluster of probes, or in -1
//! feedback TIME COUNT                  followed by COUNT lines: NUMBER ARRIVAL, or -1 if it did not arrive
//! rtt TIME ROUND_TRIP                  of a receiver report
//! loss TIME LOST RECEIVED              packets since the last receiver report
//! remb TIME LIMIT                      of the receiver
//! process TIME                         regularly
//! ```
//!
//! After each line but `init` and `sent`, it prints its word and time, the detector's state (0 normal, 1
//! underuse, 2 overuse), the estimate, the delay-based and the loss-based ones and the acknowledged rate, -1
//! without; and then the rates of clusters that it wants. Fields that are not listed are ignored.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use talkspurt_proto::media::gcc::Config;
use talkspurt_proto::media::{
    FeedbackInfo, MediaController, MediaControllerConfig, ReceiverReport, Sent,
};
use talkspurt_proto::rtcp::PacketReport;
use talkspurt_proto::{Duration, Ecn, Gauge, Instant, Rate};

const GAUGES: [Gauge; 5] =
    [Gauge::Usage, Gauge::TargetRate, Gauge::DelayRate, Gauge::LossRate, Gauge::AcknowledgedRate];

/// A packet that left: when, bytes, and cluster.
type Packet = (Instant, u32, Option<u32>);

fn micros(us: i64) -> Instant {
    Instant::from_nanos(us as u64 * 1000)
}

/// The numbers of a line behind its word.
fn numbers(line: &str) -> Vec<i64> {
    line.split(' ').skip(1).map(|it| it.parse().unwrap_or(-1)).collect()
}

fn report(number: i64, arrived: i64, (sent, bytes, probe): Packet) -> PacketReport {
    PacketReport {
        stream: 0,
        sequence: number as u64,
        sent,
        arrived: (arrived >= 0).then(|| micros(arrived)),
        arrived_untimed: false,
        again: false,
        arrived_before: false,
        probe,
        ecn: Ecn::NotEct,
        bytes,
    }
}

fn decided(controller: &mut dyn MediaController) -> String {
    let mut found = [-1; GAUGES.len()];
    let mut keep = |gauge, value| {
        if let Some(at) = GAUGES.iter().position(|it| *it == gauge) {
            found[at] = value as i64;
        }
    };
    controller.observe(&mut keep);
    let clusters =
        std::iter::from_fn(|| controller.take_cluster().map(|it| it.rate.as_bps() as i64));
    let all: Vec<_> = found.into_iter().chain(clusters).map(|it| it.to_string()).collect();
    all.join(" ")
}

fn main() -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut lines = io::stdin().lock().lines();
    let mut controller = Config::default().build();
    let mut packets: BTreeMap<i64, Packet> = BTreeMap::new();
    while let Some(line) = lines.next() {
        let line = line?;
        let word = line.split(' ').next().unwrap_or_default();
        let told = numbers(&line);
        let now = micros(told[0]);
        match word {
            "init" => {
                let [start, max, min] = [1, 5, 6].map(|at| Rate::from_bps(told[at] as u64));
                let alr_probing = told[4] == 1;
                controller =
                    Config { min: Some(min), start, max, alr_probing, ..Config::default() }.build();
                controller.on_start(now);
                continue;
            }
            "sent" => {
                let bytes = told[2] as u32;
                packets.insert(told[1], (now, bytes, u32::try_from(told[3]).ok()));
                controller.on_sent(now, &Sent { sequence: told[1] as u64, bytes });
                continue;
            }
            "feedback" => {
                let mut reports = Vec::new();
                for line in lines.by_ref().take(told[1] as usize) {
                    let told = numbers(&format!("- {}", line?));
                    reports.push(report(told[0], told[1], packets[&told[0]]));
                }
                controller.on_reports(now, &reports, &FeedbackInfo::default());
            }
            "rtt" | "loss" => {
                let rtt = (word == "rtt").then(|| Duration::from_micros(told[1] as u64));
                let [lost, received] = if rtt.is_none() { [told[1], told[2]] } else { [0, 0] };
                controller.on_receiver_report(now, &ReceiverReport { rtt, lost, received });
            }
            "remb" => controller.on_receiver_limit(now, Rate::from_bps(told[1] as u64)),
            "process" => controller.on_timeout(now),
            _ => continue,
        }
        writeln!(out, "{word} {} {}", told[0], decided(&mut *controller))?;
    }
    out.flush()
}
