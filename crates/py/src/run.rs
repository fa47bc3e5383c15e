//! A run or export in progress in its own thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use talkspurt_app::file::Disk;
use talkspurt_experiment::{Counts, Failure, Finished, Format, Shared};
use talkspurt_record::{Shown, StoreError, Tables};
use talkspurt_scenario::Point;

use crate::RunError;
use crate::outcome::{Outcome, Table};

/// A failure as Python sees it.
pub(crate) enum Failed {
    /// RunError of this kind.
    Run(&'static str, String),
    /// OSError.
    Store(StoreError),
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Store(error) => Self::Store(error),
            other => Self::Run(other.kind(), other.to_string()),
        }
    }
}

impl Failed {
    pub(crate) fn raised(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Run(kind, words) => {
                let error = RunError::new_err(words);
                error.value(py).setattr("kind", kind).map_or_else(|why| why, |()| error)
            }
            Self::Store(StoreError { path, error }) => {
                PyOSError::new_err((error.raw_os_error(), error.to_string(), path))
            }
        }
    }
}

/// Work in its own thread, and its result.
pub(crate) struct Work<T> {
    done: Arc<(Mutex<bool>, Condvar)>,
    thread: Mutex<Option<JoinHandle<Result<T, Failed>>>>,
}

impl<T: Send + 'static> Work<T> {
    pub(crate) fn start<E: Into<Failed>>(
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Self {
        let done = Arc::<(Mutex<bool>, Condvar)>::default();
        let inner = Arc::clone(&done);
        let thread = std::thread::spawn(move || {
            let attempt = AssertUnwindSafe(|| work().map_err(Into::into));
            let result = catch_unwind(attempt)
                .unwrap_or_else(|panic| Err(Failed::Run("internal", words(panic.as_ref()))));
            *inner.0.lock().expect("nothing panics under this lock") = true;
            inner.1.notify_all();
            result
        });
        Self { done, thread: Mutex::new(Some(thread)) }
    }

    pub(crate) fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        let limit = std::time::Duration::from_secs_f64(seconds.clamp(0.0, 3600.0));
        py.detach(|| {
            let done = self.done.0.lock().expect("nothing panics under this lock");
            let waited = self.done.1.wait_timeout_while(done, limit, |done| !*done);
            *waited.expect("nothing panics under this lock").0
        })
    }

    pub(crate) fn result(&self, py: Python<'_>) -> PyResult<T> {
        let thread = self.thread.lock().expect("nothing panics under this lock").take();
        let thread = thread.ok_or_else(|| RunError::new_err("the result was already taken"))?;
        match py.detach(|| thread.join()) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(failed)) => Err(failed.raised(py)),
            Err(_) => Err(RunError::new_err("the run's thread ended without a result")),
        }
    }
}

/// Work on a point of a scenario, with its progress.
pub(crate) struct Worker<T> {
    run: Arc<Shared>,
    duration: u64,
    work: Work<T>,
}

impl<T: Send + 'static> Worker<T> {
    pub(crate) fn start<E: Into<Failed>>(
        point: Point,
        work: impl FnOnce(&Point, &Shared) -> Result<T, E> + Send + 'static,
    ) -> Self {
        let run = Arc::<Shared>::default();
        let duration = point.scenario.duration.as_nanos();
        let inner = Arc::clone(&run);
        Self { run, duration, work: Work::start(move || work(&point, &inner)) }
    }

    pub(crate) fn progress(&self) -> f64 {
        self.run.passed.load(Ordering::Relaxed) as f64 / self.duration.max(1) as f64
    }

    pub(crate) fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        self.work.wait(py, seconds)
    }

    pub(crate) fn cancel(&self) {
        self.run.cancel.store(true, Ordering::Relaxed);
    }

    pub(crate) fn result(&self, py: Python<'_>) -> PyResult<T> {
        self.work.result(py)
    }
}

/// A run in progress.
#[pyclass(frozen)]
pub(crate) struct Run(Worker<Finished>);

impl Run {
    pub(crate) fn start(point: Point, folder: Option<PathBuf>, tables: Tables) -> Self {
        let run = move |point: &Point, shared: &Shared| {
            talkspurt_experiment::run(point, &Disk, folder.as_deref(), tables, shared)
        };
        Self(Worker::start(point, run))
    }
}

