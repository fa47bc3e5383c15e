//! Work in progress in its own thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use talkspurt_experiment::{Failure, Shared};
use talkspurt_record::StoreError;
use talkspurt_scenario::Point;

use crate::RunError;

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

/// Makes an object of Python of a result.
pub(crate) type Made = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// Work in its own thread, and its result.
#[pyclass(frozen, subclass)]
pub(crate) struct Job {
    done: Arc<(Mutex<bool>, Condvar)>,
    thread: Mutex<Option<JoinHandle<Result<Made, Failed>>>>,
    progress: Box<dyn Fn() -> f64 + Send + Sync>,
    cancel: Box<dyn Fn() + Send + Sync>,
}

impl Job {
    /// Starts work whose result is `made` an object of Python. `progress` is from 0 to 1, and `cancel` asks the
    /// work to end.
    pub(crate) fn start<T: Send + 'static, E: Into<Failed>>(
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
        made: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
        progress: impl Fn() -> f64 + Send + Sync + 'static,
        cancel: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let done = Arc::<(Mutex<bool>, Condvar)>::default();
        let inner = Arc::clone(&done);
        let thread = std::thread::spawn(move || {
            let attempt = AssertUnwindSafe(|| work().map_err(Into::into));
            let result = catch_unwind(attempt)
                .unwrap_or_else(|panic| Err(Failed::Run("internal", words(panic.as_ref()))));
            *inner.0.lock().expect("nothing panics under this lock") = true;
            inner.1.notify_all();
            result.map(|result| Box::new(move |py: Python<'_>| made(py, result)) as Made)
        });
        let thread = Mutex::new(Some(thread));
        Self { done, thread, progress: Box::new(progress), cancel: Box::new(cancel) }
    }

    /// Starts work on a point of a scenario.
    pub(crate) fn on<T: Send + 'static, E: Into<Failed>>(
        point: Point,
        work: impl FnOnce(&Point, &Shared) -> Result<T, E> + Send + 'static,
        made: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let run = Arc::<Shared>::default();
        let duration = point.scenario.duration.as_nanos().max(1) as f64;
        let [inner, watched, cancelled] = [(); 3].map(|()| Arc::clone(&run));
        Self::start(
            move || work(&point, &inner),
            made,
            move || watched.passed.load(Ordering::Relaxed) as f64 / duration,
            move || cancelled.cancel.store(true, Ordering::Relaxed),
        )
    }
}

#[pymethods]
impl Job {
    /// Fraction of its time passed, 0 to 1; 0 of an end of a flow.
    fn progress(&self) -> f64 {
        (self.progress)()
    }
    /// Waits at most this many seconds; true if it has ended.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        let limit = std::time::Duration::from_secs_f64(seconds.clamp(0.0, 3600.0));
        py.detach(|| {
            let done = self.done.0.lock().expect("nothing panics under this lock");
            let waited = self.done.1.wait_timeout_while(done, limit, |done| !*done);
            *waited.expect("nothing panics under this lock").0
        })
    }
    /// Asks it to stop; `result` of a run then raises RunError("cancelled").
    fn cancel(&self) {
        (self.cancel)();
    }
    /// The result; waits for it. Can be called once. Raises RunError, and OSError with the file's name if a
    /// table could not be written.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let thread = self.thread.lock().expect("nothing panics under this lock").take();
        let thread = thread.ok_or_else(|| RunError::new_err("the result was already taken"))?;
        match py.detach(|| thread.join()) {
            Ok(Ok(made)) => made(py),
            Ok(Err(failed)) => Err(failed.raised(py)),
            Err(_) => Err(RunError::new_err("the run's thread ended without a result")),
        }
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
