//! The charts of a run: over time, and the distribution of the delays of voice frames.

use indexmap::IndexMap;

use crate::chart::{
    Chart, Curve, Curves, Line, MAX_FLOWS, Over, Panel, Styles, by_kind, chart, curve, held, line,
    lines, metric, of_flows,
};
use crate::frames::{HEARD, codec_s};
use crate::opinion::{self, Window};
use crate::style::styles;
use crate::text::{rate, time};
use crate::{Rows, Run, Told, inside, sided};

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

/// What an imported trace has of acknowledgements and RTCP: name, title, unit, gauges, scale.
const REPORTED: [(&str, &str, &str, &[&str], f64); 4] = [
    ("reported-rtt", "Round-trip times in the capture", "ms", &["rtcp_rtt", "capture_rtt"], 1e3),
    ("reported-loss", "Loss that receivers reported", "%", &["reported_loss"], 100.0),
    ("feedback-loss", "Loss in congestion control feedback", "%", &["feedback_loss"], 100.0),
    ("feedback-marks", "ECN marks in congestion control feedback", "%", &["feedback_marks"], 100.0),
];
/// Length of a judged segment in seconds, as in `scores/__init__.py`.
const SEGMENT_S: f64 = 8.0;
/// What is shorter is rounding, not a segment that was left out.
const MIN_GAP_S: f64 = 1e-6;

/// All charts for which a run has data.
#[must_use]
pub fn charts(run: &Run) -> Vec<Chart> {
    let styles = styles(&run.flows);
    let mut charts = vec![
        mouth_to_ear(run),
        delay(run, &styles),
        goodput(run, &styles),
        not_heard(run, &styles),
        opinion_over_time(run, &styles),
        of_links(run, "queue", "Packets waiting where queues are longest", "queue_packets"),
        of_links(run, "sojourn", "Longest wait in a queue", "sojourn_max_s"),
        congestion_window(run, &styles),
    ];
    charts.extend(reported(run, &styles));
    charts.extend(inside::charts(run, &styles));
    charts.extend(sound(run, &styles));
    charts.push(delivered_within(run, &styles));
    charts.push(film(run, &styles));
    charts.into_iter().flatten().collect()
}

fn some(chart: Option<Chart>, total: usize, what: &str) -> Option<Chart> {
    let mut chart = chart?;
    if total > MAX_FLOWS {
        chart.note = format!("{MAX_FLOWS} of {total} {what}.");
    }
    Some(chart)
}

fn delay(run: &Run, styles: &Styles) -> Option<Chart> {
    let shown = metric("delay_mean_s");
    let rows = run.series.by("flow");
    let curves = styles.keys().take(MAX_FLOWS).map(|flow| {
        let places = rows.get(flow.as_str()).map_or(&[][..], Vec::as_slice);
        (flow.as_str(), curve(&run.series, places, shown.name, shown.scale))
    });
    let curves = curves.collect();
    let title = "One-way network delay".to_owned();
    some(of_flows(("delay", title, shown.shown_unit), curves, styles, 0), styles.len(), "flows")
}

/// The ends of the bins of a table over time.
fn ends(rows: &Rows, places: impl Iterator<Item = usize>) -> Vec<f64> {
    let mut ends: Vec<f64> = places.filter_map(|row| rows.number("time_s", row)).collect();
    ends.sort_by(f64::total_cmp);
    ends.dedup();
    ends
}

/// Bins to take together, and their total width in seconds: bins begin at 0.
fn together(ends: &[f64]) -> (usize, f64) {
    let count = ((ends.len() as f64 / GOODPUT_POINTS).round_ties_even() as usize).max(1);
    (count, ends.get(count - 1).copied().unwrap_or_default())
}

/// Means of a column over several bins, in a place for each of them.
fn smooth(rows: &Rows, places: &[usize], column: &str, scale: f64, ends: &[f64]) -> Curve {
    let (times, values) = curve(rows, places, column, scale);
    let (count, _) = together(ends);
    let bin = |time: f64| ends.partition_point(|end| *end < time) / count;
    let both: Vec<_> = times.into_iter().zip(values).collect();
    let parts = both.chunk_by(|one, other| bin(one.0) == bin(other.0));
    parts
        .map(|part| (part[part.len() - 1].0, mean(part.iter().filter_map(|(_, value)| *value))))
        .unzip()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    (count > 0.0).then_some(sum / count)
}

