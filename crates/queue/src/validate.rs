//! Checks shared by the configurations of queue disciplines.

use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;
pub use talkspurt_proto::validate::{ConfigError, Validate};

/// Checks that a time is above zero.
pub(crate) fn positive(key: &str, time: Duration) -> Option<ConfigError> {
    time.is_zero().then(|| ConfigError::new(key, "must be longer than nothing"))
}

/// Checks that a size is above zero.
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
