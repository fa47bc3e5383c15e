//! Time series of each direction of a flow, over the whole run regardless of the measure window. Every
//! column counts what happened in the bin: sent by sending time, received and delay by arrival time, lost
//! by drop time, late by the time of the playout decision, discarded by the time of removal from the send
//! queue. `encoding` is the rung of the sender's ladder at the bin's end, 0 being the best; null for a
//! sender that never left the best.

use arrow_array::RecordBatch;
use talkspurt_proto::time::{Duration, Instant};

use crate::columns::Columns;
use crate::layout::Layout;
use crate::stats::{Fact, What};

/// Bins of every direction that has a source.
#[derive(Debug)]
pub(crate) struct Series {
    width: Duration,
    count: usize,
    /// By peer; empty for a side without a source.
    bins: Vec<Vec<Bin>>,
    /// By peer: the bins in which the rung of the ladder changed, and the new rung.
    rungs: Vec<Vec<(usize, u8)>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    generated: u32,
    discarded: u32,
    sent: u32,
    received: u32,
    lost: u32,
    late: u32,
    generated_bytes: u64,
    sent_bytes: u64,
    received_bytes: u64,
    delivered_bytes: u64,
    delay_sum: u64,
    delay_max: u64,
}

impl Series {
    pub(crate) fn new(layout: &Layout) -> Self {
        let count = layout.bin_count();
        let mut bins = vec![Vec::new(); 2 * layout.flows.len()];
        for direction in layout.directions() {
            bins[direction.peer] = vec![Bin::default(); count];
        }
        let rungs = vec![Vec::new(); bins.len()];
        Self { width: layout.bin_width(), count, bins, rungs }
    }

    pub(crate) fn add(&mut self, now: Instant, fact: &Fact) {
        // Events at the very end of the run belong to the last bin.
        let index = (now.as_nanos() / self.width.as_nanos()) as usize;
        let index = index.min(self.count - 1);
        let Some(bin) = self.bins.get_mut(fact.peer).and_then(|bins| bins.get_mut(index)) else {
            return;
        };
        match fact.what {
            What::Generated { bytes, .. } => {
                bin.generated += 1;
                bin.generated_bytes += u64::from(bytes);
            }
            What::Sent { bytes } => {
                bin.sent += 1;
                bin.sent_bytes += u64::from(bytes);
            }
            What::Received { bytes, delay } => {
                bin.received += 1;
                bin.received_bytes += u64::from(bytes);
                bin.delay_sum += delay.as_nanos();
                bin.delay_max = bin.delay_max.max(delay.as_nanos());
            }
            What::Lost => bin.lost += 1,
            What::Late { .. } => bin.late += 1,
            What::Delivered { bytes, .. } => bin.delivered_bytes += u64::from(bytes),
            What::Encoding { rung } => self.rungs[fact.peer].push((index, rung)),
            What::Discarded => bin.discarded += 1,
            What::HandedOver { .. } | What::Played { .. } => {}
        }
    }

    /// The rung at the end of a bin.
    fn rung(&self, peer: usize, bin: usize) -> Option<u64> {
        let changes = &self.rungs[peer];
        let until = changes.partition_point(|(at, _)| *at <= bin);
        let rung = until.checked_sub(1).map_or(0, |last| changes[last].1);
        (!changes.is_empty()).then_some(rung.into())
    }

    pub(crate) fn table(&self, layout: &Layout) -> RecordBatch {
        let names: Vec<String> = layout.directions().map(|direction| direction.name()).collect();
        let voice: Vec<bool> =
            layout.directions().map(|direction| direction.source.frame.is_some()).collect();
        let ends: Vec<Instant> = (0..self.count).map(|index| layout.bin_end(index)).collect();
        let lengths: Vec<f64> = (0..self.count)
            .map(|index| ends[index] - (Instant::ZERO + self.width * index as u64))
            .map(Duration::as_secs_f64)
            .collect();
        let count = self.count;
        let bins = || layout.directions().flat_map(|direction| &self.bins[direction.peer]);
        let received = |bin: &Bin, nanos: f64| (bin.received > 0).then(|| nanos / 1e9);
        Columns::default()
            .text("flow", names.iter().flat_map(|name| (0..count).map(|_| name.as_str())))
            .time("time_s", names.iter().flat_map(|_| ends.iter().copied()))
            .count("generated_packets", bins().map(|bin| bin.generated.into()))
            .count("generated_bytes", bins().map(|bin| bin.generated_bytes))
            .count("discarded_packets", bins().map(|bin| bin.discarded.into()))
            .count("sent_packets", bins().map(|bin| bin.sent.into()))
            .count("sent_bytes", bins().map(|bin| bin.sent_bytes))
            .count("received_packets", bins().map(|bin| bin.received.into()))
            .count("received_bytes", bins().map(|bin| bin.received_bytes))
            .maybe_float(
                "goodput_bps",
                bins().enumerate().map(|(row, bin)| {
                    let seconds = lengths[row % count];
                    (seconds > 0.0).then(|| bin.delivered_bytes as f64 * 8.0 / seconds)
                }),
            )
            .count("lost_packets", bins().map(|bin| bin.lost.into()))
            .maybe_float(
                "delay_mean_s",
                bins().map(|bin| received(bin, bin.delay_sum as f64 / f64::from(bin.received))),
            )
            .maybe_float("delay_max_s", bins().map(|bin| received(bin, bin.delay_max as f64)))
            .maybe_count(
                "late_packets",
                bins().enumerate().map(|(row, bin)| voice[row / count].then(|| bin.late.into())),
            )
            .maybe_count(
                "encoding",
                layout.directions().flat_map(|direction| {
                    (0..count).map(move |bin| self.rung(direction.peer, bin))
                }),
            )
            .finish()
    }
}
