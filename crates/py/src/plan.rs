//! A parsed and checked scenario file: the runs it requests.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyType};
use talkspurt_app::file::Disk;
use talkspurt_app::recording::Recording;
use talkspurt_experiment::{Format, count, excerpt, export, memory, run, topology};
use talkspurt_record::{Folder, Meanings, Tables};
use talkspurt_scenario::model::{Flow, Scale};
use talkspurt_scenario::{Alike, Point, Problems, Sampled, Sampling, Study, Use};

use crate::outcome::{Outcome, Table};
use crate::run::Job;

/// How often Ctrl-C is checked while a scenario is read.
const STEP: Duration = Duration::from_millis(50);

static SCENARIO_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// `ScenarioError`: all errors of a scenario, in `problems`.
pub(crate) fn scenario_error(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    let made = SCENARIO_ERROR.get_or_try_init(py, || {
        let code = CString::new(
            "class ScenarioError(ValueError):\n    \
             \"\"\"All that is wrong with a scenario: `problems`, a list of dicts with the keys \
             file, line, path, message and hint.\"\"\"\n\n    \
             def __init__(self, message, problems):\n        \
             super().__init__(message)\n        \
             self.problems = problems\n",
        )?;
        let module = PyModule::from_code(py, &code, c"errors.py", c"talkspurt._core")?;
        let class = module.getattr("ScenarioError")?.cast_into::<PyType>()?;
        Ok::<_, PyErr>(class.unbind())
    })?;
    Ok(made.bind(py).clone())
}

fn raise(py: Python<'_>, problems: &Problems) -> PyErr {
    let attempt = || -> PyResult<PyErr> {
        let list = PyList::empty(py);
        for problem in &problems.0 {
            let entry = PyDict::new(py);
            entry.set_item("file", &problem.file)?;
            entry.set_item("line", problem.line)?;
            entry.set_item("path", &problem.path)?;
            entry.set_item("message", &problem.message)?;
            entry.set_item("hint", &problem.hint)?;
            list.append(entry)?;
        }
        let error = scenario_error(py)?.call1((problems.to_string(), list))?;
        Ok(PyErr::from_value(error))
    };
    attempt().unwrap_or_else(|error| error)
}

