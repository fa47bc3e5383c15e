//! The questions that a study answers: which of its options are compared.
//!
//! An axis that sets something of flows is about these flows, and with a controller about those that share its
//! session. One of queues or cells, whose values are no quantities, is about all calls and pictures, or without
//! them about all flows. Other axes are conditions, of which the answer is known (a call is better with less
//! loss): they are asked about only where nothing else is.

use std::cell::OnceCell;

use indexmap::IndexMap;

use crate::conditions::comparable;
use crate::judge::{Cell, Choice, Question, Verdict};
use crate::stats::Mean;
use crate::text::show;
use crate::{Axis, Flows, INSTRUMENTS, Input, Instrument, OF_PICTURES, Runs, WITHOUT_SCORE};

/// With more calls or groups of calls in one run, none are compared.
const MAX_CALLS: usize = 24;

/// Rows of the flows table by option and replicate.
type Options<'a> = IndexMap<&'a str, IndexMap<u32, Vec<usize>>>;
/// The values of other axes.
pub(crate) type Settings = Vec<(String, String)>;

pub(crate) fn questions(input: &Input, runs: &dyn Runs) -> Vec<Question> {
    let of_calls = of_calls(&input.flows);
    let chosen = |asks: fn(&Axis) -> bool| {
        let several = input.axes.iter().enumerate();
        let several = several.filter(|(_, axis)| !axis.factor && axis.labels.len() > 1);
        several.filter(|(_, axis)| asks(axis)).map(|(at, _)| at).collect::<Vec<_>>()
    };
    let mut axes = chosen(|axis| axis.is_choice() || !axis.flows().is_empty());
    // Transports first, then what else is of flows.
    axes.sort_by_key(|&at| {
        let axis = &input.axes[at];
        (!axis.path.ends_with(".transport"), axis.flows().is_empty())
    });
    let ask = |axes: Vec<usize>| {
        axes.into_iter().flat_map(|at| along(input, runs, at, of_calls)).collect::<Vec<_>>()
    };
    let mut asked = ask(axes);
    asked.extend(within(input, runs, of_calls));
    if asked.is_empty() {
        return ask(chosen(|axis| axis.flows().is_empty()));
    }
    // The values of an axis are the same under all settings.
    let mut known: IndexMap<String, bool> = IndexMap::new();
    for question in asked.iter_mut().filter(|it| it.instrument.measures == WITHOUT_SCORE) {
        let have = || have_codecs(&input.flows, runs, question);
        question.apart_from_codecs = match &question.axis {
            Some(axis) => *known.entry(axis.clone()).or_insert_with(have),
            None => have(),
        };
    }
    asked
}

/// The instrument of all calls: the first whose measures all of them have, within their range.
pub(crate) fn of_calls(flows: &Flows) -> &'static Instrument {
    let calls = || (0..flows.name.len()).filter(|&row| is_call(flows, row));
    let valid = |metric: &str, limits: &[Option<String>]| {
        calls().all(|row| flows.value(row, metric).is_some() && Flows::text(limits, row).is_none())
    };
    &INSTRUMENTS[if valid("mos", &flows.quality_limits) {
        0
    } else if valid("estimated_mos", &flows.estimate_limits) {
        1
    } else {
        2
    }]
}

pub(crate) fn is_call(flows: &Flows, row: usize) -> bool {
    flows.value(row, "concealed_ratio").is_some()
}

pub(crate) fn is_picture(flows: &Flows, row: usize) -> bool {
    flows.value(row, OF_PICTURES[0].name).is_some()
}

fn along(
    input: &Input,
    runs: &dyn Runs,
    at: usize,
    of_calls: &'static Instrument,
) -> Vec<Question> {
    let (axis, flows) = (&input.axes[at], &input.flows);
    let patterns = axis.flows();
    let is_set = |name: &str| patterns.iter().any(|pattern| matches(pattern, name));
    let mut sharing: IndexMap<&str, bool> = IndexMap::new();
    let mut found: IndexMap<(&str, Settings), Options<'_>> = IndexMap::new();
    for (row, &run) in flows.run.iter().enumerate() {
        let unit = flows.unit(row);
        let name = unit.strip_suffix(".reverse").unwrap_or(unit);
        let shares = || {
            let flow = axis.path.contains(".controller").then(|| runs.flow(run, name))??;
            Some(is_set(flow.get("session")?.as_str()?))
        };
        if patterns.is_empty()
            || is_set(name)
            || *sharing.entry(name).or_insert_with(|| shares().unwrap_or(false))
        {
            let (rest, run) = (settings(input, run, Some(at)), &input.runs[run]);
            let options = found.entry((unit, rest)).or_default();
            let seeds = options.entry(run.settings[at].as_str()).or_default();
            seeds.entry(run.replicate).or_default().push(row);
        }
    }
    let asked = found.into_iter().filter_map(|((flow, settings), options)| {
        let axis = Some(axis.name.clone());
        question(flows, axis, flow.to_owned(), settings, &options, of_calls)
    });
    let mut asked: Vec<_> = asked.collect();
    if patterns.is_empty() {
        // Of all flows, sound and pictures if there are any.
        let is_media = |one: &Question| one.measures != ["goodput_bps"];
        let has_media = asked.iter().any(is_media);
        asked.retain(|one| is_media(one) == has_media);
    }
    asked
}

