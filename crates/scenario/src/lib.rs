//! Scenario input: a scenario as plain data, validated with all errors at once.
//!
//! Processing order: the text becomes a `tree` with line numbers; `shapes` expands its topology into links;
//! `set`, `axes` and `design` write to it (by paths that `place` resolves); `check::shape` compares each
//! combination with the [`schema()`], serde converts it to a [`model::Scenario`], `check` validates its
//! meaning, and [`network::Network`] converts names to numbers and finds the routes. [`load()`] does all of
//! this and returns a [`Study`] with one [`Point`] per run. Errors are returned as [`Problems`].

#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-scenario-key.md")]
mod adding_a_scenario_key {}

mod association;
mod axes;
mod check;
mod design;
mod expand;
pub mod link_profile;
mod load;
pub mod model;
pub mod network;
mod orbit;
mod path;
mod place;
mod problem;
mod resolved;
pub mod schema;
mod set;
mod shapes;
mod tree;
mod variation;
mod words;

pub use axes::{Numbers, ResolvedAxis, Sampled};
pub use design::{ResolvedDesign, Sample, Sampling};
pub use expand::Alike;
pub use load::{Point, Study, Use, load, load_for, resolve};
pub use network::Network;
pub use problem::{Problem, Problems};
pub use resolved::{lines, numbers, resolved, to_toml, values};
pub use schema::schema;
