//! A scenario with all defaults filled in: as TOML for the record of a run, and as values for programs that
//! do not parse TOML or quantities.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value as Json;
use talkspurt_proto::units::with_values;

use crate::model::{Axis, Cell, Design, Flow, Link, Replications, Scenario};
use crate::tree::{Tree, Value};

/// The scenario as TOML that loads to an equal scenario.
///
/// # Panics
/// Never for a scenario from [`crate::load()`]; one built in code may contain a seed above 2^63 − 1 or a
/// path that is not text, which TOML cannot represent.
#[must_use]
pub fn to_toml(scenario: &Scenario) -> String {
    let few = scenario.links.len() + scenario.flows.len() < MANY || scenario.flows.is_empty();
    if few { text(scenario) } else { in_parts(scenario) }
}

/// The same of a scenario with flows, in time proportional to its length.
fn in_parts(scenario: &Scenario) -> String {
    // Tables of one text are written in quadratic time, as `toml` inserts each header where it belongs.
    let Scenario { links, cells, flows, axes, design, replications, .. } = scenario;
    let head = Scenario {
        title: scenario.title.clone(),
        description: scenario.description.clone(),
        nodes: scenario.nodes.clone(),
        topology: scenario.topology.clone(),
        record: scenario.record.clone(),
        measure: scenario.measure.clone(),
        replications: replications.clone(),
        links: IndexMap::new(),
        cells: IndexMap::new(),
        flows: IndexMap::new(),
        axes: Vec::new(),
        design: None,
        ..*scenario
    };
    let mut all = text(&head);
    // Behind it are only the replications.
    all.truncate(all.rfind("\n[flows]\n").expect("flows are always written"));
    let mut add = |part: String| {
        all.push('\n');
        all.push_str(&part);
    };
    links.iter().for_each(|(name, link)| add(text(&Part::Links([(name, link)].into()))));
    cells.iter().for_each(|(name, cell)| add(text(&Part::Cells([(name, cell)].into()))));
    flows.iter().for_each(|(name, flow)| add(text(&Part::Flows([(name, flow)].into()))));
    add(text(&Rest { axes, design, replications }));
    all
}

/// Links and flows from which on they are written one at a time.
const MANY: usize = 50;

fn text(part: &impl Serialize) -> String {
    toml::to_string_pretty(part).expect("every checked scenario can be said in TOML")
}

/// A table of a scenario.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Part<'a> {
    Links(BTreeMap<&'a String, &'a Link>),
    Cells(BTreeMap<&'a String, &'a Cell>),
    Flows(BTreeMap<&'a String, &'a Flow>),
}

/// What is behind the flows.
#[derive(Serialize)]
struct Rest<'a> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    axes: &'a [Axis],
    #[serde(skip_serializing_if = "Option::is_none")]
    design: &'a Option<Design>,
    replications: &'a Replications,
}

/// Converts the output of [`to_toml`] to JSON. A quantity is an object of its text (`quantity`), its `value` in
/// seconds, bit/s or bytes, and its `unit`. Text of another version is returned without quantity values.
///
/// # Errors
/// The text is not TOML.
pub fn values(resolved: &str) -> Result<Json, String> {
    let plain: Json = toml::from_str(resolved).map_err(|error| error.message().to_owned())?;
    let Some(scenario) = parsed(plain.clone()) else { return Ok(plain) };
    Ok(with_values(|| serde_json::to_value(scenario)).unwrap_or(plain))
}

/// The resolved scenario that a text is; `None` of an import, which has keys of its own.
#[must_use]
pub fn resolved(text: &str) -> Option<Scenario> {
    parsed(toml::from_str(text).ok()?)
}

fn parsed(plain: Json) -> Option<Scenario> {
    serde_json::from_value(plain).ok()
}

/// The line of each key of a scenario's text, including tables, in order. List elements are numbered from 0.
#[must_use]
pub fn lines(text: &str) -> Vec<(String, u32)> {
    let mut lines = Vec::new();
    if let Ok(tree) = Tree::parse(text) {
        visit(&tree, "", &mut lines);
    }
    lines
}

fn visit(tree: &Tree, path: &str, lines: &mut Vec<(String, u32)>) {
    let mut below = |name: &str, tree: &Tree| {
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        lines.extend(tree.origin.line.map(|line| (path.clone(), line)));
        visit(tree, &path, lines);
    };
    match &tree.value {
        Value::Table(table) => table.iter().for_each(|(name, tree)| below(name, tree)),
        Value::List(list) => {
            list.iter().enumerate().for_each(|(at, tree)| below(&at.to_string(), tree));
        }
        _ => {}
    }
}

