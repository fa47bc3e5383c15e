//! Options of measurements and calls as text, and their failures.

use std::net::SocketAddr;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use talkspurt_measure::Failure;
use talkspurt_proto::time::Duration;

use crate::run::Failed;

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self::Run(failure.kind(), failure.to_string())
    }
}

pub(crate) fn failed(failure: Failure) -> PyErr {
    Python::attach(|py| Failed::from(failure).raised(py))
}

pub(crate) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    name: &str,
    text: &str,
) -> PyResult<T> {
    text.parse().map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

pub(crate) fn address(option: &str, text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| {
        let words = format!("{option} {text}: expected ADDRESS:PORT, as in 127.0.0.1:7862");
        PyValueError::new_err(words)
    })
}

/// Checks text such as 127.0.0.1:7862; raises ValueError.
#[pyfunction]
pub(crate) fn check_address(option: &str, text: &str) -> PyResult<()> {
    address(option, text).map(drop)
}

/// The length of a measurement or a call, or a limit of it.
pub(crate) fn length(option: &str, text: &str) -> PyResult<Duration> {
    let found = parsed::<Duration>(option, text)?;
    if !(Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&found) {
        let words = format!("{option} {text}: expected 1 s to 1 h");
        return Err(PyValueError::new_err(words));
    }
    Ok(found)
}

/// Checks text such as 2min, from 1 s to 1 h; raises ValueError.
#[pyfunction]
pub(crate) fn check_length(option: &str, text: &str) -> PyResult<()> {
    length(option, text).map(drop)
}
