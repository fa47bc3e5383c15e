//! The question written down: a scenario as plain data, read with all its errors at once.
//!
//! A scenario's way through this crate: its text becomes a `tree` that knows its lines; `shapes`
//! makes links of its topology; `set` and `axes` write into it (by paths that `place` understands);
//! `check::shape` walks each combination beside the [`schema()`], serde makes a [`model::Scenario`]
//! of it, `check` looks at its meaning, and [`network::Network`] turns names into numbers and finds
//! the routes. [`load()`] does it all and gives a [`Study`]: one [`Point`] a run. What is wrong
//! comes back as [`Problems`].

#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-scenario-key.md")]
mod adding_a_scenario_key {}

mod association;
mod axes;
mod check;
mod expand;
pub mod link_profile;
mod load;
pub mod model;
pub mod network;
mod orbit;
mod path;
mod place;
mod problem;
mod profiles;
pub mod reference;
mod resolved;
mod schema;
mod set;
mod shapes;
mod tree;
mod words;

pub use axes::ResolvedAxis;
pub use load::{Point, Study, load, load_until};
pub use network::Network;
pub use problem::{Problem, Problems};
pub use resolved::{lines, to_toml, values};
pub use schema::schema;
