//! The nearest known word to an unknown one, for "did you mean", and where a key of another table is.

use serde_json::Value as Json;

use crate::schema::{TAG, named, properties, resolved, variants, words};

/// Minimum similarity (1 is equal) for a suggestion.
const ALIKE: f64 = 0.55;

/// Maximum letters of a word to compare: the cost grows with its length.
const LONGEST: usize = 64;

/// The candidate most similar to `word`; among equals, the first.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let word = plain(word);
    let mut best = (ALIKE, None);
    for candidate in candidates {
        if candidate.len() > LONGEST {
            continue;
        }
        let other = plain(candidate);
        let starts = word.len() >= 3 && (other.starts_with(&word) || word.starts_with(&other));
        let bonus = if starts { 0.4 } else { 0.0 };
        let likeness = strsim::normalized_damerau_levenshtein(&word, &other) + bonus;
        if likeness > best.0 {
            best = (likeness, Some(candidate));
        }
    }
    best.1
}

fn plain(word: &str) -> String {
    word.to_lowercase().replace(['-', ' '], "_")
}

/// `did you mean "udp"?`, or else the available words.
pub(crate) fn did_you_mean<'a>(
    what: &str,
    word: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<String> {
    if plain(word).replace(['_', '.'], "").starts_with("g711") {
        // Names of RTP (RFC 3551), whose spelling has nothing of the Recommendation's number.
        let laws = candidates.clone().into_iter().filter(|it| matches!(*it, "pcmu" | "pcma"));
        let its: Vec<_> = laws.map(str::to_owned).collect();
        if !its.is_empty() {
            return Some(meant(&its));
        }
    }
    if let Some(near) = nearest(word, candidates.clone()) {
        return Some(format!("did you mean \"{near}\"?"));
    }
    let all: Vec<&str> = candidates.into_iter().collect();
    if all.is_empty() { None } else { Some(format!("{what}: {}", list(&all))) }
}

/// Tables inside each other that are searched for a key, at most: a queue can hold queues.
const DEPTH: usize = 5;

/// Kinds of a table with their schemas.
pub(crate) type Forms<'a> = [(&'a str, &'a Json)];

/// The hint for a `key` that none of the tables `own` has, in this order: the same key in a table inside them,
/// or in another of the kinds `forms`; a similar key of their own, or one table further down; or their keys.
pub(crate) fn key_hint(what: &str, key: &str, own: &[&Json], forms: &Forms<'_>) -> Option<String> {
    let mut keys: Vec<&str> = Vec::new();
    for known in own.iter().filter_map(|form| properties(form)).flat_map(|table| table.keys()) {
        if !keys.contains(&known.as_str()) {
            keys.push(known);
        }
    }
    let same = |other: &str| plain(other) == plain(key);
    if let Some(known) = keys.iter().find(|known| same(known)) {
        return Some(meant(&[(*known).to_owned()]));
    }
    let inner = inside(own, DEPTH, &same);
    if !inner.is_empty() {
        return Some(meant(&inner));
    }
    for (kind, form) in forms {
        if properties(form).is_some_and(|table| table.contains_key(key)) {
            return Some(format!("it belongs to kind = \"{kind}\""));
        }
    }
    for (kind, form) in forms {
        if let Some(path) = inside(&[form], DEPTH, &same).first() {
            return Some(format!("{path} belongs to kind = \"{kind}\""));
        }
    }
    if let Some(near) = nearest(key, keys.iter().copied()) {
        return Some(meant(&[near.to_owned()]));
    }
    let below = inside(own, 1, &|_| true);
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let names: Vec<String> = below.iter().map(|path| last(path)).collect();
    // A misspelt key, not the beginning of another: `from` of a link's ends is no `from_first` of a trace.
    let near = names.iter().map(String::as_str).filter(|name| !name.starts_with(key));
    if let Some(near) = nearest(key, near) {
        return Some(meant(&inside(own, 1, &|other| other == near)));
    }
    if keys.is_empty() { None } else { Some(format!("{what}: {}", list(&keys))) }
}

