//! Measurements of real paths: the server, and the client in its own thread.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use talkspurt_measure::{
    Config, Failure, FlowPlan, Measured, Measurement, Plan, Privileges, Secret, Target, Traffic,
    Transport, Watch,
};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;

use crate::outcome::Outcome;
use crate::run::{Failed, Work};

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self::Run(failure.kind(), failure.to_string())
    }
}

pub(crate) fn failed(failure: Failure) -> PyErr {
    Python::attach(|py| Failed::from(failure).raised(py))
}

pub(crate) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    name: &str,
    text: &str,
) -> PyResult<T> {
    text.parse().map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

pub(crate) fn address(option: &str, text: &str) -> PyResult<std::net::SocketAddr> {
    text.parse().map_err(|_| {
        let words = format!("{option} {text}: expected ADDRESS:PORT, as in 127.0.0.1:7862");
        PyValueError::new_err(words)
    })
}

/// Checks text such as 127.0.0.1:7862; raises ValueError.
#[pyfunction]
pub(crate) fn check_address(option: &str, text: &str) -> PyResult<()> {
    address(option, text).map(drop)
}

/// The length of a measurement or a call, or a limit of it.
pub(crate) fn length(option: &str, text: &str) -> PyResult<Duration> {
    let found = parsed::<Duration>(option, text)?;
    if !(Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&found) {
        let words = format!("{option} {text}: expected 1 s to 1 h");
        return Err(PyValueError::new_err(words));
    }
    Ok(found)
}

/// Checks text such as 2min, from 1 s to 1 h; raises ValueError.
#[pyfunction]
pub(crate) fn check_length(option: &str, text: &str) -> PyResult<()> {
    length(option, text).map(drop)
}

/// A server for measurements.
#[pyclass(frozen)]
pub(crate) struct MeasureServer(Mutex<talkspurt_measure::Server>);

#[pymethods]
impl MeasureServer {
    /// Listens on ADDRESS:PORT. Started as root, the process becomes `user`.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        listen: &str,
        secret: &[u8],
        max_rate: &str,
        max_duration: &str,
        max_sessions: usize,
        ports: Option<(u16, u16)>,
        user: String,
        direct: bool,
    ) -> PyResult<Self> {
        let listen = address("--listen", listen)?;
        let config = Config {
            listen,
            max_rate: parsed::<Rate>("--max-rate", max_rate)?,
            max_duration: length("--max-duration", max_duration)?,
            max_sessions,
            ports,
            privileges: Privileges::DroppedAs(user),
            direct,
            voice: None,
        };
        let secret = Secret::new(secret).map_err(failed)?;
        let server = talkspurt_measure::Server::start(config, secret).map_err(failed)?;
        Ok(Self(Mutex::new(server)))
    }

    /// Where it listens.
    #[getter]
    fn local(&self) -> String {
        self.server().local().to_string()
    }

    /// Lines about sessions since the last call.
    fn lines(&self) -> Vec<String> {
        self.server().lines()
    }

    /// Stops listening, and asks all sessions to end.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.server().stop());
    }
}

