//! Emulation: a scenario in real time, with programs of the user at some of its nodes.
//!
//! A program runs in a network namespace whose only route is a TUN device; the Python package creates both.
//! [`run`] moves packets between these devices and a [`World`](talkspurt_sim::world::World) whose virtual time
//! follows the monotonic clock: a packet that is read enters the first link of its route, and one that reaches
//! its destination is written to that host's device. Simulated flows share all links. `packet` reads and
//! changes the headers of packets, `flows` finds the flow of each, `whole` puts fragments together to count
//! what receivers get, `lateness` counts how late packets were, `engine` is the loop, `shown` keeps packets for
//! the report. `end` runs an end of a flow on a socket inside a node. `fuzz` has hosts that send any bytes, in
//! tests.

#![cfg(target_os = "linux")]

mod end;
mod engine;
mod flows;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod lateness;
mod pace;
mod packet;
mod shown;
mod whole;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use serde::Serialize;
use talkspurt_experiment::{
    Failure, Finished, Shared, conclude, layout, render, timetable, written,
};
use talkspurt_flow::{Disk, Materials};
use talkspurt_record::{FlowInfo, Options, Recorder, RouteInfo, Tables};
use talkspurt_scenario::{Network, Point};
use talkspurt_sim::build::{RealHosts, build_with_hosts};
use talkspurt_sim::drive::Timetable;

pub use end::{End, EndSelector, Ended};
use engine::{Engine, Tally};
use flows::Flows;
pub use lateness::Lateness;
pub use shown::Excerpted;
use shown::Excerpts;

/// What an emulation leaves.
pub struct Emulated {
    /// As a run.
    pub finished: Finished,
    /// Where the packets of hosts went.
    pub account: Account,
    /// Packets for the report's animation: `None` if the hosts sent none in the measure window, or the scenario
    /// asks for none.
    pub excerpt: Option<Excerpted>,
}

/// Requests to an emulation, and what it reports meanwhile.
#[derive(Debug, Default)]
pub struct Control {
    /// Asks for the end of the emulation, before the scenario's.
    pub end: AtomicBool,
    /// Virtual time has ended; what the devices still hold is read and counted.
    pub ended: AtomicBool,
    /// The devices are down: the last packets are read.
    pub close: AtomicBool,
    /// The number of the emulation's thread, for its scheduler; 0 before virtual time runs.
    pub thread: AtomicI32,
}

/// A host: a node's name, and the TUN device of its namespace, in non-blocking mode.
#[derive(Debug)]
pub struct Host {
    /// The node.
    pub node: String,
    /// The device.
    pub device: OwnedFd,
}

/// Where the packets of real hosts went, each number counted for itself: sent + copied + fragments + messages =
/// arrived + expired + dropped + in flight; the hosts' sent packets = sent; their written + refused = arrived +
/// answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Account {
    /// By host.
    pub hosts: Vec<HostAccount>,
    /// The ports of each flow that is one five-tuple.
    pub flows: Vec<FlowPorts>,
    /// Packets that entered their first link.
    pub sent_packets: u64,
    /// Copies that links made.
    pub copied_packets: u64,
    /// Fragments that routers cut from packets, beyond the first of each.
    pub fragment_packets: u64,
    /// Routers' messages that entered a link: time exceeded, packet too big.
    pub message_packets: u64,
    /// Packets that reached their hosts.
    pub arrived_packets: u64,
    /// Packets whose time to live ended at a router.
    pub expired_packets: u64,
    /// Packets that links dropped.
    pub dropped_packets: u64,
    /// Packets still in the network at the end.
    pub in_flight_packets: u64,
    /// Packets that are missing from the captures.
    pub uncaptured_packets: u64,
    /// How late packets were read from their senders' devices, at most, and written to their receivers'.
    pub lateness: Lateness,
}

impl Account {
    /// Compares every sum of numbers that are counted at different places.
    ///
    /// # Panics
    /// If one of them does not balance.
    pub fn assert_balance(&self) {
        let sum = |of: fn(&HostAccount) -> u64| self.hosts.iter().map(of).sum::<u64>();
        for host in &self.hosts {
            let ended = host.sent_packets + host.unroutable_packets + host.malformed_packets;
            assert_eq!(host.read_packets, ended + host.after_end_packets);
        }
        assert_eq!(sum(|host| host.sent_packets), self.sent_packets);
        let came = sum(|host| host.written_packets + host.refused_packets);
        assert_eq!(came, self.arrived_packets + sum(|host| host.answered_packets));
        assert_eq!(
            self.sent_packets + self.copied_packets + self.fragment_packets + self.message_packets,
            self.arrived_packets
                + self.expired_packets
                + self.dropped_packets
                + self.in_flight_packets
        );
    }
}

