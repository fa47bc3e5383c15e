//! A scenario with all defaults filled in: as TOML for the record of a run, and as values for programs that
//! do not parse TOML or quantities.

use serde_json::Value as Json;
use talkspurt_proto::units::with_values;

use crate::model::Scenario;
use crate::tree::{Tree, Value};

/// The scenario as TOML that loads to an equal scenario.
///
/// # Panics
/// Never for a scenario from [`crate::load()`]; one built in code may contain a seed above 2^63 − 1 or a
/// path that is not text, which TOML cannot represent.
#[must_use]
pub fn to_toml(scenario: &Scenario) -> String {
    toml::to_string_pretty(scenario).expect("every checked scenario can be said in TOML")
}

/// Converts the output of [`to_toml`] to JSON. A quantity is an object of its text (`quantity`), its
/// `value` in seconds, bit/s or bytes, and its `unit`. Text of another version is returned without quantity
/// values.
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

/// The line of each key of a scenario's text, including tables, in order. List elements are numbered from
/// 0.
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
