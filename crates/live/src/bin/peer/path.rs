//! The path to the peer, emulated on the local side: the verdict on each packet, and the capture.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use serde::Serialize;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;
use talkspurt_record::pcapng::{Direction, Pcapng, Remarks};

use crate::rig::{Impairing, Impairments, Verdict};

/// The path between us and the peer, the same in both directions.
#[derive(Debug, Args)]
pub(crate) struct Path {
    /// Rate of the bottleneck, as "50Mbit/s"; absent: no bottleneck.
    #[arg(long)]
    rate: Option<Rate>,
    /// Longest queueing time at the bottleneck before a packet is dropped.
    #[arg(long, default_value = "100ms")]
    queue: Duration,
    /// Delay of the path in each direction.
    #[arg(long, default_value = "0ms")]
    delay: Duration,
    /// Probability that a packet is lost, in each direction.
    #[arg(long, default_value_t = 0.0, value_parser = probability)]
    pub(crate) loss: f64,
    /// Probability that a packet is held for --hold, so that others overtake it.
    #[arg(long, default_value_t = 0.0, value_parser = probability)]
    held: f64,
    /// Hold time.
    #[arg(long, default_value = "25ms")]
    hold: Duration,
    /// Probability that a packet arrives twice.
    #[arg(long, default_value_t = 0.0, value_parser = probability)]
    copied: f64,
    /// Probability that an ECN-capable packet is marked "congestion experienced".
    #[arg(long, default_value_t = 0.0, value_parser = probability)]
    marked: f64,
    /// Seed of these random events.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Swaps the random streams of the two directions, so that the peer's packets get the impairments that ours
    /// would get.
    #[arg(long)]
    mirrored: bool,
    /// Capture file to write.
    #[arg(long)]
    pcapng: Option<PathBuf>,
    /// Seed of the connection's own numbers: sequence numbers, timestamps, cookie keys. Anyone who knows it can
    /// guess them; by default they come from the operating system.
    #[arg(long)]
    pub(crate) endpoint_seed: Option<u64>,
}

impl Path {
    /// What happens on this path, and its statistics; `bears_data` recognises packets with application data.
    pub(crate) fn impairing(
        &self,
        bears_data: impl Fn(&[u8]) -> bool + Send + 'static,
    ) -> std::io::Result<(Impairing, Arc<Mutex<Seen>>)> {
        let capture = self.pcapng.as_deref().map(|path| Pcapng::create(path, &["peer"]));
        let seen = Seen { impairments: ImpairmentCounts::default(), capture: capture.transpose()? };
        let seen = Arc::new(Mutex::new(seen));
        let mut names = ["inbound", "outbound"];
        if self.mirrored {
            names.reverse();
        }
        let [inbound, outbound] = names.map(|name| self.impairments(name));
        let tapped = Arc::clone(&seen);
        let tap = Box::new(move |now, direction, verdict, bytes: &[u8]| {
            let mut seen = tapped.lock().unwrap_or_else(PoisonError::into_inner);
            seen.impairments.count(direction, verdict, || bears_data(bytes));
            seen.write(now, direction, verdict, bytes);
        });
        Ok((Impairing { inbound, outbound, tap: Some(tap), ..Impairing::default() }, seen))
    }

    fn impairments(&self, rng: &str) -> Impairments {
        Impairments {
            rate: self.rate,
            queue: self.queue,
            delay: self.delay,
            loss: self.loss,
            held: self.held,
            hold: self.hold,
            copied: self.copied,
            marked: self.marked,
            rng: Rng::new(self.seed, rng),
        }
    }
}

/// Filled by the tap of the path; shared, because the path owns the tap.
pub(crate) struct Seen {
    pub(crate) impairments: ImpairmentCounts,
    pub(crate) capture: Option<Pcapng>,
}

impl Seen {
    fn write(&mut self, now: Instant, direction: Direction, verdict: Verdict, bytes: &[u8]) {
        let Some(capture) = &mut self.capture else { return };
        let comment = match verdict {
            Verdict::Passed => None,
            Verdict::Lost => Some("lost on purpose".to_owned()),
            Verdict::Overflowed => Some("lost in the queue".to_owned()),
            Verdict::Held(time) => Some(format!("held {time} longer")),
            Verdict::Copied => Some("arrives twice".to_owned()),
            Verdict::Marked => Some("marked on its way".to_owned()),
        };
        let remarks = Remarks { comment: comment.as_deref(), direction: Some(direction) };
        capture.packet(0, now, bytes, bytes.len() as u32, remarks);
    }
}

/// Verdicts on the packets of one direction on the local side.
#[derive(Debug, Default, Serialize)]
pub(crate) struct VerdictCounts {
    /// Packets without impairment; each packet is counted under one verdict.
    passed_packets: u64,
    lost_packets: u64,
    /// Lost packets with application data.
    lost_data_packets: u64,
    overflowed_packets: u64,
    held_packets: u64,
    copied_packets: u64,
    marked_packets: u64,
}

/// Verdicts in both directions.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ImpairmentCounts {
    inbound: VerdictCounts,
    outbound: VerdictCounts,
}

impl ImpairmentCounts {
    /// Counts a packet by its verdict.
    fn count(&mut self, direction: Direction, verdict: Verdict, bears_data: impl Fn() -> bool) {
        let counts = match direction {
            Direction::Inbound => &mut self.inbound,
            Direction::Outbound => &mut self.outbound,
        };
        match verdict {
            Verdict::Passed => counts.passed_packets += 1,
            Verdict::Overflowed => counts.overflowed_packets += 1,
            Verdict::Held(_) => counts.held_packets += 1,
            Verdict::Copied => counts.copied_packets += 1,
            Verdict::Marked => counts.marked_packets += 1,
            Verdict::Lost => {
                counts.lost_packets += 1;
                counts.lost_data_packets += u64::from(bears_data());
            }
        }
    }
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(chance) if (0.0..=1.0).contains(&chance) => Ok(chance),
        _ => Err("not a probability, 0 to 1".to_owned()),
    }
}