/// The ports of a flow of programs, which its name has only in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowPorts {
    /// Its name.
    pub flow: String,
    /// By side; side 0 sent its first packet. 0 where the protocol has none.
    pub ports: [u16; 2],
}

/// The packets of one host: read = sent + unroutable + malformed + after the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostAccount {
    /// The node.
    pub node: String,
    /// Packets read from its device.
    pub read_packets: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Of these, sent on the first link.
    pub sent_packets: u64,
    /// Of these, to an address that no host has, or from one that is not the host's.
    pub unroutable_packets: u64,
    /// Messages about unroutable packets, which cross no link.
    pub answered_packets: u64,
    /// Of these, not an IP packet.
    pub malformed_packets: u64,
    /// Of these, read after the end of the emulation.
    pub after_end_packets: u64,
    /// Packets that arrived for it and were written to its device, with routers' messages.
    pub written_packets: u64,
    /// Their bytes.
    pub written_bytes: u64,
    /// Packets that arrived for it and that its device refused.
    pub refused_packets: u64,
    /// Why its device failed, which ended the emulation.
    pub failure: Option<String>,
}

/// Runs one point in real time with these hosts, until its end or that of the emulation.
///
/// # Errors
/// A file cannot be read or written, a host is no node, two hosts have no route between them, or the run is
/// cancelled.
pub fn run(
    point: &Point,
    hosts: Vec<Host>,
    folder: Option<&Path>,
    tables: Tables,
    (shared, control): (&Shared, &Control),
) -> Result<Emulated, Failure> {
    // A sleep ends up to 50 µs late by default; with a real-time priority, this has no effect.
    let _ = nix::sys::prctl::set_timerslack(1);
    let point = &*point.expanded();
    let scenario = &point.scenario;
    let materials = Materials::load(scenario, &Disk).map_err(Failure::Input)?;
    let (engine, timetable) = engine(point, &materials, hosts, folder, tables)?;
    control.thread.store(nix::unistd::gettid().as_raw(), Ordering::Release);
    let (world, account) = engine.run(&timetable, shared, control)?;
    let audio = render(scenario, &materials, &world);
    let (hops, events, now) = (world.hops(), world.events(), world.now());
    let (recorder, (_, (excerpts, written))) = world.probe;
    let finished = Finished {
        digest: String::new(),
        hops,
        events,
        cpu_s: cpu_s(),
        duration_s: now.as_secs_f64(),
        recording: conclude(scenario, &materials, recorder, written, true)?,
        audio,
    };
    Ok(Emulated { finished, account, excerpt: excerpts.finish(now) })
}

/// The engine of a point with these hosts.
fn engine<'a>(
    point: &'a Point,
    materials: &Materials,
    hosts: Vec<Host>,
    folder: Option<&Path>,
    tables: Tables,
) -> Result<(Engine<'a>, Timetable), Failure> {
    let Point { scenario, network, .. } = point;
    let routes = routes(network, hosts.iter().map(|host| &*host.node)).map_err(Failure::Input)?;
    let mut layout = layout(scenario, network);
    layout.flows.resize_with(layout.flows.len() + Flows::capacity(hosts.len()), FlowInfo::reserved);
    let flow = RouteInfo::SHARED;
    layout.routes.extend(routes.routes.iter().map(|route| RouteInfo { flow, side: route.side }));
    let options = Options { gauges: scenario.record.gauges, sojourn: scenario.record.sojourn };
    let written = written(point, &layout, folder)?;
    let timetable = timetable(scenario, written.0.is_some());
    let first = scenario.flows.len();
    let excerpts = Excerpts::new(scenario, &layout, first as u32);
    let recorder = Recorder::keeping(layout, options, tables);
    let watch = (recorder, (Tally::new(first), (excerpts, written)));
    let world = build_with_hosts(scenario, network, materials, &routes, watch);
    Ok((Engine::new(world, point, routes, hosts), timetable))
}

/// The routes between hosts at these nodes.
///
/// # Errors
/// There is no such node, or there are no links between two of them.
pub fn routes<'a>(
    network: &Network,
    nodes: impl Iterator<Item = &'a str>,
) -> Result<RealHosts, String> {
    let number = |name| network.node(name).ok_or_else(|| format!("{name:?} is no node"));
    let nodes: Vec<usize> = nodes.map(number).collect::<Result<_, _>>()?;
    RealHosts::new(network, nodes).map_err(|(from, to)| {
        format!("no links lead from {:?} to {:?}", network.nodes[from], network.nodes[to])
    })
}

/// CPU time of this thread in seconds.
fn cpu_s() -> f64 {
    let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
    nix::time::clock_gettime(clock)
        .map_or(0.0, |time| time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
}