/// Where a text that is no kind is a word of another key of some kind: `controller = "cubic"` of a TCP.
pub(crate) fn kind_with(forms: &Forms<'_>, text: &str) -> Option<String> {
    forms.iter().find_map(|(kind, form)| {
        let (key, word) = key_with(form, text)?;
        (key != TAG).then(|| format!("{{ kind = \"{kind}\", {key} = \"{word}\" }}"))
    })
}

/// The key of this table that has a word, with the word as the key has it.
pub(crate) fn key_with<'a>(table: &'a Json, text: &str) -> Option<(&'a str, &'a str)> {
    properties(table)?.iter().find_map(|(key, inner)| {
        let known = words(resolved(inner))?;
        let (word, _) = known.into_iter().find(|(word, _)| plain(word) == plain(text))?;
        Some((key.as_str(), word))
    })
}

/// The paths of the keys that are searched, in tables inside these: those of the fewest steps, each once.
fn inside(own: &[&Json], depth: usize, is: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut level: Vec<(String, &Json)> = own.iter().map(|form| (String::new(), *form)).collect();
    for _ in 0..depth {
        let mut next: Vec<(String, &Json)> = Vec::new();
        for (path, table) in &level {
            for (key, inner) in properties(table).into_iter().flatten() {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                tables(path, inner, &mut next);
            }
        }
        let mut found: Vec<String> = Vec::new();
        for (path, table) in &next {
            for key in properties(table).into_iter().flat_map(|table| table.keys()) {
                let path = format!("{path}.{key}");
                if is(key) && !found.contains(&path) {
                    found.push(path);
                }
            }
        }
        if !found.is_empty() {
            return found;
        }
        level = next;
    }
    Vec::new()
}

/// The tables with keys that a value of this schema is or contains: of each kind, name or element.
fn tables<'a>(path: String, schema: &'a Json, found: &mut Vec<(String, &'a Json)>) {
    let schema = resolved(schema);
    if let Some(forms) = variants(schema) {
        found.extend(forms.into_iter().map(|(_, form)| (path.clone(), form)));
    } else if let Some(inner) = named(schema) {
        tables(format!("{path}.*"), inner, found);
    } else if let Some(items) = schema.get("items") {
        tables(format!("{path}[0]"), items, found);
    } else if properties(schema).is_some() {
        found.push((path, schema));
    }
}

/// `did you mean "a", "b" or "c"?`
fn meant(paths: &[String]) -> String {
    let quoted: Vec<String> = paths.iter().map(|path| format!("\"{path}\"")).collect();
    let (last, others) = quoted.split_last().expect("at least one");
    if others.is_empty() {
        return format!("did you mean {last}?");
    }
    format!("did you mean {} or {last}?", others.join(", "))
}

