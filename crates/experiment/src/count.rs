//! A run once more with nobody to look on, for what a trace of it would have to hold.

use std::sync::atomic::Ordering;

use talkspurt_flow::{Disk, Materials};
use talkspurt_proto::probe::{Note, Place, Probe, Topic};
use talkspurt_proto::time::Instant;
use talkspurt_scenario::Point;
use talkspurt_sim::build;
use talkspurt_sim::drive::drive;

use crate::Shared;

/// How much a whole run sends, whatever its window of measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Links, each direction by its name, and transmitters of cells.
    pub links: Vec<LinkCounts>,
    /// Packets that endpoints and routers sent.
    pub packets: u64,
    /// Changes of a protocol's inner quantities.
    pub changes: u64,
}

/// How much one direction of a link sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Its name.
    pub name: String,
    /// Transmissions begun.
    pub hops: u64,
    /// Their bytes of IP packet.
    pub bytes: u64,
    /// Packets dropped, before or after their transmission.
    pub drops: u64,
}

/// Runs a point and counts.
///
/// # Errors
/// Words for what could not be read, or "cancelled".
pub fn count(point: &Point, shared: &Shared) -> Result<Counts, String> {
    let Point { scenario, network, .. } = point;
    let materials = Materials::load(scenario, &Disk)?;
    let mut world = build::build(scenario, network, &materials, Counter::default());
    let mut last = Vec::new();
    let finished = drive(
        &mut world,
        &crate::timetable(scenario, false),
        &shared.cancel,
        |now, counters, _| {
            shared.passed.store(now.as_nanos(), Ordering::Relaxed);
            last = counters.to_vec();
        },
    );
    if !finished {
        return Err("cancelled".to_owned());
    }
    let links = network.links.iter().zip(last).map(|(link, counted)| LinkCounts {
        name: link.name.clone(),
        hops: counted.sent_packets,
        bytes: counted.sent_bytes,
        drops: counted.drops.iter().sum(),
    });
    let Counter { packets, changes } = world.probe;
    Ok(Counts { links: links.collect(), packets, changes })
}

/// Counts what links do not.
#[derive(Debug, Default)]
struct Counter {
    packets: u64,
    changes: u64,
}

impl Probe for Counter {
    fn wants(&self, topic: Topic) -> bool {
        matches!(topic, Topic::Packet | Topic::Gauge)
    }

    fn record(&mut self, _: Instant, _: Place, note: &Note<'_>) {
        match note {
            Note::Sent { .. } | Note::Answered { .. } => self.packets += 1,
            Note::Gauge { .. } => self.changes += 1,
            _ => {}
        }
    }
}