/// Each number and quantity of a scenario's text as written, with its path and its line.
#[must_use]
pub fn numbers(text: &str) -> Vec<(String, u32, String)> {
    let Ok(tree) = Tree::parse(text) else { return Vec::new() };
    let numeric = |path: &str| match &find(&tree, path)?.value {
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Text(text) if is_quantity(text) => Some(text.clone()),
        _ => None,
    };
    let lines = lines(text).into_iter();
    lines.filter_map(|(path, line)| numeric(&path).map(|text| (path, line, text))).collect()
}

/// A number with a unit, such as `20ms`.
fn is_quantity(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim_start();
    text.starts_with(|c: char| c.is_ascii_digit())
        && !unit.is_empty()
        && unit.chars().all(|c| c.is_ascii_alphabetic() || c == '/')
}

fn find<'a>(tree: &'a Tree, path: &str) -> Option<&'a Tree> {
    let mut found = tree;
    for step in path.split('.') {
        found = match &found.value {
            Value::Table(table) => table.get(step)?,
            Value::List(list) => list.get(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "title = \"t\"\nduration = \"1.5s\"\nseed = 1\n\n[links.a]\nfrom = \"x\"\n\
        to = \"y\"\nrate = \"2Mbit/s\"\ndelay = \"100us\"\nqueue = { kind = \"droptail\", packets = 3 }\n\
        [flows.f]\nfrom = \"x\"\nto = \"y\"\ntransport = { kind = \"udp\" }\n\
        source = { kind = \"cbr\", rate = \"64kbit/s\", packet = \"160B\" }\n";

    #[test]
    fn quantities_have_their_text_their_value_and_their_unit() {
        let study = crate::load(TEXT, "t", std::path::Path::new("."), &[], None);
        let scenario = &study.expect("a sound scenario").points[0].scenario;
        let text = to_toml(scenario);
        let found = values(&text).expect("TOML");
        let quantity = |text: &str, value: f64, unit: &str| serde_json::json!({ "quantity": text, "value": value, "unit": unit });
        assert_eq!(found["duration"], quantity("1500ms", 1.5, "s"));
        assert_eq!(found["links"]["a"]["rate"], quantity("2Mbit/s", 2e6, "bit/s"));
        assert_eq!(found["links"]["a"]["delay"], quantity("100us", 1e-4, "s"));
        assert_eq!(found["flows"]["f"]["source"]["packet"], quantity("160B", 160.0, "B"));
        assert_eq!(found["flows"]["f"]["transport"]["kind"], "udp");
        // Elsewhere a quantity remains text.
        assert_eq!(to_toml(scenario), text);
        // Text of another version is returned unchanged.
        assert_eq!(values("duration = \"1s\"\nwhat = 3").expect("TOML")["duration"], "1s");
        assert!(values("=").is_err());
    }

    #[test]
    fn parts_are_those_of_the_whole() {
        let mut compared = 0;
        for folder in ["", "networks", "topologies"] {
            let folder =
                concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/").to_owned() + folder;
            for file in std::fs::read_dir(&folder).expect("a folder").flatten() {
                let file = file.path();
                let Ok(written) = std::fs::read_to_string(&file) else { continue };
                let base = std::path::Path::new(&folder);
                let Ok(study) = crate::load(&written, "t", base, &[], None) else { continue };
                for point in study.points.iter().take(3) {
                    assert_eq!(in_parts(&point.scenario), text(&point.scenario), "{file:?}");
                    let scenario = point.scenario.expanded();
                    assert_eq!(in_parts(&scenario), text(&scenario), "{file:?}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 40, "{compared}");
    }

    #[test]
    fn numbers_and_quantities_have_their_line() {
        let found = numbers(TEXT);
        let of = |path: &str| found.iter().find(|it| it.0 == path).map(|it| (it.1, it.2.as_str()));
        assert_eq!(of("seed"), Some((3, "1")));
        assert_eq!(of("links.a.rate"), Some((8, "2Mbit/s")));
        assert_eq!(of("links.a.queue.packets"), Some((10, "3")));
        assert_eq!(of("links.a.from"), None);
        assert_eq!(of("flows.f.source.kind"), None);
    }

    #[test]
    fn each_key_has_its_line() {
        let lines = lines(TEXT);
        let line = |path: &str| lines.iter().find(|(known, _)| known == path).map(|found| found.1);
        assert_eq!(line("seed"), Some(3));
        assert_eq!(line("links.a"), Some(5));
        assert_eq!(line("links.a.queue.packets"), Some(10));
        assert_eq!(line("flows.f.source.rate"), Some(15));
        assert_eq!(line("flows.f.source.noise"), None);
    }
}
