//! The reference of scenario keys, generated from the schema.
//!
//! One section per table, one row per property: type and unit, default, permitted values, meaning and
//! source. Nested tables have their own sections and are linked. Each table of a scenario has a page, and so
//! has a table in it of which there are several kinds.

use std::fmt::Write as _;

use serde_json::Value as Json;

use talkspurt_scenario::model::{DELAY_TO, LIKE};
use talkspurt_scenario::schema::{
    TAG, cached, named, numbers, properties, resolved, schema, variants, words,
};

use crate::profiles;

/// The generated files: path from the repository's root, and text.
///
/// # Panics
/// Never: a schema is always JSON text.
pub(crate) fn generated() -> Vec<(String, String)> {
    let schema = serde_json::to_string_pretty(&schema()).expect("a schema is JSON");
    let mut files = vec![
        ("schema/scenario.schema.json".to_owned(), schema + "\n"),
        ("docs/reference/profiles.md".to_owned(), profiles::page()),
    ];
    let pages = pages().into_iter();
    files.extend(pages.map(|(name, text)| (format!("docs/reference/{name}"), text)));
    files
}

/// The first page of the reference.
const FIRST: &str = "scenario.md";

/// The pages as Markdown, by their paths; the first one links to the others.
fn pages() -> Vec<(String, String)> {
    let mut page = Page { text: String::from(OPENING), told: Vec::new() };
    page.table("", cached());
    let mut pages = vec![(FIRST.to_owned(), String::new())];
    // The page of each table, by its anchor.
    let mut places = Vec::new();
    for section in sections(&page.text) {
        let heading = section.lines().next().filter(|line| line.starts_with("##"));
        let Some(path) = heading.and_then(|line| line.split('`').nth(1)) else {
            pages[0].1.push_str(section);
            continue;
        };
        let name = page_of(path, &page.told);
        let at = pages.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            pages.push((name, String::new()));
            pages.len() - 1
        });
        places.push((anchor(path), at));
        // Headings of a page begin with its title.
        let below = section.trim_start_matches('#');
        let depth = if pages[at].1.is_empty() { 1 } else { section.len() - below.len() - 1 };
        let _ = write!(pages[at].1, "{}{below}", "#".repeat(depth.max(1)));
    }
    let names: Vec<_> = pages.iter().map(|(name, _)| name.clone()).collect();
    for (at, (_, text)) in pages.iter_mut().enumerate() {
        for (anchor, place) in places.iter().filter(|(_, place)| *place != at) {
            let name = &names[*place];
            let to = if at == 0 { name } else { name.trim_start_matches("scenario/") };
            *text = text.replace(&format!("](#{anchor})"), &format!("]({to}#{anchor})"));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    pages
}

/// The text before the first heading of a table, and from each such heading to the next.
fn sections(text: &str) -> Vec<&str> {
    let mut starts: Vec<_> = text.match_indices("\n##").map(|(at, _)| at + 1).collect();
    starts.insert(0, 0);
    starts.push(text.len());
    starts.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect()
}

/// The page of a table: its own if it has several kinds, else that of the table of a scenario that it is in.
fn page_of(path: &str, told: &[(String, Json)]) -> String {
    let words: Vec<_> = path.split('.').filter(|word| *word != "NAME").collect();
    let words: Vec<_> = words.iter().take(2).map(|word| word.trim_end_matches("[]")).collect();
    let own = told.iter().any(|(told, _)| {
        let told: Vec<_> = told.split('.').filter(|word| *word != "NAME").collect();
        told == words
    });
    let many = if own { words.len() } else { 1 };
    format!("scenario/{}.md", words[..many].join("-"))
}

const OPENING: &str = "\
# Scenario reference

<!-- Generated from the scenario's types: `cargo run -p talkspurt-scenario --bin schema`. -->

A scenario is a [TOML](https://toml.io) file. Every key it may hold is listed here; an unknown key
is an error. `NAME` stands for a name you choose: letters, digits, `-` and `_`.

A quantity is a text with its unit:

| type | units | examples |
| --- | --- | --- |
| duration | `ns`, `us`, `ms`, `s`, `min`, `h` | `\"20ms\"`, `\"1.5s\"`, `\"2min\"` |
| rate | `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s` (powers of 1000) | `\"64kbit/s\"`, `\"2Mbit/s\"` |
| size | `B`, `kB`, `MB`, `GB` (powers of 1000) | `\"1500B\"`, `\"64kB\"` |

Editors that know JSON Schema complete and check a scenario that begins with
`#:schema ../schema/scenario.schema.json`.

";

struct Page {
    text: String,
    /// Tables with kinds that already have a section, so that equal ones link to it.
    told: Vec<(String, Json)>,
}

impl Page {
    fn table(&mut self, path: &str, schema: &Json) {
        let title = if path.is_empty() { "The scenario" } else { path };
        let depth = path.split('.').filter(|word| *word != "NAME").count();
        let hashes = if depth > 1 { "###" } else { "##" };
        let shown = if path.is_empty() { title.to_owned() } else { format!("`{title}`") };
        let _ = write!(self.text, "{hashes} {shown}\n\n{}\n\n", description(schema));
        if let Some(forms) = variants(schema) {
            if let Some((told, _)) = self.told.iter().find(|(_, other)| *other == schema["oneOf"]) {
                let _ = write!(self.text, "The same keys as [`{told}`](#{}).\n\n", anchor(told));
                return;
            }
            self.told.push((path.to_owned(), schema["oneOf"].clone()));
            for (kind, form) in &forms {
                let _ = write!(
                    self.text,
                    "#### `{path}` with `kind = \"{kind}\"`\n\n{}\n\n",
                    description(form)
                );
                self.rows(path, form);
            }
            for (_, form) in forms {
                self.inner(path, form);
            }
        } else {
            self.rows(path, schema);
            self.inner(path, schema);
        }
    }

    fn rows(&mut self, path: &str, schema: &Json) {
        let Some(keys) = properties(schema) else { return };
        let mut rows = String::new();
        // The tag that selects a form is in its heading; an optional `kind` with a default is a key.
        let is_key =
            |(key, property): &(&String, &Json)| *key != TAG || property["const"].is_null();
        for (key, property) in keys.iter().filter(is_key) {
            let required = schema["required"]
                .as_array()
                .is_some_and(|r| r.contains(&Json::from(key.as_str())));
            let default = default(property, required);
            let inside = join(path, key);
            let type_ = self.type_of(&inside, property);
            let meaning = meaning(property);
            let _ = writeln!(rows, "| `{key}` | {type_} | {default} | {meaning} |");
        }
        if rows.is_empty() {
            self.text.push_str("No keys besides `kind`.\n\n");
        } else {
            let head = "| key | type | default | meaning |\n| --- | --- | --- | --- |\n";
            let _ = writeln!(self.text, "{head}{rows}");
        }
    }

    fn type_of(&self, path: &str, property: &Json) -> String {
        // A table nested in its own kind has already been described.
        if property.get("$ref").is_none() {
            return type_of(path, property);
        }
        let kinds = |forms: &Json| -> Vec<Json> {
            let forms = forms.as_array().into_iter().flatten();
            forms.map(|form| form["properties"][TAG].clone()).collect()
        };
        let own = kinds(&resolved(property)["oneOf"]);
        let told = self.told.iter().find(|(_, told)| kinds(told) == own);
        told.map_or_else(
            || type_of(path, property),
            |(told, _)| format!("[table](#{})", anchor(told)),
        )
    }

    fn inner(&mut self, path: &str, schema: &Json) {
        for (key, property) in properties(schema).into_iter().flatten() {
            let (path, property) = place(&join(path, key), property);
            if has_section(property) {
                self.table(&path, property);
            }
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The location of a property's keys: below a name, in each list element, or in itself.
fn place<'a>(path: &str, property: &'a Json) -> (String, &'a Json) {
    match (named(property), property.get("items")) {
        (Some(inner), _) => (format!("{path}.NAME"), inner),
        (None, Some(items)) if has_section(items) => (format!("{path}[]"), items),
        _ => (path.to_owned(), property),
    }
}

fn has_section(property: &Json) -> bool {
    if property.get(LIKE).is_some() {
        return false; // described there
    }
    variants(property).is_some() || properties(property).is_some()
}

fn type_of(path: &str, property: &Json) -> String {
    let (inside, inner) = place(path, property);
    if has_section(inner) {
        let what = match (named(property).is_some(), property.get("items").is_some()) {
            (true, _) => "tables by name",
            (_, true) => "list of tables",
            _ => "table",
        };
        return format!("[{what}](#{})", anchor(&inside));
    }
    if let Some(like) = property.get(LIKE).and_then(Json::as_str) {
        let alike = properties(property).is_some_and(|keys| keys.contains_key(DELAY_TO));
        let more = if alike { format!(", and `{DELAY_TO}`") } else { String::new() };
        return format!("[link](#{}) without its ends{more}", anchor(like));
    }
    if words(property).is_some() {
        return "word".to_owned();
    }
    if let Some(known) = numbers(property) {
        let known: Vec<String> = known.iter().map(i64::to_string).collect();
        return format!("one of {}", known.join(", "));
    }
    if property["type"].is_array() {
        return "text or number".to_owned();
    }
    let text = match property["type"].as_str() {
        Some("string") => property["format"].as_str().unwrap_or("text").to_owned(),
        Some("integer") => "whole number".to_owned(),
        Some("number") => "number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("object") => "table".to_owned(),
        Some("array") => format!("list of {}", plural(&property["items"])),
        _ => "any value".to_owned(),
    };
    let text = if text == "ip" { "IP address".to_owned() } else { text };
    format!("{text}{}", range(property))
}

fn plural(items: &Json) -> &'static str {
    match (items["type"].as_str(), items["format"].as_str()) {
        (Some("string"), Some(f)) if f.starts_with("ip") => "IP addresses",
        (Some("string"), _) => "texts",
        _ => "values",
    }
}

/// Limits other than "not negative".
fn range(property: &Json) -> String {
    // As integers: the largest are not exact as floats.
    let shown = |limit: &Json| match limit.as_i64() {
        Some(whole) => Some(whole.to_string()),
        None => limit.as_f64().map(|real| real.to_string()),
    };
    let limit = |key| property.get(key).and_then(shown);
    match (limit("minimum"), limit("maximum")) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (Some(least), None) if least != "0" => format!(", at least {least}"),
        (None, Some(most)) => format!(", at most {most}"),
        _ => String::new(),
    }
}

fn default(property: &Json, required: bool) -> String {
    match property.get("default") {
        _ if required => "**required**".to_owned(),
        Some(Json::Object(_)) => "its keys' own".to_owned(),
        Some(Json::Array(list)) if list.is_empty() => "none".to_owned(),
        Some(value) => format!("`{value}`"),
        None => "absent".to_owned(),
    }
}

fn meaning(property: &Json) -> String {
    let mut text = description(property).replace("\n\n", " ");
    if let Some(known) = words(property) {
        for (word, what) in known {
            let _ = write!(text, "<br>`\"{word}\"`: {what}");
        }
    }
    text.replace('|', "\\|")
}

fn description(schema: &Json) -> &str {
    schema["description"].as_str().unwrap_or("")
}

/// The anchor that Markdown renderers derive from a heading in code: lower case, without dots.
fn anchor(path: &str) -> String {
    path.to_lowercase().chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}
