//! How every configuration reports invalid values: all of them, each with its key.

use crate::time::Duration;
use crate::units::Size;

/// Functions that return the defaults of optional fields, for structs that have required fields too.
#[macro_export]
macro_rules! defaults {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        $(const fn $name() -> $type {
            $value
        })*
    };
}

/// Defines a table of a scenario whose keys are all optional, with their defaults.
macro_rules! config {
    ($(#[$about:meta])* pub struct $config:ident {$(
        $(#[$doc:meta])*
        $name:ident: $type:ty = $value:expr,
    )*}) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct $config {$(
            $(#[$doc])*
            pub $name: $type,
        )*}

        impl Default for $config {
            fn default() -> Self {
                Self { $($name: $value,)* }
            }
        }
    };
}
pub(crate) use config;

/// An invalid value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The key, or a path such as `bands[1].queue.packets`; empty for the table as a whole.
    pub key: String,
    /// The reason.
    pub why: String,
    /// A suggested correction.
    pub hint: Option<String>,
}

impl ConfigError {
    /// An error in the value of `key`.
    #[must_use]
    pub fn new(key: &str, why: impl Into<String>) -> Self {
        Self { key: key.to_owned(), why: why.into(), hint: None }
    }
    /// Adds a suggested correction.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// The same error in a table nested under this key.
    #[must_use]
    pub fn within(mut self, key: &str) -> Self {
        let dot = if self.key.is_empty() { "" } else { "." };
        self.key = format!("{key}{dot}{}", self.key);
        self
    }
}

/// A configuration that can report its invalid values.
pub trait Validate {
    /// All errors, in the order of the checks; empty if there are none. Values that types or the
    /// ranges of the schema exclude are not reported.
    fn errors(&self) -> Vec<ConfigError> {
        Vec::new()
    }
    /// The same for a queue before a link of this MTU.
    fn errors_for(&self, _mtu: Size) -> Vec<ConfigError> {
        self.errors()
    }
}

/// All errors of a configuration, in the order of its checks.
#[derive(Debug, Default)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl ConfigErrors {
    /// Adds an error.
    pub fn add(&mut self, key: &str, why: impl Into<String>) {
        self.0.push(ConfigError::new(key, why));
    }
    /// Adds an error with a suggested correction.
    pub fn add_with_hint(&mut self, key: &str, why: impl Into<String>, hint: &str) {
        self.0.push(ConfigError::new(key, why).hint(hint));
    }
    /// Adds the errors of a nested table, under its key.
    pub fn add_within(&mut self, key: &str, errors: Vec<ConfigError>) {
        self.0.extend(errors.into_iter().map(|error| error.within(key)));
    }
    /// Checks that a timer is above zero and at most this long.
    pub fn timer(&mut self, key: &str, time: Duration, most: Duration) {
        if time.is_zero() {
            self.add(key, "0ms: a timer needs time");
        }
        self.at_most(key, time, most);
    }
    /// Checks that a time is at most this long.
    pub fn at_most(&mut self, key: &str, time: Duration, most: Duration) {
        if time > most {
            self.add(key, format!("{time} is out of range: at most {most}"));
        }
    }
}
