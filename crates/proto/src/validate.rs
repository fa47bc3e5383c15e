//! How every configuration reports values that are impossible: all of them, each by its key.

use crate::time::Duration;
use crate::units::Size;

/// A key that cannot have its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Which: a key, or a path such as `bands[1].queue.packets`; empty for the table as a whole.
    pub key: String,
    /// Why not.
    pub why: String,
    /// What may have been meant.
    pub hint: Option<String>,
}

impl ConfigError {
    /// Reports that a key cannot have its value.
    #[must_use]
    pub fn new(key: &str, why: impl Into<String>) -> Self {
        Self { key: key.to_owned(), why: why.into(), hint: None }
    }
    /// Adds what may have been meant.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// The same, of a table inside another under this key.
    #[must_use]
    pub fn within(mut self, key: &str) -> Self {
        let dot = if self.key.is_empty() { "" } else { "." };
        self.key = format!("{key}{dot}{}", self.key);
        self
    }
}

/// A configuration that can say which of its values are impossible.
pub trait Validate {
    /// All errors, in the order of the checks; empty if there are none. Nothing is reported that types
    /// and the ranges of the schema exclude.
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
    /// Adds an error with what may have been meant.
    pub fn add_with_hint(&mut self, key: &str, why: impl Into<String>, hint: &str) {
        self.0.push(ConfigError::new(key, why).hint(hint));
    }
    /// Adds the errors of a table inside, under its key.
    pub fn add_within(&mut self, key: &str, errors: Vec<ConfigError>) {
        self.0.extend(errors.into_iter().map(|error| error.within(key)));
    }
    /// A timer needs time, and may not be longer than this.
    pub fn timer(&mut self, key: &str, time: Duration, most: Duration) {
        if time.is_zero() {
            self.add(key, "0ms: a timer needs time");
        }
        self.at_most(key, time, most);
    }
    /// A time may not be longer than this.
    pub fn at_most(&mut self, key: &str, time: Duration, most: Duration) {
        if time > most {
            self.add(key, format!("{time} is out of range: at most {most}"));
        }
    }
}
