//! The JSON Schema of a scenario, generated from the structs in `model`.
//!
//! Editors use it to complete and check scenario files, the shape check walks it, and the reference page is
//! generated from it. Everything is inlined, so that a field's own description is never hidden by its
//! type's; only a type nested in itself (a queue in a queue) is a `$ref`. For the check, which every run
//! waits for, so are the longest schemas of several places.

use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::model::{DELAY_TO, LIKE, SHARED, Scenario};

/// The JSON Schema (draft 2020-12) of a scenario file. Links of shapes have only keys: the rest is
/// described under `links`.
#[must_use]
pub fn schema() -> Value {
    let mut schema = cached().clone();
    inline(&mut schema);
    if let Some(types) = schema["$defs"].as_object_mut() {
        types.retain(|name, _| !SHARED.contains(&&*format!("#/$defs/{name}")));
    }
    shorten(&mut schema);
    require_by_topology(&mut schema);
    schema
}

/// Makes the keys that a link must have depend on `topology`, which creates links that `links` refines.
/// A `trace` can provide the rate, so that it is never required.
fn require_by_topology(schema: &mut Value) {
    let link = &mut schema["properties"]["links"]["additionalProperties"];
    let required = link.as_object_mut().and_then(|link| link.remove("required"));
    let mut required = required.expect("a link has required keys");
    required.as_array_mut().expect("a list of keys").retain(|key| key != "rate");
    schema["if"] = json!({ "not": { "required": ["topology"] } });
    schema["then"] = json!({
        "properties": { "links": { "additionalProperties": { "required": required } } }
    });
}

/// Replaces references to what is [shared](SHARED) by it.
fn inline(schema: &mut Value) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(inline),
        Value::Object(map) => {
            if map.get("$ref").and_then(Value::as_str).is_some_and(|it| SHARED.contains(&it)) {
                let shared = resolved(&Value::Object(map.clone())).clone();
                map.shift_remove("$ref");
                for (key, value) in shared.as_object().into_iter().flatten() {
                    map.entry(key).or_insert_with(|| value.clone());
                }
            }
            map.values_mut().for_each(inline);
        }
        _ => {}
    }
}

fn shorten(schema: &mut Value) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(shorten),
        Value::Object(map) => {
            if map.get(UNLISTED).is_some_and(Value::is_array) {
                map.remove(UNLISTED);
            }
            if map.remove(LIKE).is_some() {
                map.remove("required");
                let keys = map.get_mut("properties").and_then(Value::as_object_mut);
                for (_, value) in keys.into_iter().flatten().filter(|(key, _)| *key != DELAY_TO) {
                    *value = Value::Bool(true);
                }
            }
            map.values_mut().for_each(shorten);
        }
        _ => {}
    }
}

/// [`schema`], made once.
#[must_use]
pub fn cached() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
        let root = settings.into_generator().into_root_schema_for::<Scenario>();
        let mut schema = root.to_value();
        tidy(&mut schema);
        unlist(&mut schema);
        schema
    })
}

/// A kind with this key is known, but neither documented nor suggested, since only some programs can use it.
/// The kinds of a table that have it are in a list of this name beside the others.
const UNLISTED: &str = "unlisted";

/// Moves kinds that are not listed out of the others.
fn unlist(schema: &mut Value) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(unlist),
        Value::Object(map) => {
            map.values_mut().for_each(unlist);
            if let Some(Value::Array(forms)) = map.get_mut("oneOf") {
                let moved: Vec<_> =
                    forms.extract_if(.., |form| form.get(UNLISTED).is_some()).collect();
                if !moved.is_empty() {
                    map.insert(UNLISTED.to_owned(), Value::Array(moved));
                }
            }
        }
        _ => {}
    }
}

/// The kind of this name of a table, if it is not listed.
pub(crate) fn unlisted<'a>(schema: &'a Value, kind: &str) -> Option<&'a Value> {
    let is_it = |form: &&Value| form.pointer("/properties/kind/const").is_some_and(|it| it == kind);
    schema.get(UNLISTED)?.as_array()?.iter().find(is_it)
}

