//! Resolves written paths to fields: expands `*`, also within a name, and checks every word.
//!
//! Used by `--set` and by axes, so that both accept the same paths and report the same errors.

use serde_json::Value as Json;

use crate::path::{Path, Step};
use crate::schema::{TAG, named, properties, resolved, variants};
use crate::tree::Tree;
use crate::words::{did_you_mean, key_hint, list, nearest};

/// Why a path is invalid.
pub(crate) struct Unknown {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// The fields that `text` refers to in `tree`, each in full; at least one.
pub(crate) fn fields(schema: &Json, tree: &Tree, text: &str) -> Result<Vec<Path>, Unknown> {
    let fields = typed_fields(schema, tree, text)?;
    Ok(fields.into_iter().map(|(field, _)| field).collect())
}

/// The same, each field with its schema.
pub(crate) fn typed_fields<'a>(
    schema: &'a Json,
    tree: &Tree,
    text: &str,
) -> Result<Vec<(Path, &'a Json)>, Unknown> {
    let Some(path) = Path::parse(text) else {
        let hint = Some("write it like flows.call.transport or links.*.delay".to_owned());
        return Err(Unknown { message: format!("{text:?} is not a path"), hint });
    };
    let mut fields = Vec::new();
    follow(schema, Some(tree), &path.0, &Path::default(), &mut fields)?;
    Ok(fields)
}

fn follow<'a>(
    schema: &'a Json,
    tree: Option<&Tree>,
    rest: &[Step],
    so_far: &Path,
    fields: &mut Vec<(Path, &'a Json)>,
) -> Result<(), Unknown> {
    let schema = resolved(schema);
    let Some((step, rest)) = rest.split_first() else {
        fields.push((so_far.clone(), schema));
        return Ok(());
    };
    if let (Some(items), Some(index)) = (schema.get("items"), as_index(step)) {
        let element = element(tree, index, so_far)?;
        return follow(items, Some(element), rest, &so_far.index(index), fields);
    }
    let Step::Key(key) = step else { return Err(leads_nowhere(so_far, &step_text(step))) };
    if key.contains('*') {
        return follow_all(schema, tree, (key, rest), so_far, fields);
    }
    if let Some(inner) = named(schema) {
        let names = tree.map(Tree::keys).unwrap_or_default();
        // Nodes are created by their links: accept any name.
        if !names.contains(&key.as_str()) && *so_far != Path::of(&["nodes"]) {
            let hint = match nearest(key, names.iter().copied()) {
                None => key_of_each(inner, key, so_far),
                Some(_) => None,
            };
            let hint = hint.or_else(|| did_you_mean("names here are", key, names));
            return Err(Unknown { message: format!("{so_far} has no {key:?}"), hint });
        }
        return follow(inner, tree.and_then(|t| t.key(key)), rest, &so_far.key(key), fields);
    }
    let inner = known_key(schema, tree, key, so_far)?;
    follow(inner, tree.and_then(|t| t.key(key)), rest, &so_far.key(key), fields)
}

/// A hint at `links.*.rate` for `links.rate`.
fn key_of_each(inner: &Json, key: &str, so_far: &Path) -> Option<String> {
    let known = properties(resolved(inner)).is_some_and(|keys| keys.contains_key(key));
    known.then(|| format!("did you mean \"{so_far}.*.{key}\"?"))
}

