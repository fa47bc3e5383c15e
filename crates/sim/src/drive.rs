//! Drives a world from its start to its end, stopping at the edges where it is to be looked at.

use std::sync::atomic::{AtomicBool, Ordering};

use talkspurt_proto::probe::{LinkCounters, Probe};
use talkspurt_proto::time::{Duration, Instant};

use crate::world::World;

/// When a run is to be looked at.
#[derive(Clone, Copy, Debug)]
pub struct Timetable {
    /// Its length.
    pub duration: Duration,
    /// Width of a bin of the series.
    pub interval: Duration,
    /// The window of measurement.
    pub window: (Instant, Instant),
}

impl Timetable {
    /// The next edge after `now`: end of a bin, edge of the window, end of the run.
    fn after(&self, now: Instant) -> Instant {
        let bins = now.as_nanos() / self.interval.as_nanos().max(1) + 1;
        let end = Instant::ZERO + self.duration;
        [Instant::ZERO + self.interval * bins, self.window.0, self.window.1]
            .into_iter()
            .filter(|edge| *edge > now)
            .fold(end, Instant::min)
    }
}

/// Runs `world` to its end; at every edge the links are settled and their counters shown.
/// False if `cancel` was set before the end; it is heeded at every edge and every few thousand events.
pub fn drive<P: Probe>(
    world: &mut World<P>,
    timetable: &Timetable,
    cancel: &AtomicBool,
    mut look: impl FnMut(Instant, &[LinkCounters], &mut P),
) -> bool {
    let end = Instant::ZERO + timetable.duration;
    look(Instant::ZERO, &world.counters(), &mut world.probe);
    while world.now() < end {
        let cancelled = cancel.load(Ordering::Relaxed);
        if cancelled || !world.run_until(timetable.after(world.now()), cancel) {
            return false;
        }
        world.settle();
        let counters = world.counters();
        world.forget_maxima();
        look(world.now(), &counters, &mut world.probe);
    }
    world.assert_conservation();
    true
}
