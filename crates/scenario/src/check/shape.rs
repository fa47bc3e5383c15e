//! Checks the shape of a scenario: known keys, correct types, no missing values.
//!
//! Walks the tree along the schema and collects all differences. serde alone would stop at the first error,
//! lose the path inside tagged tables and know no line numbers.

use serde_json::Value as Json;
use talkspurt_proto::dccp::{Service, ServiceError};

use super::quantity::Quantity;
use crate::path::{Path, Step};
use crate::problem::{Finding, Findings};
use crate::schema::{TAG, named, numbers, properties, resolved, unlisted, variants, words};
use crate::tree::{Tree, Value};
use crate::words::{Forms, did_you_mean, key_hint, key_with, kind_with, list, nearest};

/// Above this number of findings, unknown keys get no hint: hints cost as much as many keys.
const MAX_HINTS: usize = 200;
const UNKNOWN_WORD: &str = "unknown word";

/// Checks `tree`, located at `path`, against `schema`.
pub(crate) fn check(schema: &Json, tree: &Tree, path: &Path, found: &mut Findings) {
    let schema = resolved(schema);
    if let Value::Datetime(_) = tree.value {
        let message = format!("{} has no place in a scenario", tree.described());
        let quantity = schema.get("format").and_then(Json::as_str).and_then(Quantity::named);
        let hint = quantity.map(|quantity| format!("write {}", quantity.wanted()));
        found.add(path.clone(), message).at(&tree.origin).hint(hint);
    } else if let Some(forms) = variants(schema) {
        let kind = tree.key(TAG).and_then(Tree::as_text);
        match kind.and_then(|kind| unlisted(schema, kind)) {
            Some(form) => check_table(form, &forms, tree, path, found),
            None => check_tagged(&forms, tree, path, found),
        }
    } else if let Some(known) = words(schema) {
        let known: Vec<&str> = known.into_iter().map(|(word, _)| word).collect();
        check_word(&known, tree, path, found);
    } else if let Some(known) = numbers(schema) {
        check_choice(&known, tree, path, found);
    } else if schema.get("format").and_then(Json::as_str) == Some("service-code") {
        check_service(tree, path, found);
    } else {
        match schema.get("type").and_then(Json::as_str) {
            Some("object") => check_table(schema, &[], tree, path, found),
            Some("array") => check_list(schema, tree, path, found),
            Some("string") => check_text(schema, tree, path, found),
            Some("integer") => check_number(schema, true, tree, path, found),
            Some("number") => check_number(schema, false, tree, path, found),
            Some("boolean") => check_boolean(tree, path, found),
            _ => {}
        }
    }
}

fn expected(what: &str, tree: &Tree, path: &Path, hint: Option<String>, found: &mut Findings) {
    found
        .add(path.clone(), format!("expected {what}, found {}", tree.described()))
        .at(&tree.origin)
        .hint(hint);
}

/// `forms` are all kinds that the table could have; empty for tables without `kind`.
fn check_table(schema: &Json, forms: &Forms<'_>, tree: &Tree, path: &Path, found: &mut Findings) {
    let Value::Table(table) = &tree.value else {
        return expected("a table", tree, path, None, found);
    };
    let kind = schema.pointer("/properties/kind/const").and_then(Json::as_str);
    let before = found.0.len();
    for (key, inner) in table {
        let within = path.key(key);
        match (properties(schema).and_then(|p| p.get(key)), named(schema)) {
            (Some(known), _) | (None, Some(known)) => check(known, inner, &within, found),
            (None, None) => {
                if found.full() {
                    found.1 += 1;
                    continue;
                }
                let message = match kind {
                    Some(kind) if !forms.is_empty() => format!("unknown key for kind = {kind:?}"),
                    _ => "unknown key".to_owned(),
                };
                let hint = (found.0.len() < MAX_HINTS)
                    .then(|| key_hint("keys here are", key, &[schema], forms));
                found.add(within, message).at(&inner.origin).hint(hint.flatten());
            }
        }
    }
    name_the_key_of_words(schema, tree, path, &mut found.0[before..]);
    for key in required(schema).filter(|key| !table.contains_key(*key)) {
        let meaning = schema["properties"][key]["description"].as_str().unwrap_or("");
        let meaning = meaning.split([';', '.', ',', ':', '(']).next().unwrap_or("").trim_end();
        let hint = example(&schema["properties"][key]).map(|e| format!("such as {key} = {e}"));
        found.add(path.key(key), format!("missing ({meaning})")).at(&tree.origin).hint(hint);
    }
}

