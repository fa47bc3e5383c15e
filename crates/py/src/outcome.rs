//! Results of a run, as Python sees them.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::Mutex;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatchIterator};
use arrow_schema::DataType;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyString};
use serde_json::{Value, json};
use talkspurt_experiment::{Finished, columns, type_name};
use talkspurt_proto::gauge::Gauge;
use talkspurt_proto::metric::Metric;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_record::{Layout, Options, Recorder, Recording, Table as Batches};

/// The stream name of the Arrow PyCapsule interface.
pub(crate) const STREAM: &CStr = c"arrow_array_stream";

/// Results of a run.
#[pyclass(frozen)]
pub(crate) struct Outcome {
    finished: Finished,
}

impl Outcome {
    pub(crate) fn new(finished: Finished) -> Self {
        Self { finished }
    }

    fn batches(&self, name: &str) -> PyResult<Batches> {
        let table = self.finished.recording.table(name);
        table.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }
}

/// See [`Outcome::audio`].
type Sound<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, u32, usize, f64);

#[pymethods]
impl Outcome {
    /// Digest over the canonical event records, hexadecimal.
    #[getter]
    fn digest(&self) -> &str {
        &self.finished.digest
    }
    /// Transmissions begun on any link.
    #[getter]
    fn hops(&self) -> u64 {
        self.finished.hops
    }
    /// Wake-ups performed.
    #[getter]
    fn events(&self) -> u64 {
        self.finished.events
    }
    /// CPU time of the run's thread in seconds.
    #[getter]
    fn cpu_s(&self) -> f64 {
        self.finished.cpu_s
    }
    /// Simulated seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.finished.duration_s
    }

    /// Names of the tables that are in files of the run's folder.
    #[getter]
    fn stored(&self) -> Vec<&'static str> {
        self.finished.recording.stored().to_vec()
    }

    /// A table by name that is in memory, as an object with the Arrow PyCapsule interface.
    fn table(&self, name: &str) -> PyResult<Table> {
        Ok(Table { batches: self.batches(name)? })
    }

    /// Columns of a table without rows, and their types as polars names them.
    fn columns<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        for field in self.batches(name)?.schema.fields() {
            found.set_item(field.name(), type_name(field.data_type()))?;
        }
        Ok(found)
    }

    /// The rows of a table that is in memory.
    fn rows<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mut rows = Vec::new();
        for batch in &self.batches(name)?.batches {
            let first = rows.len();
            rows.extend((0..batch.num_rows()).map(|_| PyDict::new(py)));
            for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                // One string object per column, and one for consecutive rows of the same text.
                let name = PyString::new(py, field.name());
                let mut last = (None, py.None().into_bound(py));
                for (index, row) in rows[first..].iter().enumerate() {
                    row.set_item(&name, cell(py, column, index, &mut last)?)?;
                }
            }
        }
        Ok(rows)
    }

    /// Sent and received speech of a flow, 16-bit little endian, the sample rate, the channels, and when the
    /// first sample was captured.
    fn audio<'py>(&self, py: Python<'py>, flow: &str) -> Option<Sound<'py>> {
        let audio = self.finished.audio.iter().find(|audio| audio.flow == flow)?;
        let (sent, received) = (pcm(py, &audio.sent), pcm(py, &audio.received));
        Some((sent, received, audio.sample_rate, audio.channels, audio.start_s))
    }
}

/// Rows of the tables of flows and links of several runs.
#[pyclass(frozen)]
#[derive(Default)]
pub(crate) struct Summaries(Mutex<talkspurt_record::Summaries>);

#[pymethods]
impl Summaries {
    #[new]
    fn new() -> Self {
        Self::default()
    }
    /// Adds the rows of a run.
    fn add(&self, run: u64, outcome: &Outcome) {
        let mut all = self.0.lock().expect("nothing panics under this lock");
        all.add(run, &outcome.finished.recording);
    }
    /// The rows of a table that were added since the last call, behind a column `run`.
    fn take(&self, name: &str) -> PyResult<Table> {
        let found = self.0.lock().expect("nothing panics under this lock").take(name);
        found.map(Table::new).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }
}

/// All metrics of a run as JSON: the columns of flows and links, and the gauges.
#[pyfunction]
pub(crate) fn metrics() -> String {
    let tables = [
        ("flows", talkspurt_record::FLOW_METRICS),
        ("links", talkspurt_record::LINK_METRICS),
        ("gauges", Gauge::METRICS),
    ];
    let entry = |table: &str, metric: &Metric| {
        json!({
            "name": metric.name, "table": table, "label": metric.label, "unit": metric.unit,
            "shown_unit": metric.shown_unit, "scale": metric.scale, "digits": metric.digits,
            "meaning": metric.meaning.trim(), "formula": metric.formula, "source": metric.source,
            "better": metric.better, "known": metric.known, "least": metric.min,
            "bound": metric.bound,
            "title": metric.title, "long_title": metric.long_title, "study_title": metric.study_title,
            "shown": metric.shown.iter().map(|it| (it.view, it.place, it.rank, it.below))
                .collect::<Vec<_>>(),
            // JSON has no infinity.
            "most": metric.max.is_finite().then_some(metric.max),
        })
    };
    let all = tables.iter().flat_map(|(table, all)| all.iter().map(|one| entry(table, one)));
    Value::Array(all.collect()).to_string()
}

/// The types of the columns of every table, as polars names them, by table and column; as JSON.
#[pyfunction]
pub(crate) fn types() -> PyResult<String> {
    let layout = Layout {
        flows: Vec::new(),
        links: Vec::new(),
        routes: Vec::new(),
        colours: BTreeMap::new(),
        from: Instant::ZERO,
        to: Instant::ZERO,
        duration: Duration::ZERO,
        interval: Duration::ZERO,
    };
    let empty = Recorder::new(layout, Options { gauges: true, sojourn: true }).finish()?;
    let tables = Recording::TABLES.into_iter();
    let types = tables.filter_map(|name| Some((name.to_owned(), columns(&empty, name)?)));
    Ok(Value::Object(types.collect()).to_string())
}

/// A table to be passed to Python.
#[pyclass(frozen)]
pub(crate) struct Table {
    batches: Batches,
}

impl Table {
    pub(crate) fn new(batches: Batches) -> Self {
        Self { batches }
    }
}

#[pymethods]
impl Table {
    /// The Arrow C stream; a requested schema is ignored, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.batches.schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }
}

/// A value of a table; None if it is null. `last` is the last text of the column.
fn cell<'py, 'a>(
    py: Python<'py>,
    column: &'a ArrayRef,
    row: usize,
    last: &mut (Option<&'a str>, Bound<'py, PyAny>),
) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match column.data_type() {
        DataType::Utf8 => {
            let text = column.as_string::<i32>().value(row);
            if last.0 != Some(text) {
                *last = (Some(text), PyString::new(py, text).into_any());
            }
            last.1.clone()
        }
        DataType::Int64 => {
            column.as_primitive::<Int64Type>().value(row).into_pyobject(py)?.into_any()
        }
        _ => column.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any(),
    })
}

pub(crate) fn pcm<'py>(py: Python<'py>, samples: &[i16]) -> Bound<'py, PyBytes> {
    let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    PyBytes::new(py, &bytes)
}
