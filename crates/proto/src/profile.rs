//! Parameter profiles: defaults where specifications leave a choice, or where a well-known
//! implementation departs from them. A profile is a named set of parameter values, never a branch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Source of the default parameter values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Defaults of the RFCs.
    #[default]
    Rfc,
    /// Defaults of ns-2.35, which most studies used.
    Ns2,
    /// Defaults of Linux, 2.6.24 to 6.15.
    Linux,
}

/// Replaces a profile's values of these parameters by those that a configuration gives.
macro_rules! given {
    ($config:expr, $all:ident: $($name:ident)*) => {
        $(if let Some(value) = $config.$name {
            $all.$name = value;
        })*
    };
}
pub(crate) use given;
