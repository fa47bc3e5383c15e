//! The E-model (ITU-T G.107): from delay, loss and codec to R and MOS.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of the E-model that a scenario can set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}
