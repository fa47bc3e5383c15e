//! The picture of a network, and the packets that move in it, for a report.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use talkspurt_view::{Network, Rows};

use crate::view_charts::taken;

/// The picture (JSON of `talkspurt_view::Picture`) of a network (JSON of `talkspurt_experiment::topology`);
/// None without nodes. `flows` is an Arrow table with the columns `name`, `transport` and `source`.
#[pyfunction]
pub(crate) fn picture(network: &str, flows: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let found = talkspurt_view::picture(&read(network)?, &rows(flows)?);
    Ok(found.map(|picture| serde_json::to_string(&picture).expect("a picture is plain data")))
}

/// The animation of an excerpt of a run (JSON of `talkspurt_view::animation`); `hops` is the excerpt's table.
#[pyfunction]
pub(crate) fn animation(
    network: &str,
    flows: &Bound<'_, PyAny>,
    hops: &Bound<'_, PyAny>,
    interval_s: (f64, f64),
    most: usize,
    begins: &str,
) -> PyResult<String> {
    let (network, flows, hops) = (read(network)?, rows(flows)?, rows(hops)?);
    let found = talkspurt_view::animation(&network, &flows, &hops, interval_s, most, begins);
    Ok(found.to_string())
}

/// Warnings about an Arrow table of flows, of a run or a whole study.
#[pyfunction]
pub(crate) fn cautions(flows: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    Ok(talkspurt_view::cautions(&rows(flows)?))
}

fn read(network: &str) -> PyResult<Network> {
    serde_json::from_str(network).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn rows(table: &Bound<'_, PyAny>) -> PyResult<Rows> {
    Ok(Rows::of(&taken(table)?))
}
