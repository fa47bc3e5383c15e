//! Which option of a question is best.

use indexmap::IndexMap;
use serde::Serialize;

use crate::Instrument;
use crate::stats::{Difference, Mean, sign};
use crate::text::is_zero;

/// Options that are compared.
#[derive(Clone, Debug, Serialize)]
pub struct Question {
    /// The axis whose values are the options; `None` if they are calls of the same run.
    pub axis: Option<String>,
    /// The flow; empty if the options are flows.
    pub flow: String,
    /// The settings of the other axes.
    pub settings: Vec<(String, String)>,
    /// What the options are judged by.
    pub measures: Vec<&'static str>,
    /// The options, the baseline first.
    pub options: Vec<Choice>,
    /// What the comparisons tell.
    pub verdict: Verdict,
    #[serde(skip)]
    pub(crate) instrument: &'static Instrument,
    /// Whether the options have different codecs, whose quality the measures do not tell.
    #[serde(skip)]
    pub(crate) apart_from_codecs: bool,
}

/// One of the options of a question.
#[derive(Clone, Debug, Serialize)]
pub struct Choice {
    /// Its name.
    pub label: String,
    /// Its mean for each measure; `None` without a value.
    pub cells: Vec<Option<Cell>>,
    /// Its difference from the first option for each measure; `None` for the first option itself, and without
    /// a common seed.
    pub differences: Vec<Option<Difference>>,
    /// Why it is worse than the first option; empty if the measures do not decide it.
    pub cause: String,
    /// Its rows of the flows tables.
    #[serde(skip)]
    pub(crate) rows: Vec<usize>,
    #[serde(skip)]
    pub(crate) seeds: Vec<IndexMap<u32, f64>>,
}

/// A mean, as a table shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The mean over the replications.
    pub mean: Mean,
    /// It in the shown unit, with its digits.
    pub text: String,
}

/// What the comparisons of a question tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The first option is better than each other one.
    Best,
    /// The first option is better than some, and does not differ from others; or only others differ.
    Ahead,
    /// No option differs from another.
    Same,
    /// No option is the best: of each, another one is better in some measure, or only others differ.
    TradeOff,
}

/// How one option compares with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Better,
    Worse,
    /// Neither, or the difference is too small to be noticed, or may be chance.
    Neither,
}

impl Question {
    /// Pairs of options, for each measure.
    pub(crate) fn comparisons(&self) -> usize {
        let options = self.options.len();
        self.measures.len() * options * options.saturating_sub(1) / 2
    }

    fn difference(
        &self,
        at: usize,
        one: usize,
        other: usize,
        level: (f64, usize),
    ) -> Option<Difference> {
        let (one, other) = (&self.options[one].seeds[at], &self.options[other].seeds[at]);
        let pairs: Vec<_> =
            one.iter().filter_map(|(seed, &value)| Some((value, *other.get(seed)?))).collect();
        Difference::of(&pairs, level.0, level.1)
    }

    /// What a difference in a measure tells about the first of two options.
    pub(crate) fn told(&self, at: usize, difference: Option<&Difference>) -> Told {
        let measure = &self.instrument.measures[at];
        match difference {
            Some(found) if found.significant != Some(false) && found.mean.mean.abs() > 0.0 => {
                let size = found.mean.mean.abs();
                if size < measure.least || is_zero(measure.metric(), size) {
                    Told::Neither
                } else if sign(measure.metric().better) * found.mean.mean > 0.0 {
                    Told::Better
                } else {
                    Told::Worse
                }
            }
            _ => Told::Neither,
        }
    }

    /// Finds the baseline, sorts the options after it, and compares each with it.
    pub(crate) fn compare(&mut self, confidence: f64, comparisons: usize) {
        let level = (confidence, comparisons);
        let (count, measures) = (self.options.len(), self.measures.len());
        let told: Vec<Vec<Vec<Told>>> = (0..count)
            .map(|one| {
                let with = |other| {
                    let of = |at| self.told(at, self.difference(at, one, other, level).as_ref());
                    (0..measures).map(of).collect()
                };
                (0..count).map(with).collect()
            })
            .collect();
        let is_worse = |one: usize, other: usize| told[one][other].contains(&Told::Worse);
        let is_better = |one: usize, other: usize| {
            told[one][other].contains(&Told::Better) && !is_worse(one, other)
        };
        let others = |one: usize| (0..count).filter(move |&other| other != one);
        let wins = |one: usize| others(one).filter(|&other| is_better(one, other)).count();
        let is_beaten = |one: usize| others(one).any(|other| is_worse(one, other));
        let key = |one: usize| {
            let cells = self.options[one].cells.iter().zip(self.instrument.measures);
            let values = cells.map(|(cell, it)| {
                let mean = cell
                    .as_ref()
                    .map_or(f64::NEG_INFINITY, |cell| sign(it.metric().better) * cell.mean.mean);
                // Best first, and those without a value last.
                -mean
            });
            values.collect::<Vec<_>>()
        };
        // By several measures, one that is behind noticeably in none comes first, though chance may explain it.
        let least = self.instrument.measures.iter().map(|it| it.least);
        let is_behind = |one: usize, other: usize| {
            let both = key(one).into_iter().zip(key(other)).zip(least.clone());
            both.into_iter().any(|((own, its), least)| own - its > least)
        };
        let trails = |one: usize| measures > 1 && others(one).any(|other| is_behind(one, other));
        let best = (0..count)
            .min_by(|&one, &other| {
                // By one measure, the best has the best mean, as its table shows.
                let left = |it| if measures > 1 { count - wins(it) } else { 0 };
                let rank = |it| (is_beaten(it), trails(it), left(it));
                rank(one).cmp(&rank(other)).then_with(|| compare(&key(one), &key(other)))
            })
            .expect("two options or more");
        let contested = wins(best) > 0 && trails(best);
        self.verdict = if !contested && others(best).all(|other| is_better(best, other)) {
            Verdict::Best
        } else if contested || is_beaten(best) {
            Verdict::TradeOff
        } else if wins(best) > 0 {
            Verdict::Ahead
        } else if told.iter().flatten().flatten().all(|it| *it == Told::Neither) {
            Verdict::Same
        } else if trails(best) {
            // Others differ, though none of them from this one.
            Verdict::TradeOff
        } else {
            Verdict::Ahead
        };
        let mut order: Vec<_> = (0..count).collect();
        order.sort_by(|&one, &other| {
            (one != best).cmp(&(other != best)).then_with(|| compare(&key(one), &key(other)))
        });
        let mut options: Vec<_> = std::mem::take(&mut self.options).into_iter().map(Some).collect();
        self.options = order.iter().map(|&at| options[at].take().expect("each once")).collect();
        for other in 1..count {
            let differences =
                (0..measures).map(|at| self.difference(at, other, 0, level)).collect();
            self.options[other].differences = differences;
        }
    }
}

fn compare(one: &[f64], other: &[f64]) -> std::cmp::Ordering {
    let pairs = one.iter().zip(other).map(|(one, other)| one.total_cmp(other));
    pairs.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
}
