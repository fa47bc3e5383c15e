//! A chart, as `charts.js` documents it, of panels with lines, which have as few points as can be seen.

use indexmap::IndexMap;
use serde::Serialize;
use talkspurt_proto::gauge::Gauge;
use talkspurt_proto::metric::Metric;

use crate::style::{Kind, Style};
use crate::text::short;
use crate::{Rows, Run};

/// Columns of pixels of a chart.
const COLUMNS: usize = 500;
/// Maximum flows drawn.
pub(crate) const MAX_FLOWS: usize = 24;
/// Maximum lines in a panel.
const MAX_LINES: usize = 6;

/// A chart, as `charts.js` documents it.
#[derive(Clone, Debug, Serialize)]
pub struct Chart {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) unit: &'static str,
    pub(crate) panels: Vec<Panel>,
    pub(crate) note: String,
    pub(crate) explained: Vec<Explained>,
    pub(crate) logarithmic: bool,
    pub(crate) range: Option<[f64; 2]>,
    pub(crate) stacked: bool,
    pub(crate) over: Over,
}

/// What a line is of.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Explained {
    pub(crate) line: &'static str,
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
}

/// What the x axis is of.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Over {
    pub(crate) label: &'static str,
    pub(crate) unit: &'static str,
}

const TIME: Over = Over { label: "time", unit: "s" };

/// Lines with common axes.
#[derive(Clone, Debug, Serialize)]
pub struct Panel {
    pub(crate) title: String,
    pub(crate) lines: Vec<Line>,
}

/// A line, or an area.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    pub(crate) label: String,
    pub(crate) colour: String,
    pub(crate) dashes: Vec<f64>,
    pub(crate) x: Vec<f64>,
    pub(crate) values: Vec<Option<f64>>,
    pub(crate) width: f64,
    pub(crate) marker: &'static str,
    pub(crate) look: &'static str,
    /// 1: a value holds until the next place; −1: it held since the last one.
    pub(crate) stepped: i8,
    pub(crate) background: bool,
}

/// Places and values.
pub(crate) type Curve = (Vec<f64>, Vec<Option<f64>>);
pub(crate) type Curves<'a> = IndexMap<&'a str, Curve>;
pub(crate) type Styles = IndexMap<String, Style>;

/// A chart; none without lines of at least two points in all.
pub(crate) fn chart(
    name: impl Into<String>,
    title: String,
    unit: &'static str,
    mut panels: Vec<Panel>,
) -> Option<Chart> {
    panels.retain(|panel| !panel.lines.is_empty());
    let mut places = panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.x);
    let first = places.next()?;
    places.any(|place| place != first).then_some(())?;
    Some(Chart {
        name: name.into(),
        title,
        unit,
        panels,
        note: String::new(),
        explained: Vec::new(),
        logarithmic: false,
        range: None,
        stacked: false,
        over: TIME,
    })
}

/// A line of a chart; of its points only those that can be seen.
pub(crate) fn line(label: &str, colour: &str, (x, values): &Curve) -> Line {
    let kept = kept(x, values);
    Line {
        label: label.to_owned(),
        colour: colour.to_owned(),
        dashes: Vec::new(),
        x: kept.iter().map(|&place| short(x[place])).collect(),
        values: kept.iter().map(|&place| values[place].map(short)).collect(),
        width: 1.6,
        marker: "",
        look: "line",
        stepped: 0,
        background: false,
    }
}