/// `a, b, c`, truncated to a readable length.
pub(crate) fn list(words: &[&str]) -> String {
    const SHOWN: usize = 16;
    let mut text = words[..words.len().min(SHOWN)].join(", ");
    if words.len() > SHOWN {
        text.push_str(&format!(" and {} more", words.len() - SHOWN));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_what_was_meant_and_nothing_far_fetched() {
        assert_eq!(nearest("udpp", ["udp", "tcp"]), Some("udp"));
        assert_eq!(nearest("UDP", ["tcp", "udp"]), Some("udp"));
        assert_eq!(nearest("bottelneck", ["access", "bottleneck"]), Some("bottleneck"));
        assert_eq!(nearest("new-reno", ["newreno"]), Some("newreno"));
        assert_eq!(nearest("dur", ["delay", "duration"]), Some("duration"));
        assert_eq!(nearest("satellite", ["access", "bottleneck"]), None);
        let long = "udp".repeat(1_000_000);
        assert_eq!(nearest(&long, ["udp"]), None);
        assert_eq!(nearest("udp", [long.as_str()]), None);
    }

    /// All tables with keys of the schema, with the kinds of each; what is nested in itself, once.
    fn every_table<'a>(
        schema: &'a Json,
        seen: &mut Vec<&'a Json>,
        found: &mut Vec<Vec<(&'a str, &'a Json)>>,
    ) {
        let schema = resolved(schema);
        if seen.iter().any(|it| std::ptr::eq(*it, schema)) {
            return;
        }
        seen.push(schema);
        let forms = variants(schema);
        let own = match &forms {
            Some(forms) => forms.clone(),
            None if properties(schema).is_some() => vec![("", schema)],
            None => Vec::new(),
        };
        for (_, form) in &own {
            for inner in properties(form).into_iter().flat_map(|keys| keys.values()) {
                every_table(inner, seen, found);
            }
        }
        let others = [named(schema), schema.get("items")];
        others.into_iter().flatten().for_each(|inner| every_table(inner, seen, found));
        if !own.is_empty() {
            found.push(own);
        }
    }

    fn plain_hint(key: &str, forms: &[(&str, &Json)], at: usize) -> String {
        let kinds = if forms[at].0.is_empty() { &[] } else { forms };
        key_hint("keys here are", key, &[forms[at].1], kinds).expect("there are keys")
    }

    #[test]
    fn a_key_of_the_table_inside_is_named_with_its_path() {
        let mut all = Vec::new();
        every_table(crate::schema::cached(), &mut Vec::new(), &mut all);
        let mut tried = 0;
        for forms in &all {
            for (at, (_, form)) in forms.iter().enumerate() {
                let own = properties(form).unwrap();
                for (outer, inner) in own {
                    let mut below = Vec::new();
                    tables(outer.clone(), inner, &mut below);
                    for (path, table) in below {
                        for key in properties(table).unwrap().keys() {
                            if own.contains_key(key) {
                                continue;
                            }
                            let hint = plain_hint(key, forms, at);
                            assert!(hint.contains(&format!("\"{path}.{key}\"")), "{key}: {hint}");
                            tried += 1;
                        }
                    }
                }
            }
        }
        assert!(tried > 500, "{tried}");
    }

    #[test]
    fn a_key_is_found_in_other_kinds_and_under_another_spelling() {
        let schema = crate::schema::cached();
        let flow = schema.pointer("/properties/flows/additionalProperties").unwrap();
        let of = |key: &str| variants(resolved(&flow["properties"][key])).unwrap();
        let transports = of("transport");
        let at = |name: &str| transports.iter().position(|(kind, _)| *kind == name).unwrap();
        let hint = |key: &str, kind: &str| plain_hint(key, &transports, at(kind));
        let inner = "did you mean \"window.initial_ssthresh\"?";
        assert_eq!(hint("initial_ssthresh", "dccp"), inner);
        assert_eq!(hint("initial_sstresh", "dccp"), inner);
        assert_eq!(hint("initial_ssthresh", "udp"), "it belongs to kind = \"tcp\"");
        assert_eq!(hint("ack_ratio", "udp"), "window.ack_ratio belongs to kind = \"dccp\"");
        assert_eq!(hint("mss", "udp"), "it belongs to kind = \"tcp\"");
        assert_eq!(hint("MSS", "tcp"), "did you mean \"mss\"?");
        assert_eq!(hint("msss", "tcp"), "did you mean \"mss\"?");
        let above = |key: &str| key_hint("keys", key, &[schema], &[]).unwrap();
        let both = ["source", "reverse"].map(|end| format!("\"flows.*.{end}.opus.bitrate\""));
        assert_eq!(above("bitrate"), format!("did you mean {}?", both.join(" or ")));
        assert!(above("clock_drift_ppm").contains("\"nodes.*.clock_drift_ppm\""));
        assert!(above("zebra").starts_with("keys: "));
        assert_eq!(
            kind_with(&transports, "Cubic").as_deref(),
            Some("{ kind = \"tcp\", controller = \"cubic\" }")
        );
        assert_eq!(kind_with(&transports, "zebra"), None);
        let codec = Some("{ kind = \"speech\", codec = \"opus\" }");
        assert_eq!(kind_with(&of("source"), "opus").as_deref(), codec);
    }
}