#[pymethods]
impl Run {
    /// Fraction of simulated time passed, 0 to 1.
    fn progress(&self) -> f64 {
        self.0.progress()
    }
    /// Waits at most this many seconds; true if the run has ended.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        self.0.wait(py, seconds)
    }
    /// Asks the run to stop; `result` then raises RunError("cancelled").
    fn cancel(&self) {
        self.0.cancel();
    }
    /// The results of the run; waits for its end. Can be called once. Raises OSError with the file's name if
    /// a table could not be written.
    fn result(&self, py: Python<'_>) -> PyResult<Outcome> {
        self.0.result(py).map(Outcome::new)
    }
}

/// An export in progress.
#[pyclass(frozen)]
pub(crate) struct Export(Worker<String>);

impl Export {
    pub(crate) fn start(point: Point, format: Format, folder: PathBuf) -> Self {
        let export = move |point: &Point, shared: &Shared| {
            talkspurt_experiment::export(point, &Disk, format, &folder, shared)
        };
        Self(Worker::start(point, export))
    }
}

#[pymethods]
impl Export {
    /// Fraction of simulated time passed, 0 to 1.
    fn progress(&self) -> f64 {
        self.0.progress()
    }
    /// Waits at most this many seconds; true if the export has ended.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        self.0.wait(py, seconds)
    }
    /// Asks the export to stop; `result` then raises RunError("cancelled").
    fn cancel(&self) {
        self.0.cancel();
    }
    /// The digest of the exported run; waits for its end. Can be called once.
    fn result(&self, py: Python<'_>) -> PyResult<String> {
        self.0.result(py)
    }
}

/// An excerpt in progress.
#[pyclass(frozen)]
pub(crate) struct Excerpt(Worker<Shown>);

impl Excerpt {
    pub(crate) fn start(point: Point, lossless: bool) -> Self {
        let stretch = move |point: &Point, shared: &Shared| {
            talkspurt_experiment::excerpt(point, &Disk, lossless, shared)
        };
        Self(Worker::start(point, stretch))
    }
}

#[pymethods]
impl Excerpt {
    /// Waits at most this many seconds; true if the excerpt is complete.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        self.0.wait(py, seconds)
    }
    /// Asks it to stop; `result` then raises RunError("cancelled").
    fn cancel(&self) {
        self.0.cancel();
    }
    /// Start and end in seconds, and a table of its packets; waits for its end. Can be called
    /// once.
    fn result(&self, py: Python<'_>) -> PyResult<(f64, f64, Table)> {
        let shown = self.0.result(py)?;
        Ok((shown.from.as_secs_f64(), shown.to.as_secs_f64(), Table::new(shown.hops)))
    }
}

/// Per link its name, transmissions, bytes and drops; packets sent; changes of gauges.
type Counted = (Vec<(String, u64, u64, u64)>, u64, u64);

/// A counting run in progress.
#[pyclass(frozen)]
pub(crate) struct Count(Worker<Counts>);

impl Count {
    pub(crate) fn start(point: Point) -> Self {
        Self(Worker::start(point, |point: &Point, shared: &Shared| {
            talkspurt_experiment::count(point, &Disk, shared)
        }))
    }
}

#[pymethods]
impl Count {
    /// Fraction of simulated time passed, 0 to 1.
    fn progress(&self) -> f64 {
        self.0.progress()
    }
    /// Waits at most this many seconds; true if the run has ended.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        self.0.wait(py, seconds)
    }
    /// Asks the run to stop; `result` then raises RunError("cancelled").
    fn cancel(&self) {
        self.0.cancel();
    }
    /// Per link direction its name, transmissions, bytes, and drops; then packets sent by endpoints, and
    /// changes of their gauges; all for the whole run. Waits for its end. Can be called once.
    fn result(&self, py: Python<'_>) -> PyResult<Counted> {
        let counts = self.0.result(py)?;
        let links = counts.links.into_iter();
        let links = links.map(|link| (link.name, link.hops, link.bytes, link.drops));
        Ok((links.collect(), counts.packets, counts.changes))
    }
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let said = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no words");
    format!("internal error, please report it with the scenario or the command: {said}")
}
