//! `--set PATH=VALUE`: changes single fields from the command line or from Python.

use serde_json::Value as Json;
use talkspurt_proto::time::Duration;

use crate::expand;
use crate::path::{Origin, Path};
use crate::place::fields;
use crate::problem::Findings;
use crate::tree::Tree;

/// Whether a change concerns the topology, whose links are not yet expanded.
pub(crate) fn shapes(path: &str) -> bool {
    Path::parse(path).is_some_and(|path| Path::of(&["topology"]).holds(&path))
}

/// Applies the changes for which `is` is true; returns the fields that each one reached.
pub(crate) fn apply(
    schema: &Json,
    tree: &mut Tree,
    sets: &[(String, String)],
    is: impl Fn(&str) -> bool,
    found: &mut Findings,
) -> Vec<Vec<Path>> {
    let mut reached = Vec::with_capacity(sets.len());
    for (number, (path, value)) in sets.iter().enumerate() {
        if !is(path) {
            reached.push(Vec::new());
            continue;
        }
        let origin = Origin { set: Some(number), ..Origin::default() };
        expand::leave(tree, path);
        match fields(schema, tree, path) {
            Err(unknown) => {
                found.add(Path::default(), unknown.message).hint(unknown.hint).at(&origin);
                reached.push(Vec::new());
            }
            Ok(targets) => {
                let value = read(value, &origin);
                for target in &targets {
                    if !tree.put(target, value.clone()) {
                        let message = "a plain value is in the way of this path";
                        found.add(target.clone(), message).at(&origin);
                    }
                }
                reached.push(targets);
            }
        }
    }
    reached
}

/// If a `--set` makes the run shorter than the measure window, the window's end keeps its distance from the
/// end of the run, unless a change concerns the window.
pub(crate) fn keep_window(before: Option<Duration>, tree: &mut Tree, sets: &[(String, String)]) {
    let ours = |path: &str| Path::parse(path).is_some_and(|p| Path::of(&["measure"]).holds(&p));
    if sets.iter().any(|(path, _)| ours(path)) {
        return;
    }
    let to = tree.key("measure").and_then(|measure| measure.key("to"));
    let (to, Some(now)) = (to.and_then(duration), tree.key("duration").and_then(duration)) else {
        return;
    };
    let (Some(before), Some(to)) = (before, to) else { return };
    let apart = before.saturating_sub(to);
    if to <= before && to > now && apart < now {
        let origin = tree.origin_of(&Path::of(&["duration"])).clone();
        let end = Tree::text(&now.saturating_sub(apart).to_string(), &origin);
        tree.put(&Path::of(&["measure", "to"]), end);
    }
}

/// A value as a duration, if valid.
pub(crate) fn duration(tree: &Tree) -> Option<Duration> {
    tree.as_text()?.parse().ok()
}

/// A TOML value if valid, else the text itself: `20ms` needs no quotes.
fn read(text: &str, origin: &Origin) -> Tree {
    Tree::parse_value(text.trim(), origin).unwrap_or_else(|| Tree::text(text.trim(), origin))
}
