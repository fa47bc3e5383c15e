//! An end of a flow on a raw socket inside a node: the peer of the simulation, in real time, like a program.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;

use nix::sched::{CloneFlags, setns};
use talkspurt_experiment::Failure;
use talkspurt_flow::{Disk, Materials, Peer, hints, peers};
use talkspurt_live::{Line, RawIp, Setup, run_peer};
use talkspurt_proto::gauge::{Gauge, Topic};
use talkspurt_proto::probe::{Note, Place, Probe};
use talkspurt_proto::time::Instant;
use talkspurt_proto::wire::dccp;
use talkspurt_scenario::Point;

/// An end of a flow over DCCP, with its socket; it belongs to the thread that opened it.
pub struct End {
    peer: Peer,
    line: Line<RawIp>,
    end: Instant,
}

/// What an end reports when it has run.
#[derive(Debug, Default)]
pub struct Ended {
    /// Changes of its gauges: time since its start in seconds, name, value.
    pub gauges: Vec<(f64, &'static str, f64)>,
    /// Packets that the socket refused.
    pub unsent_packets: u64,
}

/// An end of a flow: the flow by name, the side (0 sends first), and the addresses with DCCP's ports.
#[derive(Clone, Debug)]
pub struct EndSelector {
    /// The flow.
    pub flow: String,
    /// 0 is the side `from`, 1 the side `to`.
    pub side: usize,
    /// Its own address and port.
    pub local: SocketAddr,
    /// The other end's.
    pub remote: SocketAddr,
}

impl End {
    /// Moves the calling thread into a network namespace and opens the end's socket there. Needs root.
    ///
    /// # Errors
    /// There is no such flow, it is not over DCCP, a file cannot be read, or the system refuses.
    pub fn open(point: &Point, which: &EndSelector, namespace: &OwnedFd) -> Result<Self, Failure> {
        let EndSelector { flow, side, local, remote } = which;
        let Point { scenario, network, .. } = point;
        let number = scenario.flows.iter().position(|(name, _)| name == flow);
        let number = number.ok_or_else(|| Failure::Input(format!("{flow}: no such flow")))?;
        if scenario.flows[number].transport.protocol() != "DCCP" {
            return Err(Failure::Input(format!("{flow}: only flows over DCCP run on raw sockets")));
        }
        let materials = Materials::load(scenario, &Disk).map_err(Failure::Input)?;
        let peer = peers(scenario, network, &materials).swap_remove(2 * number + side);
        setns(namespace, CloneFlags::CLONE_NEWNET).map_err(|error| {
            Failure::System(format!("{flow}: network namespace: {}", error.desc()))
        })?;
        let port = RawIp::open(local.ip(), dccp::PROTOCOL)
            .map_err(|error| Failure::System(format!("{flow}: raw socket: {error}")))?;
        let setup =
            Setup { hints: hints(&scenario.flows[number]), ..Setup::new(*local, Some(*remote)) };
        Ok(Self { peer, line: Line::new(port, setup), end: Instant::ZERO + scenario.duration })
    }

    /// Runs to the end of the scenario, or until `stop`.
    ///
    /// # Errors
    /// The socket failed.
    pub fn run(mut self, stop: &AtomicBool) -> Result<Ended, Failure> {
        let mut gauges = Gauges(vec![None; Gauge::METRICS.len()], Vec::new());
        run_peer(&mut self.peer, &mut self.line, self.end, stop, &mut gauges)
            .map_err(|error| Failure::System(format!("raw socket: {error}")))?;
        Ok(Ended { gauges: gauges.1, unsent_packets: self.line.unsent_packets() })
    }
}

/// The last value of each gauge, and its changes.
struct Gauges(Vec<Option<f64>>, Vec<(f64, &'static str, f64)>);

impl Probe for Gauges {
    fn wants(&self, topic: Topic) -> bool {
        topic == Topic::Gauge
    }

    fn record(&mut self, now: Instant, _: Place, note: &Note<'_>) {
        let Note::Gauge { gauge, value } = *note else { return };
        if self.0[gauge as usize].replace(value) != Some(value) {
            self.1.push((now.as_secs_f64(), gauge.name(), value));
        }
    }
}
