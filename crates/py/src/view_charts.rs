//! The charts of a report, from tables of Python.

use std::collections::BTreeMap;

use arrow_array::RecordBatchReader as _;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::json;
use talkspurt_record::Table;
use talkspurt_view::{Rows, Run, bars, over_time};

use crate::outcome::STREAM;

/// Objects with the Arrow PyCapsule interface, by name of the table.
type Tables<'py> = BTreeMap<String, Bound<'py, PyAny>>;

/// The charts and the bars of a run as JSON; `told` is the JSON of `talkspurt_view::Told`.
#[pyfunction]
pub(crate) fn charts(py: Python<'_>, tables: Tables<'_>, told: &str) -> PyResult<String> {
    let (tables, told) = read(tables, told)?;
    Ok(py.detach(|| {
        let run = Run::of(tables, told);
        json!({ "charts": talkspurt_view::charts(&run), "bars": bars(&run) }).to_string()
    }))
}

/// The windows of a direction of a call as JSON, from the tables of flows and frames.
#[pyfunction]
pub(crate) fn opinion(tables: Tables<'_>, told: &str, flow: &str, bin_s: f64) -> PyResult<String> {
    let (tables, told) = read(tables, told)?;
    Ok(json!(over_time(&Run::of(tables, told), flow, bin_s)).to_string())
}

/// What is shown of the inside of senders as JSON: see `talkspurt_view::GAUGE_LINES`.
#[pyfunction]
pub(crate) fn gauge_lines() -> String {
    json!(talkspurt_view::GAUGE_LINES).to_string()
}

fn read(
    tables: Tables<'_>,
    told: &str,
) -> PyResult<(impl Fn(&str) -> Rows + Send, talkspurt_view::Told)> {
    let invalid = |error: serde_json::Error| PyValueError::new_err(error.to_string());
    let told = serde_json::from_str(told).map_err(invalid)?;
    let tables: BTreeMap<_, _> = tables
        .into_iter()
        .map(|(name, table)| Ok((name, taken(&table)?)))
        .collect::<PyResult<_>>()?;
    let rows = move |name: &str| tables.get(name).map(Rows::of).unwrap_or_default();
    Ok((rows, told))
}

/// An object with the Arrow PyCapsule interface as a table.
#[expect(unsafe_code, reason = "the interface passes a pointer")]
pub(crate) fn taken(table: &Bound<'_, PyAny>) -> PyResult<Table> {
    let capsule = table.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds a stream, which is moved out of it; the capsule outlives this.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
    let invalid = |error| PyValueError::new_err(format!("{error}"));
    let reader = RecordBatchStreamReader::try_new(stream).map_err(invalid)?;
    let schema = reader.schema();
    Ok(Table { schema, batches: reader.collect::<Result<_, _>>().map_err(invalid)? })
}
