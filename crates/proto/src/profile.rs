//! Whose habits a machine follows where specifications leave room, or where a well-known
//! implementation departs from them. A profile is a named set of parameter values, never a branch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose values the parameters have that a scenario does not give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Those of the RFCs.
    #[default]
    Rfc,
    /// Those of ns-2.35, which most studies ran on.
    Ns2,
    /// Those of Linux, 2.6.24 to 6.15.
    Linux,
}
