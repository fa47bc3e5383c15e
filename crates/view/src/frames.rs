//! The outcome of each voice frame of a call, for the strip below its waveform.

use serde::Serialize;
use serde_json::Value;

use crate::style::styles;
use crate::{Run, sided};

/// Outcomes of a voice frame, and pauses in which nothing was sent, with their colours.
pub const FATES: [(&str, &str); 8] = [
    ("played", "#b9c2cb"),
    ("recovered", "#009E73"),
    ("late", "#E69F00"),
    ("lost", "#3f464e"),
    ("discarded", "#CC79A7"),
    ("queued", "#b8a45a"),
    ("in_flight", "#8fb7d6"),
    ("pause", "#eef1f4"),
];

/// Outcomes of the frames that the listener hears.
pub(crate) const HEARD: [&str; 2] = ["played", "recovered"];

/// A call, for `player.js`.
#[derive(Clone, Debug, Serialize)]
pub struct Call {
    /// Name of the direction.
    pub name: String,
    /// Its transport.
    pub transport: String,
    /// Its colour.
    pub colour: String,
    /// Runs of frames of equal outcome, and of pauses as long as so many frames.
    pub fates: Vec<(String, u64)>,
}

/// The calls of a run.
#[must_use]
pub fn calls(run: &Run) -> Vec<Call> {
    let styles = styles(&run.flows);
    let frames = run.frames.by("flow");
    let names = (0..run.flows.len()).filter_map(|row| Some((row, run.flows.text("name", row)?)));
    names
        .filter_map(|(row, name)| {
            let places = frames.get(name)?;
            Some(Call {
                name: name.to_owned(),
                transport: run.flows.text("transport", row).unwrap_or_default().to_owned(),
                colour: styles[name].colour.clone(),
                fates: fates(run, name, places),
            })
        })
        .collect()
}

fn fates(run: &Run, flow: &str, places: &[usize]) -> Vec<(String, u64)> {
    let frame_s = speech(run, flow).and_then(|shape| shape["interval_s"].as_f64()).unwrap_or(0.02);
    let mut frames: Vec<(f64, &str)> = places
        .iter()
        .filter_map(|&row| {
            let fate = run.frames.text("fate", row).unwrap_or("in_flight");
            Some((run.frames.number("captured_s", row)?, fate))
        })
        .collect();
    frames.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut found: Vec<(String, u64)> = Vec::new();
    let mut add = |fate: &str, count: u64| match found.last_mut() {
        Some((last, frames)) if last == fate => *frames += count,
        _ => found.push((fate.to_owned(), count)),
    };
    let mut follows = frames.first().map_or(0.0, |(at, _)| *at);
    for (at, fate) in frames {
        let silent = ((at - follows) / frame_s + 0.01) as u64;
        if silent > 0 {
            add("pause", silent);
        }
        add(fate, 1);
        follows = at + frame_s;
    }
    found
}

/// The time that the codec of a call needs before a frame can be sent.
pub(crate) fn codec_s(run: &Run, flow: &str) -> f64 {
    let of = |key: &str| speech(run, flow).and_then(|shape| shape[key].as_f64()).unwrap_or(0.0);
    of("interval_s") + of("look_ahead_s")
}

/// The packets of speech of a direction, as the description of the network has them.
fn speech<'a>(run: &'a Run, direction: &str) -> Option<&'a Value> {
    let (name, side) = sided(direction);
    run.flow(name)?["speech"].get(usize::from(side == "to")).filter(|shape| !shape.is_null())
}
