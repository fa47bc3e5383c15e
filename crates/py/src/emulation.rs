//! An emulation in progress in its own thread, ends of flows in its nodes, and the addresses of its hosts.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use serde_json::{Value, json};
use talkspurt_emulate::{Control, Emulated, End, EndSelector, Ended, Excerpted, Host};
use talkspurt_experiment::Shared;
use talkspurt_scenario::Point;

use crate::outcome::{Outcome, Table};
use crate::plan::{ColumnMeanings, Plan, Wanted, tables_in};
use crate::run::Job;

/// An emulation in progress.
#[pyclass(frozen, extends = Job)]
pub(crate) struct Emulation {
    control: Arc<Control>,
}

#[pymethods]
impl Emulation {
    /// Starts the emulation of run `index` of a plan. `devices` are the nodes of its hosts and the descriptors
    /// of their TUN devices, which are duplicated. Otherwise as [`Plan::start`]. Raises ValueError if no links
    /// lead from a host to another. The result is as of a run, with the account of the packets as JSON, and the
    /// packets that a report animates.
    #[new]
    #[pyo3(signature = (plan, index, devices, folder=None, tables=Wanted::memory(), meanings=None))]
    fn start(
        plan: &Plan,
        index: usize,
        devices: Vec<(String, i32)>,
        folder: Option<PathBuf>,
        tables: Wanted,
        meanings: Option<&ColumnMeanings>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let tables = tables_in(&tables, folder.as_deref(), meanings)?;
        let point = plan.point(index)?;
        let nodes = devices.iter().map(|(node, _)| &**node);
        talkspurt_emulate::routes(&point.network, nodes).map_err(PyValueError::new_err)?;
        let hosts = devices.into_iter().map(|(node, number)| host(node, number));
        let hosts = hosts.collect::<PyResult<Vec<_>>>()?;
        let control = Arc::new(Control::default());
        let inner = Arc::clone(&control);
        let run = move |point: &Point, shared: &Shared| {
            talkspurt_emulate::run(point, hosts, folder.as_deref(), tables, (shared, &inner))
        };
        Ok(PyClassInitializer::from(Job::on(point, run, emulated)).add_subclass(Self { control }))
    }
    /// The number of its thread, for its scheduler; 0 before virtual time runs.
    fn thread(&self) -> i32 {
        self.control.thread.load(Ordering::Acquire)
    }
    /// Asks for its end before the planned one.
    fn end(&self) {
        self.control.end.store(true, Ordering::Relaxed);
    }
    /// Whether it has ended: no packet leaves the network any more, and the devices can be closed.
    fn ended(&self) -> bool {
        self.control.ended.load(Ordering::Acquire)
    }
    /// The devices are down: after the last packets, there is a result.
    fn close(&self) {
        self.control.close.store(true, Ordering::Release);
    }
}

/// The results, the account of the packets as JSON, and the packets that a report animates: why they begin
/// where they do, their start and end in seconds, and a table.
fn emulated(py: Python<'_>, emulated: Emulated) -> PyResult<Py<PyAny>> {
    let Emulated { finished, account, excerpt } = emulated;
    let account = serde_json::to_string(&account).expect("an account is plain data");
    let packets = excerpt.map(|Excerpted { begins, shown }| {
        (begins, shown.from.as_secs_f64(), shown.to.as_secs_f64(), Table::new(shown.hops))
    });
    (Outcome::new(finished), account, packets).into_py_any(py)
}

/// Opens an end of a flow of run `index` of a plan on a raw socket in a network namespace, and starts it in its
/// own thread. `namespace` is the descriptor of a network namespace, which is duplicated; `side` is 0 for
/// `from`; addresses have ports. The result is changes of its gauges (time since its start in seconds, name,
/// value), and the number of packets that the socket refused. Raises ValueError for an address that is none;
/// the result raises RunError if the socket cannot be opened.
#[pyfunction]
pub(crate) fn flow_end(
    py: Python<'_>,
    plan: &Plan,
    index: usize,
    which: (String, usize),
    addresses: (String, String),
    namespace: i32,
) -> PyResult<Job> {
    let point = plan.point(index)?;
    let address = |text: &str| {
        text.parse().map_err(|error| PyValueError::new_err(format!("{text}: {error}")))
    };
    let ((flow, side), (local, remote)) = (which, addresses);
    let (local, remote) = (address(&local)?, address(&remote)?);
    let which = EndSelector { flow, side: side.min(1), local, remote };
    let namespace = duplicate(namespace)?;
    let stop = Arc::<AtomicBool>::default();
    let stopped = Arc::clone(&stop);
    let (opened, opens) = mpsc::channel();
    let work = move || {
        let end = End::open(&point, &which, &namespace);
        // Its privileges are needed no more; if nobody waits for that, nobody waits for the result.
        let _ = opened.send(());
        end?.run(&stopped)
    };
    let made = |py: Python<'_>, ended: Ended| (ended.gauges, ended.unsent_packets).into_py_any(py);
    let job = Job::start(work, made, || 0.0, move || stop.store(true, Ordering::Relaxed));
    // An error is the result.
    let _ = py.detach(move || opens.recv());
    Ok(job)
}

/// A host whose device has this number among the descriptors of this process, duplicated without unsafe code.
fn host(node: String, number: i32) -> PyResult<Host> {
    duplicate(number).map(|device| Host { node, device })
}

fn duplicate(number: i32) -> PyResult<OwnedFd> {
    pidfd_open(getpid(), PidfdFlags::empty())
        .and_then(|own| pidfd_getfd(own, number, PidfdGetfdFlags::empty()))
        .map_err(|error| PyOSError::new_err((error.raw_os_error(), error.to_string())))
}

/// The nodes of a run as JSON: names, addresses, and the MTU of each node's links; null if packets cannot come
/// and go.
#[pyfunction]
pub(crate) fn nodes(plan: &Plan, index: usize) -> PyResult<String> {
    let network = plan.point(index)?.network;
    let node = |(number, name): (usize, &String)| {
        let links = network.links.iter().filter(|link| link.from == number);
        let reached = network.links.iter().any(|link| network.far_ends(link).contains(&number));
        let mtu = links.map(|link| link.mtu.as_bytes()).max().filter(|_| reached);
        let known = &network.addresses[number];
        json!({ "name": name, "v4": known.v4, "v6": known.v6, "mtu": mtu })
    };
    Ok(Value::Array(network.nodes.iter().enumerate().map(node).collect()).to_string())
}

/// The nodes of a way between two hosts, and the names of its links.
#[pyfunction]
pub(crate) fn way(
    plan: &Plan,
    index: usize,
    from: &str,
    to: &str,
) -> PyResult<(Vec<String>, Vec<String>)> {
    let network = plan.point(index)?.network;
    let ends = network.node(from).zip(network.node(to));
    let way = ends.and_then(|(from, to)| network.route(from, to));
    let way = way.ok_or_else(|| PyValueError::new_err(format!("no way from {from} to {to}")))?;
    let passed = way.iter().map(|link| network.nodes[network.links[*link].from].clone());
    let links = way.iter().map(|link| network.links[*link].name.clone());
    Ok((passed.chain([to.to_owned()]).collect(), links.collect()))
}
