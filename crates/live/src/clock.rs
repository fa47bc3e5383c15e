//! The one wall clock: here, and in the simulator's schedule, an [`Instant`] comes into being.

use std::time;

use talkspurt_proto::time::Instant;

/// A clock whose origin is the moment it was started. It never goes back.
#[derive(Clone, Copy, Debug)]
pub struct Clock(time::Instant);

impl Clock {
    /// A clock that starts now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "real time begins here, and only here")]
    pub fn start() -> Self {
        Self(time::Instant::now())
    }

    /// What it shows.
    #[must_use]
    pub fn now(&self) -> Instant {
        // 64 bits of nanoseconds last 584 years.
        Instant::from_nanos(self.0.elapsed().as_nanos() as u64)
    }
}