/// Calls of the same run that meet the same conditions.
fn within(input: &Input, runs: &dyn Runs, of_calls: &'static Instrument) -> Vec<Question> {
    let flows = &input.flows;
    let mut found: IndexMap<Settings, Options<'_>> = IndexMap::new();
    for (row, &run) in flows.run.iter().enumerate().filter(|&(row, _)| is_call(flows, row)) {
        let options = found.entry(settings(input, run, None)).or_default();
        let seeds = options.entry(flows.unit(row)).or_default();
        seeds.entry(input.runs[run].replicate).or_default().push(row);
    }
    let mut asked = Vec::new();
    for (settings, mut options) in found {
        if !(2..=MAX_CALLS).contains(&options.len()) {
            continue;
        }
        let run = flows.run[options[0][0][0]];
        let network = OnceCell::new();
        let members = |of: &IndexMap<u32, Vec<usize>>| -> Vec<&str> {
            of[0].iter().map(|&row| flows.name[row].as_str()).collect()
        };
        while let Some((label, first)) = options.shift_remove_index(0) {
            let mut alike = Options::from([(label, first)]);
            let others = std::mem::take(&mut options);
            for (other, rows) in others {
                let same = comparable(runs, run, &network, &members(&alike[0]), &members(&rows));
                if same { &mut alike } else { &mut options }.insert(other, rows);
            }
            let flow = String::new();
            asked.extend(question(flows, None, flow, settings.clone(), &alike, of_calls));
        }
    }
    asked
}

/// The axes with several values, but for one.
pub(crate) fn settings(input: &Input, run: usize, without: Option<usize>) -> Settings {
    let axes = input.axes.iter().zip(&input.runs[run].settings).enumerate();
    let several = axes.filter(|(at, (axis, _))| Some(*at) != without && axis.labels.len() > 1);
    several.map(|(_, (axis, label))| (axis.name.clone(), label.clone())).collect()
}

/// A question if two options or more have values.
fn question(
    flows: &Flows,
    axis: Option<String>,
    flow: String,
    settings: Settings,
    options: &Options<'_>,
    of_calls: &'static Instrument,
) -> Option<Question> {
    let rows = || options.values().flat_map(IndexMap::values).flatten().copied();
    let instrument = if rows().any(|row| is_call(flows, row)) {
        of_calls
    } else {
        let has = |metric| rows().any(|row| flows.value(row, metric).is_some());
        INSTRUMENTS.iter().find(|it| !it.calls && has(it.measures[0].name))?
    };
    let choices = options.iter().filter_map(|(label, rows)| {
        let seeds = instrument.measures.iter().map(|measure| {
            let mean = |of: &Vec<usize>| flows.mean(of.iter().copied(), measure.name);
            rows.iter().filter_map(|(seed, of)| Some((*seed, mean(of)?))).collect()
        });
        let seeds: Vec<IndexMap<u32, f64>> = seeds.collect();
        let cells: Vec<_> = seeds
            .iter()
            .zip(instrument.measures)
            .map(|(seeds, measure)| {
                let mean = Mean::of(&seeds.values().copied().collect::<Vec<_>>())?;
                Some(Cell { mean, text: show(measure.metric(), mean.mean) })
            })
            .collect();
        let none = vec![None; cells.len()];
        let rows = rows.values().flatten().copied().collect();
        let label = (*label).to_owned();
        let choice = Choice { label, cells, differences: none, cause: String::new(), rows, seeds };
        choice.cells.iter().any(Option::is_some).then_some(choice)
    });
    let options: Vec<_> = choices.collect();
    let (measures, verdict) =
        (instrument.measures.iter().map(|it| it.name).collect(), Verdict::Same);
    let known = options.len() > 1;
    known.then_some(Question {
        axis,
        flow,
        settings,
        measures,
        options,
        verdict,
        instrument,
        apart_from_codecs: false,
    })
}

/// Whether the options of a question differ in their codecs, or in how these encode.
fn have_codecs(flows: &Flows, runs: &dyn Runs, question: &Question) -> bool {
    let codec = |choice: &Choice| {
        let row = *choice.rows.first()?;
        let name = &flows.name[row];
        let back = name.strip_suffix(".reverse");
        let flow = runs.flow(flows.run[row], back.unwrap_or(name))?;
        let source = flow.get(if back.is_some() { "reverse" } else { "source" })?;
        Some(["codec", "ladder", "opus"].map(|key| source.get(key).cloned()))
    };
    let codecs: Vec<_> = question.options.iter().map(codec).collect();
    codecs.iter().any(|it| it != &codecs[0])
}

impl Axis {
    /// Whether its values are kinds of queues, or of settings of a cell.
    fn is_choice(&self) -> bool {
        let paths = self.paths();
        let cell = paths.iter().any(|path| path.starts_with("cells."));
        let queue = paths.iter().any(|path| path.ends_with(".queue") || path.contains(".queue."));
        !self.numeric && (cell || queue)
    }

    fn paths(&self) -> Vec<&str> {
        self.path.split([',', ' ']).collect()
    }

    /// Names of flows, or patterns, of which it sets something but their number.
    fn flows(&self) -> Vec<&str> {
        if self.path.ends_with(".count") {
            return Vec::new();
        }
        self.paths()
            .iter()
            .filter_map(|path| path.strip_prefix("flows.")?.split_once('.'))
            .map(|it| it.0)
            .collect()
    }
}

/// Whether a name matches a pattern in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name.strip_prefix(head).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && matches(tail, &rest[at..]))
        }),
    }
}
