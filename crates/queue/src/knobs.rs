//! What every discipline's words in a scenario have in common: how they say what cannot be.

use std::fmt;

use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;

/// A knob that cannot have its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// Which: a key, or a path such as `bands[1].queue.packets`; empty for the queue as a whole.
    pub knob: String,
    /// Why not.
    pub why: String,
    /// What may have been meant.
    pub hint: Option<String>,
}

/// Words of a scenario that ask for a discipline; displayed in a few words, for pictures and tables.
pub trait Knobs: fmt::Display {
    /// All that contradicts itself before a link of this MTU, beyond what types and ranges say.
    fn check(&self, mtu: Size) -> Vec<Impossible>;
}

impl Impossible {
    /// Says that a knob cannot be so.
    #[must_use]
    pub fn new(knob: &str, why: impl Into<String>) -> Self {
        Self { knob: knob.to_owned(), why: why.into(), hint: None }
    }
    /// Says what may have been meant.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// The same, of a queue that stands inside another under this key.
    pub(crate) fn within(mut self, key: &str) -> Self {
        let dot = if self.knob.is_empty() { "" } else { "." };
        self.knob = format!("{key}{dot}{}", self.knob);
        self
    }
}

/// A time that must be longer than nothing.
pub(crate) fn positive(knob: &str, time: Duration) -> Option<Impossible> {
    time.is_zero().then(|| Impossible::new(knob, "must be longer than nothing"))
}

/// A size that must not be nothing.
pub(crate) fn some(knob: &str, size: Size) -> Option<Impossible> {
    (size == Size::from_bytes(0)).then(|| Impossible::new(knob, "must be 1B or more"))
}

pub(crate) const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) const fn is_false(flag: &bool) -> bool {
    !*flag
}
