//! The answer of a run or a study: which option is best for a call, by how much, why, and whether chance
//! explains it. Flows tables in, JSON out; terminal, report and pages only draw it.
//!
//! A **question** has several **options**: the values of an axis for one flow, all else equal, or calls of the
//! same run that meet the same conditions. Options are judged by the measures of one instrument; the
//! means that sentences name are the texts of [`Cell`]s, which tables show.
//!
//! Each option is compared with one baseline, the best. All pairs of options of all questions, for each
//! measure, are the comparisons of the answer, because the best option is chosen by the numbers themselves.
//! Each comparison is paired by seed, and its interval has the level at which all of them together hold with
//! the confidence of the study ([`stats::Difference`]).

#![forbid(unsafe_code)]

mod ask;
mod cause;
mod conditions;
mod judge;
mod notes;
mod say;
pub mod stats;
pub mod text;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use talkspurt_proto::metric::Metric;
use talkspurt_record::FLOW_METRICS;

pub use cause::Frames;
pub use judge::{Cell, Choice, Question, Verdict};

/// What an answer is computed from.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Input {
    /// The axes of a study, in its order; none for one run.
    #[serde(default)]
    pub axes: Vec<Axis>,
    /// Runs of each setting.
    pub replications: usize,
    /// Confidence of intervals, such as 0.95.
    pub confidence: f64,
    /// The runs.
    pub runs: Vec<Run>,
    /// The flows tables of all runs.
    pub flows: Flows,
}

/// An axis of a study.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// The field of the scenario that it sets.
    pub path: String,
    /// Its values.
    pub labels: Vec<String>,
    /// Whether its values are quantities.
    #[serde(default)]
    pub numeric: bool,
    /// Whether it is a factor of a design, whose points are not paired.
    #[serde(default)]
    pub factor: bool,
}

/// A run.
#[derive(Clone, Debug, Deserialize)]
pub struct Run {
    /// The value of each axis.
    #[serde(default)]
    pub settings: Vec<String>,
    /// Which replication; equal numbers have equal seeds.
    #[serde(default)]
    pub replicate: u32,
    /// Its length.
    pub duration_s: f64,
}

/// Rows of flows tables, by column. Columns that results of earlier versions lack may be absent.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Flows {
    /// The run of each row, as an index of [`Input::runs`].
    pub run: Vec<usize>,
    /// Its name.
    pub name: Vec<String>,
    /// Its transport.
    pub transport: Vec<Option<String>>,
    /// The group that it is a member of.
    #[serde(default)]
    pub group: Vec<Option<String>>,
    /// Where its score leaves the range of the E-model.
    #[serde(default)]
    pub quality_limits: Vec<Option<String>>,
    /// Assumptions of the score, or why there is none.
    #[serde(default)]
    pub quality_note: Vec<Option<String>>,
    /// Where its estimated score leaves the range of the fit.
    #[serde(default)]
    pub estimate_limits: Vec<Option<String>>,
    /// What is heard in place of a codec without an encoder.
    #[serde(default)]
    pub stand_in: Vec<Option<String>>,
    /// Its metrics.
    #[serde(flatten)]
    pub numbers: IndexMap<String, Vec<Option<f64>>>,
}

impl Flows {
    fn text(column: &[Option<String>], row: usize) -> Option<&str> {
        column.get(row)?.as_deref()
    }

    /// Its group, or else its name.
    fn unit(&self, row: usize) -> &str {
        Self::text(&self.group, row).unwrap_or(&self.name[row])
    }

    /// The advantage factor of its MOS, if that has one other than 0.
    fn advantage(&self, row: usize) -> Option<&str> {
        let mut clauses = Self::text(&self.quality_note, row)?.split("; ");
        clauses.find_map(|it| it.strip_prefix("advantage factor A = ")?.strip_suffix(ADVANTAGE))
    }

    fn value(&self, row: usize, metric: &str) -> Option<f64> {
        self.numbers.get(metric)?.get(row).copied().flatten().filter(|value| value.is_finite())
    }

    /// The mean over the rows that have a value.
    fn mean(&self, rows: impl IntoIterator<Item = usize>, metric: &str) -> Option<f64> {
        let values: Vec<_> = rows.into_iter().filter_map(|row| self.value(row, metric)).collect();
        stats::Mean::of(&values).map(|mean| mean.mean)
    }
}

/// The field after an advantage factor, in what a score assumes.
const ADVANTAGE: &str = " (quality.advantage)";

