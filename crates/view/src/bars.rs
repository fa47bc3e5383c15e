//! The MOS of calls and what took from it, as bars, with the verdicts and colours of the figures.

use serde::Serialize;

use crate::chart::MAX_FLOWS;
use crate::{Run, styles};

/// Impairments that reduce MOS, with their columns and colours.
const CAUSES: [(&str, &str, &str); 3] = [
    ("delay", "mos_lost_to_delay", "#E69F00"),
    ("loss", "mos_lost_to_loss", "#3f464e"),
    ("codec", "mos_lost_to_codec", "#CC79A7"),
];
/// ITU-T G.107 Annex B, Table B.1, and its note on R below 50.
const VERDICTS: [(f64, &str); 6] = [
    (90.0, "very satisfied"),
    (80.0, "satisfied"),
    (70.0, "some dissatisfied"),
    (60.0, "many dissatisfied"),
    (50.0, "nearly all dissatisfied"),
    (f64::NEG_INFINITY, "not recommended"),
];

/// The MOS of a call.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    name: String,
    colour: String,
    mos: f64,
    /// Cause, colour, place and length of each loss.
    lost: Vec<(&'static str, &'static str, f64, f64)>,
    words: String,
}

/// The bars of the first calls with a MOS.
#[must_use]
pub fn bars(run: &Run) -> Vec<Bar> {
    let (flows, styles) = (&run.flows, styles(&run.flows));
    let scored = (0..flows.len()).filter_map(|row| Some((row, flows.number("mos", row)?)));
    let bar = |(row, mos): (usize, f64)| {
        let mut at = mos;
        let lost = CAUSES.map(|(cause, column, colour)| {
            let taken = flows.number(column, row).unwrap_or(0.0);
            // The three are computed separately, so their sum may exceed the whole.
            at += taken;
            (cause, colour, at - taken, taken)
        });
        let r = flows.number("r_factor", row);
        let verdict = r.and_then(|r| VERDICTS.iter().find(|(from, _)| r >= *from));
        let name = flows.text("name", row).unwrap_or_default();
        Bar {
            name: name.to_owned(),
            colour: styles[name].colour.clone(),
            mos,
            lost: lost.to_vec(),
            words: format!("{mos:.2} {}", verdict.map_or("", |(_, words)| words)).trim().to_owned(),
        }
    };
    scored.take(MAX_FLOWS).map(bar).collect()
}
