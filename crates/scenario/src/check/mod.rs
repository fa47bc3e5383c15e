//! Validation before a run: the shape first, then the meaning.
//!
//! `shape` checks keys and types, `quantity` numbers with units. The others check the typed scenario:
//! `time` the run and its windows, `network` nodes and links, `cell` 802.11 cells, `flow` the flows over
//! them, `speech` and `traffic` their sources within the limits of `side`, `recording` the speech files.
//! Transports and queues validate their own parameters.

mod cell;
mod flow;
mod network;
pub(crate) mod quantity;
mod recording;
pub(crate) mod shape;
mod side;
mod speech;
mod time;
mod traffic;

use talkspurt_app::file::Files;
use talkspurt_proto::time::Duration;

use crate::model::Scenario;
use crate::network::Network;
use crate::path::Path;
use crate::problem::Findings;

/// Checks everything beyond the shape; with `series`, also the memory that they need; with `hosts`, flows may
/// be missing. The network is complete if there are no findings.
pub(crate) fn meaning(
    scenario: &Scenario,
    files: &dyn Files,
    series: bool,
    hosts: bool,
) -> (Network, Findings) {
    let mut found = Findings::default();
    // A run of zero length is reported once, not again for every time after its end.
    let run = if scenario.duration.is_zero() { Duration::MAX } else { scenario.duration };
    check_texts(scenario, &mut found);
    time::check(scenario, run, series, &mut found);
    network::check(scenario, run, &mut found);
    cell::check(scenario, &mut found);
    let (network, mut broken) = Network::assemble(scenario, files);
    found.0.append(&mut broken.0);
    found.2.append(&mut broken.2);
    if scenario.flows.is_empty() && !hosts {
        found.add(Path::of(&["flows"]), "nothing runs: give at least one flow");
    }
    flow::check(scenario, &network, files, run, &mut found);
    recording::check_recordings(scenario, files, run, &mut found);
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

/// Titles, labels and group names are one line of plain text: terminals, ns-2 scripts and other files would
/// interpret control characters, and bidirectional formatting characters (Unicode 15.0, UAX #9 §2) would
/// change the displayed text. A description may have several lines: it `allows` line breaks.
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
