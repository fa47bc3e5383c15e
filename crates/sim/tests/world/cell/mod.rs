//! Cells of 802.11 against closed forms, published models and other programs.

mod errors;
mod hops;
mod rates;
mod saturation;
mod spread;