impl MeasureServer {
    fn server(&self) -> std::sync::MutexGuard<'_, talkspurt_measure::Server> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a direction sends: kind, bits per second, bytes per packet, codec.
type Way = (String, u64, u32, String);

fn traffic(way: Way) -> PyResult<Traffic> {
    let (kind, rate, packet, codec) = way;
    match kind.as_str() {
        "cbr" => Ok(Traffic::Cbr { rate, packet }),
        "talkspurts" => Ok(Traffic::Talkspurts { codec }),
        "bulk" => Ok(Traffic::Bulk { packet }),
        other => Err(PyValueError::new_err(format!("{other}: no such traffic"))),
    }
}

pub(crate) fn transport(name: &str) -> PyResult<Transport> {
    Transport::named(name)
        .map_err(|why| PyValueError::new_err(format!("--transport {name}: {why}")))
}

/// Checks the name of a transport that is to be measured, and whether this end has what it needs: if it
/// `sends`, the congestion controller, and for DCCP and SCTP directly over IP raw sockets; raises ValueError.
#[pyfunction]
pub(crate) fn check_transport(name: &str, sends: bool) -> PyResult<()> {
    let checked = talkspurt_measure::check_transport(&transport(name)?, sends);
    checked.map_err(|why| PyValueError::new_err(format!("--transport {name}: {why}")))
}

/// Bits per second of text such as "64kbit/s".
#[pyfunction]
pub(crate) fn rate_bps(text: &str) -> PyResult<u64> {
    text.parse().map(Rate::as_bps).map_err(|error| PyValueError::new_err(format!("{error}")))
}

/// Name, transport, and what each direction sends.
type FlowOptions = (String, String, Option<Way>, Option<Way>);

fn plans(flows: Vec<FlowOptions>) -> PyResult<Vec<FlowPlan>> {
    let flows = flows.into_iter().map(|(name, transport, up, down)| {
        let transport = self::transport(&transport)?;
        let [up, down] = [up, down].map(|way| way.map(traffic).transpose());
        Ok(FlowPlan { name, transport, up: up?, down: down? })
    });
    flows.collect()
}

/// Checks flows that are to be measured at the same time; raises RunError with everything that is wrong.
#[pyfunction]
pub(crate) fn check_flows(flows: Vec<FlowOptions>, mtu: u16) -> PyResult<()> {
    let duration = Duration::from_secs(1).as_nanos();
    let plan = Plan { seed: 0, duration, mtu, ipv6: false, flows: plans(flows)? };
    plan.point().map(drop).map_err(failed)
}

/// A session with a server.
#[pyclass(frozen)]
pub(crate) struct MeasureSession {
    session: Arc<Mutex<Measurement>>,
    server: String,
    ipv6: bool,
}

#[pymethods]
impl MeasureSession {
    /// Connects; raises RunError with the reason.
    #[new]
    fn new(py: Python<'_>, host: String, port: u16, secret: &[u8]) -> PyResult<Self> {
        let secret = Secret::new(secret).map_err(failed)?;
        let target = Target { host, port };
        let session = py.detach(|| Measurement::connect(&target, &secret)).map_err(failed)?;
        let (server, ipv6) = (session.server().to_string(), session.is_ipv6());
        Ok(Self { session: Arc::new(Mutex::new(session)), server, ipv6 })
    }

    /// The server's address.
    #[getter]
    fn server(&self) -> &str {
        &self.server
    }

    /// Starts a measurement of flows at the same time.
    fn start(
        &self,
        flows: Vec<FlowOptions>,
        duration: &str,
        mtu: u16,
        seed: u64,
    ) -> PyResult<Measuring> {
        let flows = plans(flows)?;
        let duration = length("--for", duration)?;
        let plan = Plan { seed, duration: duration.as_nanos(), mtu, ipv6: self.ipv6, flows };
        plan.point().map_err(failed)?;
        Ok(Measuring::start(Arc::clone(&self.session), plan))
    }
}

/// A measurement in progress.
#[pyclass(frozen)]
pub(crate) struct Measuring {
    watch: Watch,
    total: u64,
    half: Arc<Mutex<Option<Measured>>>,
    work: Work<Measured>,
}

impl Measuring {
    fn start(session: Arc<Mutex<Measurement>>, plan: Plan) -> Self {
        let (watch, total) = (Watch::default(), plan.duration);
        let watched = watch.clone();
        let half = Arc::<Mutex<Option<Measured>>>::default();
        let kept = Arc::clone(&half);
        let work = Work::start(move || {
            let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
            let keep = |half| *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(half);
            session.run(&plan, &watched, keep)
        });
        Self { watch, total, half, work }
    }
}

/// Tables, facts as JSON, the resolved scenario, and why less was measured than asked for.
type Results = (Outcome, String, String, Option<String>);

#[pymethods]
impl Measuring {
    /// Fraction of the time passed, 0 to 1.
    fn progress(&self) -> f64 {
        (self.watch.passed().as_nanos() as f64 / self.total.max(1) as f64).min(1.0)
    }

    /// Waits at most this many seconds; true if it has ended.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        self.work.wait(py, seconds)
    }

    /// Ends it early, with results of the time until now.
    fn stop(&self) {
        self.watch.stop();
    }

    /// What this end knows, once, as soon as nothing more is sent: before the server's notes come.
    fn half(&self) -> Option<Results> {
        let half = self.half.lock().unwrap_or_else(PoisonError::into_inner).take();
        half.map(results)
    }

    /// The results; waits for the end. Can be called once. Raises RunError if nothing could be measured.
    fn result(&self, py: Python<'_>) -> PyResult<Results> {
        self.work.result(py).map(results)
    }
}

fn results(measured: Measured) -> Results {
    let Measured { finished, facts, scenario, broken } = measured;
    (Outcome::new(finished), facts.to_string(), scenario, broken)
}
