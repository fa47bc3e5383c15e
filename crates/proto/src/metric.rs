//! Description of a measured quantity: name, unit, meaning, formula and source. The tables of
//! flows, links and gauges and the catalogue of metrics are built from these.

/// The better direction of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither.
    Neither,
}

impl Better {
    /// Its name in the catalogue.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::Neither => "neither",
        }
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
    /// Lower bound, in the stored unit.
    pub min: f64,
    /// Upper bound.
    pub max: f64,
}

/// A number of packets.
pub const PACKETS: Metric = Metric::of("packets", "", 1.0, 0);
/// A number of frames.
pub const FRAMES: Metric = Metric::of("frames", "", 1.0, 0);
/// Bytes, shown as such.
pub const BYTES: Metric = Metric::of("bytes", "B", 1.0, 0);
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
            source: "",
            better: Better::Neither,
            min: 0.0,
            max: f64::INFINITY,
        }
    }
    /// With this label, formula and source.
    #[must_use]
    pub const fn described(
        self,
        label: &'static str,
        formula: &'static str,
        source: &'static str,
    ) -> Self {
        Self { label, formula, source, ..self }
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
    /// Sets its bounds.
    #[must_use]
    pub const fn within(self, min: f64, max: f64) -> Self {
        Self { min, max, ..self }
    }
}
