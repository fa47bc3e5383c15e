//! Measurements of real paths and calls over them: servers, and the end that asks for them in its own thread.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use talkspurt_measure::{
    Config, Failure, FlowPlan, Invitation, Measured, Plan, Privileges, Secret, Target, Traffic,
    Transport, Watch,
};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Rate;

use crate::call::{self, CallSockets, CallVoice, CallWatch, Called};
use crate::options::{address, failed, length, parsed};
use crate::outcome::Outcome;
use crate::run::{Job, Made};

/// A server for measurements, or the end of calls that answers.
#[pyclass(frozen)]
pub(crate) struct Server(Mutex<talkspurt_measure::Server>);

/// Listens on ADDRESS:PORT for measurements. With `user`, this thread gives up its privileges for good, and a
/// process of root becomes that user.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn serve(
    listen: &str,
    secret: &[u8],
    max_rate: &str,
    max_duration: &str,
    max_sessions: usize,
    ports: Option<(u16, u16)>,
    user: Option<String>,
    direct: bool,
) -> PyResult<Server> {
    let config = Config {
        listen: address("--listen", listen)?,
        max_rate: parsed::<Rate>("--max-rate", max_rate)?,
        max_duration: length("--max-duration", max_duration)?,
        max_sessions,
        ports,
        privileges: user.map_or(Privileges::Kept, Privileges::DroppedAs),
        direct,
        voice: None,
    };
    let secret = Secret::new(secret).map_err(failed)?;
    let server = talkspurt_measure::Server::start(config, secret).map_err(failed)?;
    Ok(Server(Mutex::new(server)))
}

/// Answers calls with this voice; sockets are for one server.
#[pyfunction]
pub(crate) fn answer_call(
    sockets: &CallSockets,
    secret: &[u8],
    voice: &CallVoice,
) -> PyResult<Server> {
    let secret = Secret::new(secret).map_err(failed)?;
    let opened = lock(&sockets.0).take();
    let opened = opened.ok_or_else(|| PyValueError::new_err("the sockets are in use"))?;
    opened.answer(voice.0.clone(), secret).map(|it| Server(Mutex::new(it))).map_err(failed)
}

#[pymethods]
impl Server {
    /// Where it listens.
    #[getter]
    fn local(&self) -> String {
        lock(&self.0).local().to_string()
    }

    /// Lines about sessions, or about calls that did not begin, since the last call of this method.
    fn lines(&self) -> Vec<String> {
        lock(&self.0).lines()
    }

    /// The call in progress, if there is one.
    fn call(&self) -> Option<CallWatch> {
        lock(&self.0).call().map(CallWatch)
    }

    /// The results of a call that has ended, if there are any that were not returned yet.
    fn called<'py>(&self, py: Python<'py>) -> Option<Called<'py>> {
        let called = lock(&self.0).called();
        called.map(|called| call::results(py, called))
    }

    /// What was heard in a call that has just ended, once, before the notes of both ends are exchanged.
    fn half<'py>(&self, py: Python<'py>) -> Option<Called<'py>> {
        let half = lock(&self.0).half();
        half.map(|half| call::results(py, half))
    }

    /// Stops listening, and asks all sessions to end.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| lock(&self.0).stop());
    }
}

/// What a direction sends: kind, bits per second, bytes per packet, codec, controller.
type Way = (String, u64, u32, String, Option<String>);

