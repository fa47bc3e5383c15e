//! The question written down: a scenario as plain data, read with all its errors at once.

pub mod model;