fn required(schema: &Json) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str)
}

/// An example value of this schema, shown when the value is missing.
fn example(schema: &Json) -> Option<String> {
    let schema = resolved(schema);
    if let Some(forms) = variants(schema) {
        let kinds: Vec<String> =
            forms.iter().map(|(kind, _)| format!("{{ kind = \"{kind}\" … }}")).collect();
        return Some(kinds.join(" or "));
    }
    if let Some(known) = words(schema) {
        let known: Vec<String> = known.iter().map(|(word, _)| format!("{word:?}")).collect();
        return Some(known.join(" or "));
    }
    let format = schema.get("format").and_then(Json::as_str).unwrap_or("");
    let text = match (Quantity::named(format), schema["type"].as_str()?) {
        (Some(Quantity::Duration), _) => "\"20ms\"",
        (Some(Quantity::Rate), _) => "\"2Mbit/s\"",
        (Some(Quantity::Size), _) => "\"160B\"",
        (None, "string") => "\"…\"",
        (None, "array") => "[…]",
        _ => return None,
    };
    Some(text.to_owned())
}

fn check_tagged(forms: &Forms<'_>, tree: &Tree, path: &Path, found: &mut Findings) {
    let kinds: Vec<&str> = forms.iter().map(|(kind, _)| *kind).collect();
    if let Some(text) = tree.as_text() {
        let kind = |kind: &str| format!("{{ kind = \"{kind}\" }}");
        let hint = match nearest(text, kinds.iter().copied()) {
            Some(near) if near == text => Some(kind(near)),
            near => kind_with(forms, text).or(near.map(kind)),
        };
        let braces = text.trim_start().starts_with('{');
        let hint = if braces {
            Some("strings in an inline table need quotes: { kind = \"…\" }".to_owned())
        } else {
            hint.map(|table| format!("did you mean {table}?"))
        };
        return expected("a table with `kind`", tree, path, hint, found);
    }
    let Value::Table(table) = &tree.value else {
        return expected("a table with `kind`", tree, path, None, found);
    };
    let Some(tag) = table.get(TAG) else {
        // A misspelt `kind` is the fault, if the table has a word of it.
        let misspelt = table.iter().find(|(key, inner)| {
            let is_kind = inner.as_text().is_some_and(|text| kinds.contains(&text));
            is_kind && nearest(key, [TAG]).is_some()
        });
        if let Some((key, inner)) = misspelt {
            let hint = Some(format!("did you mean \"{TAG}\"?"));
            found.add(path.key(key), "unknown key").at(&inner.origin).hint(hint);
            return;
        }
        let hint = format!("kinds are: {}", list(&kinds));
        found.add(path.key(TAG), "missing").at(&tree.origin).hint(hint);
        return;
    };
    let Some((_, form)) = forms.iter().find(|(kind, _)| tag.as_text() == Some(kind)) else {
        let before = found.0.len();
        check_word(&kinds, tag, &path.key(TAG), found);
        let table = tag.as_text().and_then(|text| kind_with(forms, text));
        if let (Some(table), Some(finding)) = (table, found.0.get_mut(before)) {
            finding.hint = Some(format!("did you mean {table}?"));
        }
        return;
    };
    check_table(form, forms, tree, path, found);
}

/// Changes the hints on words of this table that are words of another of its keys.
fn name_the_key_of_words(schema: &Json, tree: &Tree, path: &Path, found: &mut [Finding]) {
    let unknown = |it: &&mut Finding| it.message.starts_with(UNKNOWN_WORD);
    for finding in found.iter_mut().filter(unknown).filter(|it| path.is_table_of(&it.path)) {
        let Some(Step::Key(key)) = finding.path.0.last() else { continue };
        let Some(text) = tree.key(key).and_then(Tree::as_text) else { continue };
        if let Some((other, word)) = key_with(schema, text) {
            finding.hint = Some(format!("it is a word of `{other}`: {other} = \"{word}\""));
        }
    }
}

