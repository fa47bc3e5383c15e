//! `talkspurt._core`: the seam to Python. Text goes in, Arrow comes out; a run has its own thread
//! and gives the interpreter back while Python waits for it.
//!
//! `plan::Plan` is a scenario file read and checked; `run::Run` is one of its runs at work,
//! `run::Export` one written for another tool, `run::Excerpt` a part of one for the
//! report, `run::Count` one of which nothing is kept but how much it sends; `outcome::Outcome` is what
//! came of it, and `opinion` scores a part of a call. The `experiment` crate does the work.

mod opinion;
mod outcome;
mod plan;
mod run;

use pyo3::prelude::*;

pyo3::create_exception!(
    _core,
    RunError,
    pyo3::exceptions::PyRuntimeError,
    "A run could not be finished."
);

/// The compiled part of talkspurt.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("ScenarioError", plan::scenario_error(py)?)?;
    module.add("RunError", py.get_type::<RunError>())?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<run::Run>()?;
    module.add_class::<run::Export>()?;
    module.add_class::<run::Excerpt>()?;
    module.add_class::<run::Count>()?;
    module.add_class::<outcome::Outcome>()?;
    module.add_function(wrap_pyfunction!(plan::load, module)?)?;
    module.add_function(wrap_pyfunction!(outcome::metrics, module)?)?;
    module.add_function(wrap_pyfunction!(plan::schema, module)?)?;
    module.add_function(wrap_pyfunction!(plan::values, module)?)?;
    module.add_function(wrap_pyfunction!(plan::lines, module)?)?;
    module.add_function(wrap_pyfunction!(opinion::opinion, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    Ok(())
}

/// The version of the compiled part.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
