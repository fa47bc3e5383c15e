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

/// Defines the parameters that a scenario may give, and the values that all of them resolve to. A parameter
/// with a value has the same name and type in both, and that value by the RFCs; one with an arrow is resolved
/// by hand.
macro_rules! parameters {
    (
        $(#[$about:meta])*
        pub struct Config {$(
            $(#[$doc:meta])*
            $given:ident $(-> $own:ty)? $(: $shared:ty = $rfc:expr)?,
        )*}
        $(#[$about_all:meta])*
        pub struct Parameters {$(
            $(#[$doc_all:meta])*
            $name:ident: $type:ty = $value:expr,
        )*}
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Config {$(
            $(#[$doc])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $given: Option<$($own)? $($shared)?>,
        )*}

        $(#[$about_all])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct Parameters {
            $($(
                #[doc = concat!("[`Config::", stringify!($given), "`], or the profile's value.")]
                pub $given: $shared,
            )?)*
            $($(#[$doc_all])* pub $name: $type,)*
        }

        impl Parameters {
            /// The values of the RFCs.
            const RFC: Self = Self { $($($given: $rfc,)?)* $($name: $value,)* };

            /// These values, unless a configuration gives others.
            fn replaced_by(mut self, config: &Config) -> Self {
                $($(
                    let given: Option<$shared> = config.$given;
                    self.$given = given.unwrap_or(self.$given);
                )?)*
                self
            }
        }
    };
}
pub(crate) use parameters;
