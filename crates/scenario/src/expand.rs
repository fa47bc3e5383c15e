//! Expands grouped flows: `count = 500` becomes 500 flows before any checks.
//!
//! A finding in several expanded flows is reported once, for the flow as written.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Flow, Scenario, Transport};
use crate::path::{Path, Step};
use crate::problem::Findings;

/// Flows of one `count`, at most: more than the schedule has slots for.
const MOST: u32 = 30_000;

/// Names as written, by expanded name.
pub(crate) struct Written(BTreeMap<String, String>);

/// Expands every flow with a `count`.
pub(crate) fn expand(scenario: &mut Scenario, found: &mut Findings) -> Written {
    let mut written = BTreeMap::new();
    if scenario.flows.values().all(|flow| flow.count.is_none()) {
        return Written(written);
    }
    let flows = std::mem::take(&mut scenario.flows);
    let names: BTreeSet<String> = flows.keys().cloned().collect();
    for (name, mut flow) in flows {
        let path = Path::of(&["flows", &name, "count"]);
        match flow.count.take() {
            None => {
                scenario.flows.insert(name, flow);
            }
            Some(count @ (0 | MOST..)) => {
                let message = format!("{count} flows: at least 1, and fewer than {MOST}");
                found.add(path, message);
                scenario.flows.insert(name, flow);
            }
            Some(count) => {
                flow.group = Some(name.clone());
                for number in 1..=count {
                    let own = format!("{name}-{number}");
                    if names.contains(&own) {
                        let message =
                            format!("makes a flow {own:?}, and there is one of that name");
                        found.add(path.clone(), message);
                    }
                    written.insert(own.clone(), name.clone());
                    let mut one = flow.clone();
                    number_nodes(&mut one, number);
                    scenario.flows.insert(own, one);
                }
            }
        }
    }
    Written(written)
}

/// Replaces `*` by the flow's number in its nodes and in the owner of its association.
fn number_nodes(flow: &mut Flow, number: u32) {
    let ways = flow.via.iter_mut().chain(&mut flow.paths).flatten();
    let owner = match &mut flow.transport {
        Transport::Sctp(sctp) => sctp.association.as_mut(),
        _ => None,
    };
    for node in [&mut flow.from, &mut flow.to].into_iter().chain(ways).chain(owner) {
        if node.contains('*') {
            *node = node.replace('*', &number.to_string());
        }
    }
}

impl Written {
    /// The name as written.
    pub(crate) fn name<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.get(name).map_or(name, String::as_str)
    }

    /// Maps findings about expanded flows to the flow as written, once each.
    pub(crate) fn restore(&self, found: &mut Findings) {
        if self.0.is_empty() {
            return;
        }
        for finding in &mut found.0 {
            finding.path = self.path(&finding.path);
        }
        let mut known = BTreeSet::new();
        found.0.retain(|finding| known.insert((finding.path.clone(), finding.message.clone())));
    }

    fn path(&self, path: &Path) -> Path {
        let mut path = path.clone();
        if let [Step::Key(table), Step::Key(name), ..] = &mut path.0[..]
            && table == "flows"
            && let Some(written) = self.0.get(name)
        {
            written.clone_into(name);
        }
        path
    }
}
