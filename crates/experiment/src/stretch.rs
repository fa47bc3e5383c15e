//! A run once more, as far as it is shown: the packets of the stretch that a report animates.

use std::sync::atomic::Ordering;

use talkspurt_proto::time::{Duration, Instant};
use talkspurt_record::{Shown, Stretch};
use talkspurt_scenario::Point;
use talkspurt_sim::build;
use talkspurt_sim::drive::{Timetable, drive};

use crate::Shared;
use crate::layout::{layout, window};

/// How often links are settled, so that nothing before is still to be told.
const BARRIER: Duration = Duration::from_millis(50);

/// The packets of the stretch that the scenario names (`record.animation`). Where it names no
/// beginning: around the first drop in the window of measurement, or, for a run that is `lossless`
/// there, from the window's beginning.
///
/// # Errors
/// Words for what could not be read, or "cancelled".
pub fn stretch(point: &Point, lossless: bool, shared: &Shared) -> Result<Shown, String> {
    let Point { scenario, network, .. } = point;
    let materials = build::materials(scenario)?;
    let asked = &scenario.record.animation;
    let window = window(scenario);
    let from = asked.from.map(|from| Instant::ZERO + from).or(lossless.then_some(window.0));
    let to = Instant::ZERO + asked.to.unwrap_or(scenario.duration);
    let probe = Stretch::new(layout(scenario, network), from, to, asked.packets as usize);
    let mut world = build::build(scenario, network, &materials, probe);
    let timetable = Timetable { duration: scenario.duration, interval: BARRIER, window };
    let mut told = None;
    let finished = drive(&mut world, &timetable, &shared.cancel, |now, _, probe| {
        shared.passed.store(now.as_nanos(), Ordering::Relaxed);
        if probe.complete(now) {
            told = told.or(Some(now));
            shared.cancel.store(true, Ordering::Relaxed);
        }
    });
    match told {
        Some(now) => Ok(world.probe.finish(now)),
        None if finished => Ok(world.probe.finish(Instant::ZERO + scenario.duration)),
        None => Err("cancelled".to_owned()),
    }
}
