//! `talkspurt._core`: the interface to Python. Text goes in, Arrow comes out; a run has its own thread
//! and releases the interpreter while Python waits for it.
//!
//! `plan::Plan` is a parsed and checked scenario file; `run::Job` is work in progress: one of its runs, an
//! export to another tool, a part of a run for the report, or a run that only counts what it sends;
//! `outcome::Outcome` is a run's result, and `opinion` scores a part of a call; `emulation` runs one in real
//! time, with packets of programs; `measure` serves and makes measurements of real paths and calls over them,
//! `call` has voices and devices, `options` reads their options; `capture` reads a capture file. `av` gives the
//! engine the codecs of PyAV. The crates `experiment`, `emulate` and `measure` do the work.

mod answer;
mod av;
#[cfg(target_os = "linux")]
mod call;
mod capture;
#[cfg(target_os = "linux")]
mod emulation;
#[cfg(target_os = "linux")]
mod measure;
mod opinion;
#[cfg(target_os = "linux")]
mod options;
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
    av::register();
    module.add("ScenarioError", plan::scenario_error(py)?)?;
    let run_error = py.get_type::<RunError>();
    // Of those that Python raises.
    run_error.setattr("kind", py.None())?;
    module.add("RunError", run_error)?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<plan::ColumnMeanings>()?;
    module.add_class::<run::Job>()?;
    #[cfg(target_os = "linux")]
    {
        module.add_class::<emulation::Emulation>()?;
        module.add_function(wrap_pyfunction!(emulation::flow_end, module)?)?;
        module.add_function(wrap_pyfunction!(emulation::nodes, module)?)?;
        module.add_function(wrap_pyfunction!(emulation::way, module)?)?;
    }
    module.add_class::<outcome::Outcome>()?;
    module.add_function(wrap_pyfunction!(plan::load, module)?)?;
    module.add_function(wrap_pyfunction!(outcome::metrics, module)?)?;
    module.add_function(wrap_pyfunction!(outcome::types, module)?)?;
    module.add_function(wrap_pyfunction!(plan::schema, module)?)?;
    module.add_function(wrap_pyfunction!(plan::recording_seconds, module)?)?;
    module.add_function(wrap_pyfunction!(plan::values, module)?)?;
    module.add_function(wrap_pyfunction!(plan::lines, module)?)?;
    module.add_function(wrap_pyfunction!(opinion::opinion, module)?)?;
    module.add_function(wrap_pyfunction!(opinion::quality, module)?)?;
    module.add_function(wrap_pyfunction!(answer::answer, module)?)?;
    module.add_function(wrap_pyfunction!(answer::answer_metrics, module)?)?;
    module.add_function(wrap_pyfunction!(capture::capture, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    #[cfg(target_os = "linux")]
    {
        module.add_class::<measure::Server>()?;
        module.add_class::<measure::Session>()?;
        module.add_class::<measure::Watched>()?;
        module.add_class::<call::CallVoice>()?;
        module.add_class::<call::CallDevices>()?;
        module.add_class::<call::CallSockets>()?;
        module.add_class::<call::CallWatch>()?;
        module.add_function(wrap_pyfunction!(call::call_codecs, module)?)?;
        module.add_function(wrap_pyfunction!(options::check_address, module)?)?;
        module.add_function(wrap_pyfunction!(measure::check_flows, module)?)?;
        module.add_function(wrap_pyfunction!(options::check_length, module)?)?;
        module.add_function(wrap_pyfunction!(measure::check_transport, module)?)?;
        module.add_function(wrap_pyfunction!(measure::rate_bps, module)?)?;
        module.add_function(wrap_pyfunction!(measure::serve, module)?)?;
        module.add_function(wrap_pyfunction!(measure::answer_call, module)?)?;
    }
    Ok(())
}

/// The version of the compiled part.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
