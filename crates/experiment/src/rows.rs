//! A run once more, for its `packets` table: batch after batch while it goes on, so that a run of any
//! length can be written.

use std::sync::atomic::Ordering;

use talkspurt_proto::time::Duration;
use talkspurt_record::{Digest, PacketRows, Table};
use talkspurt_scenario::Point;
use talkspurt_sim::build;
use talkspurt_sim::drive::{Timetable, drive};

use crate::Shared;
use crate::layout::{layout, window};

/// How often finished batches are looked for.
const BARRIER: Duration = Duration::from_millis(50);

/// Runs a point and gives each batch of its `packets` table to `give`, in order; the run's digest.
/// `give` says whether it wants more.
///
/// # Errors
/// Words for what could not be read, or "cancelled".
pub fn rows(
    point: &Point,
    shared: &Shared,
    mut give: impl FnMut(Table) -> bool,
) -> Result<String, String> {
    let Point { scenario, network, .. } = point;
    let materials = build::materials(scenario)?;
    let probe = (Digest::new(), PacketRows::new(layout(scenario, network)));
    let mut world = build::build(scenario, network, &materials, probe);
    let timetable =
        Timetable { duration: scenario.duration, interval: BARRIER, window: window(scenario) };
    let finished = drive(&mut world, &timetable, &shared.cancel, |now, _, (_, rows)| {
        shared.passed.store(now.as_nanos(), Ordering::Relaxed);
        while let Some(batch) = rows.take() {
            if !give(batch) {
                shared.cancel.store(true, Ordering::Relaxed);
                return;
            }
        }
    });
    let (digest, rows) = world.probe;
    if finished && rows.rest().into_iter().all(give) {
        return Ok(digest.hex());
    }
    Err("cancelled".to_owned())
}
