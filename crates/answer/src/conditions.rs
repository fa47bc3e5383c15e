//! Whether two calls of one run meet the same conditions, so that they can be compared.
//!
//! Scenarios compare transports on one network, or on separate copies of it. The names of a copy's nodes, links
//! and flows differ, so copies are recognised by their structure: links and flows are described by their
//! settings, then repeatedly by the descriptions of what they share links with (Weisfeiler and Leman 1968). Two
//! calls with equal descriptions have the same network and the same competing traffic.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::Runs;

/// Settings that contain names of nodes and flows.
const NAMES: [&str; 6] = ["from", "to", "group", "paths", "association", "routes"];
const TIMES: [&str; 3] = ["start", "start_spread", "stop"];
/// Refinements of the descriptions: as many links as may lie between what differs.
const ROUNDS: usize = 4;

/// A description: equal ones have equal numbers.
type Number = usize;
/// Own settings, and the descriptions of what is beside it.
type Description = (String, Vec<(Number, Place)>);
/// Where a flow crosses a link: side, path and hop.
type Place = (String, usize, usize);

/// Whether two calls of a run, or groups of calls, differ only in their own settings: they carry the same
/// speech in the same directions, at the same times, over the same route or over equal networks with equal
/// competing traffic; and they do differ in some setting.
pub(crate) fn comparable(
    runs: &dyn Runs,
    run: usize,
    network: &OnceCell<Option<Network>>,
    one: &[&str],
    other: &[&str],
) -> bool {
    let back = one.iter().chain(other).filter(|name| name.ends_with(".reverse")).count();
    if one.len() != other.len() || ![0, one.len() + other.len()].contains(&back) {
        return false;
    }
    let forth = |names: &[&str]| -> Vec<String> {
        names.iter().map(|name| name.strip_suffix(".reverse").unwrap_or(name).to_owned()).collect()
    };
    let (one, other) = (forth(one), forth(other));
    let (Some(a), Some(b)) = (runs.flow(run, &one[0]), runs.flow(run, &other[0])) else {
        return false;
    };
    if speech(&a) != speech(&b) || settings(&a) == settings(&b) {
        return false;
    }
    if a.get("routes") == b.get("routes") {
        return true;
    }
    let network = network.get_or_init(|| runs.network(run).map(Network::new));
    network.as_ref().is_some_and(|network| network.around(&one) == network.around(&other))
}

/// The flows of a run, their settings and their routes.
pub(crate) struct Network {
    /// Settings of each flow.
    flows: BTreeMap<String, String>,
    /// Settings of each link and direction, as named in routes.
    links: BTreeMap<String, String>,
    /// The flow and the link of each hop.
    hops: Vec<(String, String, Place)>,
    numbers: RefCell<IndexMap<Description, Number>>,
}

impl Network {
    /// As [`Runs::network`] has it.
    fn new(mut network: Value) -> Self {
        let mut table = |name: &str| match network.get_mut(name).map(Value::take) {
            Some(Value::Object(table)) => table,
            _ => Map::new(),
        };
        let mut links = BTreeMap::new();
        for (name, link) in &table("links") {
            let mut there = without(link, &NAMES);
            let back = there.remove("back");
            links.insert(name.clone(), text(&there));
            there.extend(without(&back.unwrap_or_default(), &[]));
            links.insert(format!("{name}.back"), text(&there));
        }
        let (mut flows, mut hops) = (BTreeMap::new(), Vec::new());
        for (flow, told) in &table("flows") {
            flows.insert(flow.clone(), settings(told));
            for (side, paths) in told.get("routes").and_then(Value::as_object).into_iter().flatten()
            {
                for (path, links) in paths.as_array().into_iter().flatten().enumerate() {
                    for (hop, link) in links.as_array().into_iter().flatten().enumerate() {
                        let link = link.as_str().unwrap_or_default().to_owned();
                        hops.push((flow.clone(), link, (side.clone(), path, hop)));
                    }
                }
            }
        }
        Self { flows, links, hops, numbers: RefCell::default() }
    }

    /// The description of a call's network and competing traffic, without its own settings.
    fn around(&self, calls: &[String]) -> Number {
        let mut flows: IndexMap<&str, Number> = IndexMap::new();
        for (flow, settings) in &self.flows {
            let text = if calls.contains(flow) { "the call" } else { settings };
            flows.insert(flow, self.number(text.to_owned(), Vec::new()));
        }
        let mut links: IndexMap<&str, Number> = IndexMap::new();
        for (_, link, _) in &self.hops {
            // A hop of a wireless cell has no settings here: it is equal only to itself.
            let text = self.links.get(link).cloned().unwrap_or_else(|| format!("only {link}"));
            links.insert(link, self.number(text, Vec::new()));
        }
        for _ in 0..ROUNDS {
            let mut on: IndexMap<&str, Vec<(Number, Place)>> = IndexMap::new();
            let mut along: IndexMap<&str, Vec<(Number, Place)>> = IndexMap::new();
            for (flow, link, place) in &self.hops {
                on.entry(link).or_default().push((flows[flow.as_str()], place.clone()));
                along.entry(flow).or_default().push((links[link.as_str()], place.clone()));
            }
            for (of, mut beside) in [(&mut links, on), (&mut flows, along)] {
                for (name, number) in of {
                    let mut beside = beside.swap_remove(name).unwrap_or_default();
                    beside.sort_unstable();
                    *number = self.number(number.to_string(), beside);
                }
            }
        }
        flows[calls[0].as_str()]
    }

    fn number(&self, own: String, beside: Vec<(Number, Place)>) -> Number {
        let mut numbers = self.numbers.borrow_mut();
        let next = numbers.len();
        *numbers.entry((own, beside)).or_insert(next)
    }
}

/// What a call says, and when.
fn speech(flow: &Value) -> String {
    let said = ["source", "reverse"].map(|side| {
        let source = flow.get(side)?;
        Some(json!([source.get("kind"), source.get("file")]))
    });
    json!([said, TIMES.map(|key| flow.get(key))]).to_string()
}

/// Its settings as text, the same for every order of them.
fn settings(flow: &Value) -> String {
    text(&without(flow, &NAMES))
}

fn without(settings: &Value, names: &[&str]) -> Map<String, Value> {
    let settings = settings.as_object().into_iter().flatten();
    let kept = settings.filter(|(key, _)| !names.contains(&key.as_str()));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn text(settings: &Map<String, Value>) -> String {
    // Whatever the order in which the settings are written.
    let sorted: BTreeMap<_, _> = settings.iter().collect();
    serde_json::to_string(&sorted).expect("names are texts")
}