fn check_word(known: &[&str], tree: &Tree, path: &Path, found: &mut Findings) {
    let Some(text) = tree.as_text() else {
        let what = format!("one of the words {}", list(known));
        return expected(&what, tree, path, None, found);
    };
    if !known.contains(&text) {
        let hint = did_you_mean("known are", text, known.iter().copied());
        found.add(path.clone(), format!("{UNKNOWN_WORD} {text:?}")).at(&tree.origin).hint(hint);
    }
}

/// One of a few integers, such as a CCID; the hint is the nearest.
fn check_choice(known: &[i64], tree: &Tree, path: &Path, found: &mut Findings) {
    let words: Vec<String> = known.iter().map(i64::to_string).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Value::Integer(number) = &tree.value else {
        let digits = tree
            .as_text()
            .and_then(|text| text.trim_matches(|c: char| !c.is_ascii_digit()).parse().ok());
        let meant = digits.filter(|digits| known.contains(digits));
        let hint = meant.map(|meant| format!("did you mean {meant}?"));
        return expected(&format!("one of the numbers {}", list(&words)), tree, path, hint, found);
    };
    if !known.iter().any(|known| i128::from(*known) == *number) {
        let near = known.iter().min_by_key(|known| (i128::from(**known) - number).unsigned_abs());
        let hint = near.map(|near| format!("did you mean {near}?"));
        let message = format!("{number} is not one of {}", list(&words));
        found.add(path.clone(), message).at(&tree.origin).hint(hint);
    }
}

/// A DCCP Service Code, as text or number (RFC 4340 §8.1.2).
fn check_service(tree: &Tree, path: &Path, found: &mut Findings) {
    let fault = match &tree.value {
        Value::Text(text) => match text.parse::<Service>() {
            Ok(_) => return,
            Err(fault) => fault,
        },
        Value::Integer(number) => match u32::try_from(*number) {
            Ok(code) if Service(code).is_valid() => return,
            _ => ServiceError::Invalid,
        },
        _ => return expected("a Service Code such as \"RTPA\"", tree, path, None, found),
    };
    let hint = "\"RTPA\" is an RTP session of audio (RFC 5762 §5.2)".to_owned();
    let message = format!("{}: {fault}", tree.described());
    found.add(path.clone(), message).at(&tree.origin).hint(hint);
}

fn check_list(schema: &Json, tree: &Tree, path: &Path, found: &mut Findings) {
    let Value::List(elements) = &tree.value else {
        let hint = tree.as_text().map(|text| format!("did you mean [{text:?}]?"));
        return expected("a list", tree, path, hint, found);
    };
    if elements.is_empty() && schema.get("minItems").is_some() {
        let hint = "give at least one".to_owned();
        found.add(path.clone(), "is empty").at(&tree.origin).hint(hint);
    }
    for (index, element) in elements.iter().enumerate() {
        if found.full() {
            let mut rest = Findings::default();
            check(&schema["items"], element, &path.index(index), &mut rest);
            found.1 += rest.0.len() + rest.1;
        } else {
            check(&schema["items"], element, &path.index(index), found);
        }
    }
}

fn check_text(schema: &Json, tree: &Tree, path: &Path, found: &mut Findings) {
    let format = schema.get("format").and_then(Json::as_str).unwrap_or("");
    match (Quantity::named(format), &tree.value) {
        (Some(quantity), Value::Text(text)) => {
            if let Some(fault) = quantity.fault(text) {
                found.add(path.clone(), fault).at(&tree.origin).hint(quantity.meant(text));
            }
        }
        (Some(quantity), value) => {
            let bare = match value {
                Value::Integer(integer) => quantity.meant(&integer.to_string()),
                Value::Float(float) => quantity.meant(&float.to_string()),
                _ => None,
            };
            expected(quantity.wanted(), tree, path, bare, found);
        }
        (None, Value::Text(text)) if format.starts_with("ip") => {
            if text.parse::<std::net::IpAddr>().is_err() {
                found
                    .add(path.clone(), format!("{text:?} is not an IPv4 or IPv6 address"))
                    .at(&tree.origin)
                    .hint("write it like \"192.0.2.1\" or \"2001:db8::1\"".to_owned());
            }
        }
        (None, Value::Text(_)) => {}
        (None, value) => {
            let hint = match value {
                Value::Integer(i) => Some(format!("in quotes: \"{i}\"")),
                Value::Float(f) => Some(format!("in quotes: \"{f}\"")),
                Value::Boolean(b) => Some(format!("in quotes: \"{b}\"")),
                _ => None,
            };
            expected("a text", tree, path, hint, found);
        }
    }
}

