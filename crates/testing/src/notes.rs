use talkspurt_proto::probe::{Gauge, Note, Place, Probe, RxError, Topic};
use talkspurt_proto::time::Instant;

/// A probe that keeps the notes of an endpoint.
#[derive(Debug, Default)]
pub struct Notes {
    /// Reasons for rejected packets.
    pub rx_error: Vec<RxError>,
    /// Values of gauges.
    pub gauges: Vec<(Instant, Gauge, f64)>,
}

impl Notes {
    /// The last value of a gauge.
    #[must_use]
    pub fn last(&self, gauge: Gauge) -> Option<f64> {
        self.at(gauge, Instant::HORIZON)
    }

    /// The value of a gauge at an instant.
    #[must_use]
    pub fn at(&self, gauge: Gauge, when: Instant) -> Option<f64> {
        self.series(gauge).take_while(|note| note.0 <= when).last().map(|note| note.1)
    }

    /// All values of a gauge.
    pub fn series(&self, gauge: Gauge) -> impl Iterator<Item = (Instant, f64)> + '_ {
        self.gauges.iter().filter(move |note| note.1 == gauge).map(|note| (note.0, note.2))
    }

    /// Mean over time of a gauge, which keeps its value until the next note.
    #[must_use]
    pub fn mean(&self, gauge: Gauge, from: Instant, to: Instant) -> f64 {
        let (mut area, mut last) = (0.0, (from, self.at(gauge, from).unwrap_or(0.0)));
        for (when, value) in self.series(gauge).filter(|note| note.0 > from && note.0 <= to) {
            area += last.1 * when.saturating_since(last.0).as_secs_f64();
            last = (when, value);
        }
        area += last.1 * to.saturating_since(last.0).as_secs_f64();
        area / to.saturating_since(from).as_secs_f64()
    }
}

impl Probe for Notes {
    fn wants(&self, _: Topic) -> bool {
        true
    }
    fn record(&mut self, now: Instant, _: Place, note: &Note<'_>) {
        match note {
            Note::RxError(rx_error) => self.rx_error.push(*rx_error),
            Note::Gauge { gauge, value } => self.gauges.push((now, *gauge, *value)),
            _ => {}
        }
    }
}
