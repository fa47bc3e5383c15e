//! The variations of a scenario: axes and replications.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One axis of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Column name in tables; absent means the last word of the path (of all `paths`, joined by `+`), or the
    /// whole path if two axes end in the same word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Dotted path of the field to vary; `*` matches every name, as in `flows.*.transport`, and part of a
    /// name, as in `flows.voip-*.source.codec`. Either this or `paths`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Dotted paths of fields that vary together: each value is a list with one element for each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Values of the field, one or more, as written in place; each replaces the value in the scenario.
    #[schemars(length(min = 1))]
    pub values: Vec<serde_json::Value>,
    /// Labels of the values in tables; absent means as written, and `kind` and `controller` for a table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// Repetitions with other seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Replications {
    /// Number of runs per combination. Replication k uses `seed + k`, the same for every combination of
    /// the axes, so that differences are paired.
    #[schemars(range(min = 1))]
    pub count: u32,
    /// Confidence level of the intervals.
    #[schemars(range(min = 0.5, max = 0.9999))]
    pub confidence: f64,
}
impl Default for Replications {
    fn default() -> Self {
        Self { count: 1, confidence: 0.95 }
    }
}
