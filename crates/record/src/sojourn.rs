//! Queueing times of packets: from the note that a link enqueued a packet to the note that its transmission
//! began, independent of the discipline.

use talkspurt_proto::packet::BodyId;
use talkspurt_proto::probe::{Note, Place};
use talkspurt_proto::time::{Duration, Instant};

use crate::layout::Layout;
use crate::recorder::quantile_s;

/// Sojourn times of every link.
#[derive(Debug)]
pub(crate) struct Sojourns {
    from: Instant,
    to: Instant,
    width: Duration,
    /// Enqueue time, by the slot of the packet's body: a packet is in one queue at a time.
    since: Vec<Instant>,
    links: Vec<Waits>,
}

#[derive(Clone, Debug, Default)]
struct Waits {
    /// For packets whose transmission began in the measure window, in nanoseconds.
    inside: Vec<u64>,
    bins: Vec<Bin>,
}

/// For packets whose transmission began in a bin of the series.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bin {
    sum: Duration,
    packets: u64,
    longest: Duration,
}

/// Over the measure window, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sojourn {
    /// Mean.
    pub mean_s: Option<f64>,
    /// Half were shorter.
    pub p50_s: Option<f64>,
    /// 95 % were shorter.
    pub p95_s: Option<f64>,
    /// 99 % were shorter.
    pub p99_s: Option<f64>,
    /// Longest.
    pub max_s: Option<f64>,
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
    pub(crate) fn new(layout: &Layout) -> Self {
        Self {
            from: layout.from,
            to: layout.to,
            width: layout.bin_width(),
            since: Vec::new(),
            links: vec![Waits::default(); layout.links.len()],
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
        let Some(waits) = self.links.get_mut(link) else { return };
        // Like counters between samples: an event at an edge belongs to the interval that ends there.
        if (self.from < now || now == Instant::ZERO && self.from == now) && now <= self.to {
            waits.inside.push(wait.as_nanos());
        }
        let bin = now.as_nanos().div_ceil(self.width.as_nanos()).saturating_sub(1) as usize;
        if bin >= waits.bins.len() {
            waits.bins.resize(bin + 1, Bin::default());
        }
        let bin = &mut waits.bins[bin];
        bin.sum += wait;
        bin.packets += 1;
        bin.longest = bin.longest.max(wait);
    }

    /// Over the measure window, per link.
    pub(crate) fn summaries(&mut self) -> impl Iterator<Item = Sojourn> {
        self.links.iter_mut().map(|waits| {
            let nanos = &mut waits.inside;
            let sum: Duration = nanos.iter().map(|wait| Duration::from_nanos(*wait)).sum();
            Sojourn {
                mean_s: (!nanos.is_empty()).then(|| sum.as_secs_f64() / nanos.len() as f64),
                p50_s: quantile_s(nanos, 50),
                p95_s: quantile_s(nanos, 95),
                p99_s: quantile_s(nanos, 99),
                max_s: quantile_s(nanos, 100),
            }
        })
    }

    /// The bin of a link's series that ends at an instant.
    pub(crate) fn bin(&self, link: u32, end: Instant) -> Option<&Bin> {
        let index = end.as_nanos().div_ceil(self.width.as_nanos()).checked_sub(1)?;
        self.links.get(link as usize)?.bins.get(index as usize)
    }
}
