//! Queueing times of packets: from the note that a link enqueued a packet to the note that its transmission
//! began, independent of the discipline.

use std::io;

use talkspurt_proto::packet::BodyId;
use talkspurt_proto::probe::{Note, Place};
use talkspurt_proto::time::{Duration, Instant};

use crate::layout::Layout;
use crate::quantiles::Delays;
use crate::spool::Beyond;

/// Sojourn times of every link.
#[derive(Debug)]
pub(crate) struct Sojourns {
    from: Instant,
    to: Instant,
    width: Duration,
    /// Enqueue time, by the slot of the packet's body: a packet is in one queue at a time.
    since: Vec<Instant>,
    /// By link, of packets whose transmission began in the measure window.
    inside: Delays,
    /// By link.
    bins: Vec<Vec<Bin>>,
}

/// For packets whose transmission began in a bin of the series.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bin {
    sum: Duration,
    packets: u64,
    longest: Duration,
}

impl Bin {
    pub(crate) fn mean_s(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.sum.as_secs_f64() / self.packets as f64)
    }
    pub(crate) fn max_s(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.longest.as_secs_f64())
    }
}

impl Sojourns {
    /// Times that exceed the memory go to `beyond`.
    pub(crate) fn new(layout: &Layout, beyond: Beyond) -> Self {
        Self {
            from: layout.from,
            to: layout.to,
            width: layout.bin_width(),
            since: Vec::new(),
            inside: Delays::new(layout.links.len(), beyond),
            bins: vec![Vec::new(); layout.links.len()],
        }
    }

    pub(crate) fn take(&mut self, now: Instant, place: Place, note: &Note<'_>) {
        let Place::Link(link) = place else { return };
        match note {
            Note::Enqueued { packet, .. } => {
                let BodyId(slot) = packet.body;
                let slot = slot as usize;
                if slot >= self.since.len() {
                    self.since.resize(slot + 1, Instant::ZERO);
                }
                self.since[slot] = now;
            }
            Note::Dequeued { packet, .. } => {
                let BodyId(slot) = packet.body;
                let Some(since) = self.since.get(slot as usize).copied() else { return };
                self.began(now, link as usize, now.saturating_since(since));
            }
            _ => {}
        }
    }

    fn began(&mut self, now: Instant, link: usize, wait: Duration) {
        let Some(bins) = self.bins.get_mut(link) else { return };
        // Like counters between samples: an event at an edge belongs to the interval that ends there.
        if (self.from < now || now == Instant::ZERO && self.from == now) && now <= self.to {
            self.inside.push(link, wait);
        }
        let bin = now.as_nanos().div_ceil(self.width.as_nanos()).saturating_sub(1) as usize;
        if bin >= bins.len() {
            bins.resize(bin + 1, Bin::default());
        }
        let bin = &mut bins[bin];
        bin.sum += wait;
        bin.packets += 1;
        bin.longest = bin.longest.max(wait);
    }

    /// Over the measure window, in seconds: mean, quantiles of 50, 95 and 99 %, and maximum.
    ///
    /// # Errors
    /// A temporary file cannot be read.
    pub(crate) fn summary(&mut self, link: usize) -> io::Result<[Option<f64>; 5]> {
        let mean = self.inside.mean_s(link)?;
        let [p50, p95, p99, max] = self.inside.quantiles_s(link, [50, 95, 99, 100])?;
        Ok([mean, p50, p95, p99, max])
    }

    /// The bin of a link's series that ends at an instant.
    pub(crate) fn bin(&self, link: usize, end: Instant) -> Option<&Bin> {
        let index = end.as_nanos().div_ceil(self.width.as_nanos()).checked_sub(1)?;
        self.bins.get(link)?.get(index as usize)
    }
}
