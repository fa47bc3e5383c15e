//! Charts of endpoint state: a rate-controlled sender, a window, a token bucket.

use indexmap::IndexMap;

use crate::chart::{Chart, Explained, Line, Panel, Styles, chart, held, line, metric};
use crate::{Run, sided};

/// Flows of each kind of controller with charts; `talkspurt report` draws those of the others.
const MAX_SENDERS: usize = 4;
/// A rate axis is logarithmic if its max exceeds its min by more than this factor.
const SPREAD: f64 = 30.0;
const FAINT: &str = "#9aa1a8";
const INK: &str = "ink";
/// The colour of the flow.
const OWN: &str = "";

/// The gauge whose senders have a chart, the chart's name, what it is of, and a line of it: its gauge, label,
/// colour, whether it is dashed, and its width.
pub type GaugeLine =
    (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str, bool, f64);

/// What is shown of senders. The input of a rate is drawn on top of it, thinner.
pub const GAUGE_LINES: [GaugeLine; 12] = [
    ("rate", "rates", "allowed rate", "receive_rate", "X_recv", FAINT, false, 1.1),
    ("rate", "rates", "allowed rate", "rate", "X", OWN, false, 2.4),
    ("rate", "rates", "allowed rate", "equation_rate", "X_calc", INK, true, 1.1),
    ("rate", "rtt", "round-trip time", "srtt", "RTT", OWN, false, 2.4),
    ("rate", "rtt", "round-trip time", "rtt_square_mean", "R_sqmean", INK, true, 1.1),
    ("rate", "p", "loss event rate", "loss_event_rate", "p", OWN, false, 1.8),
    ("cwnd_packets", "window", "window of CCID 2", "pipe", "pipe", FAINT, false, 0.8),
    ("cwnd_packets", "window", "window of CCID 2", "ssthresh_packets", "ssthresh", INK, true, 1.2),
    ("cwnd_packets", "window", "window of CCID 2", "cwnd_packets", "cwnd", OWN, false, 1.8),
    ("cwnd_packets", "ack-ratio", "Ack Ratio", "ack_ratio", "Ack Ratio", INK, false, 1.3),
    ("encoding", "tokens", "tokens saved", "tokens", "tokens", OWN, false, 1.3),
    ("encoding", "encoding", "rung of the ladder", "encoding", "rung", OWN, false, 1.8),
];

/// Rates, windows and tokens of the first flows of each kind of controller.
pub(crate) fn charts(run: &Run, styles: &Styles) -> Vec<Option<Chart>> {
    let mut found: IndexMap<_, Vec<usize>> = IndexMap::new();
    for row in 0..run.gauges.len() {
        let text = |column| run.gauges.text(column, row);
        if let (Some(flow), Some(side), Some(gauge)) = (text("flow"), text("side"), text("gauge")) {
            found.entry((flow, side, gauge)).or_default().push(row);
        }
    }
    let mut made = Vec::new();
    for of_sender in GAUGE_LINES.chunk_by(|one, other| one.0 == other.0) {
        let there = styles.keys().filter(|flow| {
            let (name, side) = sided(flow);
            found.contains_key(&(name, side, of_sender[0].0))
        });
        for flow in there.take(MAX_SENDERS) {
            let (name, side) = sided(flow);
            let of = |gauge| found.get(&(name, side, gauge)).map(Vec::as_slice);
            let panels = of_sender.chunk_by(|one, other| one.1 == other.1);
            made.extend(panels.map(|panel| of_panel(run, flow, panel, of, &styles[flow].colour)));
        }
    }
    made
}

fn of_panel<'a>(
    run: &Run,
    flow: &str,
    panel: &[GaugeLine],
    of: impl Fn(&'static str) -> Option<&'a [usize]>,
    own: &str,
) -> Option<Chart> {
    let (_, chart_name, what, first, ..) = panel[0];
    let (mut lines, mut explained) = (Vec::new(), Vec::new());
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for &(_, _, _, gauge, words, colour, dashed, width) in panel {
        let shown = metric(gauge);
        let curve = held(run, of(gauge).unwrap_or_default(), shown.scale);
        if curve.0.is_empty() {
            continue;
        }
        // Early reports are out of scale.
        for value in curve.1.iter().flatten().filter(|it| gauge != "receive_rate" && **it != 0.0) {
            (least, most) = (least.min(*value), most.max(*value));
        }
        let colour = if colour == OWN { own } else { colour };
        let dashes = if dashed { vec![6.0, 2.5] } else { Vec::new() };
        let width = if panel.len() > 1 { width } else { 1.6 };
        lines.push(Line { dashes, width, stepped: 1, ..line(words, colour, &curve) });
        let (name, meaning) = (shown.name, shown.meaning.trim());
        explained.push(Explained { line: words, name, meaning });
    }
    let panels = vec![Panel { title: String::new(), lines }];
    let (name, title) = (format!("{chart_name}-{flow}"), format!("{flow}: {what}"));
    let made = chart(name, title, metric(first).shown_unit, panels)?;
    Some(Chart { explained, logarithmic: chart_name == "rates" && most > SPREAD * least, ..made })
}
