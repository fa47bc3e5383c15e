//! The permitted ranges of G.107 §7.7, for whoever builds a [`Config`] without the schema.

use std::fmt;

use super::Config;

/// A key outside the range of G.107 §7.7.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutOfRange {
    /// The key, as written in a scenario.
    pub key: &'static str,
    /// Its value.
    pub value: f64,
    /// The least permitted.
    pub least: f64,
    /// The greatest permitted.
    pub greatest: f64,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, least, greatest } = self;
        if least == greatest {
            write!(f, "{key} = {value}; G.107 permits only {least}")
        } else {
            write!(f, "{key} = {value}; G.107 permits {least} to {greatest}")
        }
    }
}

impl Config {
    /// Every key that lies outside the range of G.107 §7.7 (or is not a number).
    #[must_use]
    pub fn out_of_range(&self) -> Vec<OutOfRange> {
        self.ranges()
            .into_iter()
            .filter(|(_, value, least, greatest)| !(least..=greatest).contains(&value))
            .map(|(key, value, least, greatest)| OutOfRange { key, value, least, greatest })
            .collect()
    }

    pub(super) fn ranges(&self) -> [(&'static str, f64, f64, f64); 15] {
        let delay = self.minimum_perceivable_delay.as_secs_f64();
        [
            ("telr", self.telr, 5.0, 65.0),
            ("wepl", self.wepl, 5.0, 110.0),
            ("advantage", self.advantage, 0.0, 20.0),
            ("delay_sensitivity", self.delay_sensitivity, 0.4, 1.0),
            ("minimum_perceivable_delay", delay, 0.02, 0.15),
            ("slr", self.slr, 0.0, 18.0),
            ("rlr", self.rlr, -5.0, 14.0),
            ("stmr", self.stmr, 10.0, 20.0),
            ("ds", self.ds, -3.0, 3.0),
            ("dr", self.dr, -3.0, 3.0),
            ("qdu", self.qdu, 1.0, 14.0),
            ("nc", self.nc, -80.0, -40.0),
            ("nfor", self.nfor, -64.0, -64.0),
            ("ps", self.ps, 35.0, 85.0),
            ("pr", self.pr, 35.0, 85.0),
        ]
    }
}
