//! Tables of texts: the columns of a view, in the shown units.

use indexmap::IndexMap;
use serde::Serialize;
use talkspurt_answer::stats::Mean;
use talkspurt_answer::text::{half, show};
use talkspurt_proto::metric::{Metric, View};
use talkspurt_record::{FLOW_METRICS, LINK_METRICS};

use crate::style::Style;
use crate::{Rows, Run, style};

/// Maximum rows of a table.
const MAX_ROWS: usize = 200;
const ESTIMATE: &str = "estimated_mos";
/// What is shown without a value.
const NONE: &str = "–";

/// A column.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Column {
    /// The metric's name.
    pub name: &'static str,
    /// Its head.
    pub label: &'static str,
    /// The unit of the texts; empty for a number without one.
    pub unit: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

impl Column {
    fn of(metric: &'static Metric) -> Self {
        let Metric { name, label, shown_unit: unit, meaning, .. } = *metric;
        Self { name, label, unit, meaning }
    }
}

/// A value as text.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The value; outside the range of its model "<" and its bound.
    pub text: String,
    /// Half of its interval, or why there is none; mostly empty.
    pub spread: String,
    /// Its mean in the shown unit, for a plot, and half of its interval.
    pub value: Option<f64>,
    /// See `value`; none without an interval.
    pub half: Option<f64>,
}

/// A table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// Heads of the texts before the columns.
    pub heads: Vec<String>,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<TableRow>,
    /// Rows that are left out.
    pub more: usize,
}

/// A row of a table.
#[derive(Clone, Debug, Serialize)]
pub struct TableRow {
    /// A text for each head.
    pub texts: Vec<String>,
    /// Colour and dashes of its flow.
    pub style: Option<Style>,
    /// A value for each column.
    pub cells: Vec<Cell>,
}

/// The columns of a view, in its order.
fn of_view(metrics: &'static [Metric], view: View) -> Vec<&'static Metric> {
    let place = |metric: &Metric| {
        metric.shown.iter().find(|shown| shown.view == view).map(|shown| shown.place)
    };
    let shown = metrics.iter().filter_map(|metric| Some((place(metric)?, metric)));
    let mut shown: Vec<_> = shown.collect();
    shown.sort_by_key(|(place, _)| *place);
    shown.into_iter().map(|(_, metric)| metric).collect()
}

/// The columns of a view of flows, with the measures that judge its calls first; of these only columns with a
/// value. The estimated MOS is there if it judges the calls, or if one has no other score.
#[must_use]
pub fn flow_columns(flows: &Rows, view: View, judged_by: &[&str]) -> Vec<&'static Metric> {
    let first = judged_by.iter().filter_map(|name| FLOW_METRICS.iter().find(|it| it.name == *name));
    let others = of_view(FLOW_METRICS, view).into_iter().filter(|it| !judged_by.contains(&it.name));
    let has = |name: &str, row: usize| flows.number(name, row).is_some();
    let alone = |row: usize| has(ESTIMATE, row) && !has("mos", row);
    let estimated = judged_by.contains(&ESTIMATE) || (0..flows.len()).any(alone);
    let is_shown = |it: &&Metric| flows.has(it.name) && (it.name != ESTIMATE || estimated);
    first.chain(others).filter(is_shown).collect()
}

/// The rows of a flows table that a view is of: calls, or all.
#[must_use]
pub fn of_flows(run: &Run, view: View, judged_by: &[&str]) -> Table {
    let flows = &run.flows;
    let metrics = flow_columns(flows, view, judged_by);
    let styles = style::styles(flows);
    let is_shown =
        |row: &usize| view != View::ReportCalls || flows.text("source", *row) == Some("speech");
    let texts = ["name", "transport", "source"];
    let row = |row: usize| TableRow {
        texts: texts.map(|name| flows.text(name, row).unwrap_or(NONE).to_owned()).to_vec(),
        style: styles.get(flows.text("name", row).unwrap_or_default()).cloned(),
        cells: metrics.iter().map(|metric| cell(flows, metric, row)).collect(),
    };
    let heads = ["flow", "transport", "source"].map(str::to_owned).to_vec();
    table(heads, &metrics, (0..flows.len()).filter(is_shown), row)
}