/// The metrics of flows that an answer reads.
pub const METRICS: [&str; 20] = [
    "mos",
    "estimated_mos",
    "mouth_to_ear_mean_s",
    "concealed_ratio",
    "video_frozen_s",
    "frame_delay_p95_s",
    "goodput_bps",
    // For causes and notes.
    "r_factor",
    "mos_lost_to_delay",
    "mos_lost_to_loss",
    "mos_lost_to_codec",
    "mouth_to_ear_max_s",
    "lost_packets",
    "loss_ratio",
    "unheard_late_ratio",
    "burst_ratio",
    "handshake_wait_s",
    "delay_min_s",
    "delay_mean_s",
    "delay_max_s",
];

/// What is read of single runs when it is needed.
pub trait Runs {
    /// The settings of a flow as in the resolved scenario, and its `routes`: for each side the names of the
    /// links of each path. `None` if it is not known.
    fn flow(&self, run: usize, flow: &str) -> Option<Value>;
    /// The `flows` of a run, each as above, and the settings of its `links`. `None` if it is not known, or has
    /// more than [`MAX_FLOWS`]: calls are then compared only on the same route.
    fn network(&self, run: usize) -> Option<Value>;
    /// The frames of a call of a run.
    fn frames(&self, run: usize, flow: &str) -> Option<Frames>;
}

/// The largest network whose copies are recognised.
pub const MAX_FLOWS: usize = 300;

/// Where nothing but the flows table is known.
impl Runs for () {
    fn flow(&self, _: usize, _: &str) -> Option<Value> {
        None
    }
    fn network(&self, _: usize) -> Option<Value> {
        None
    }
    fn frames(&self, _: usize, _: &str) -> Option<Frames> {
        None
    }
}

/// What options are judged by.
#[derive(Debug, PartialEq)]
pub(crate) struct Measure {
    /// A metric of flows.
    pub(crate) name: &'static str,
    /// Smaller differences are not noticed: those below 0.05 MOS, and what costs about as much where calls are
    /// good (G.107: 10 ms of delay above 200 ms, 0.5 % of random loss of G.711 with concealment).
    pub(crate) least: f64,
}

/// One measure, or several that cannot be weighed against each other.
#[derive(Debug, PartialEq)]
pub(crate) struct Instrument {
    /// The measures.
    pub(crate) measures: &'static [Measure],
    /// Whether it judges calls.
    pub(crate) calls: bool,
}

/// Measures of calls without a score.
pub(crate) const WITHOUT_SCORE: &[Measure; 2] = &[
    Measure { name: "mouth_to_ear_mean_s", least: 0.01 },
    Measure { name: "concealed_ratio", least: 0.005 },
];

/// Measures of pictures. Differences below the least freeze beyond the usual interval, and below a twentieth of
/// a megabit, are not noticed.
pub(crate) const OF_PICTURES: &[Measure; 3] = &[
    Measure { name: "video_frozen_s", least: 0.15 },
    Measure { name: "frame_delay_p95_s", least: 0.01 },
    Measure { name: "goodput_bps", least: 50_000.0 },
];

/// In order of preference: the first that applies to all options of a question judges them. All calls of an
/// answer are judged by the same one.
pub(crate) const INSTRUMENTS: [Instrument; 5] = [
    Instrument { measures: &[Measure { name: "mos", least: 0.05 }], calls: true },
    Instrument { measures: &[Measure { name: "estimated_mos", least: 0.05 }], calls: true },
    Instrument { measures: WITHOUT_SCORE, calls: true },
    Instrument { measures: OF_PICTURES, calls: false },
    Instrument { measures: &[Measure { name: "goodput_bps", least: 0.0 }], calls: false },
];

impl Measure {
    /// Its metric.
    pub(crate) fn metric(&self) -> &'static Metric {
        metric(self.name).expect("a metric of flows")
    }
}

/// A metric of flows by its name.
pub(crate) fn metric(name: &str) -> Option<&'static Metric> {
    FLOW_METRICS.iter().find(|metric| metric.name == name)
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The sentences, differences first.
    pub sentences: Vec<String>,
    /// What intervals in them mean; empty without one.
    pub about: String,
    /// What must be known about scores and sound.
    pub notes: Vec<String>,
    /// The measures of the instrument that judges all calls.
    pub judged_by: Vec<&'static str>,
    /// What was asked.
    pub questions: Vec<Question>,
    /// Comparisons that hold together.
    pub comparisons: usize,
}

/// Computes the answer.
#[must_use]
pub fn answer(input: &Input, runs: &dyn Runs) -> Answer {
    let mut questions = ask::questions(input, runs);
    let comparisons = questions.iter().map(Question::comparisons).sum();
    for question in &mut questions {
        question.compare(input.confidence, comparisons);
        cause::explain(input, runs, question);
    }
    let (sentences, about) = say::sentences(input, &questions, comparisons);
    let judged_by = ask::of_calls(&input.flows).measures.iter().map(|it| it.name).collect();
    let notes = notes::notes(&input.flows, runs, &sentences);
    Answer { sentences, about, notes, judged_by, questions, comparisons }
}
