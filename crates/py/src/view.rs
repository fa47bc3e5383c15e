//! The picture of a network, and the packets that move in it, for a report.

use indexmap::IndexMap;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use talkspurt_view::{Network, Rows};

/// The picture (JSON of `talkspurt_view::Picture`) of a network (JSON of `talkspurt_experiment::topology`); None
/// without nodes. `flows` has the columns `name`, `transport` and `source`.
#[pyfunction]
pub(crate) fn picture(network: &str, flows: &Bound<'_, PyDict>) -> PyResult<Option<String>> {
    let found = talkspurt_view::picture(&read(network)?, &rows(flows)?);
    Ok(found.map(|picture| serde_json::to_string(&picture).expect("a picture is plain data")))
}

/// The animation of an excerpt of a run (JSON of `talkspurt_view::animation`); `hops` has the columns of the
/// excerpt's table.
#[pyfunction]
pub(crate) fn animation(
    network: &str,
    flows: &Bound<'_, PyDict>,
    hops: &Bound<'_, PyDict>,
    interval_s: (f64, f64),
    most: usize,
    begins: &str,
) -> PyResult<String> {
    let (network, flows, hops) = (read(network)?, rows(flows)?, rows(hops)?);
    let found = talkspurt_view::animation(&network, &flows, &hops, interval_s, most, begins);
    Ok(found.to_string())
}

fn read(network: &str) -> PyResult<Network> {
    serde_json::from_str(network).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The rows of columns of numbers or texts.
fn rows(columns: &Bound<'_, PyDict>) -> PyResult<Rows> {
    let (mut numbers, mut texts) = (IndexMap::new(), IndexMap::new());
    for (name, values) in columns {
        let name: String = name.extract()?;
        if let Ok(values) = values.extract::<Vec<Option<f64>>>() {
            numbers.insert(name, values);
        } else {
            texts.insert(name, values.extract::<Vec<Option<String>>>()?);
        }
    }
    Ok(Rows::with(numbers, texts))
}
