//! Axes: fields that take several values, alone or together, and the combinations of those values with each
//! other and with the points of a design.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::check::{self, quantity::Quantity};
use crate::model::Scale;
use crate::path::{Origin, Path};
use crate::place::typed_fields;
use crate::problem::Findings;
use crate::schema::TAG;
use crate::tree::{Tree, Value};

/// Axes of one study, at most: even with two values each, more axes would make too many runs.
pub(crate) const MAX_AXES: usize = 32;

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
    /// How a factor of a design is sampled; `None` for an axis, all of whose values are combined with all
    /// others.
    pub factor: Option<Sampled>,
}

/// How the values of a factor are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampled {
    /// From a range, on this scale.
    Range(Scale),
    /// From a list.
    Values,
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
    pub(crate) fn of(values: &[Tree]) -> Option<Self> {
        let plain = |value: &Tree| match value.value {
            Value::Integer(integer) => Some(integer as f64),
            Value::Float(float) => Some(float),
            _ => None,
        };
        let all = |unit, number: &dyn Fn(&Tree) -> Option<f64>| {
            let values: Option<Vec<f64>> = values.iter().map(number).collect();
            Some(Self { unit, values: values? })
        };
        let quantities = |kind: Quantity, unit, one: f64| {
            all(unit, &|value| Some(kind.read(value.as_text()?).ok()? as f64 / one))
        };
        all("1", &plain)
            .or_else(|| quantities(Quantity::Duration, "s", 1e9))
            .or_else(|| quantities(Quantity::Rate, "bit/s", 1.0))
            .or_else(|| quantities(Quantity::Size, "B", 1.0))
    }
}

/// An axis or a factor, with resolved paths.
pub(crate) struct Axis {
    pub(crate) shown: ResolvedAxis,
    /// The fields that a value sets: one group, or with `paths` one for each element of the value.
    parts: Vec<Vec<Path>>,
    /// True if values are lists with an element for each part.
    is_joint: bool,
    /// Its table in the file.
    pub(crate) table: Path,
    values: Vec<Tree>,
    /// The value of each step along the axis, or of each point of a design.
    pub(crate) choices: Vec<usize>,
}

impl Axis {
    /// All fields that vary.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().flatten()
    }

    /// The fields with what a value puts there.
    pub(crate) fn puts(&self, choice: usize) -> impl Iterator<Item = (&Path, &Tree)> {
        let value = &self.values[choice];
        let of = move |part: usize| if self.is_joint { &value.list()[part] } else { value };
        let parts = self.parts.iter().enumerate();
        parts.flat_map(move |(part, fields)| fields.iter().map(move |field| (field, of(part))))
    }
}

/// Reads the list of axes.
pub(crate) fn read_list(
    schema: &Json,
    tree: &Tree,
    table: &Path,
    found: &mut Findings,
) -> Vec<Axis> {
    let written = tree.key("axes").map(Tree::list).unwrap_or_default();
    if written.len() > MAX_AXES {
        let message = format!("{} axes; at most {MAX_AXES} are read", written.len());
        found.add(table.clone(), message);
        return Vec::new();
    }
    let mut axes: Vec<Axis> = Vec::new();
    for (index, axis) in written.iter().enumerate() {
        let path = table.index(index);
        if let Some(axis) = read_one(schema, tree, axes.len(), axis, &path, found) {
            check_against(&axes, &axis, &path, found);
            axes.push(axis);
        }
    }
    axes
}

/// The fields of an axis or a factor.
pub(crate) struct Fields<'a> {
    /// The paths as written, separated by commas.
    pub(crate) text: String,
    /// For each path its fields, with their schemas.
    pub(crate) parts: Vec<Vec<(Path, &'a Json)>>,
}

