//! Charts of a run over time, with as few points as can be seen: `charts.js` draws them.

use indexmap::IndexMap;
use serde::Serialize;
use talkspurt_proto::metric::Metric;

use crate::Run;
use crate::frames::{HEARD, codec_s};
use crate::style::{Kind, Style, styles};
use crate::text::{rate, short, time};

/// Columns of pixels of a chart.
const COLUMNS: usize = 500;
/// Maximum flows drawn.
const MAX_FLOWS: usize = 24;
/// Maximum lines in a panel.
const MAX_LINES: usize = 6;
/// Points of a goodput line: with finer bins, TCP's bursts would hide everything else.
const GOODPUT_POINTS: f64 = 120.0;
/// Bins of the parts of mouth-to-ear delay.
const MAX_BINS: f64 = 120.0;
/// Colours of links, if several are drawn: none of a kind of traffic.
const QUEUE_COLOURS: [&str; 4] = ["#7A8794", "#B0609A", "#9A7B3A", "#5F6470"];
/// The parts of mouth-to-ear delay in the order in which they pass.
const PARTS: [(&str, &str); 4] = [
    ("frame and look-ahead of the codec", "#7D6CBB"),
    ("wait at the sender", "#C0609A"),
    ("transport and network", "#6b7280"),
    ("playout buffer", "#B08A2E"),
];

/// A chart, as `charts.js` documents it.
#[derive(Clone, Debug, Serialize)]
pub struct Chart {
    name: &'static str,
    title: String,
    unit: &'static str,
    panels: Vec<Panel>,
    note: String,
    range: Option<[f64; 2]>,
    stacked: bool,
    over: Over,
}

/// What the x axis is of.
#[derive(Clone, Debug, Serialize)]
struct Over {
    label: &'static str,
    unit: &'static str,
}

const TIME: Over = Over { label: "time", unit: "s" };

/// Lines with common axes.
#[derive(Clone, Debug, Serialize)]
pub struct Panel {
    title: String,
    lines: Vec<Line>,
}

/// A line, or an area.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    label: String,
    colour: String,
    dashes: Vec<f64>,
    x: Vec<f64>,
    values: Vec<Option<f64>>,
    width: f64,
    marker: &'static str,
    look: &'static str,
    /// 1: a value holds until the next place; −1: it held since the last one.
    stepped: i8,
    background: bool,
}

/// Places and values.
type Curve = (Vec<f64>, Vec<Option<f64>>);
type Curves<'a> = IndexMap<&'a str, Curve>;

/// All charts for which a run has data.
#[must_use]
pub fn charts(run: &Run) -> Vec<Chart> {
    let styles = styles(&run.flows);
    let charts = [
        mouth_to_ear(run),
        delay(run, &styles),
        goodput(run, &styles),
        not_heard(run, &styles),
        of_links(run, "queue", "Packets waiting where queues are longest", "queue_packets"),
        of_links(run, "sojourn", "Longest wait in a queue", "sojourn_max_s"),
        congestion_window(run, &styles),
        delivered_within(run, &styles),
    ];
    charts.into_iter().flatten().collect()
}

/// A chart; none without lines of at least two points in all.
fn chart(
    name: &'static str,
    title: String,
    unit: &'static str,
    mut panels: Vec<Panel>,
) -> Option<Chart> {
    panels.retain(|panel| !panel.lines.is_empty());
    let mut places = panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.x);
    let first = places.next()?;
    places.any(|place| place != first).then_some(())?;
    let note = String::new();
    Some(Chart { name, title, unit, panels, note, range: None, stacked: false, over: TIME })
}

