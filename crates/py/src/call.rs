//! What calls over real paths have besides what measurements have: voices, sound devices, sockets of the end
//! that answers, and results with sound.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use talkspurt_measure::{Config, Devices, Listening, Privileges, Voice, Watch};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;

use crate::options::{address, failed};
use crate::outcome::{Outcome, pcm};

/// Longest call.
const LONGEST: Duration = Duration::from_secs(3600);
/// What both ends of a call may send together, with all headers: four times Opus at its highest rate.
const MAX_RATE: Rate = Rate::from_bps(4_000_000);

/// Names of the codecs that a call can have here.
#[pyfunction]
pub(crate) fn call_codecs() -> Vec<String> {
    talkspurt_measure::call_codecs()
}

/// What one end says, and the codecs that it has.
#[pyclass(frozen)]
pub(crate) struct CallVoice(pub(crate) Voice);

#[pymethods]
impl CallVoice {
    /// Reads a WAV file, or takes a microphone without one; raises RunError with the reason.
    #[new]
    fn new(file: Option<PathBuf>, codecs: Vec<String>, loudspeaker: bool) -> PyResult<Self> {
        let voice = match file {
            Some(file) => Voice::open(&file, &codecs),
            None => Voice::of_microphone(&codecs),
        };
        let voice = voice.map_err(failed)?;
        Ok(Self(if loudspeaker { voice.with_loudspeaker() } else { voice }))
    }

    /// Length of the file in seconds, if there is one.
    #[getter]
    fn duration_s(&self) -> Option<f64> {
        self.0.duration().map(Duration::as_secs_f64)
    }
}

/// The sound devices of one end of a call.
#[pyclass(frozen)]
pub(crate) struct CallDevices(Arc<Devices>);

#[pymethods]
impl CallDevices {
    /// Samples per second and channel, and channels.
    #[getter]
    fn format(&self) -> (u32, usize) {
        self.0.format()
    }

    /// Samples of the microphone have come, 16 bits, little endian.
    fn say(&self, pcm: &[u8]) {
        let samples = pcm.chunks_exact(2).map(|it| i16::from_le_bytes([it[0], it[1]]));
        self.0.say(&samples.collect::<Vec<_>>());
    }

    /// What the loudspeaker is to play after what was returned before.
    fn hear<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        pcm(py, &self.0.hear())
    }
}

/// Tables, facts as JSON, the resolved scenario, the sound heard with its rate and channels, and why the call
/// is not what was asked for.
pub(crate) type Called<'py> =
    (Option<Outcome>, String, String, (Bound<'py, PyBytes>, u32, usize), Option<String>);

pub(crate) fn results(py: Python<'_>, called: talkspurt_measure::Called) -> Called<'_> {
    let talkspurt_measure::Called { finished, facts, scenario, heard, broken } = called;
    let sound = (pcm(py, &heard.pcm), heard.sample_rate, heard.channels);
    (finished.map(Outcome::new), facts.to_string(), scenario, sound, broken)
}

/// The sockets of the end that answers, before it is known what that says.
#[pyclass(frozen)]
pub(crate) struct CallSockets(pub(crate) Mutex<Option<Listening>>);

#[pymethods]
impl CallSockets {
    /// Listens on ADDRESS:PORT, for one call at a time, and gives up all privileges of this thread; a process
    /// of root becomes `user`, if there is one.
    #[new]
    fn new(listen: &str, ports: Option<(u16, u16)>, user: Option<String>) -> PyResult<Self> {
        let config = Config {
            listen: address("--listen", listen)?,
            max_rate: MAX_RATE,
            max_duration: LONGEST,
            max_sessions: 1,
            ports,
            privileges: user.map_or(Privileges::Dropped, Privileges::DroppedAs),
            direct: true,
            voice: None,
        };
        let opened = Listening::open(config).map_err(failed)?;
        Ok(Self(Mutex::new(Some(opened))))
    }
}

/// A call in progress.
#[pyclass(frozen)]
pub(crate) struct CallWatch(pub(crate) Watch);

#[pymethods]
impl CallWatch {
    /// The state of the call as JSON, once there is one.
    fn view(&self) -> Option<String> {
        self.0.view()
    }

    /// The sound devices of the call, once codecs are agreed on, if it has any.
    fn devices(&self) -> Option<CallDevices> {
        self.0.devices().map(CallDevices)
    }

    /// Hangs up.
    fn stop(&self) {
        self.0.stop();
    }
}
