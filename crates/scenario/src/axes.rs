//! Axes: fields that take several values, alone or together, and the combinations of those values.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde_json::Value as Json;
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::{Rate, Size};

use crate::check;
use crate::path::Path;
use crate::place::fields;
use crate::problem::Findings;
use crate::schema::TAG;
use crate::tree::{Origin, Tree, Value};

/// Axes of one study, at most: even with two values each, more axes would make too many runs.
const MAX_AXES: usize = 32;

/// One axis of a study, as shown in tables.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedAxis {
    /// Column name.
    pub name: String,
    /// The field that varies, as written; fields that vary together are separated by commas.
    pub path: String,
    /// One label per value, in order.
    pub labels: Vec<String>,
    /// The values as numbers, if all are numbers or quantities of one kind and have no labels of their own.
    pub numbers: Option<Numbers>,
}

/// Values of an axis as numbers of one unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    /// `s`, `bit/s`, `B`, or `1` for plain numbers.
    pub unit: &'static str,
    /// One number per value, in order.
    pub values: Vec<f64>,
}

impl Numbers {
    fn of(values: &[Tree]) -> Option<Self> {
        let plain = |value: &Tree| match value.value {
            Value::Integer(integer) => Some(integer as f64),
            Value::Float(float) => Some(float),
            _ => None,
        };
        let all = |unit, number: &dyn Fn(&Tree) -> Option<f64>| {
            let values: Option<Vec<f64>> = values.iter().map(number).collect();
            Some(Self { unit, values: values? })
        };
        all("1", &plain)
            .or_else(|| all("s", &|value| quantity(value, Duration::as_secs_f64)))
            .or_else(|| all("bit/s", &|value| quantity(value, |rate: Rate| rate.as_bps() as f64)))
            .or_else(|| all("B", &|value| quantity(value, |size: Size| size.as_bytes() as f64)))
    }
}

/// A quantity written as text, such as `"20ms"`.
fn quantity<T: FromStr>(value: &Tree, number: impl Fn(T) -> f64) -> Option<f64> {
    value.as_text()?.parse().ok().map(number)
}

/// An axis with a resolved path.
pub(crate) struct Axis {
    pub(crate) shown: ResolvedAxis,
    /// The fields that a value sets: one group, or with `paths` one for each element of the value.
    parts: Vec<Vec<Path>>,
    /// True if values are lists with an element for each part.
    is_joint: bool,
    /// Its index among the written axes.
    index: usize,
    values: Vec<Tree>,
}

impl Axis {
    /// All fields that vary.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().flatten()
    }

    /// The fields with what a value puts there.
    fn puts(&self, choice: usize) -> impl Iterator<Item = (&Path, &Tree)> {
        let value = &self.values[choice];
        let of = move |part: usize| if self.is_joint { &value.list()[part] } else { value };
        let parts = self.parts.iter().enumerate();
        parts.flat_map(move |(part, fields)| fields.iter().map(move |field| (field, of(part))))
    }
}

/// Reads the axes of a tree whose `axes` have a valid shape.
pub(crate) fn read(schema: &Json, tree: &Tree, found: &mut Findings) -> Vec<Axis> {
    let written = tree.key("axes").map(Tree::list).unwrap_or_default();
    if written.len() > MAX_AXES {
        let message = format!("{} axes; at most {MAX_AXES} are read", written.len());
        found.add(Path::of(&["axes"]), message);
        return Vec::new();
    }
    let mut axes: Vec<Axis> = Vec::new();
    for (index, axis) in written.iter().enumerate() {
        let path = Path::of(&["axes"]).index(index);
        if let Some(axis) = read_one(schema, tree, index, axis, &path, found) {
            check_against(&axes, &axis, &path, found);
            axes.push(axis);
        }
    }
    name(written, &mut axes, found);
    axes
}