fn line(label: &str, colour: &str, (x, values): &Curve) -> Line {
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
/// the least and the greatest value, and the first of successive missing ones. Few points are all kept.
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
        kept.extend(there().max_by(order));
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
fn lines(curves: &Curves<'_>, styles: &IndexMap<String, Style>, stepped: i8) -> Vec<Line> {
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
fn of_flows(
    (name, title, unit): (&'static str, String, &'static str),
    curves: Curves<'_>,
    styles: &IndexMap<String, Style>,
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
fn by_kind<'a>(
    flows: Vec<&'a str>,
    styles: &IndexMap<String, Style>,
) -> Vec<(String, Vec<&'a str>)> {
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

fn some(chart: Option<Chart>, total: usize, what: &str) -> Option<Chart> {
    let mut chart = chart?;
    if total > MAX_FLOWS {
        chart.note = format!("{MAX_FLOWS} of {total} {what}.");
    }
    Some(chart)
}

fn metric(name: &str) -> &'static Metric {
    let known = talkspurt_record::FLOW_METRICS.iter().chain(talkspurt_record::LINK_METRICS);
    known.into_iter().find(|one| one.name == name).expect("a metric of a table")
}

/// The curve of a column of a table over time, of these rows, in its shown unit.
fn curve(rows: &crate::Rows, places: &[usize], column: &str, scale: f64) -> Curve {
    let time = |&row: &usize| rows.number("time_s", row).unwrap_or_default();
    let value = |&row: &usize| rows.number(column, row).map(|value| value * scale);
    (places.iter().map(time).collect(), places.iter().map(value).collect())
}

fn delay(run: &Run, styles: &IndexMap<String, Style>) -> Option<Chart> {
    let shown = metric("delay_mean_s");
    let rows = run.series.by("flow");
    let its =
        |flow| rows.get(flow).map(|places| curve(&run.series, places, shown.name, shown.scale));
    let names = styles.keys().map(String::as_str).take(MAX_FLOWS);
    let curves = names.filter_map(|flow| Some((flow, its(flow)?))).collect();
    let title = "One-way network delay".to_owned();
    some(of_flows(("delay", title, shown.shown_unit), curves, styles, 0), styles.len(), "flows")
}

/// Means of a column over several bins, and their total width in seconds.
fn smooth(rows: &crate::Rows, places: &[usize], column: &str, scale: f64) -> (Curve, f64) {
    let (ends, values) = curve(rows, places, column, scale);
    let step = ((ends.len() as f64 / GOODPUT_POINTS).round() as usize).max(1);
    let mean = |part: &[Option<f64>]| {
        let there: Vec<f64> = part.iter().copied().flatten().collect();
        (!there.is_empty()).then(|| there.iter().sum::<f64>() / there.len() as f64)
    };
    let last = |part: &[f64]| part[part.len() - 1];
    let smoothed = (ends.chunks(step).map(last).collect(), values.chunks(step).map(mean).collect());
    (smoothed, ends.get(step - 1).copied().unwrap_or_default())
}

/// Goodput, with the capacity of the bottleneck behind it.
fn goodput(run: &Run, styles: &IndexMap<String, Style>) -> Option<Chart> {
    let shown = metric("goodput_bps");
    let rows = run.series.by("flow");
    let mut width = 0.0;
    let mut curves = Curves::new();
    for flow in styles.keys().take(MAX_FLOWS) {
        let Some(places) = rows.get(flow.as_str()) else { continue };
        let (curve, its) = smooth(&run.series, places, "goodput_bps", shown.scale);
        width = its;
        curves.insert(flow, curve);
    }
    let links = run.link_series.by("link");
    let mean = |places: &Vec<usize>| {
        let there: Vec<f64> =
            places.iter().filter_map(|&row| run.link_series.number("capacity_bps", row)).collect();
        (!there.is_empty()).then(|| there.iter().sum::<f64>() / there.len() as f64)
    };
    let capacity: IndexMap<&str, f64> =
        links.iter().filter_map(|(link, places)| Some((*link, mean(places)?))).collect();
    let mut groups: IndexMap<Option<String>, Vec<&str>> = IndexMap::new();
    for flow in curves.keys() {
        let known = run.route(flow).into_iter().filter(|link| capacity.contains_key(link.as_str()));
        let least =
            known.min_by(|one, other| capacity[one.as_str()].total_cmp(&capacity[other.as_str()]));
        groups.entry(least).or_default().push(flow);
    }
    let mut panels = Vec::new();
    for (link, flows) in groups {
        for (kind, flows) in by_kind(flows, styles) {
            let own = flows.into_iter().map(|flow| (flow, curves[flow].clone())).collect();
            let mut lines = lines(&own, styles, 0);
            let mut title = Vec::new();
            if let Some(link) = &link {
                title.push(format!("{link}, mean {}", rate(capacity[link.as_str()])));
                let places = &links[link.as_str()];
                let (curve, _) = smooth(&run.link_series, places, "capacity_bps", shown.scale);
                lines.insert(0, area(curve));
            }
            title.extend((!kind.is_empty()).then_some(kind));
            panels.push(Panel { title: title.join(", "), lines });
        }
    }
    let mut title = format!("Goodput, means over {}", time(width));
    if panels.iter().flat_map(|panel| &panel.lines).any(|line| line.look == "area") {
        title += ", before the capacity of bottlenecks";
    }
    some(chart("goodput", title, shown.shown_unit, panels), styles.len(), "flows")
}

/// The capacity of a link, where a step begins at the end of the one before.
fn area((ends, values): Curve) -> Line {
    let x = [vec![0.0], ends].concat();
    let values = [vec![values.first().copied().flatten()], values].concat();
    Line { look: "area", stepped: -1, width: 0.8, ..line("capacity", "field", &(x, values)) }
}

/// Cumulative count of unheard frames: where the line climbs, speech is missing.
fn not_heard(run: &Run, styles: &IndexMap<String, Style>) -> Option<Chart> {
    let frames = run.frames.by("flow");
    let ends: Vec<f64> = {
        let first = run.series.by("flow").values().next().cloned().unwrap_or_default();
        first.iter().filter_map(|&row| run.series.number("time_s", row)).collect()
    };
    let mut curves = Curves::new();
    for (flow, places) in frames.iter().take(MAX_FLOWS) {
        let unheard = places
            .iter()
            .filter(|&&row| run.frames.text("fate", row).is_none_or(|fate| !HEARD.contains(&fate)));
        let mut times: Vec<f64> =
            unheard.filter_map(|&row| run.frames.number("captured_s", row)).collect();
        times.sort_by(f64::total_cmp);
        if times.is_empty() {
            continue;
        }
        let count = |end: &f64| Some(times.partition_point(|time| time <= end) as f64);
        curves.insert(flow, (ends.clone(), ends.iter().map(count).collect()));
    }
    let title = "Voice frames not heard so far".to_owned();
    some(of_flows(("not-heard", title, "frames"), curves, styles, 0), frames.len(), "calls")
}

/// The parts of the mouth-to-ear delay of each call, on top of each other: means of the frames that were heard.
/// A frame that was recovered from a later packet was not delivered itself: all its time after it was sent is
/// that of the buffer, which waited for that packet.
fn mouth_to_ear(run: &Run) -> Option<Chart> {
    let frames = run.frames.by("flow");
    let interval = run.interval_s;
    let bin_s = interval * (run.duration_s / interval / MAX_BINS).round().max(1.0);
    let mut panels = Vec::new();
    for (flow, places) in frames.iter().take(MAX_FLOWS) {
        let codec_s = codec_s(run, flow);
        let mut bins: IndexMap<u64, (f64, [f64; 4])> = IndexMap::new();
        for &row in places {
            let at = |column| run.frames.number(column, row);
            let heard = run.frames.text("fate", row).is_some_and(|fate| HEARD.contains(&fate));
            let (true, Some(captured), Some(taken), Some(played)) =
                (heard, at("captured_s"), at("handed_over_s"), at("playout_s"))
            else {
                continue;
            };
            let ready = taken.min(captured + codec_s);
            let arrived = at("delivered_s").unwrap_or(taken);
            let parts = [ready - captured, taken - ready, arrived - taken, played - arrived];
            let (count, sums) = bins.entry((captured / bin_s) as u64).or_default();
            *count += 1.0;
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part * 1e3);
        }
        bins.sort_unstable_keys();
        if bins.len() < 2 {
            continue;
        }
        let times: Vec<f64> = bins.keys().map(|bin| *bin as f64 * bin_s).collect();
        let lines = PARTS.iter().enumerate().rev().map(|(part, (words, colour))| {
            let means = bins.values().map(|(count, sums)| Some(sums[part] / count)).collect();
            Line { width: 1.0, ..line(words, colour, &(times.clone(), means)) }
        });
        panels.push(Panel { title: (*flow).to_owned(), lines: lines.collect() });
    }
    let title = "Mouth-to-ear delay and its parts".to_owned();
    let made = chart("mouth-to-ear", title, "ms", panels);
    some(made.map(|chart| Chart { stacked: true, ..chart }), frames.len(), "calls")
}

/// The links with the longest mean queues: within a tenth of the longest, at most four.
fn bottlenecks(run: &Run) -> Vec<String> {
    let links = &run.links;
    let mean = |row: usize| {
        let sent = links.number("sent_packets", row).is_some_and(|sent| sent > 0.0);
        links.number("queue_mean_packets", row).filter(|_| sent)
    };
    let used = |row: usize| links.number("utilisation", row).unwrap_or(-1.0);
    let mut rows: Vec<_> = (0..links.len()).filter_map(|row| Some((row, mean(row)?))).collect();
    rows.sort_by(|one, other| {
        other.1.total_cmp(&one.1).then(used(other.0).total_cmp(&used(one.0)))
    });
    rows.truncate(QUEUE_COLOURS.len());
    let least = rows.first().map_or(0.0, |(_, longest)| (0.1 * longest).max(0.1));
    let kept = rows.iter().enumerate().filter(|(place, (_, mean))| *place == 0 || *mean > least);
    kept.filter_map(|(_, (row, _))| links.text("name", *row).map(str::to_owned)).collect()
}

fn of_links(run: &Run, name: &'static str, title: &str, measure: &'static str) -> Option<Chart> {
    let (unit, scale) = if measure.ends_with("_s") { ("ms", 1e3) } else { ("packets", 1.0) };
    let rows = run.link_series.by("link");
    let mut lines = Vec::new();
    for (link, colour) in bottlenecks(run).iter().zip(QUEUE_COLOURS) {
        let Some(places) = rows.get(link.as_str()) else { continue };
        let curve = curve(&run.link_series, places, measure, scale);
        if curve.1.iter().any(Option::is_some) {
            lines.push(line(link, colour, &curve));
        }
    }
    chart(name, title.to_owned(), unit, vec![Panel { title: String::new(), lines }])
}

/// The congestion window of the side that opens, until the end.
fn congestion_window(run: &Run, styles: &IndexMap<String, Style>) -> Option<Chart> {
    let gauges = &run.gauges;
    let flows = gauges.by("flow");
    let mut curves = Curves::new();
    for (flow, places) in &flows {
        let own = places.iter().copied().filter(|&row| {
            gauges.text("gauge", row) == Some("cwnd") && gauges.text("side", row) == Some("from")
        });
        let own: Vec<usize> = own.collect();
        let (mut times, mut values) = curve(gauges, &own, "value", 1e-3);
        let Some(last) = values.last().copied() else { continue };
        times.push(run.duration_s);
        values.push(last);
        if curves.len() < MAX_FLOWS && styles.contains_key(*flow) {
            curves.insert(flow, (times, values));
        }
    }
    of_flows(("cwnd", "Congestion window".to_owned(), "kB"), curves, styles, 1)
}

/// Share of frames delivered within a time since capture: the delay a buffer must bridge.
fn delivered_within(run: &Run, styles: &IndexMap<String, Style>) -> Option<Chart> {
    let frames = run.frames.by("flow");
    let mut curves = Curves::new();
    for (flow, places) in frames.iter().take(MAX_FLOWS) {
        let took = |&row: &usize| {
            let delivered = run.frames.number("delivered_s", row)?;
            Some((delivered - run.frames.number("captured_s", row)?) * 1e3)
        };
        let mut times: Vec<f64> = places.iter().filter_map(took).collect();
        times.sort_by(f64::total_cmp);
        let Some(&first) = times.first() else { continue };
        // A step begins at zero; of equal times, it ends at the number of all of them.
        let (mut x, mut shares) = (vec![first * (1.0 - 1e-9)], vec![Some(0.0)]);
        for (place, time) in times.iter().enumerate() {
            if times.get(place + 1) != Some(time) {
                x.push(*time);
                shares.push(Some((place + 1) as f64 * 100.0 / places.len() as f64));
            }
        }
        curves.insert(flow, (x, shares));
    }
    let title = "Share of voice frames delivered within a time of their capture".to_owned();
    let made = of_flows(("delay-ecdf", title, "%"), curves, styles, 1)?;
    let over = Over { label: "time from capture to delivery", unit: "ms" };
    Some(Chart { range: Some([0.0, 102.0]), over, ..made })
}