/// Goodput, with the capacity of the bottleneck behind it.
fn goodput(run: &Run, styles: &Styles) -> Option<Chart> {
    let shown = metric("goodput_bps");
    let rows = run.series.by("flow");
    let bins = ends(&run.series, 0..run.series.len());
    let curves = styles.keys().take(MAX_FLOWS).map(|flow| {
        let places = rows.get(flow.as_str()).map_or(&[][..], Vec::as_slice);
        (flow.as_str(), smooth(&run.series, places, "goodput_bps", shown.scale, &bins))
    });
    let curves: Curves<'_> = curves.collect();
    let links = run.link_series.by("link");
    let rate_of = |row: &usize| run.link_series.number("capacity_bps", *row);
    let capacity: IndexMap<&str, f64> = links
        .iter()
        .filter_map(|(link, places)| Some((*link, mean(places.iter().filter_map(rate_of))?)))
        .collect();
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
                let bins = ends(&run.link_series, places.iter().copied());
                let rows = &run.link_series;
                let capacity = smooth(rows, places, "capacity_bps", shown.scale, &bins);
                lines.insert(0, area(capacity));
            }
            title.extend((!kind.is_empty()).then_some(kind));
            panels.push(Panel { title: title.join(", "), lines });
        }
    }
    let mut title = format!("Goodput, means over {}", time(together(&bins).1));
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
fn not_heard(run: &Run, styles: &Styles) -> Option<Chart> {
    let ends = ends(&run.series, 0..run.series.len());
    let mut curves = Curves::new();
    for (flow, places) in calls(run) {
        let unheard = places
            .iter()
            .filter(|&&row| run.frames.text("fate", row).is_some_and(|it| !HEARD.contains(&it)));
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
    of_flows(("not-heard", title, "frames"), curves, styles, 0)
}

/// The first calls, with the rows of their frames.
fn calls(run: &Run) -> impl Iterator<Item = (&str, Vec<usize>)> {
    let mut frames = run.frames.by("flow");
    let its = move |flow| (flow, frames.swap_remove(flow).unwrap_or_default());
    run.calls().take(MAX_FLOWS).map(its)
}

/// MOS of windows, each a step up to its end.
fn opinion_over_time(run: &Run, styles: &Styles) -> Option<Chart> {
    let Told { duration_s, .. } = run.told;
    let width = opinion::window_s(duration_s);
    let windows: IndexMap<&str, Vec<Window>> = run
        .calls()
        .take(MAX_FLOWS)
        .map(|call| (call, opinion::over_time(run, call, width)))
        .collect();
    // What is drawn of calls is the first that one of them has.
    let scored = windows.values().flatten().any(|window| window.mos.is_some());
    let estimated = windows.values().flatten().any(|window| window.estimated_mos.is_some());
    let is_estimate = !scored && estimated;
    let score = |window: &Window| if is_estimate { window.estimated_mos } else { window.mos };
    // All windows from the first to the last: where nobody spoke, a line has a gap.
    let place = |window: &Window| (window.time_s / width).round() as usize;
    let spoken = || windows.values().flatten().map(place);
    let (first, last) = (spoken().min()?, spoken().max()?);
    // A step begins at the end of the previous one.
    let x: Vec<f64> =
        (first..=last + 1).map(|place| (place as f64 * width).min(duration_s)).collect();
    let curves = windows.iter().map(|(call, windows)| {
        let mut values = vec![None; x.len()];
        for window in windows {
            values[place(window) - first + 1] = score(window);
        }
        values[0] = values[1];
        (*call, (x.clone(), values))
    });
    let label = metric(if is_estimate { "estimated_mos" } else { "mos" }).label;
    let title = format!("{label} of each window of {}", time(width));
    let made = of_flows(("mos", title, ""), curves.collect(), styles, -1)?;
    Some(Chart { range: Some([0.9, 4.6]), ..made })
}

/// The parts of the mouth-to-ear delay of each call, on top of each other: means of the frames that were heard.
/// A frame that was recovered from a later packet was not delivered itself: all its time after it was sent is
/// that of the buffer, which waited for that packet.
fn mouth_to_ear(run: &Run) -> Option<Chart> {
    let interval = run.told.interval_s;
    let bins = (run.told.duration_s / interval / MAX_BINS).round_ties_even();
    let bin_s = interval * bins.max(1.0);
    let mut panels = Vec::new();
    for (flow, places) in calls(run) {
        let codec_s = codec_s(run, flow);
        let mut bins: IndexMap<i64, (f64, [f64; 4])> = IndexMap::new();
        for row in places {
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
            let (count, sums) = bins.entry((captured / bin_s).floor() as i64).or_default();
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
        panels.push(Panel { title: flow.to_owned(), lines: lines.collect() });
    }
    let title = "Mouth-to-ear delay and its parts".to_owned();
    let made = chart("mouth-to-ear", title, "ms", panels);
    some(made.map(|chart| Chart { stacked: true, ..chart }), run.calls().count(), "calls")
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

/// The congestion window of the side that opens.
fn congestion_window(run: &Run, styles: &Styles) -> Option<Chart> {
    let mut flows: IndexMap<&str, Vec<usize>> = IndexMap::new();
    for row in run.gauges.with("gauge", "cwnd") {
        let known = run.gauges.text("flow", row).filter(|flow| styles.contains_key(*flow));
        if let (Some(flow), Some("from")) = (known, run.gauges.text("side", row)) {
            flows.entry(flow).or_default().push(row);
        }
    }
    let its = flows.iter().take(MAX_FLOWS);
    let curves = its.map(|(flow, places)| (*flow, held(run, places, 1e-3))).collect();
    of_flows(("cwnd", "Congestion window".to_owned(), "kB"), curves, styles, 1)
}

/// What an imported trace has of acknowledgements and RTCP.
fn reported(run: &Run, styles: &Styles) -> Vec<Option<Chart>> {
    let rows = &run.gauges;
    let of = |(name, title, unit, gauges, scale): (_, &str, _, &[&str], f64)| {
        let mut senders: IndexMap<_, Vec<usize>> = IndexMap::new();
        for row in 0..rows.len() {
            if rows.text("gauge", row).is_some_and(|gauge| gauges.contains(&gauge)) {
                let sender = (rows.text("flow", row)?, rows.text("side", row)?);
                senders.entry(sender).or_default().push(row);
            }
        }
        let curve = |(sender, places): (&(&str, &str), &Vec<usize>)| {
            let flow = styles.keys().find(|flow| sided(flow) == *sender)?;
            Some((flow.as_str(), curve(rows, places, "value", scale)))
        };
        let curves = senders.iter().filter_map(curve).take(MAX_FLOWS).collect();
        of_flows((name, title.to_owned(), unit), curves, styles, 0)
    };
    if run.told.imported { REPORTED.map(of).into() } else { Vec::new() }
}

/// The scores of the segments of calls, a chart for each model.
fn sound(run: &Run, styles: &Styles) -> Vec<Option<Chart>> {
    let rows = &run.scores;
    let flows = rows.by("flow");
    let of = |(model, label): &(String, String)| {
        let steps = |places: &Vec<usize>| -> Vec<(f64, f64, Option<f64>)> {
            let step = |&row: &usize| {
                let start = rows.number("start_s", row)?;
                Some((start, start + rows.number("duration_s", row)?, rows.number(model, row)))
            };
            places.iter().filter_map(step).collect()
        };
        let steps: IndexMap<&str, _> =
            flows.iter().map(|(flow, its)| (*flow, steps(its))).collect();
        let mut x = Vec::new();
        for its in steps.values() {
            x.extend(its.iter().flat_map(|(start, end, _)| [*start, *end]));
            // Between segments that were judged, a point without a value interrupts the line.
            let gaps = its.windows(2).map(|pair| (pair[0].1, pair[1].0));
            let gaps = gaps.filter(|(end, start)| start - end > MIN_GAP_S);
            x.extend(gaps.map(|(end, start)| f64::midpoint(end, start)));
        }
        x.sort_by(f64::total_cmp);
        x.dedup();
        let curves = steps.iter().map(|(flow, its)| {
            // The step that ends at a time or after it: it is drawn back to the one before.
            let at =
                |time: &f64| its.iter().find(|(start, end, _)| (start..=end).contains(&time))?.2;
            (*flow, (x.clone(), x.iter().map(at).collect()))
        });
        let title = format!("{label} of each judged segment of {SEGMENT_S} s");
        let made = of_flows((model, title, ""), curves.collect(), styles, -1)?;
        Some(Chart { range: Some([0.9, 5.1]), ..made })
    };
    run.told.models.iter().map(of).collect()
}

/// Share of frames delivered within a time since capture: the delay a buffer must bridge.
fn delivered_within(run: &Run, styles: &Styles) -> Option<Chart> {
    let mut curves = Curves::new();
    for (flow, places) in calls(run) {
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

/// The delay of each frame of video; below, those that could never be decoded.
fn film(run: &Run, styles: &Styles) -> Option<Chart> {
    let frames = run.video_frames.by("flow");
    let names = frames.keys().copied().take(MAX_FLOWS).collect();
    let mut panels = Vec::new();
    for (title, flows) in by_kind(names, styles) {
        let mut lines = Vec::new();
        for flow in flows {
            let (mut whole, mut never) = (Curve::default(), Curve::default());
            for &row in &frames[flow] {
                let number = |column| run.video_frames.number(column, row);
                let Some(captured) = number("captured_s") else { continue };
                // Results of versions without kinds have no frame that depends on another.
                let is_of_kind = run.video_frames.text("kind", row).is_some();
                let end = number(if is_of_kind { "decodable_s" } else { "complete_s" });
                let delay = end.map(|end| (end - captured) * 1e3);
                let curve = if delay.is_some() { &mut whole } else { &mut never };
                curve.0.push(captured);
                curve.1.push(Some(delay.unwrap_or(0.0)));
            }
            lines.push(Line { look: "points", ..line(flow, &styles[flow].colour, &whole) });
            if !never.0.is_empty() {
                let words = format!("{flow}: never decodable");
                lines.push(Line { look: "points", ..line(&words, "ink", &never) });
            }
        }
        panels.push(Panel { title, lines });
    }
    let title =
        "Delay of each frame of video, from its capture until it can be decoded; at 0: never";
    chart("frame-delay", title.to_owned(), "ms", panels)
}
