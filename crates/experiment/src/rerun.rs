//! A run once more, for the sake of one probe: with nothing kept in memory but what happened since the
//! links were last settled.

use std::sync::atomic::Ordering;

use talkspurt_flow::{Disk, Materials};
use talkspurt_proto::probe::Probe;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_scenario::Point;
use talkspurt_sim::build;
use talkspurt_sim::drive::{Timetable, drive};

use crate::Shared;
use crate::layout::window;

/// How often links are settled, so that what they told can be put in order.
pub const BARRIER: Duration = Duration::from_millis(50);

/// Runs a point under a probe, which is asked at each barrier whether it has `enough`; the probe, and
/// the instant before which everything has been told to it.
///
/// # Errors
/// Words for what could not be read, or "cancelled".
pub(crate) fn again<P: Probe>(
    point: &Point,
    probe: P,
    shared: &Shared,
    mut enough: impl FnMut(Instant, &mut P) -> bool,
) -> Result<(P, Instant), String> {
    let Point { scenario, network, .. } = point;
    let materials = Materials::load(scenario, &Disk)?;
    let mut world = build::build(scenario, network, &materials, probe);
    let timetable = Timetable {
        duration: scenario.duration,
        interval: BARRIER,
        window: window(scenario),
        settle: None,
    };
    let mut stopped = None;
    let finished = drive(&mut world, &timetable, &shared.cancel, |now, _, probe| {
        shared.passed.store(now.as_nanos(), Ordering::Relaxed);
        if stopped.is_none() && enough(now, probe) {
            stopped = Some(now);
            shared.cancel.store(true, Ordering::Relaxed);
        }
    });
    match stopped {
        Some(now) => Ok((world.probe, now)),
        None if finished => Ok((world.probe, Instant::ZERO + scenario.duration)),
        None => Err("cancelled".to_owned()),
    }
}
