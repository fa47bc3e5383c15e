//! Description of a measured quantity: name, unit, meaning, formula and source. The tables of
//! flows, links and gauges and the catalogue of metrics are built from these.

use serde::Serialize;

/// The better direction of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither.
    Neither,
}

/// Which end of a flow knows a value without the notes of the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Known {
    /// The sender.
    #[serde(rename = "sender")]
    ToSender,
    /// The receiver.
    #[serde(rename = "receiver")]
    ToReceiver,
    /// Neither: it follows from the notes of both.
    #[serde(rename = "both")]
    ToBoth,
}

/// A table or list of results that shows some of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// Calls of a run, on the terminal.
    Calls,
    /// Flows of video of a run, on the terminal.
    Video,
    /// Flows of a run, on the terminal.
    Flows,
    /// Links of a run, on the terminal.
    Links,
    /// Calls of a study, on the terminal.
    StudyCalls,
    /// Flows of video of a study, on the terminal.
    StudyVideo,
    /// Flows of a study, on the terminal.
    StudyFlows,
    /// Calls in the report of a run.
    ReportCalls,
    /// Flows in the report of a run.
    ReportFlows,
    /// Links in the report of a run. Those above rank 0 are shown only where one is not 0.
    ReportLinks,
    /// Calls in the report of a study.
    ReportStudyCalls,
    /// Flows in the report of a study.
    ReportStudy,
    /// The summary of a study that is saved.
    Summary,
    /// A run in a notebook.
    Notebook,
    /// Figures of a study, without being asked for.
    Figures,
}

impl View {
    /// The column of this view at a place, 0 for the first.
    #[must_use]
    pub const fn at(self, place: u8) -> Shown {
        Shown { view: self, place, rank: 0, below: false }
    }
}

/// A column of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The view.
    pub view: View,
    /// Where among its columns.
    pub place: u8,
    /// The column with the greatest rank is the first to be left out of a narrow table; one of rank 0 stays.
    pub rank: u8,
    /// Written below the others where there is no room beside them.
    pub below: bool,
}

impl Shown {
    /// With this rank.
    #[must_use]
    pub const fn rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }
    /// Written below the others where there is no room.
    #[must_use]
    pub const fn below(self) -> Self {
        Self { below: true, ..self }
    }
}

/// A metric that the engine computes in every run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Column of its table; for a gauge, the value in the column `gauge`.
    pub name: &'static str,
    /// Display name.
    pub label: &'static str,
    /// Unit of the stored number; `1` for a ratio or score.
    pub unit: &'static str,
    /// Display unit.
    pub shown_unit: &'static str,
    /// Shown value ÷ stored value.
    pub scale: f64,
    /// Digits after the decimal point when shown.
    pub digits: u8,
    /// Its meaning, in a sentence or two.
    pub meaning: &'static str,
    /// How it is computed.
    pub formula: &'static str,
    /// Where the definition comes from.
    pub source: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// Which end knows it. A measurement that lost the notes of one end has no values that need them.
    pub known: Known,
    /// Head of its column in a table of a run on the terminal.
    pub title: &'static str,
    /// The head where that of the column alone is ambiguous; empty if it is not.
    pub long_title: &'static str,
    /// Head of its column in a table of a study, if not the label.
    pub study_title: &'static str,
    /// Where it is shown without being asked for.
    pub shown: &'static [Shown],
    /// Lower bound, in the stored unit.
    pub min: f64,
    /// Upper bound.
    pub max: f64,
    /// A metric that bounds it from above where it leaves the range of its model, and equals it inside; empty
    /// without a model.
    pub bound: &'static str,
}

/// A number of packets.
pub const PACKETS: Metric = Metric::of("packets", "", 1.0, 0);
/// A number of frames.
pub const FRAMES: Metric = Metric::of("frames", "", 1.0, 0);
/// Bytes of packets with payload, shown as such.
pub const BYTES: Metric =
    Metric::of("bytes", "B", 1.0, 0).source("talkspurt's own count, of packets with payload");
/// Bytes, shown in kB.
pub const KILOBYTES: Metric = Metric::of("bytes", "kB", 1e-3, 1);
/// Seconds, shown in ms.
pub const MILLISECONDS: Metric = Metric::of("s", "ms", 1e3, 1);
/// bit/s, shown in kbit/s.
pub const KILOBITS: Metric = Metric::of("bit/s", "kbit/s", 1e-3, 1);
/// Points of a mean opinion score.
pub const OPINION: Metric = Metric::of("MOS", "", 1.0, 2);

impl Metric {
    /// A metric with this unit and display format.
    #[must_use]
    pub const fn of(unit: &'static str, shown_unit: &'static str, scale: f64, digits: u8) -> Self {
        Self {
            name: "",
            label: "",
            unit,
            shown_unit,
            scale,
            digits,
            meaning: "",
            formula: "",
            source: "talkspurt's own count",
            better: Better::Neither,
            known: Known::ToBoth,
            title: "",
            long_title: "",
            study_title: "",
            shown: &[],
            min: 0.0,
            max: f64::INFINITY,
            bound: "",
        }
    }
    /// With this label and formula.
    #[must_use]
    pub const fn described(self, label: &'static str, formula: &'static str) -> Self {
        Self { label, formula, ..self }
    }
    /// Defined there; without this, it is a count of talkspurt's own.
    #[must_use]
    pub const fn source(self, source: &'static str) -> Self {
        Self { source, ..self }
    }
    /// Marks lower values as better.
    #[must_use]
    pub const fn lower_is_better(self) -> Self {
        Self { better: Better::Lower, ..self }
    }
    /// Marks higher values as better.
    #[must_use]
    pub const fn higher_is_better(self) -> Self {
        Self { better: Better::Higher, ..self }
    }
    /// Known to the sender alone; without this, both ends are needed.
    #[must_use]
    pub const fn known_to_sender(self) -> Self {
        Self { known: Known::ToSender, ..self }
    }
    /// Known to the receiver alone.
    #[must_use]
    pub const fn known_to_receiver(self) -> Self {
        Self { known: Known::ToReceiver, ..self }
    }
    /// With heads of its columns on the terminal: of a run, in a note on columns that had no room, of a
    /// study; each may be empty.
    #[must_use]
    pub const fn titled(
        self,
        title: &'static str,
        long_title: &'static str,
        study_title: &'static str,
    ) -> Self {
        Self { title, long_title, study_title, ..self }
    }
    /// Shown in these views.
    #[must_use]
    pub const fn shown(self, shown: &'static [Shown]) -> Self {
        Self { shown, ..self }
    }
    /// Bounded by this metric outside the range of its model.
    #[must_use]
    pub const fn bounded_by(self, bound: &'static str) -> Self {
        Self { bound, ..self }
    }
    /// Sets its bounds.
    #[must_use]
    pub const fn within(self, min: f64, max: f64) -> Self {
        Self { min, max, ..self }
    }
}