fn traffic(way: Way) -> PyResult<Traffic> {
    let (kind, rate, packet, codec, controller) = way;
    match kind.as_str() {
        "cbr" => Ok(Traffic::Cbr { rate, packet }),
        "talkspurts" => Ok(Traffic::Talkspurts { codec }),
        "bulk" => Ok(Traffic::Bulk { packet }),
        "video" => Ok(Traffic::Video { rate, controller }),
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

/// A connection to a server, or to the end of a call that answers.
#[pyclass(frozen)]
pub(crate) struct Session {
    session: Arc<Mutex<talkspurt_measure::Session>>,
    server: SocketAddr,
}

#[pymethods]
impl Session {
    /// Connects; raises RunError with the reason.
    #[new]
    fn new(py: Python<'_>, host: String, port: u16, secret: &[u8]) -> PyResult<Self> {
        let secret = Secret::new(secret).map_err(failed)?;
        let target = Target { host, port };
        let connect = || talkspurt_measure::Session::connect(&target, &secret);
        let session = py.detach(connect).map_err(failed)?;
        let server = session.server();
        Ok(Self { session: Arc::new(Mutex::new(session)), server })
    }

    /// The other end's address.
    #[getter]
    fn server(&self) -> String {
        self.server.to_string()
    }

    /// Starts a measurement of flows at the same time. The results are tables, facts as JSON, the resolved
    /// scenario, and why less was measured than asked for.
    fn measure(
        &self,
        py: Python<'_>,
        flows: Vec<FlowOptions>,
        duration: &str,
        mtu: u16,
        seed: u64,
    ) -> PyResult<Py<Watched>> {
        let flows = plans(flows)?;
        let duration = length("--for", duration)?.as_nanos();
        let plan = Plan { seed, duration, mtu, ipv6: self.server.is_ipv6(), flows };
        plan.point().map_err(failed)?;
        let work = move |session: &mut talkspurt_measure::Session, watch: &Watch, keep: Keep<_>| {
            session.measure(&plan, watch, keep)
        };
        self.start(py, duration, work, |py, measured: Measured| {
            let Measured { finished, facts, scenario, broken } = measured;
            (Outcome::new(finished), facts.to_string(), scenario, broken).into_py_any(py)
        })
    }

    /// Calls, once, over a transport that can be followed by `+` and a controller. The results are those of
    /// [`call::results`]; raises RunError if there was no call.
    fn call(
        &self,
        py: Python<'_>,
        voice: &CallVoice,
        transport: &str,
        duration: &str,
        mtu: u16,
        seed: u64,
    ) -> PyResult<Py<Watched>> {
        let (transport, controller) = match transport.split_once('+') {
            Some((transport, controller)) => (transport, Some(controller.to_owned())),
            None => (transport, None),
        };
        let transport = self::transport(transport)?;
        let duration = length("--for", duration)?.as_nanos();
        let (ipv6, codecs) = (self.server.is_ipv6(), Vec::new());
        let invitation = Invitation { seed, duration, mtu, ipv6, transport, controller, codecs };
        let voice = voice.0.clone();
        let work = move |session: &mut talkspurt_measure::Session, watch: &Watch, keep: Keep<_>| {
            session.call(invitation, &voice, watch, keep)
        };
        self.start(py, duration, work, |py, called| call::results(py, called).into_py_any(py))
    }
}

/// Keeps what this end knows while the other end's notes come.
type Keep<'a, T> = &'a dyn Fn(T);

impl Session {
    /// Starts work of so many nanoseconds on the session, whose results are `made` an object of Python.
    fn start<T: Send + 'static>(
        &self,
        py: Python<'_>,
        total: u64,
        work: impl FnOnce(&mut talkspurt_measure::Session, &Watch, Keep<'_, T>) -> Result<T, Failure>
        + Send
        + 'static,
        made: fn(Python<'_>, T) -> PyResult<Py<PyAny>>,
    ) -> PyResult<Py<Watched>> {
        let (watch, half) = (Watch::default(), Arc::<Mutex<Option<Made>>>::default());
        let [watched, passed, stopped] = [(); 3].map(|()| watch.clone());
        let (session, kept) = (Arc::clone(&self.session), Arc::clone(&half));
        let work = move || {
            let keep = |half| *lock(&kept) = Some(Box::new(move |py: Python<'_>| made(py, half)));
            work(&mut lock(&session), &watched, &keep)
        };
        let progress = move || (passed.passed().as_nanos() as f64 / total.max(1) as f64).min(1.0);
        let job = Job::start(work, made, progress, move || stopped.stop());
        Py::new(py, PyClassInitializer::from(job).add_subclass(Watched { watch, half }))
    }
}

/// A measurement or a call in progress. To cancel it ends it early, or hangs up, with results of the time until
/// now.
#[pyclass(frozen, extends = Job)]
pub(crate) struct Watched {
    watch: Watch,
    half: Arc<Mutex<Option<Made>>>,
}

#[pymethods]
impl Watched {
    /// The call.
    fn watch(&self) -> CallWatch {
        CallWatch(self.watch.clone())
    }

    /// What this end knows, once, as soon as nothing more is sent: before the other end's notes come.
    fn half(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let half = lock(&self.half).take();
        half.map(|half| half(py)).transpose()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
