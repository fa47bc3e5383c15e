//! The permitted ranges of G.107 §7.7, for a [`Config`] built without the schema.

use talkspurt_proto::validate::{ConfigError, Validate};

use super::emodel::Parameters;
use super::{Config, Declared};

/// Limits of what a run measures: delay in ms, and loss in per cent.
pub(super) const MAX_DELAY_MS: f64 = 500.0;
pub(super) const MAX_LOSS: f64 = 20.0;
/// From this loss on, fewer bursts are permitted (the note on BurstR).
pub(super) const SOME_LOSS: f64 = 2.0;

/// The greatest burst ratio at a loss in per cent.
pub(super) const fn max_burst(loss: f64) -> f64 {
    if loss >= SOME_LOSS { 2.0 } else { 8.0 }
}

/// Parameters without loss, with the loss of others as far as it is permitted.
pub(super) fn within(without: Parameters, of: &Parameters) -> Parameters {
    let ppl = of.ppl.min(MAX_LOSS);
    Parameters { ppl, burst_r: of.burst_r.min(max_burst(ppl)), ..without }
}

impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        let outside = |(key, value, least, greatest): (&str, f64, f64, f64)| {
            let permitted = if least == greatest {
                format!("only {least}")
            } else {
                format!("{least} to {greatest}")
            };
            // NaN is outside as well.
            let inside = (least..=greatest).contains(&value);
            let why = || format!("{key} = {value}; G.107 permits {permitted}");
            (!inside).then(|| ConfigError::new(key, why()))
        };
        let mut errors: Vec<_> = self.ranges().into_iter().filter_map(outside).collect();
        for (place, declared) in self.codecs.iter().enumerate() {
            let mut add = |key: &str, why: String| {
                errors.push(ConfigError::new(&format!("codecs[{place}].{key}"), why));
            };
            let Declared { codec, ie, bpl, source } = declared;
            if self.codecs[..place].iter().any(|before| before.codec == *codec) {
                add("codec", format!("{} is declared twice", codec.spec().name));
            }
            if !(0.0..=95.0).contains(ie) {
                add("ie", format!("ie = {ie}; expected 0 to 95"));
            }
            if let Some(bpl) = bpl.filter(|bpl| !(1.0..=40.0).contains(bpl)) {
                add("bpl", format!("bpl = {bpl}; expected 1 to 40"));
            }
            if source.trim().is_empty() {
                add(
                    "source",
                    "is empty: name a publication, a listening test, or a guess".to_owned(),
                );
            }
        }
        errors
    }
}

impl Config {
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
