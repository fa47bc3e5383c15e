//! Calls over real paths: the end that answers, and the end that calls in its own thread.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use talkspurt_measure::{
    Called, Caller, Config, Devices, Invitation, Listening, Privileges, Secret, Server, Target,
    Voice, Watch,
};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;

use crate::RunError;
use crate::measure::{address, failed, length};
use crate::outcome::{Outcome, pcm};
use crate::run::Work;

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
pub(crate) struct CallVoice(Voice);

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
type Results<'py> =
    (Option<Outcome>, String, String, (Bound<'py, PyBytes>, u32, usize), Option<String>);

fn results(py: Python<'_>, called: Called) -> Results<'_> {
    let Called { finished, facts, scenario, heard, broken } = called;
    let sound = (pcm(py, &heard.pcm), heard.sample_rate, heard.channels);
    (finished.map(Outcome::new), facts.to_string(), scenario, sound, broken)
}

/// The sockets of the end that answers, before it is known what that says.
#[pyclass(frozen)]
pub(crate) struct CallSockets(Mutex<Option<Listening>>);

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

/// The end that answers.
#[pyclass(frozen)]
pub(crate) struct CallServer(Mutex<Server>);

#[pymethods]
impl CallServer {
    /// Answers with this voice; sockets are for one server.
    #[new]
    fn new(sockets: &CallSockets, secret: &[u8], voice: &CallVoice) -> PyResult<Self> {
        let secret = Secret::new(secret).map_err(failed)?;
        let opened = sockets.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let opened = opened.ok_or_else(|| PyValueError::new_err("the sockets are in use"))?;
        opened.answer(voice.0.clone(), secret).map(|it| Self(Mutex::new(it))).map_err(failed)
    }

    /// Where it listens.
    #[getter]
    fn local(&self) -> String {
        self.server().local().to_string()
    }

    /// Lines about calls that did not begin, since the last call of this method.
    fn lines(&self) -> Vec<String> {
        self.server().lines()
    }

    /// Whether there is a call.
    fn in_call(&self) -> bool {
        self.server().call().is_some()
    }

    /// The state of the call as JSON, if there is one.
    fn view(&self) -> Option<String> {
        self.server().call().and_then(|watch| watch.view())
    }

    /// The sound devices of the call, once codecs are agreed on, if it has any.
    fn devices(&self) -> Option<CallDevices> {
        self.server().call().and_then(|watch| watch.devices()).map(CallDevices)
    }

    /// Ends the call.
    fn hang_up(&self) {
        if let Some(watch) = self.server().call() {
            watch.stop();
        }
    }

    /// The results of a call that has ended, if there are any that were not returned yet.
    fn called<'py>(&self, py: Python<'py>) -> Option<Results<'py>> {
        let called = self.server().called();
        called.map(|called| results(py, called))
    }

    /// What was heard in a call that has just ended, once, before the notes of both ends are exchanged.
    fn half<'py>(&self, py: Python<'py>) -> Option<Results<'py>> {
        let half = self.server().half();
        half.map(|half| results(py, half))
    }

    /// Stops listening.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.server().stop());
    }
}

impl CallServer {
    fn server(&self) -> MutexGuard<'_, Server> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection to an end that answers.
#[pyclass(frozen)]
pub(crate) struct CallSession {
    caller: Mutex<Option<Caller>>,
    server: String,
}

#[pymethods]
impl CallSession {
    /// Connects; raises RunError with the reason.
    #[new]
    fn new(py: Python<'_>, host: String, port: u16, secret: &[u8]) -> PyResult<Self> {
        let secret = Secret::new(secret).map_err(failed)?;
        let target = Target { host, port };
        let caller = py.detach(|| Caller::connect(&target, &secret)).map_err(failed)?;
        let server = caller.server().to_string();
        Ok(Self { caller: Mutex::new(Some(caller)), server })
    }

    /// The other end's address.
    #[getter]
    fn server(&self) -> &str {
        &self.server
    }

    /// Calls, once.
    fn start(
        &self,
        voice: &CallVoice,
        transport: &str,
        duration: &str,
        mtu: u16,
        seed: u64,
    ) -> PyResult<Calling> {
        let transport = crate::measure::transport(transport)?;
        let duration = length("--for", duration)?;
        let caller = self.caller.lock().unwrap_or_else(PoisonError::into_inner).take();
        let caller = caller.ok_or_else(|| RunError::new_err("the call was already made"))?;
        let total = duration.as_nanos();
        let (ipv6, codecs) = (false, Vec::new());
        let invitation = Invitation { seed, duration: total, mtu, ipv6, transport, codecs };
        let (voice, watch) = (voice.0.clone(), Watch::default());
        let watched = watch.clone();
        let half = Arc::<Mutex<Option<Called>>>::default();
        let kept = Arc::clone(&half);
        let work = Work::start(move || {
            let keep = |half| *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(half);
            caller.call(invitation, &voice, &watched, keep)
        });
        Ok(Calling { watch, total, half, work })
    }
}

/// A call in progress.
#[pyclass(frozen)]
pub(crate) struct Calling {
    watch: Watch,
    total: u64,
    half: Arc<Mutex<Option<Called>>>,
    work: Work<Called>,
}

#[pymethods]
impl Calling {
    /// Fraction of the time passed, 0 to 1.
    fn progress(&self) -> f64 {
        (self.watch.passed().as_nanos() as f64 / self.total.max(1) as f64).min(1.0)
    }

    /// The state of the call as JSON, once there is one.
    fn view(&self) -> Option<String> {
        self.watch.view()
    }

    /// The sound devices of the call, once codecs are agreed on, if it has any.
    fn devices(&self) -> Option<CallDevices> {
        self.watch.devices().map(CallDevices)
    }

    /// Waits at most this many seconds; true if it has ended.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        self.work.wait(py, seconds)
    }

    /// Hangs up.
    fn stop(&self) {
        self.watch.stop();
    }

    /// What this end knows, once, as soon as the call is over: before the notes of both ends are exchanged.
    fn half<'py>(&self, py: Python<'py>) -> Option<Results<'py>> {
        let half = self.half.lock().unwrap_or_else(PoisonError::into_inner).take();
        half.map(|half| results(py, half))
    }

    /// The results; waits for the end. Can be called once. Raises RunError if there was no call.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Results<'py>> {
        self.work.result(py).map(|called| results(py, called))
    }
}