/// The links of a run; those above rank 0 are shown only where one is not 0.
#[must_use]
pub fn of_links(run: &Run) -> Table {
    let links = &run.links;
    let ranked = |metric: &&Metric| {
        let shown = metric.shown.iter().find(|shown| shown.view == View::ReportLinks);
        shown.is_some_and(|shown| shown.rank == 0)
            || links.column(metric.name).flatten().any(|value| value != 0.0)
    };
    let mut metrics = of_view(LINK_METRICS, View::ReportLinks);
    metrics.retain(ranked);
    let row = |row: usize| TableRow {
        texts: vec![links.text("name", row).unwrap_or(NONE).to_owned()],
        style: None,
        cells: metrics.iter().map(|metric| cell(links, metric, row)).collect(),
    };
    table(vec!["link".to_owned()], &metrics, 0..links.len(), row)
}

fn table(
    heads: Vec<String>,
    metrics: &[&'static Metric],
    rows: impl Iterator<Item = usize>,
    row: impl Fn(usize) -> TableRow,
) -> Table {
    let rows: Vec<_> = rows.collect();
    Table {
        heads,
        columns: metrics.iter().copied().map(Column::of).collect(),
        rows: rows.iter().take(MAX_ROWS).map(|place| row(*place)).collect(),
        more: rows.len().saturating_sub(MAX_ROWS),
    }
}

fn cell(rows: &Rows, metric: &Metric, row: usize) -> Cell {
    let value = rows.number(metric.name, row);
    let bound = rows.number(metric.bound, row).filter(|bound| value.is_some_and(|it| *bound > it));
    let text = match (bound, value) {
        (Some(bound), _) => format!("<{}", show(metric, bound)),
        (None, Some(value)) => show(metric, value),
        (None, None) => NONE.to_owned(),
    };
    let value = bound.or(value).map(|value| value * metric.scale);
    Cell { text, spread: String::new(), value, half: None }
}

/// A row for each flow under each setting of a study: means over its replications.
#[must_use]
pub fn of_study(
    axes: &[String],
    flows: &Rows,
    settings: &[Vec<String>],
    run_of: &[usize],
    metrics: &[&'static Metric],
    confidence: f64,
) -> Table {
    let mut groups: IndexMap<(&[String], &str), Vec<usize>> = IndexMap::new();
    for (row, run) in run_of.iter().enumerate() {
        let unit = flows.text("group", row).or(flows.text("name", row)).unwrap_or_default();
        groups.entry((&settings[*run], unit)).or_default().push(row);
    }
    let styles = style::styles(flows);
    let row = |place: usize| {
        let ((settings, unit), rows) = groups.get_index(place).expect("a place of a row");
        let transport = flows.text("transport", rows[0]).unwrap_or(NONE);
        let mut texts = settings.to_vec();
        texts.extend([(*unit).to_owned(), transport.to_owned()]);
        let own = flows.text("name", rows[0]).unwrap_or_default();
        let cells = metrics.iter().map(|metric| mean(flows, metric, rows, run_of, confidence));
        TableRow { texts, style: styles.get(own).cloned(), cells: cells.collect() }
    };
    let heads = axes.iter().cloned().chain(["flow", "transport"].map(str::to_owned)).collect();
    table(heads, metrics, 0..groups.len(), row)
}

/// The mean over replications, of each the mean over the members of a group.
fn mean(flows: &Rows, metric: &Metric, rows: &[usize], run_of: &[usize], confidence: f64) -> Cell {
    let mut runs: IndexMap<usize, Vec<f64>> = IndexMap::new();
    let mut bound = None;
    for &row in rows {
        if let Some(value) = flows.number(metric.name, row) {
            runs.entry(run_of[row]).or_default().push(value);
            let its = flows.number(metric.bound, row).filter(|its| *its > value);
            bound = its.or(bound);
        }
    }
    let values: Vec<f64> =
        runs.values().map(|of| of.iter().sum::<f64>() / of.len() as f64).collect();
    let Some(mean) = Mean::of(&values) else {
        return Cell { text: NONE.to_owned(), spread: String::new(), value: None, half: None };
    };
    if let Some(bound) = bound {
        let (text, value) = (format!("<{}", show(metric, bound)), Some(bound * metric.scale));
        return Cell { text, spread: String::new(), value, half: None };
    }
    let wide = mean.half(confidence);
    let spread = match (wide, mean.deviation) {
        (Some(wide), _) => format!("±{}", half(metric, wide)),
        (None, Some(_)) => "=".to_owned(),
        (None, None) => String::new(),
    };
    let (text, value) = (show(metric, mean.mean), Some(mean.mean * metric.scale));
    Cell { text, spread, value, half: wide.map(|wide| wide * metric.scale) }
}
