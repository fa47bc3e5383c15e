//! MOS over time: each window of a call scored as if it were a whole call.
//!
//! ITU-T G.107 rates whole connections, and listeners remember the past; a window's score shows when a call was
//! bad, not how users would rate it afterwards. A window over the whole call gives the call's score.

use indexmap::IndexMap;
use serde::Serialize;
use talkspurt_app::source::Config;
use talkspurt_experiment::{Heard, opinion};

use crate::frames::HEARD;
use crate::{Run, sided};

/// A window in which frames were captured.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Window {
    /// Its start.
    pub time_s: f64,
    /// Frames judged.
    pub frames: usize,
    /// Mean of the played frames; absent if there is none.
    pub mouth_to_ear_s: Option<f64>,
    /// Share of frames missing or late.
    pub loss_ratio: f64,
    /// The same with pauses of playout.
    pub concealed_ratio: f64,
    /// Mean length of runs of what was concealed, over that of random losses; absent without any.
    pub burst_ratio: Option<f64>,
    /// R; absent where there are no values for the codec.
    pub r_factor: Option<f64>,
    /// MOS; absent like R.
    pub mos: Option<f64>,
    /// Estimated MOS, of codecs with an estimate.
    pub estimated_mos: Option<f64>,
}

/// The width of windows for figures: 5 s, adjusted to give about 12 to 120 windows.
pub(crate) fn window_s(duration_s: f64) -> f64 {
    if duration_s > 600.0 {
        return (duration_s / 120.0).round_ties_even();
    }
    ((duration_s / 6.0).round_ties_even() / 2.0).clamp(0.5, 5.0)
}

/// The windows of a direction, in the order of its frames; none without speech.
#[must_use]
pub fn over_time(run: &Run, direction: &str, bin_s: f64) -> Vec<Window> {
    let (name, side) = sided(direction);
    let flow = run.told.flows.get(name);
    let source =
        flow.and_then(|flow| if side == "to" { flow.reverse.as_ref() } else { Some(&flow.source) });
    let (Some(flow), Some(source @ Config::Speech(speech))) = (flow, source) else {
        return Vec::new();
    };
    let number = |column, row| run.frames.number(column, row);
    let fate = |row| run.frames.text("fate", row);
    let is_heard = |row| fate(row).is_some_and(|it| HEARD.contains(&it));
    let delay = |row| {
        Some(number("playout_s", row)? - number("captured_s", row)?).filter(|_| is_heard(row))
    };
    let mean_delay = |rows: &[usize]| {
        let delays: Vec<f64> = rows.iter().filter_map(|&row| delay(row)).collect();
        (!delays.is_empty()).then(|| delays.iter().sum::<f64>() / delays.len() as f64)
    };
    let mut rows = run.frames.with("flow", direction);
    rows.sort_by(|one, other| {
        let index = |row| number("index", row).unwrap_or_default();
        index(*one).total_cmp(&index(*other))
    });
    let usual = mean_delay(&rows);
    let longest = rows.iter().filter_map(|&row| delay(row)).reduce(f64::max).unwrap_or(0.0);
    // Undelivered frames with a playout after the end are not judged.
    rows.retain(|&row| {
        let due = || {
            number("captured_s", row).is_some_and(|it| it + longest < run.told.duration_s - 1e-9)
        };
        is_heard(row) || !matches!(fate(row), Some("lost" | "queued" | "in_flight")) || due()
    });
    let rung = |row| number("encoding", row).map(|rung| rung as usize);
    let rungs = rows.iter().filter_map(|&row| rung(row)).max().map_or(0, |most| most + 1);
    let of_call = (0..run.flows.len()).find(|&row| run.flows.text("name", row) == Some(direction));
    let whole = |column| of_call.and_then(|row| run.flows.number(column, row));
    let packets = whole("sent_packets").filter(|packets| *packets > 0.0);
    let payload = whole("payload_bytes").filter(|bytes| *bytes > 0.0);
    let mut windows: IndexMap<i64, Vec<usize>> = IndexMap::new();
    for row in rows {
        let Some(captured) = number("captured_s", row) else { continue };
        windows.entry((captured / bin_s + 1e-9).floor() as i64).or_default().push(row);
    }
    let window = |(place, rows): (i64, Vec<usize>)| {
        let count = rows.len() as f64;
        let unheard: Vec<bool> =
            rows.iter().map(|&row| fate(row).is_some() && !is_heard(row)).collect();
        let lost = unheard.iter().filter(|it| **it).count() as f64;
        let runs = unheard.chunk_by(|one, other| one == other).filter(|run| run[0]).count() as f64;
        let pauses = rows.iter().filter_map(|&row| number("paused_s", row)).filter(|it| *it > 0.0);
        // What was concealed: frames, and pauses of playout, each of which is a run.
        let paused = pauses.clone().sum::<f64>() / speech.packet.as_secs_f64();
        let (concealed, runs) = (lost + paused, runs + pauses.count() as f64);
        let share = concealed / (count + paused);
        // ITU-T G.107 §7.4: mean length of loss runs, over that of random losses.
        let burst_ratio = (runs > 0.0).then(|| concealed / runs * (1.0 - share));
        let mut played = vec![0; rungs];
        for rung in rows.iter().filter(|row| is_heard(**row)).filter_map(|&row| rung(row)) {
            played[rung] += 1;
        }
        let ear = mean_delay(&rows);
        let recovered = rows.iter().filter(|row| fate(**row) == Some("recovered")).count() as f64;
        let heard = Heard {
            played: &played,
            mouth_to_ear_s: ear.or(usual),
            loss: share,
            burst_ratio,
            recovered: recovered / count,
            payload_bytes: payload.zip(packets).map(|(bytes, packets)| bytes / packets),
            fec_ratio: whole("fec_ratio"),
            dred_ratio: whole("dred_ratio"),
        };
        let quality = opinion(flow, source, &heard);
        Window {
            time_s: place as f64 * bin_s,
            frames: rows.len(),
            mouth_to_ear_s: ear,
            loss_ratio: lost / count,
            concealed_ratio: share,
            burst_ratio,
            r_factor: quality.r_factor,
            mos: quality.mos,
            estimated_mos: quality.estimated_mos,
        }
    };
    windows.into_iter().map(window).collect()
}
