//! What every discipline's words in a scenario have in common: how they say what cannot be.

use std::fmt;

use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;

/// A key that cannot have its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Which: a key, or a path such as `bands[1].queue.packets`; empty for the queue as a whole.
    pub key: String,
    /// Why not.
    pub why: String,
    /// What may have been meant.
    pub hint: Option<String>,
}

/// Words of a scenario that ask for a discipline; displayed in a few words, for pictures and tables.
pub trait Validate: fmt::Display {
    /// All that contradicts itself before a link of this MTU, beyond what types and ranges say.
    fn check(&self, mtu: Size) -> Vec<ConfigError>;
}

impl ConfigError {
    /// Says that a key cannot be so.
    #[must_use]
    pub fn new(key: &str, why: impl Into<String>) -> Self {
        Self { key: key.to_owned(), why: why.into(), hint: None }
    }
    /// Says what may have been meant.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// The same, of a queue that stands inside another under this key.
    pub(crate) fn within(mut self, key: &str) -> Self {
        let dot = if self.key.is_empty() { "" } else { "." };
        self.key = format!("{key}{dot}{}", self.key);
        self
    }
}

/// A time that must be longer than nothing.
pub(crate) fn positive(key: &str, time: Duration) -> Option<ConfigError> {
    time.is_zero().then(|| ConfigError::new(key, "must be longer than nothing"))
}

/// A size that must not be nothing.
pub(crate) fn some(key: &str, size: Size) -> Option<ConfigError> {
    (size == Size::from_bytes(0)).then(|| ConfigError::new(key, "must be 1B or more"))
}

pub(crate) const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) const fn is_false(flag: &bool) -> bool {
    !*flag
}