/// The pattern of names, for editors; the network's checks report violations.
const NAME: &str = "^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$";

/// Removes null, which TOML cannot represent, and the line breaks of the source comments.
fn tidy(schema: &mut Value) {
    unwrap_optional(schema);
    match schema {
        Value::Array(list) => list.iter_mut().for_each(tidy),
        Value::Object(map) => {
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = unfold(text);
            }
            if let Some(Value::Array(values)) = map.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|t| t != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".to_owned(), only);
                }
            }
            if map.get("additionalProperties").is_some_and(Value::is_object) {
                let names = json!({ "pattern": NAME });
                map.insert("propertyNames".to_owned(), names);
            }
            map.values_mut().for_each(tidy);
        }
        _ => {}
    }
}

/// `anyOf [X, null]` becomes X with the description of the field.
fn unwrap_optional(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    let Some(Value::Array(list)) = map.get_mut("anyOf") else { return };
    list.retain(|option| option.get("type") != Some(&Value::from("null")));
    if let [Value::Object(only)] = list.as_slice() {
        let only = only.clone();
        map.remove("anyOf");
        for (key, value) in only {
            map.entry(key).or_insert(value);
        }
    }
}

/// Puts each paragraph on one line.
fn unfold(text: &str) -> String {
    if !text.contains('\n') {
        return text.to_owned();
    }
    let paragraphs = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// The target of a `$ref`, or the schema itself.
#[must_use]
pub fn resolved(schema: &Value) -> &Value {
    let place =
        schema.get("$ref").and_then(Value::as_str).and_then(|place| place.strip_prefix('#'));
    place.and_then(|place| cached().pointer(place)).unwrap_or(schema)
}

/// The key that names the variant of a table with several kinds.
pub const TAG: &str = "kind";

/// The variants of a table distinguished by `kind`, with their names; `None` for others.
#[must_use]
pub fn variants(schema: &Value) -> Option<Vec<(&str, &Value)>> {
    let named = |form| -> Option<(&str, &Value)> {
        Some((Value::pointer(form, "/properties/kind/const")?.as_str()?, form))
    };
    schema.get("oneOf")?.as_array()?.iter().map(named).collect()
}

/// The permitted words of an enumerated text, with their meanings.
#[must_use]
pub fn words(schema: &Value) -> Option<Vec<(&str, &str)>> {
    let meaning = |s: &'static str| s;
    if let Some(list) = schema.get("enum").and_then(Value::as_array) {
        return list.iter().map(|word| Some((word.as_str()?, meaning("")))).collect();
    }
    if let Some(word) = schema.get("const") {
        return Some(vec![(word.as_str()?, meaning(""))]);
    }
    let mut all = Vec::new();
    for form in schema.get("oneOf")?.as_array()? {
        let description = form.get("description").and_then(Value::as_str).unwrap_or("");
        let described = words(form)?;
        all.extend(described.into_iter().map(|(word, _)| (word, description)));
    }
    Some(all)
}

/// The permitted values of an enumerated integer.
#[must_use]
pub fn numbers(schema: &Value) -> Option<Vec<i64>> {
    schema.get("enum")?.as_array()?.iter().map(Value::as_i64).collect()
}

/// The schema of the values of a table of names; `None` for tables with fixed keys.
#[must_use]
pub fn named(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|s| s.is_object())
}

/// The keys of a table with fixed keys.
#[must_use]
pub fn properties(schema: &Value) -> Option<&serde_json::Map<String, Value>> {
    schema.get("properties")?.as_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_tables_share_is_made_once_and_published_in_each() {
        let (own, published) = (cached().to_string(), schema().to_string());
        // Without `delay_to`, and with it.
        assert_eq!(own.matches(LIKE).count(), 2);
        assert!(published.matches("$ref").count() < own.matches("$ref").count());
        for place in SHARED {
            assert!(own.contains(place) && !published.contains(place), "{place}");
        }
    }
}
