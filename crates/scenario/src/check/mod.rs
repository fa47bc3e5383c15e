//! What is checked before anything runs: the shape first, then the meaning.
//!
//! `shape` looks at keys and types, `quantity` at numbers with units. The others look at the typed
//! scenario: `time` at the run and its windows, `network` at nodes and links, `cell` at cells of
//! 802.11, `flow` at what runs over them, `traffic` at what is drawn or read from a trace, `tcp`
//! and `sctp` at the knobs of transports (those of DCCP, TFRC and queues are checked by the
//! machines themselves), `recording` at the files it needs.

mod cell;
mod flow;
mod network;
mod quantity;
mod recording;
pub(crate) mod shape;
mod time;
mod traffic;

use talkspurt_proto::time::Duration;

use crate::model::Scenario;
use crate::network::Network;
use crate::path::Path;
use crate::problem::Findings;

/// Checks all that shape cannot say. The network is whole if nothing was found.
pub(crate) fn meaning(scenario: &Scenario) -> (Network, Findings) {
    let mut found = Findings::default();
    // A run of no length is reported once, not again by all that comes after its end.
    let run = if scenario.duration.is_zero() { Duration::MAX } else { scenario.duration };
    check_texts(scenario, &mut found);
    time::check(scenario, run, &mut found);
    network::check(scenario, run, &mut found);
    cell::check(scenario, &mut found);
    let (network, mut broken) = Network::assemble(scenario);
    found.0.append(&mut broken.0);
    flow::check(scenario, &network, run, &mut found);
    recording::check_recordings(scenario, run, &mut found);
    (network, found)
}

fn check_texts(scenario: &Scenario, found: &mut Findings) {
    plain(Path::of(&["title"]), "a title", &scenario.title, &[], found);
    plain(Path::of(&["description"]), "a description", &scenario.description, &['\n', '\t'], found);
    for (name, flow) in &scenario.flows {
        if let Some(group) = &flow.group {
            plain(Path::of(&["flows", name, "group"]), "a group's name", group, &[], found);
        }
    }
}

/// Titles, labels and names of groups are one line of plain text. Terminals, ns-2 scripts and other
/// files that they are written to would take control characters for commands, and controls of writing
/// direction (Unicode 15.0, UAX #9 §2) would show another text than there is. A description may have
/// several lines: it `allows` their ends.
pub(crate) fn plain(path: Path, what: &str, text: &str, allows: &[char], found: &mut Findings) {
    let harms = |c: &char| {
        c.is_control()
            || matches!(*c, '\u{2028}' | '\u{2029}' | '\u{61c}' | '\u{200e}' | '\u{200f}')
            || matches!(*c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if let Some(c) = text.chars().filter(|c| !allows.contains(c)).find(harms) {
        let message = format!("has the control character U+{:04X}: {what} is plain text", c as u32);
        found.add(path, message);
    }
}
