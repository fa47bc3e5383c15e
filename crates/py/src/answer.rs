//! The answer of a run or a study, from its flows tables.

use std::cell::RefCell;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;
use talkspurt_answer::{Frames, MAX_FLOWS, METRICS, Runs, answer as answered};

/// The answer (JSON of `talkspurt_answer::Answer`) to an input (JSON of `talkspurt_answer::Input`). `details`
/// has the methods of `talkspurt_answer::Runs`: `flow` and `network` return JSON or None, `frames` the fields
/// of `talkspurt_answer::Frames` or None. They are called only where something is to be explained.
#[pyfunction]
pub(crate) fn answer(input: &str, details: Bound<'_, PyAny>) -> PyResult<String> {
    let input = serde_json::from_str(input).map_err(invalid)?;
    let runs = Called { details, failed: RefCell::default() };
    let found = answered(&input, &runs);
    match runs.failed.into_inner() {
        Some(failure) => Err(failure),
        None => serde_json::to_string(&found).map_err(invalid),
    }
}

/// The metrics of flows that an answer reads.
#[pyfunction]
pub(crate) fn answer_metrics() -> [&'static str; METRICS.len()] {
    METRICS
}

fn invalid(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Runs that Python reads.
struct Called<'py> {
    details: Bound<'py, PyAny>,
    /// The first failure of Python.
    failed: RefCell<Option<PyErr>>,
}

impl Called<'_> {
    fn kept<T>(&self, found: PyResult<Option<T>>) -> Option<T> {
        found.unwrap_or_else(|failure| {
            self.failed.borrow_mut().get_or_insert(failure);
            None
        })
    }

    fn json(&self, found: PyResult<Bound<'_, PyAny>>) -> Option<Value> {
        let text = self.kept(found.and_then(|found| found.extract::<Option<String>>()))?;
        self.kept(serde_json::from_str(&text).map(Some).map_err(invalid))
    }
}

impl Runs for Called<'_> {
    fn flow(&self, run: usize, flow: &str) -> Option<Value> {
        self.json(self.details.call_method1("flow", (run, flow)))
    }

    fn network(&self, run: usize) -> Option<Value> {
        self.json(self.details.call_method1("network", (run, MAX_FLOWS)))
    }

    fn frames(&self, run: usize, flow: &str) -> Option<Frames> {
        let found = self.details.call_method1("frames", (run, flow)).and_then(|found| {
            let found = found.extract::<Option<Bound<'_, PyDict>>>()?;
            found.map(|found| frames_of(&found)).transpose()
        });
        self.kept(found)
    }
}

fn frames_of(found: &Bound<'_, PyDict>) -> PyResult<Frames> {
    let of = |name: &str| found.as_any().get_item(name);
    let (from, to) = of("window")?.extract()?;
    Ok(Frames {
        window: from..to,
        captured: of("captured")?.extract()?,
        handed_over: of("handed_over")?.extract()?,
        delivered: of("delivered")?.extract()?,
        playout: of("playout")?.extract()?,
        fate: of("fate")?.extract()?,
        cwnd: of("cwnd")?.extract()?,
        flight: of("flight")?.extract()?,
        opened: of("opened")?.extract()?,
        frame_bytes: of("frame_bytes")?.extract()?,
    })
}
