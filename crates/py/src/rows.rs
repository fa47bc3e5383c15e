//! The packets of a run as batches, handed over while it goes on.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};

use pyo3::prelude::*;
use talkspurt_experiment::Shared;
use talkspurt_record::Table as Batch;
use talkspurt_scenario::Point;

use crate::outcome::Table;
use crate::run::Worker;

/// Batches that may wait to be taken; then the run does.
const WAITING: usize = 1;

/// A run at work, whose packets are taken batch by batch.
#[pyclass(frozen)]
pub(crate) struct Rows {
    worker: Worker<String>,
    /// Gone when it was cancelled: the run, if it waits to hand something over, then ends.
    batches: Mutex<Option<Receiver<Batch>>>,
}

impl Rows {
    pub(crate) fn start(point: Point) -> Self {
        let (give, batches) = sync_channel(WAITING);
        let work = move |point: &Point, shared: &Shared| {
            talkspurt_experiment::rows(point, shared, |batch| give.send(batch).is_ok())
        };
        Self { worker: Worker::start(point, work), batches: Mutex::new(Some(batches)) }
    }
}

#[pymethods]
impl Rows {
    /// The part of simulated time that has passed, 0 to 1.
    fn progress(&self) -> f64 {
        self.worker.progress()
    }
    /// Waits at most this many seconds; true when the run has ended, though a batch may still wait.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        self.worker.wait(py, seconds)
    }
    /// The next batch, if there is one within so many seconds.
    fn batch(&self, py: Python<'_>, seconds: f64) -> Option<Table> {
        let limit = std::time::Duration::from_secs_f64(seconds.clamp(0.0, 3600.0));
        py.detach(|| {
            let batches = self.batches.lock().expect("nothing panics under this lock");
            let batch = batches.as_ref()?.recv_timeout(limit).ok()?;
            Some(Table::new(batch))
        })
    }
    /// Asks the run to stop; `result` then raises RunError("cancelled").
    fn cancel(&self) {
        self.worker.cancel();
        *self.batches.lock().expect("nothing panics under this lock") = None;
    }
    /// The digest of the run; waits for its end. Can be asked once.
    fn result(&self, py: Python<'_>) -> PyResult<String> {
        self.worker.result(py)
    }
}
