//! The wall clock: only here and in the simulator's schedule is an [`Instant`] created.

use std::time;

use talkspurt_proto::time::{Duration, Instant};

/// A monotonic clock whose origin is the moment it was started.
#[derive(Clone, Copy, Debug)]
pub struct Clock(time::Instant);

impl Clock {
    /// A clock that starts now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "real time begins here, and only here")]
    pub fn start() -> Self {
        Self(time::Instant::now())
    }

    /// The same clock, started this much earlier: time that passes for tests only.
    #[must_use]
    pub fn ahead(self, by: Duration) -> Self {
        Self(self.0.checked_sub(time::Duration::from_nanos(by.as_nanos())).unwrap_or(self.0))
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Instant {
        // 64 bits of nanoseconds last 584 years.
        Instant::from_nanos(self.0.elapsed().as_nanos() as u64)
    }
}