fn check_number(schema: &Json, whole: bool, tree: &Tree, path: &Path, found: &mut Findings) {
    let what = if whole { "a whole number" } else { "a number" };
    let wrong = match &tree.value {
        Value::Integer(integer) if whole => whole_limits(schema).wrong(*integer),
        Value::Integer(integer) => real_limits(schema).wrong(*integer as f64),
        Value::Float(float) if !whole && float.is_finite() => real_limits(schema).wrong(*float),
        Value::Text(text) => {
            let bare = text.parse::<f64>().ok().map(|_| format!("without quotes: {text}"));
            let share = || text.trim().strip_suffix('%').and_then(|it| it.trim().parse().ok());
            let hint = bare.or_else(|| share().and_then(|it| as_share(schema, it)));
            return expected(what, tree, path, hint, found);
        }
        _ => return expected(what, tree, path, None, found),
    };
    if let Some(range) = wrong {
        let message = format!("{} is out of range: it {range}", tree.described());
        let percent = match tree.value {
            Value::Integer(integer) => as_share(schema, integer as f64),
            Value::Float(float) => as_share(schema, float),
            _ => None,
        };
        found.add(path.clone(), message).at(&tree.origin).hint(percent);
    }
}

/// The remedy where a share of at most 1 was given in percent.
fn as_share(schema: &Json, percent: f64) -> Option<String> {
    let limits = real_limits(schema);
    // Rounded: 1.1 / 100 is 0.011000000000000001.
    let share = (percent * 1e10).round() / 1e12;
    let fits = limits.most == Some(1.0) && limits.wrong(share).is_none();
    fits.then(|| format!("{percent} % is {share}"))
}

/// Limits of a number in the schema.
struct Limits<N> {
    least: Option<N>,
    most: Option<N>,
    /// The maximum of its type, unless the schema has a limit.
    widest: Option<N>,
}

impl<N: Copy + Default + PartialOrd + std::fmt::Display> Limits<N> {
    /// The expectation to report for a value outside the limits.
    fn wrong(&self, value: N) -> Option<String> {
        let below = self.least.filter(|least| value < *least);
        let above = self.most.or(self.widest).filter(|most| value > *most);
        below.or(above)?;
        Some(match (self.least, self.most) {
            _ if below == Some(N::default()) => "must not be negative".to_owned(),
            (Some(least), Some(most)) => format!("must be {least} to {most}"),
            _ => match (below, above) {
                (Some(least), _) => format!("must be at least {least}"),
                (None, most) => format!("must be at most {}", most.unwrap_or_default()),
            },
        })
    }
}

fn real_limits(schema: &Json) -> Limits<f64> {
    let stated = |key| schema.get(key).and_then(Json::as_f64);
    Limits { least: stated("minimum"), most: stated("maximum"), widest: None }
}

/// As integers: TOML's maximum has no neighbour among floats.
fn whole_limits(schema: &Json) -> Limits<i128> {
    let stated = |key| schema.get(key).and_then(Json::as_i64).map(i128::from);
    let widest = match schema.get("format").and_then(Json::as_str) {
        Some("uint8") => u8::MAX.into(),
        Some("uint16") => u16::MAX.into(),
        Some("uint32") => u32::MAX.into(),
        // TOML's integers are signed with 64 bits.
        _ => i64::MAX.into(),
    };
    Limits { least: stated("minimum"), most: stated("maximum"), widest: Some(widest) }
}

fn check_boolean(tree: &Tree, path: &Path, found: &mut Findings) {
    if !matches!(tree.value, Value::Boolean(_)) {
        let hint = match tree.as_text().map(str::to_lowercase).as_deref() {
            Some("true" | "yes" | "on") => Some("without quotes: true".to_owned()),
            Some("false" | "no" | "off") => Some("without quotes: false".to_owned()),
            _ => None,
        };
        expected("true or false", tree, path, hint, found);
    }
}
