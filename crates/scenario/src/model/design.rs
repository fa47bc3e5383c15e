//! Designs: fields that take sampled values together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A design of experiments: at each of its points every factor has a value, so that a few hundred runs
/// say which of many fields a result depends on. All combinations of the axes run at each point. Points are
/// sampled by scipy.stats.qmc from a seed derived from the scenario's `seed`; replications of a point have
/// other seeds, as with axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Design {
    /// A Latin hypercube (McKay, Beckman and Conover 1979): each factor has one value in each of
    /// `samples` parts of its range. For regression and rank correlation.
    LatinHypercube(LatinHypercube),
    /// A scrambled Sobol sequence (Sobol 1967, Owen 1998), which fills the ranges more evenly. With
    /// `indices`, for first-order and total sensitivity indices.
    Sobol(Sobol),
}

/// A Latin hypercube.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatinHypercube {
    /// Number of points; at least the number of factors plus 2.
    #[schemars(range(min = 3))]
    pub samples: u32,
    /// The fields that vary, one or more.
    #[schemars(length(min = 1))]
    pub factors: Vec<Factor>,
}

/// A Sobol sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sobol {
    /// Number of points of the sequence, a power of two: only then is it balanced.
    #[schemars(range(min = 2))]
    pub samples: u32,
    /// Whether the design has the further points that first-order and total sensitivity indices need
    /// (Saltelli et al. 2010): `samples` × (factors + 2) points in all.
    #[serde(default = "Sobol::default_indices")]
    pub indices: bool,
    /// The fields that vary, one or more.
    #[schemars(length(min = 1))]
    pub factors: Vec<Factor>,
}

impl Sobol {
    const fn default_indices() -> bool {
        true
    }
}

/// One factor of a design: a range from `min` to `max`, or `values`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// Column name in tables; absent means the last word of the path (of all `paths`, joined by `+`), or the
    /// whole path if two factors or axes end in the same word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Dotted path of the field to vary, as of an axis. Either this or `paths`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Dotted paths of fields that vary together: all have the sampled value of the range, or one element
    /// each of a value in `values`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Lower end of the range, as written in place: a number, or a quantity with its unit. Sampled numbers
    /// have six digits, and are whole if the field is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<serde_json::Value>,
    /// Upper end of the range, above `min`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<serde_json::Value>,
    /// Scale on which values between `min` and `max` are equally likely.
    #[serde(default)]
    pub scale: Scale,
    /// Instead of a range: values that are equally likely, as of an axis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<serde_json::Value>,
    /// Labels of `values` in tables; absent means as of an axis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// The scale of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal differences are equally likely.
    #[default]
    Linear,
    /// Equal ratios are equally likely; `min` is above zero.
    Log,
}
