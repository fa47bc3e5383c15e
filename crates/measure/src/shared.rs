//! What the media loop of one end shares with the thread that watches the control connection.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use talkspurt_live::Clock;
use talkspurt_proto::time::{Duration, Instant};

use crate::devices::Devices;
use crate::lock::lock;
use crate::notes::Row;

/// What happened in a call since the last sample.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) at: Instant,
    pub(crate) rows: Vec<Row>,
    /// Frames played so far, by encoding.
    pub(crate) heard: Vec<u64>,
}

/// State shared with the thread that watches the control connection.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Nanoseconds passed at this end.
    pub(crate) passed: AtomicU64,
    /// The clock starts.
    pub(crate) started: AtomicBool,
    over: AtomicBool,
    why: Mutex<Option<String>>,
    /// Runs since a user has asked for the end.
    left: OnceLock<Clock>,
    /// Of a call, not yet looked at.
    pub(crate) samples: Mutex<Vec<Sample>>,
    /// The state of a call as JSON, for a user who watches it.
    pub(crate) view: Mutex<Option<String>>,
    /// Of a call in agreed codecs, if there are any.
    pub(crate) devices: Mutex<Option<Arc<Devices>>>,
}

impl Shared {
    /// Ends the measurement early; the first reason stays.
    pub(crate) fn stop(&self, why: &str) {
        let mut said = lock(&self.why);
        said.get_or_insert_with(|| why.to_owned());
        self.over.store(true, Ordering::Release);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Whether a user has asked for the end so long ago.
    pub(crate) fn is_left_for(&self, time: Duration) -> bool {
        self.left.get().is_some_and(|clock| clock.now() >= Instant::ZERO + time)
    }

    pub(crate) fn why(&self) -> Option<String> {
        lock(&self.why).clone()
    }
}

/// The state of a measurement that another thread watches.
#[derive(Clone, Default)]
pub struct Watch(pub(crate) Arc<Shared>);

impl Watch {
    /// Time passed.
    #[must_use]
    pub fn passed(&self) -> Duration {
        Duration::from_nanos(self.0.passed.load(Ordering::Relaxed))
    }

    /// The state of a call as JSON, since there is one.
    #[must_use]
    pub fn view(&self) -> Option<String> {
        lock(&self.0.view).clone()
    }

    /// The sound devices of a call in agreed codecs, if it has any.
    #[must_use]
    pub fn devices(&self) -> Option<Arc<Devices>> {
        lock(&self.0.devices).clone()
    }

    /// Ends the measurement early, or hangs up; results are of the time until now. What the other end has not
    /// told within ten seconds is left out.
    pub fn stop(&self) {
        self.0.left.get_or_init(Clock::start);
        self.0.stop(STOPPED);
    }
}

/// The reason of [`Watch::stop`].
pub(crate) const STOPPED: &str = "stopped";