fn read_one(
    schema: &Json,
    tree: &Tree,
    index: usize,
    axis: &Tree,
    path: &Path,
    found: &mut Findings,
) -> Option<Axis> {
    let whole = found.0.len();
    let written = paths(axis, path, found);
    let mut parts: Vec<Vec<Path>> = Vec::new();
    for (text, at) in &written {
        let fields = fields(schema, tree, text).unwrap_or_else(|unknown| {
            found.add(at.clone(), unknown.message).hint(unknown.hint);
            Vec::new()
        });
        for field in &fields {
            for fixed in ["axes", "replications", "title", "description"] {
                if Path::of(&[fixed]).holds(field) {
                    found.add(at.clone(), format!("{fixed} is the same for a whole study"));
                }
            }
            if Path::of(&["topology"]).holds(field) {
                found
                    .add(at.clone(), "the shape is the same for a whole study")
                    .hint("vary its links, as in links.bottleneck.rate".to_owned());
            }
            let other = parts.iter().flatten().find(|it| it.holds(field) || field.holds(it));
            if let Some(other) = other {
                found.add(at.clone(), format!("another path of this axis varies {other}"));
            }
        }
        parts.push(fields);
    }
    let values = axis.key("values").map(Tree::list).unwrap_or_default();
    let is_joint = axis.key("paths").is_some();
    for (index, value) in values.iter().enumerate().filter(|_| is_joint) {
        if !matches!(&value.value, Value::List(list) if list.len() == parts.len()) {
            let message = format!("must be a list of {} values, one for each path", parts.len());
            found.add(path.key("values").index(index), message);
        }
    }
    let labels = labels(axis, values, path, found);
    if found.0.len() > whole {
        return None;
    }
    let stamped = |(number, value): (usize, &Tree)| {
        let mut value = value.clone();
        value.stamp(&|origin| Origin { axis: Some((index, number)), ..origin.clone() });
        value
    };
    let values: Vec<Tree> = values.iter().enumerate().map(stamped).collect();
    let has_labels = axis.key("labels").is_some();
    let numbers = if has_labels { None } else { Numbers::of(&values) };
    let text = written.iter().map(|(text, _)| *text).collect::<Vec<_>>().join(", ");
    let shown = ResolvedAxis { name: String::new(), path: text, labels, numbers };
    Some(Axis { shown, parts, is_joint, index, values })
}

/// The written paths of an axis, and where they are.
fn paths<'a>(axis: &'a Tree, path: &Path, found: &mut Findings) -> Vec<(&'a str, Path)> {
    let one = axis.key("path").and_then(Tree::as_text).map(|text| (text, path.key("path")));
    let Some(all) = axis.key("paths") else {
        if one.is_none() {
            found.add(path.clone(), "needs `path`, or `paths` of fields that vary together");
        }
        return one.into_iter().collect();
    };
    if one.is_some() {
        found.add(path.key("paths"), "give either `path` or `paths`");
    }
    if all.list().is_empty() {
        found.add(path.key("paths"), "needs at least one path");
    }
    let texts = all.list().iter().enumerate();
    texts.filter_map(|(at, text)| Some((text.as_text()?, path.key("paths").index(at)))).collect()
}

/// The labels as written, or short texts derived from the values.
fn labels(axis: &Tree, values: &[Tree], path: &Path, found: &mut Findings) -> Vec<String> {
    let written: Vec<String> = axis
        .key("labels")
        .map(Tree::list)
        .unwrap_or_default()
        .iter()
        .filter_map(|label| label.as_text().map(str::to_owned))
        .collect();
    let path_of_labels = path.key("labels");
    let labels = if written.is_empty() {
        made(values)
    } else {
        if written.len() != values.len() {
            let (labels, values) = (written.len(), values.len());
            found.add(path_of_labels.clone(), format!("{labels} labels for {values} values"));
        }
        for (index, label) in written.iter().enumerate() {
            check::plain(path_of_labels.index(index), "a label", label, &[], found);
        }
        written.clone()
    };
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, label) in labels.iter().enumerate() {
        let first = *places.entry(label).or_insert(index);
        if first < index {
            if found.full() {
                found.1 += 1;
            } else if written.is_empty() {
                let message = format!("is the same as value {} ({label})", first + 1);
                found.add(path.key("values").index(index), message);
            } else {
                let message = format!("{label:?} is also the label of value {}", first + 1);
                found.add(path_of_labels.index(index), message);
            }
        }
    }
    labels
}

fn made(values: &[Tree]) -> Vec<String> {
    let short: Vec<String> = values.iter().map(short_label).collect();
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for label in &short {
        *times.entry(label).or_default() += 1;
    }
    let label = |(value, label): (&Tree, &String)| {
        if times[label.as_str()] == 1 { label.clone() } else { long_label(value) }
    };
    values.iter().zip(&short).map(label).collect()
}