/// The fields that an axis or factor at `path` varies.
pub(crate) fn read_fields<'a>(
    schema: &'a Json,
    tree: &Tree,
    axis: &Tree,
    path: &Path,
    found: &mut Findings,
) -> Fields<'a> {
    let written = paths(axis, path, found);
    let mut parts: Vec<Vec<(Path, &Json)>> = Vec::new();
    for (text, at) in &written {
        let fields = typed_fields(schema, tree, text).unwrap_or_else(|unknown| {
            found.add(at.clone(), unknown.message).hint(unknown.hint);
            Vec::new()
        });
        for (field, _) in &fields {
            for fixed in ["axes", "design", "replications", "title", "description"] {
                if Path::of(&[fixed]).holds(field) {
                    found.add(at.clone(), format!("{fixed} is the same for a whole study"));
                }
            }
            if Path::of(&["topology"]).holds(field) {
                found
                    .add(at.clone(), "the shape is the same for a whole study")
                    .hint("vary its links, as in links.bottleneck.rate".to_owned());
            }
            let mut others = parts.iter().flatten().map(|(other, _)| other);
            if let Some(other) = others.find(|it| it.holds(field) || field.holds(it)) {
                found.add(at.clone(), format!("another path of this axis varies {other}"));
            }
        }
        parts.push(fields);
    }
    let text = written.iter().map(|(text, _)| *text).collect::<Vec<_>>().join(", ");
    Fields { text, parts }
}

/// Reads an axis at `path`; `index` is its place among all axes and factors.
pub(crate) fn read_one(
    schema: &Json,
    tree: &Tree,
    index: usize,
    axis: &Tree,
    path: &Path,
    found: &mut Findings,
) -> Option<Axis> {
    let whole = found.0.len();
    let fields = read_fields(schema, tree, axis, path, found);
    let values = axis.key("values").map(Tree::list).unwrap_or_default();
    let is_joint = axis.key("paths").is_some();
    for (index, value) in values.iter().enumerate().filter(|_| is_joint) {
        if !matches!(&value.value, Value::List(list) if list.len() == fields.parts.len()) {
            let message =
                format!("must be a list of {} values, one for each path", fields.parts.len());
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
    let numbers = if axis.key("labels").is_some() { None } else { Numbers::of(&values) };
    let mut made = Axis::new(fields, path, numbers, None);
    made.is_joint = is_joint;
    made.choices = (0..values.len()).collect();
    (made.values, made.shown.labels) = (values, labels);
    Some(made)
}

impl Axis {
    /// An axis or factor of these fields, without values.
    pub(crate) fn new(
        fields: Fields<'_>,
        table: &Path,
        numbers: Option<Numbers>,
        factor: Option<Sampled>,
    ) -> Self {
        let (name, labels) = (String::new(), Vec::new());
        let shown = ResolvedAxis { name, path: fields.text, labels, numbers, factor };
        let untyped = |part: Vec<_>| part.into_iter().map(|(field, _)| field).collect();
        let parts = fields.parts.into_iter().map(untyped).collect();
        let (values, choices) = (Vec::new(), Vec::new());
        Self { shown, parts, is_joint: false, table: table.clone(), values, choices }
    }

    /// Sets the distinct values of a range, and the value of each point.
    pub(crate) fn set_values(&mut self, values: Vec<Tree>, choices: Vec<usize>) {
        self.shown.labels = values.iter().map(short_label).collect();
        self.shown.numbers = Numbers::of(&values);
        (self.values, self.choices) = (values, choices);
    }

    /// Chooses the value of each point from the list: `units` are in 0 to 1.
    pub(crate) fn choose(&mut self, units: impl Iterator<Item = f64>) {
        let count = self.values.len();
        self.choices = units.map(|unit| ((unit * count as f64) as usize).min(count - 1)).collect();
    }
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
pub(crate) fn check_against(axes: &[Axis], axis: &Axis, path: &Path, found: &mut Findings) {
    for other in axes {
        let clash = axis.fields().find(|field| other.fields().any(|earlier| field.holds(earlier)));
        if let Some(field) = clash {
            let message = format!("the axis {} varies {field} already", other.shown.path);
            let several = axis.shown.path.contains(", ");
            found.add(path.key(if several { "paths" } else { "path" }), message);
        }
    }
}