/// Reads a scenario; without `series`, it may have more bins than fit memory, and with `hosts`, it needs no
/// flow. In Python's main thread, Ctrl-C ends the wait for it.
#[pyfunction]
#[pyo3(signature = (text, name, base, sets, seed=None, sample=None, *, series=true, hosts=false))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn load(
    py: Python<'_>,
    text: &str,
    name: &str,
    base: PathBuf,
    sets: Vec<(String, String)>,
    seed: Option<u64>,
    sample: Option<Py<PyAny>>,
    series: bool,
    hosts: bool,
) -> PyResult<Plan> {
    let (text, name) = (text.to_owned(), name.to_owned());
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let (send, receive) = std::sync::mpsc::channel();
    let receive = Mutex::new(receive);
    let thread = std::thread::spawn(move || {
        let stopped = || stopped.load(Ordering::Relaxed);
        let sample = |asked: &Sampling| sampled(sample.as_ref(), asked);
        let wanted = Use { files: &Disk, sample: &sample, stopped: &stopped, series, hosts };
        let read = talkspurt_scenario::load_for(&text, &name, &base, &sets, seed, &wanted);
        drop(send.send(read));
    });
    loop {
        let wait = || receive.lock().expect("nothing panics under this lock").recv_timeout(STEP);
        match py.detach(wait) {
            Ok(study) => return study.map(Plan::of).map_err(|problems| raise(py, &problems)),
            // After Ctrl-C the reading thread continues until it sees `stop`.
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals().inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
            }
            Err(RecvTimeoutError::Disconnected) => {
                let panic = thread.join().expect_err("a thread that sent nothing has panicked");
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Points of the unit cube from Python's function, or why there are none.
fn sampled(sample: Option<&Py<PyAny>>, asked: &Sampling) -> Result<Vec<Vec<f64>>, String> {
    let sample = sample.ok_or("a design needs a function that samples it")?;
    Python::attach(|py| {
        let arguments = (&asked.kind, asked.samples, asked.dimensions, asked.seed);
        sample.call1(py, arguments)?.extract(py)
    })
    .map_err(|error: PyErr| error.to_string())
}

/// The values of a resolved scenario as JSON, each quantity an object of text, value and unit.
#[pyfunction]
pub(crate) fn values(resolved: &str) -> PyResult<String> {
    let values = talkspurt_scenario::values(resolved).map_err(PyValueError::new_err)?;
    Ok(values.to_string())
}

/// The line of each key of a scenario's text.
#[pyfunction]
pub(crate) fn lines(text: &str) -> Vec<(String, u32)> {
    talkspurt_scenario::lines(text)
}

/// The duration of a WAV file in seconds.
#[pyfunction]
pub(crate) fn recording_seconds(file: PathBuf) -> PyResult<f64> {
    let read = Recording::seconds(&Disk, &file);
    read.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The JSON Schema of a scenario.
#[pyfunction]
pub(crate) fn schema() -> String {
    format!("{:#}", talkspurt_scenario::schema())
}

/// What the columns of a run's tables mean: JSON by table and column. Converted once for all runs.
#[pyclass(frozen, name = "Meanings")]
pub(crate) struct ColumnMeanings(Arc<Meanings>);

#[pymethods]
impl ColumnMeanings {
    #[new]
    fn new(meanings: Meanings) -> Self {
        Self(Arc::new(meanings))
    }
}

/// A scenario file: the product of its axes and replications.
#[pyclass(frozen)]
pub(crate) struct Plan {
    /// Of each point the first replication alone: others have another seed, and would take memory.
    study: Study,
}

impl Plan {
    fn of(mut study: Study) -> Self {
        study.points.retain(|point| point.replicate == 0);
        study.points.shrink_to_fit();
        Self { study }
    }

    /// The first replication of a run's point, and which one the run is.
    fn first(&self, index: usize) -> PyResult<(&Point, u32)> {
        let count = self.study.replications as usize;
        let outside = || PyIndexError::new_err(format!("run {index} of {}", self.__len__()));
        let point = self.study.points.get(index / count).ok_or_else(outside)?;
        Ok((point, (index % count) as u32))
    }

    pub(crate) fn point(&self, index: usize) -> PyResult<Point> {
        self.first(index).map(|(first, replicate)| first.replicated(replicate))
    }
}

#[pymethods]
impl Plan {
    /// A one-line title for tables and reports.
    #[getter]
    fn title(&self) -> &str {
        &self.study.title
    }
    /// A Markdown description for the report.
    #[getter]
    fn description(&self) -> &str {
        &self.study.description
    }
    /// How files were read where that may surprise.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.study.notes.clone()
    }
    /// Confidence level of intervals.
    #[getter]
    fn confidence(&self) -> f64 {
        self.study.confidence
    }
    /// Runs per combination.
    #[getter]
    fn replications(&self) -> u32 {
        self.study.replications
    }
    /// The axes: name, path, labels of the values, and the values as numbers with their unit, if they are
    /// quantities of the same kind; `factor` tells how a factor of a design is sampled.
    #[getter]
    fn axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for axis in &self.study.axes {
            let entry = PyDict::new(py);
            entry.set_item("name", &axis.name)?;
            entry.set_item("path", &axis.path)?;
            entry.set_item("labels", &axis.labels)?;
            entry.set_item("unit", axis.numbers.as_ref().map(|numbers| numbers.unit))?;
            entry.set_item("numbers", axis.numbers.as_ref().map(|numbers| &numbers.values[..]))?;
            let factor = axis.factor.map(|sampled| match sampled {
                Sampled::Range(Scale::Linear) => "linear",
                Sampled::Range(Scale::Log) => "log",
                Sampled::Values => "values",
            });
            entry.set_item("factor", factor)?;
            list.append(entry)?;
        }
        Ok(list)
    }
    /// The design: kind, points of its sample, whether it has those for sensitivity indices, and points in
    /// all. None without one.
    #[getter]
    fn design<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(design) = &self.study.design else { return Ok(None) };
        let entry = PyDict::new(py);
        entry.set_item("kind", &design.kind)?;
        entry.set_item("samples", design.samples)?;
        entry.set_item("indices", design.indices)?;
        entry.set_item("points", design.points)?;
        Ok(Some(entry))
    }
    fn __len__(&self) -> usize {
        self.study.points.len() * self.study.replications as usize
    }
    /// Axis name → label of one run.
    fn settings<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyDict>> {
        let settings = PyDict::new(py);
        for (axis, label) in &self.first(index)?.0.settings {
            settings.set_item(axis, label)?;
        }
        Ok(settings)
    }
    /// Replication number of one run, from 0.
    fn replicate(&self, index: usize) -> PyResult<u32> {
        Ok(self.first(index)?.1)
    }
    /// Seed of one run.
    fn seed(&self, index: usize) -> PyResult<u64> {
        let (first, replicate) = self.first(index)?;
        Ok(first.seed(replicate))
    }
    /// Flows of one run whose packets may differ between machines.
    fn machine_dependent(&self, index: usize) -> PyResult<Vec<String>> {
        let depends = |flow: &Flow| {
            let sources = [Some(&flow.source), flow.reverse.as_ref()];
            sources.into_iter().flatten().any(|it| it.is_machine_dependent())
        };
        let alike = self.first(index)?.0.scenario.alike();
        let depending = alike.iter().filter(|alike| depends(&alike.flow));
        Ok(depending.flat_map(Alike::names).collect())
    }
    /// One run as TOML with all defaults; groups of flows as written.
    fn resolved(&self, index: usize) -> PyResult<String> {
        Ok(talkspurt_scenario::to_toml(&self.point(index)?.scenario))
    }
    /// Whether one run writes captures or a table of packets, while it proceeds.
    fn writes_packets(&self, index: usize) -> PyResult<bool> {
        let record = &self.first(index)?.0.scenario.record;
        Ok(record.packets || !record.pcapng.is_empty())
    }
    /// The network of one run as JSON, for drawing.
    fn topology(&self, index: usize) -> PyResult<String> {
        let (point, _) = self.first(index)?;
        Ok(topology(&point.scenario, &point.network).to_string())
    }
    /// Starts one run; captures and packets that the scenario requests are written to `folder`.
    ///
    /// `tables` besides those of flows and links are in "memory", in files in "folder", or there are "none"; or
    /// those with the given names are in memory. `meanings` are of their columns, for files. Without `heard`,
    /// the run has no sound.
    #[pyo3(signature = (index, folder=None, tables=Wanted::memory(), meanings=None, heard=true))]
    fn start(
        &self,
        index: usize,
        folder: Option<PathBuf>,
        tables: Wanted,
        meanings: Option<&ColumnMeanings>,
        heard: bool,
    ) -> PyResult<Job> {
        let tables = tables_in(&tables, folder.as_deref(), meanings)?;
        Ok(Job::on(
            self.point(index)?,
            move |point, shared| run(point, &Disk, folder.as_deref(), tables, heard, shared),
            |py, finished| Outcome::new(finished).into_py_any(py),
        ))
    }
    /// Bytes that one run takes, beside the program: of its flows and links, and of what it records while it
    /// proceeds; an estimate. See `start`.
    fn memory(&self, index: usize, tables: Wanted, heard: bool) -> PyResult<(u64, u64)> {
        // No file is made: the folder does not matter.
        let tables = tables_in(&tables, Some(Path::new("")), None)?;
        Ok(memory(self.first(index)?.0, &Disk, &tables, heard))
    }
    /// Starts one run and exports it to `folder` as "pcapng", "ns2", "nam", "qlog" or "parquet"; the result is
    /// the digest of the run.
    fn export(&self, index: usize, format: &str, folder: PathBuf) -> PyResult<Job> {
        let format = match format {
            "pcapng" => Format::Pcapng,
            "ns2" => Format::Ns2,
            "nam" => Format::Nam,
            "qlog" => Format::Qlog,
            "parquet" => Format::Parquet,
            other => return Err(PyValueError::new_err(format!("{other}: no such format"))),
        };
        Ok(Job::on(
            self.point(index)?,
            move |point, shared| export(point, &Disk, format, &folder, shared),
            |py, digest| digest.into_py_any(py),
        ))
    }
    /// Starts one run and counts what it sends: per link direction its name, transmissions, bytes, and drops;
    /// then packets sent by endpoints, and changes of their gauges; all for the whole run.
    fn count(&self, index: usize) -> PyResult<Job> {
        Ok(Job::on(
            self.point(index)?,
            |point, shared| count(point, &Disk, shared),
            |py, counts| {
                let links = counts.links.into_iter();
                let links = links.map(|link| (link.name, link.hops, link.bytes, link.drops));
                (links.collect::<Vec<_>>(), counts.packets, counts.changes).into_py_any(py)
            },
        ))
    }
    /// Starts one run up to the end of the excerpt its scenario shows; unless configured, the start
    /// depends on whether the run is `lossless`. The result is why it begins where it does, start and end in
    /// seconds, and a table of its packets.
    fn excerpt(&self, index: usize, lossless: bool) -> PyResult<Job> {
        Ok(Job::on(
            self.point(index)?,
            move |point, shared| excerpt(point, &Disk, lossless, shared),
            |py, (begins, shown)| {
                let (from_s, to_s) = (shown.from.as_secs_f64(), shown.to.as_secs_f64());
                (begins, from_s, to_s, Table::new(shown.hops)).into_py_any(py)
            },
        ))
    }
}

/// See [`Plan::start`].
#[derive(FromPyObject)]
pub(crate) enum Wanted {
    At(String),
    Named(Vec<String>),
}

impl Wanted {
    pub(crate) fn memory() -> Self {
        Self::At("memory".to_owned())
    }
}

/// Where the tables of a run go: see [`Plan::start`].
pub(crate) fn tables_in(
    tables: &Wanted,
    folder: Option<&Path>,
    meanings: Option<&ColumnMeanings>,
) -> PyResult<Tables> {
    let place = match tables {
        Wanted::Named(names) => return Ok(Tables::named(names)),
        Wanted::At(place) => &**place,
    };
    Ok(match (place, folder) {
        ("memory", _) => Tables::memory(),
        ("none", _) => Tables::named(&[]),
        ("folder", Some(path)) => Tables::Folder(Folder {
            path: path.to_owned(),
            meanings: meanings.map(|of| Arc::clone(&of.0)).unwrap_or_default(),
        }),
        _ => return Err(PyValueError::new_err(format!("no folder, or no tables {place:?}"))),
    })
}
