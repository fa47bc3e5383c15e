//! A source's encodings as seen by a controller that selects one: the rate of each rung, including
//! the headers the study counts, and the best rung within a rate.

use super::Rung;
use crate::gauge::{EndpointProbe, Gauge};
use crate::time::{Duration, Instant};
use crate::transport::rate_of;
use crate::units::Rate;

/// The encodings of a source, best first, and the one in use.
#[derive(Clone, Debug)]
pub struct Ladder {
    rungs: Vec<Cost>,
    /// The rung in use.
    pub rung: u8,
    /// Rung last requested; the source begins with the best.
    asked: u8,
    noted: Option<u8>,
}

/// Cost of a rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Bytes counted for each packet: payload handed to the transport, and headers.
    pub packet_bytes: u32,
    /// Time between two packets.
    pub interval: Duration,
    /// Rate of one packet per interval, rounded up to a bit per second.
    pub rate: Rate,
    /// The same without headers: the rate requested from the source.
    pub source_rate: Rate,
}

impl Ladder {
    /// The ladder of a source whose packets count `header_bytes` more than they hand over. Rungs
    /// beyond 256 cannot be numbered and are omitted; the scenario's checks exclude them.
    #[must_use]
    pub fn new(rungs: &[Rung], header_bytes: u32) -> Self {
        let cost = |rung: &Rung| {
            let packet_bytes = rung.packet_bytes.saturating_add(header_bytes);
            Cost {
                packet_bytes,
                interval: rung.interval,
                rate: rate_of(packet_bytes, rung.interval),
                source_rate: rung.rate(),
            }
        };
        let rungs = rungs.iter().take(256).map(cost).collect();
        Self { rungs, rung: 0, asked: 0, noted: None }
    }

    /// The source rate of the rung in use, if it differs from the last one requested.
    pub fn target_rate(&mut self) -> Option<Rate> {
        let before = std::mem::replace(&mut self.asked, self.rung);
        (before != self.rung).then(|| self.cost(self.rung).source_rate)
    }
    /// Notes the rung in use if it has changed.
    pub(super) fn tell<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        if self.noted.replace(self.rung) != Some(self.rung) {
            probe.gauge(now, Gauge::Encoding, f64::from(self.rung));
        }
    }

    /// True for a source without known encodings to choose from.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rungs.is_empty()
    }
    /// Number of rungs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rungs.len()
    }
    /// Number of the lowest rung.
    #[must_use]
    pub fn lowest(&self) -> u8 {
        self.rungs.len().saturating_sub(1) as u8
    }
    /// Cost of a rung; beyond the lowest, that of the lowest.
    ///
    /// # Panics
    /// If the ladder is empty.
    #[must_use]
    pub fn cost(&self, rung: u8) -> Cost {
        self.rungs[usize::from(rung.min(self.lowest()))]
    }
    /// The best rung whose rate is no more than `rate`; `None` below the lowest.
    #[must_use]
    pub fn within(&self, rate: Rate) -> Option<u8> {
        self.rungs.iter().position(|cost| cost.rate <= rate).map(|rung| rung as u8)
    }
}