fn follow_all<'a>(
    schema: &'a Json,
    tree: Option<&Tree>,
    (pattern, rest): (&str, &[Step]),
    so_far: &Path,
    fields: &mut Vec<(Path, &'a Json)>,
) -> Result<(), Unknown> {
    let Some(inner) = named(schema) else {
        let message = format!("`{pattern}` matches names, and {} has none", shown(so_far));
        return Err(Unknown {
            message,
            hint: Some("names are in links, flows and nodes".to_owned()),
        });
    };
    let names = tree.map(Tree::keys).unwrap_or_default();
    if names.is_empty() {
        return Err(Unknown {
            message: format!("{so_far} has no names for `{pattern}`"),
            hint: None,
        });
    }
    let all: Vec<&str> = names.iter().copied().filter(|name| matches(pattern, name)).collect();
    if all.is_empty() {
        let message = format!("`{pattern}` matches no name in {so_far}");
        let hint = Some(format!("names here are {}", list(&names)));
        return Err(Unknown { message, hint });
    }
    for name in all {
        follow(inner, tree.and_then(|t| t.key(name)), rest, &so_far.key(name), fields)?;
    }
    Ok(())
}

/// True if the name is the pattern, in which each `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The schema of a key; in a table with kinds, that of its kind, or of any kind with the key.
fn known_key<'a>(
    schema: &'a Json,
    tree: Option<&Tree>,
    key: &str,
    so_far: &Path,
) -> Result<&'a Json, Unknown> {
    let kind = tree.and_then(|t| t.key(TAG)).and_then(Tree::as_text);
    let forms = variants(schema).unwrap_or_default();
    if key == TAG && !forms.is_empty() {
        return Ok(any_kind(schema, &forms));
    }
    let of_kind = forms.iter().find(|(name, _)| Some(*name) == kind);
    let own: Vec<&Json> = match of_kind {
        Some((_, form)) => vec![form],
        None if forms.is_empty() => vec![schema],
        None => forms.iter().map(|(_, form)| *form).collect(),
    };
    let mut tables = own.iter().copied().filter_map(properties);
    if let Some(inner) = tables.clone().find_map(|table| table.get(key)) {
        return Ok(inner);
    }
    if tables.all(serde_json::Map::is_empty) {
        return Err(leads_nowhere(so_far, key));
    }
    let kind = of_kind.map(|(kind, _)| format!(" of kind {kind:?}")).unwrap_or_default();
    let message = match so_far.0.as_slice() {
        [] => format!("a scenario has no {key:?}"),
        _ => format!("{so_far}{kind} has no {key:?}"),
    };
    Err(Unknown { message, hint: key_hint("keys there are", key, &own, &forms) })
}

/// The schema of `kind` itself: a text; its value is checked with the whole table.
fn any_kind<'a>(schema: &'a Json, forms: &[(&str, &'a Json)]) -> &'a Json {
    forms.first().map_or(schema, |(_, form)| &form["properties"][TAG])
}

fn element<'a>(tree: Option<&'a Tree>, index: usize, so_far: &Path) -> Result<&'a Tree, Unknown> {
    let elements = tree.map(Tree::list).unwrap_or_default();
    elements.get(index).ok_or_else(|| Unknown {
        message: format!("{so_far} has {} elements, counted from 0", elements.len()),
        hint: None,
    })
}

fn as_index(step: &Step) -> Option<usize> {
    match step {
        Step::Index(index) => Some(*index),
        Step::Key(key) => key.parse().ok(),
    }
}

fn step_text(step: &Step) -> String {
    match step {
        Step::Index(index) => format!("[{index}]"),
        Step::Key(key) => key.clone(),
    }
}

fn leads_nowhere(so_far: &Path, word: &str) -> Unknown {
    Unknown { message: format!("{} has nothing inside, so no {word:?}", shown(so_far)), hint: None }
}

fn shown(path: &Path) -> String {
    if path.0.is_empty() { "the scenario".to_owned() } else { list(&[&path.to_string()]) }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_any_text() {
        for pattern in ["*", "voip-*", "*-1", "v*1", "v*-*1", "voip-1", "voip-1*", "**", "*o*p*"] {
            assert!(matches(pattern, "voip-1"), "{pattern}");
        }
        for pattern in ["", "voip", "voip-*-1", "*2", "ip-*", "voip-1*1", "x*", "*p*o*"] {
            assert!(!matches(pattern, "voip-1"), "{pattern}");
        }
    }
}
