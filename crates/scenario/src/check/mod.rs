//! What is checked before anything runs: the shape first, then the meaning.
//!
//! `shape` looks at keys and types, `quantity` at numbers with units. The others look at the typed
//! scenario: `time` at the run and its windows, `network` at nodes and links, `flow` at what
//! runs over them, `traffic` at what is drawn or read from a trace, `tcp` and `sctp` at the knobs of
//! transports (those of DCCP, TFRC and queues are checked by the machines themselves), `recording` at
//! the files it needs.

mod flow;
mod network;
mod quantity;
mod recording;
mod sctp;
pub(crate) mod shape;
mod tcp;
mod time;
mod traffic;

use talkspurt_proto::time::Duration;

use crate::model::Scenario;
use crate::network::Network;
use crate::problem::Findings;

/// Checks all that shape cannot say. The network is whole if nothing was found.
pub(crate) fn meaning(scenario: &Scenario) -> (Network, Findings) {
    let mut found = Findings::default();
    // A run of no length is told once, not again by all that comes after its end.
    let run = if scenario.duration.is_zero() { Duration::MAX } else { scenario.duration };
    time::check(scenario, run, &mut found);
    network::check(scenario, run, &mut found);
    let (network, mut broken) = Network::assemble(scenario);
    found.0.append(&mut broken.0);
    flow::check(scenario, &network, run, &mut found);
    recording::check_recordings(scenario, run, &mut found);
    (network, found)
}
