//! Repeats a run for one probe, keeping in memory only events since the links were last settled, such as one
//! that collects the packets that a report animates.

use std::sync::atomic::Ordering;

use talkspurt_flow::{Files, Materials};
use talkspurt_proto::probe::{LinkCounters, Probe};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_record::{Begin, Excerpt, Shown};
use talkspurt_scenario::Point;
use talkspurt_sim::build;
use talkspurt_sim::drive::{Timetable, drive};

use crate::layout::{layout, window};
use crate::{Failure, Shared};

/// How often links are settled, so that their events can be put in order.
pub const BARRIER: Duration = Duration::from_millis(50);

/// A probe that a run is repeated for. The world is made for all of them alike: for each one, it would be
/// compiled again.
pub(crate) trait Repeated: Probe {
    /// Whether the run may stop before its end. `counters` are those of the links so far.
    fn has_enough(&mut self, now: Instant, counters: &[LinkCounters]) -> bool;
}

/// Runs a point with a probe and stops at the first barrier where it has enough. Returns the instant before
/// which it has received all events. Packets have sound only if it `is_heard`.
///
/// # Errors
/// A file cannot be read, or `shared` asks the run to stop.
pub(crate) fn again(
    point: &Point,
    files: &dyn Files,
    probe: &mut dyn Repeated,
    is_heard: bool,
    shared: &Shared,
) -> Result<Instant, Failure> {
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
    let finished = drive(&mut world, &timetable, &shared.cancel, |now, counters, probe| {
        shared.passed.store(now.as_nanos(), Ordering::Relaxed);
        let share = now.as_nanos() as f64 / scenario.duration.as_nanos().max(1) as f64;
        let enough = probe.has_enough(now, counters);
        if stopped.is_none() && enough {
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
            Ok(now)
        }
        None if finished => Ok(Instant::ZERO + scenario.duration),
        None => Err(Failure::Cancelled),
    }
}

impl Repeated for Excerpt {
    fn has_enough(&mut self, now: Instant, _: &[LinkCounters]) -> bool {
        self.complete(now)
    }
}

/// The packets of the scenario's excerpt (`record.animation`), and why it begins where it does: as `asked` by
/// the scenario, else around the first `drop` in the measurement window, or, for a run that is `lossless`
/// there, at the start of the `window`.
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
        let layout = layout(scenario, network);
        let mut probe = Excerpt::new(layout, begin, to, asked.packets as usize);
        let now = again(point, files, &mut probe, false, shared)?;
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