/// The places of the points to draw of a line over sorted `x`: in each column of pixels the first, the last,
/// the (first) least and greatest value, and the first of successive missing ones. Few points are all kept.
fn kept(x: &[f64], values: &[Option<f64>]) -> Vec<usize> {
    let (Some(first), Some(last)) = (x.first(), x.last()) else { return Vec::new() };
    if x.len() <= 4 * COLUMNS || last <= first {
        return (0..x.len()).collect();
    }
    let column = |place: usize| {
        let column = ((x[place] - first) / (last - first) * COLUMNS as f64) as usize;
        column.min(COLUMNS - 1)
    };
    let mut kept = Vec::new();
    let mut start = 0;
    while start < x.len() {
        let inside = (start..x.len()).take_while(|&place| column(place) == column(start));
        let places: Vec<usize> = inside.collect();
        let end = places[places.len() - 1];
        let there = || places.iter().copied().filter(|&place| values[place].is_some());
        let order = |one: &usize, other: &usize| {
            values[*one].unwrap_or_default().total_cmp(&values[*other].unwrap_or_default())
        };
        kept.extend([start, end]);
        kept.extend(there().min_by(order));
        kept.extend(there().rev().max_by(order));
        let gap =
            |&place: &usize| values[place].is_none() && (place == 0 || values[place - 1].is_some());
        kept.extend(places.iter().copied().filter(gap));
        start = end + 1;
    }
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// Lines of flows in their styles, background first, each thinner than those below it.
pub(crate) fn lines(curves: &Curves<'_>, styles: &Styles, stepped: i8) -> Vec<Line> {
    let mut shown: Vec<_> =
        curves.iter().filter(|(_, (_, values))| values.iter().any(Option::is_some)).collect();
    shown.sort_by_key(|(name, _)| !styles[**name].in_background);
    let count = shown.len();
    shown
        .into_iter()
        .enumerate()
        .map(|(place, (name, curve))| {
            let style = &styles[*name];
            let width = if style.in_background { 1.2 } else { width(place, count) };
            Line {
                dashes: style.dashes.to_vec(),
                marker: style.marker,
                background: style.in_background,
                width,
                stepped,
                ..line(name, &style.colour, curve)
            }
        })
        .collect()
}

/// The width of a line: each is thinner than those below it, so that equal lines are visible.
fn width(place: usize, count: usize) -> f64 {
    if count > MAX_LINES {
        return 1.5;
    }
    let step = 1.7 / (count.max(2) - 1) as f64;
    1.3 + step * (count - 1 - place) as f64
}

/// A chart of a line for each flow, in as many panels as needed.
pub(crate) fn of_flows(
    (name, title, unit): (&str, String, &'static str),
    curves: Curves<'_>,
    styles: &Styles,
    stepped: i8,
) -> Option<Chart> {
    let panels = by_kind(curves.keys().copied().collect(), styles);
    let drawn = panels.into_iter().map(|(title, flows)| {
        let own = flows.into_iter().map(|flow| (flow, curves[flow].clone())).collect();
        Panel { title, lines: lines(&own, styles, stepped) }
    });
    chart(name, title, unit, drawn.collect())
}

/// One panel, if that is enough; otherwise those of each kind of traffic.
pub(crate) fn by_kind<'a>(flows: Vec<&'a str>, styles: &Styles) -> Vec<(String, Vec<&'a str>)> {
    if flows.len() <= MAX_LINES {
        return vec![(String::new(), flows)];
    }
    let kinds = Kind::ALL.into_iter().flat_map(|kind| {
        let its: Vec<_> = flows.iter().copied().filter(|flow| styles[*flow].kind == kind).collect();
        let count = its.len().div_ceil(MAX_LINES);
        let part = move |n: usize| {
            let part = its[its.len() * n / count..its.len() * (n + 1) / count].to_vec();
            let title = match (count, &part[..]) {
                (1, _) | (_, []) => kind.name().to_owned(),
                (_, [first, .., last]) => format!("{}: {first} … {last}", kind.name()),
                (_, [only]) => format!("{}: {only}", kind.name()),
            };
            (title, part)
        };
        (0..count).map(part)
    });
    kinds.collect()
}

/// A metric; if flows, links and gauges share a name, that of flows, then that of links.
pub(crate) fn metric(name: &str) -> &'static Metric {
    let tables = [talkspurt_record::FLOW_METRICS, talkspurt_record::LINK_METRICS, Gauge::METRICS];
    tables.into_iter().flatten().find(|one| one.name == name).expect("a metric of a table")
}

/// The curve of a column of a table over time, of these rows, in its shown unit.
pub(crate) fn curve(rows: &Rows, places: &[usize], column: &str, scale: f64) -> Curve {
    let time = |&row: &usize| rows.number("time_s", row).unwrap_or_default();
    let value = |&row: &usize| rows.number(column, row).map(|value| value * scale);
    (places.iter().map(time).collect(), places.iter().map(value).collect())
}

/// A gauge until the end of a run; it holds its value until it changes.
pub(crate) fn held(run: &Run, places: &[usize], scale: f64) -> Curve {
    let (times, values) = curve(&run.gauges, places, "value", scale);
    let known =
        times.into_iter().zip(values).filter(|(_, value)| value.is_some_and(f64::is_finite));
    let (mut times, mut values): Curve = known.unzip();
    times.extend(values.last().map(|_| run.told.duration_s));
    values.extend(values.last().copied());
    (times, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_series_are_thinned_but_keep_their_extremes() {
        let x: Vec<f64> = (0..10_000).map(f64::from).collect();
        let mut values: Vec<_> =
            (0..10_000).map(|i| Some(0.5 + f64::from(i % 2) / 1000.0)).collect();
        (values[1234], values[1235], values[7000]) = (Some(7.0), Some(-3.0), None);
        let thin = line("a", "#000", &(x.clone(), values.clone()));
        assert!(thin.x.len() <= 4 * COLUMNS + 1);
        for place in [0, 1234, 1235, 7000, 9999] {
            let there = thin.x.iter().position(|at| *at == x[place]).expect("the point is kept");
            assert_eq!(thin.values[there], values[place]);
        }
        assert!(thin.x.is_sorted_by(|one, other| one < other));
        assert!(thin.x.iter().zip(&thin.values).all(|(at, value)| *value == values[*at as usize]));
    }

    #[test]
    fn a_chart_needs_lines_with_two_places() {
        let panel = |title: &str, lines| Panel { title: title.to_owned(), lines };
        let made = |panels| chart("c", "C".to_owned(), "", panels);
        let long = line("b", "#000", &(vec![0.0, 2.0, 9.0], vec![Some(3.0), None, Some(4.0)]));
        assert_eq!((&long.x[..], long.values[1]), (&[0.0, 2.0, 9.0][..], None));
        let both = made(vec![panel("", vec![]), panel("b", vec![long])]).expect("a chart");
        assert_eq!(both.panels[0].title, "b");
        assert!(made(vec![panel("", vec![])]).is_none());
        let short = line("d", "#000", &(vec![1.0], vec![Some(1.0)]));
        assert!(made(vec![panel("", vec![short])]).is_none());
    }
}
