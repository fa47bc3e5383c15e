//! Counts what a trace of a run would contain, by repeating the run without observers.

use std::collections::BTreeMap;

use talkspurt_flow::Files;
use talkspurt_proto::probe::{Gauge, LinkCounters, Note, Place, Probe, Topic};
use talkspurt_proto::time::Instant;
use talkspurt_scenario::Point;

use crate::rerun::{Repeated, again};
use crate::{Failure, Shared};

/// How much a whole run sends, regardless of its measurement window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Directions of links by name, and transmitters of cells.
    pub links: Vec<LinkCounts>,
    /// Packets sent by endpoints and routers.
    pub packets: u64,
    /// Changes of protocol gauges.
    pub changes: u64,
}

/// How much one direction of a link sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Its name.
    pub name: String,
    /// Transmissions begun.
    pub hops: u64,
    /// Bytes of their IP packets.
    pub bytes: u64,
    /// Packets dropped, before or after their transmission.
    pub drops: u64,
}

/// Runs a point and counts.
///
/// # Errors
/// A file cannot be read, or `shared` asks the run to stop.
pub fn count(point: &Point, files: &dyn Files, shared: &Shared) -> Result<Counts, Failure> {
    let point = &*point.expanded();
    let mut counter = Counter::default();
    again(point, files, &mut counter, false, shared)?;
    let Counter { packets, changes, links: last, .. } = counter;
    let links = point.network.links.iter().zip(last).map(|(link, counted)| LinkCounts {
        name: link.name.clone(),
        hops: counted.sent_packets,
        bytes: counted.sent_bytes,
        drops: counted.drops.iter().sum(),
    });
    Ok(Counts { links: links.collect(), packets, changes })
}

/// Counts what links do not count.
#[derive(Debug, Default)]
struct Counter {
    packets: u64,
    changes: u64,
    /// The last value of each gauge, as bits: only changes are kept.
    last: BTreeMap<(Place, Gauge), u64>,
    links: Vec<LinkCounters>,
}

impl Repeated for Counter {
    fn has_enough(&mut self, _: Instant, links: &[LinkCounters]) -> bool {
        self.links = links.to_vec();
        false
    }
}

impl Probe for Counter {
    fn wants(&self, topic: Topic) -> bool {
        matches!(topic, Topic::Packet | Topic::Gauge)
    }

    fn record(&mut self, _: Instant, place: Place, note: &Note<'_>) {
        match note {
            Note::Sent { .. } | Note::Answered { .. } => self.packets += 1,
            Note::Gauge { gauge, value } => {
                let known = self.last.insert((place, *gauge), value.to_bits());
                self.changes += u64::from(known != Some(value.to_bits()));
            }
            _ => {}
        }
    }
}