/// A short label of a value; a table is named by its kind and controller, such as `tcp-newreno`.
fn short_label(value: &Tree) -> String {
    match &value.value {
        Value::Text(text) | Value::Datetime(text) => text.clone(),
        Value::Integer(integer) => integer.to_string(),
        Value::Float(float) => float.to_string(),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::List(list) => list.iter().map(short_label).collect::<Vec<_>>().join(", "),
        Value::Table(_) => {
            let words: Vec<&str> = [TAG, "controller"]
                .iter()
                .filter_map(|key| value.key(key).and_then(Tree::as_text))
                .collect();
            if words.is_empty() { long_label(value) } else { words.join("-") }
        }
    }
}

/// A table's name and its other keys, to distinguish tables of one kind.
fn long_label(value: &Tree) -> String {
    let Value::Table(table) = &value.value else { return short_label(value) };
    let mut words: Vec<String> = [TAG, "controller"]
        .iter()
        .filter_map(|key| value.key(key).and_then(Tree::as_text))
        .map(str::to_owned)
        .collect();
    if words.len() > 1 {
        words = vec![words.join("-")];
    }
    let rest = table.iter().filter(|(key, _)| *key != TAG && *key != "controller");
    words.extend(rest.map(|(key, inner)| format!("{key}={}", short_label(inner))));
    words.join(" ")
}

/// Two axes must not write the same field, nor a later one overwrite an earlier one.
fn check_against(axes: &[Axis], axis: &Axis, path: &Path, found: &mut Findings) {
    for other in axes {
        let clash = axis.fields().find(|field| other.fields().any(|earlier| field.holds(earlier)));
        if let Some(field) = clash {
            let message = format!("the axis {} varies {field} already", other.shown.path);
            found.add(path.key(if axis.is_joint { "paths" } else { "path" }), message);
        }
    }
}

/// Names the axes: as written, else by the last word of the path, else by the whole path.
fn name(written: &[Tree], axes: &mut [Axis], found: &mut Findings) {
    let last = |axis: &Axis| {
        let paths = axis.shown.path.split(", ");
        paths.map(|path| path.rsplit('.').next().unwrap_or("")).collect::<Vec<_>>().join("+")
    };
    let lasts: Vec<String> = axes.iter().map(last).collect();
    let mut taken: Vec<String> = Vec::new();
    for (index, axis) in axes.iter_mut().enumerate() {
        let given = written[axis.index].key("name").and_then(Tree::as_text);
        let alone = lasts.iter().filter(|other| **other == lasts[index]).count() == 1;
        axis.shown.name = match given {
            Some(given) => given.to_owned(),
            None if alone => lasts[index].clone(),
            None => axis.shown.path.clone(),
        };
        if axis.shown.name.trim().is_empty() || taken.contains(&axis.shown.name) {
            let path = Path::of(&["axes"]).index(axis.index).key("name");
            found.add(path, format!("{:?} must be a name no other axis has", axis.shown.name));
        }
        taken.push(axis.shown.name.clone());
    }
}

/// The number of combinations of the axes.
pub(crate) fn count(axes: &[Axis]) -> usize {
    axes.iter().fold(1, |product, axis| product.saturating_mul(axis.values.len()))
}

/// The labels of combination `number` by axis name, and the tree with its values. The first axis varies
/// slowest.
pub(crate) fn combination(
    axes: &[Axis],
    tree: &Tree,
    number: usize,
    found: &mut Findings,
) -> (Vec<(String, String)>, Tree) {
    let mut tree = tree.clone();
    let mut settings = Vec::with_capacity(axes.len());
    let mut below = count(axes);
    for axis in axes {
        below /= axis.values.len();
        let choice = number / below % axis.values.len();
        settings.push((axis.shown.name.clone(), axis.shown.labels[choice].clone()));
        for (field, value) in axis.puts(choice) {
            if !tree.put(field, value.clone()) {
                let message = "a plain value is in the way of this axis";
                found.add(field.clone(), message).at(&value.origin);
            }
        }
    }
    (settings, tree)
}
