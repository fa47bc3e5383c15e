//! What is checked before anything runs: the shape first, then the meaning.
//!
//! `shape` looks at keys and types, `quantity` at numbers with units. The others look at the typed
//! scenario: `time` at the run and its windows, `network` at nodes and links, `flow` at what runs
//! over them, `tcp` at the knobs of one transport, `recording` at the files it needs.

mod flow;
mod network;
mod quantity;
mod recording;
pub(crate) mod shape;
mod tcp;
mod time;

use crate::model::Scenario;
use crate::network::Network;
use crate::problem::Findings;

/// Checks all that shape cannot say. Where the network holds, it is returned for use.
pub(crate) fn meaning(scenario: &Scenario) -> (Option<Network>, Findings) {
    let mut found = Findings::default();
    time::check(scenario, &mut found);
    network::check(scenario, &mut found);
    let network = match Network::assemble(scenario) {
        Ok(network) => Some(network),
        Err(mut broken) => {
            found.0.append(&mut broken.0);
            None
        }
    };
    flow::check(scenario, network.as_ref(), &mut found);
    recording::check_recordings(scenario, &mut found);
    (network, found)
}
