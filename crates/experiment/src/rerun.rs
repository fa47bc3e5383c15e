//! Repeats a run for one probe, keeping in memory only events since the links were last settled, such as one
//! that collects the packets that a report animates.

use std::sync::atomic::Ordering;

use talkspurt_flow::{Files, Materials};
use talkspurt_proto::probe::Probe;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_record::{Begin, Excerpt, Shown};
use talkspurt_scenario::Point;
use talkspurt_sim::build;
use talkspurt_sim::drive::{Timetable, drive};

use crate::layout::{layout, window};
use crate::{Failure, Shared};

/// How often links are settled, so that their events can be put in order.
pub const BARRIER: Duration = Duration::from_millis(50);

/// Runs a point with a probe and stops at the first barrier where `enough` is true. Returns the probe
/// and the instant before which it has received all events. Packets have sound only if it `is_heard`.
///
/// # Errors
/// A file cannot be read, or `shared` asks the run to stop.
pub(crate) fn again<P: Probe>(
    point: &Point,
    files: &dyn Files,
    probe: P,
    is_heard: bool,
    shared: &Shared,
    mut enough: impl FnMut(Instant, &mut P) -> bool,
) -> Result<(P, Instant), Failure> {
    let Point { scenario, network, .. } = point;
    let materials = Materials::load(scenario, files).map_err(Failure::Input)?;
    let materials = if is_heard { materials } else { materials.unheard() };
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
        let share = now.as_nanos() as f64 / scenario.duration.as_nanos().max(1) as f64;
        if stopped.is_none() && enough(now, probe) {
            stopped = Some(now);
            shared.cancel.store(true, Ordering::Relaxed);
        } else if shared.watch.is_some_and(|watch| !watch(share)) {
            shared.cancel.store(true, Ordering::Relaxed);
        }
    });
    match stopped {
        Some(now) => {
            // Another run may follow.
            shared.cancel.store(false, Ordering::Relaxed);
            Ok((world.probe, now))
        }
        None if finished => Ok((world.probe, Instant::ZERO + scenario.duration)),
        None => Err(Failure::Cancelled),
    }
}

/// The packets of the scenario's excerpt (`record.animation`), and why it begins where it does: as `asked` by
/// the scenario, else around the first `drop` in the measurement window, or, for a run that is `lossless` there,
/// at the start of the `window`.
///
/// # Errors
/// A file cannot be read, or `shared` asks the run to stop.
pub fn excerpt(
    point: &Point,
    files: &dyn Files,
    lossless: bool,
    shared: &Shared,
) -> Result<(&'static str, Shown), Failure> {
    let point = &*point.expanded();
    let Point { scenario, network, .. } = point;
    let asked = &scenario.record.animation;
    let to = Instant::ZERO + asked.to.unwrap_or(scenario.duration);
    let found = |begin| {
        let probe = Excerpt::new(layout(scenario, network), begin, to, asked.packets as usize);
        let (probe, now) =
            again(point, files, probe, false, shared, |now, probe| probe.complete(now))?;
        Ok(probe.finish(now))
    };
    if let Some(from) = asked.from {
        return Ok(("asked", found(Begin::At(Instant::ZERO + from))?));
    }
    if !lossless {
        let shown = found(Begin::BeforeDrop(0))?;
        if shown.drops > 0 {
            return Ok(("drop", shown));
        }
    }
    Ok(("window", found(Begin::At(window(scenario).0))?))
}
