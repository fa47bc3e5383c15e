//! A scenario written out in full: every default in its place, for the record of a run.

use crate::model::Scenario;

/// The scenario as TOML that loads again to an equal one.
///
/// # Panics
/// Never for a scenario that came from [`crate::load()`]; one made by hand may hold a seed above
/// 2^63 − 1 or a path that is not text, which TOML cannot say.
#[must_use]
pub fn to_toml(scenario: &Scenario) -> String {
    toml::to_string_pretty(scenario).expect("every checked scenario can be said in TOML")
}
