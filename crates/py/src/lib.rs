//! `talkspurt._core`: the interface to Python. Text goes in, Arrow comes out; a run has its own thread
//! and releases the interpreter while Python waits for it.
//!
//! `plan::Plan` is a parsed and checked scenario file; `run::Job` is work in progress: one of its runs, an
//! export to another tool, a part of a run for the report, or a run that only counts what it sends;
//! `outcome::Outcome` is a run's result; `view_charts` has the charts of one, and scores of parts of a call;
//! `view` draws networks and packets; `emulation` runs one in real time, with packets of programs; `measure`
//! serves and makes measurements of real paths and calls over them,
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
#[cfg(target_os = "linux")]
mod options;
mod outcome;
mod plan;
mod run;
mod view;
mod view_charts;

use pyo3::prelude::*;

pyo3::create_exception!(
    _core,
    RunError,
    pyo3::exceptions::PyRuntimeError,
    "A run could not be finished."
);

/// The compiled part of talkspurt.
#[pymodule]
mod _core {
    use super::{RunError, av, plan};
    #[pymodule_export]
    use super::{
        answer::{answer, answer_metrics},
        capture::{
            capture, jitter_buffer, listen, rtcp_reports, rtcp_round_trips, rtp_payloads, sdp_media,
        },
        outcome::{Outcome, Summaries, metrics, types},
        plan::{ColumnMeanings, Plan, lines, load, recording_seconds, schema, values},
        run::Job,
        version,
        view::{animation, cautions, picture},
        view_charts::{charts, gauge_lines, opinion},
    };
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::{
        call::{CallDevices, CallSockets, CallVoice, CallWatch, call_codecs},
        emulation::{Emulation, flow_end, nodes, way},
        measure::{Server, Session, Watched},
        measure::{answer_call, check_flows, check_transport, rate_bps, serve},
        options::{check_address, check_length},
    };
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        av::register();
        module.add("ScenarioError", plan::scenario_error(py)?)?;
        let run_error = py.get_type::<RunError>();
        // Of those that Python raises.
        run_error.setattr("kind", py.None())?;
        module.add("RunError", run_error)
    }
}

/// The version of the compiled part.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
