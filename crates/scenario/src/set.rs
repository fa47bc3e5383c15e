//! `--set PATH=VALUE`: single fields changed from the command line or from Python.

use serde_json::Value as Json;

use crate::path::Path;
use crate::place::fields;
use crate::problem::Findings;
use crate::tree::{Origin, Tree};

/// Whether a change is one of the network's shape, of which links are still to be made.
pub(crate) fn shapes(path: &str) -> bool {
    Path::parse(path).is_some_and(|path| Path::of(&["topology"]).holds(&path))
}

/// Writes the changes into the tree of which this `is` true; gives back which fields each one reached.
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

/// A TOML value if it is one, else the text as it stands: `20ms` needs no quotes.
fn read(text: &str, origin: &Origin) -> Tree {
    Tree::parse_value(text.trim(), origin).unwrap_or_else(|| Tree::text(text.trim(), origin))
}
