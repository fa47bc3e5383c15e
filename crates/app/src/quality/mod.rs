//! Computes a rating and an opinion score from delay, loss and codec: the scenario's parameters of the E-model,
//! and [`score`], which adds the measured values and reports its assumptions. The equations of ITU-T G.107 are
//! in [`emodel`].

mod curves;
pub mod emodel;
pub mod estimate;
mod note;
mod range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talkspurt_proto::time::Duration;

use crate::codec::Codec;
use crate::playout::Concealment;
use emodel::{Parameters, Rating, mos};
use range::MAX_DELAY_MS;

/// Parameters of the E-model (ITU-T G.107 06/2015, §7.7) that a run does not measure. Defaults
/// and ranges are those of that clause; with all defaults an undisturbed call has R = 93.2, MOS 4.41.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Talker echo: `perfect` control removes it, `loss` returns it after twice the mouth-to-ear delay,
    /// attenuated by `telr`.
    pub echo: Echo,
    /// Talker echo loudness rating TELR, dB, 5 to 65; only used with `echo = "loss"`.
    #[schemars(range(min = 5, max = 65))]
    pub telr: f64,
    /// Weighted echo path loss WEPL of the listener's echo, dB, 5 to 110.
    #[schemars(range(min = 5, max = 110))]
    pub wepl: f64,
    /// Advantage factor A: points of R that users concede for convenience (mobile 5 to 10, satellite 20; G.107
    /// §7.6), 0 to 20.
    #[schemars(range(min = 0, max = 20))]
    pub advantage: f64,
    /// Delay sensitivity sT: 1 for everyday conversation, less for less interactive conversations, 0.4 to 1.
    #[schemars(range(min = 0.4, max = 1))]
    pub delay_sensitivity: f64,
    /// Minimum perceivable delay mT: no impairment up to it, 20 to 150 ms.
    pub minimum_perceivable_delay: Duration,
    /// Send loudness rating SLR, dB, 0 to 18.
    #[schemars(range(min = 0, max = 18))]
    pub slr: f64,
    /// Receive loudness rating RLR, dB, −5 to 14.
    #[schemars(range(min = -5, max = 14))]
    pub rlr: f64,
    /// Sidetone masking rating STMR, dB, 10 to 20; the listener's sidetone rating is STMR + Dr.
    #[schemars(range(min = 10, max = 20))]
    pub stmr: f64,
    /// D-value Ds of the telephone at the send side, −3 to 3.
    #[schemars(range(min = -3, max = 3))]
    pub ds: f64,
    /// D-value Dr of the telephone at the receive side, −3 to 3.
    #[schemars(range(min = -3, max = 3))]
    pub dr: f64,
    /// Quantisation distortion units qdu, 1 to 14; G.711 counts as 1.
    #[schemars(range(min = 1, max = 14))]
    pub qdu: f64,
    /// Circuit noise Nc referred to the 0 dBr point, dBm0p, −80 to −40.
    #[schemars(range(min = -80, max = -40))]
    pub nc: f64,
    /// Noise floor Nfor at the receive side, dBmp; G.107 only permits −64.
    #[schemars(range(min = -64, max = -64))]
    pub nfor: f64,
    /// Room noise Ps at the send side, dB(A), 35 to 85.
    #[schemars(range(min = 35, max = 85))]
    pub ps: f64,
    /// Room noise Pr at the receive side, dB(A), 35 to 85.
    #[schemars(range(min = 35, max = 85))]
    pub pr: f64,
    /// Impairment factors of codecs, from a source of your own, in place of those of G.113 Appendix I: for
    /// codecs without published values, and for other conditions. The note beside the score names the source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub codecs: Vec<Declared>,
}

/// Impairment factors of a codec that the user declares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Declared {
    /// The codec.
    pub codec: Codec,
    /// Equipment impairment factor Ie: points of R that the codec costs without loss, 0 to 95.
    #[schemars(range(min = 0, max = 95))]
    pub ie: f64,
    /// Packet-loss robustness factor Bpl with the concealment in use, 1 to 40; absent means that of G.113
    /// Appendix I, if it has one. Without Bpl there is no score under loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 40))]
    pub bpl: Option<f64>,
    /// Where the values come from, such as a publication or a listening test.
    pub source: String,
}

/// Handling of the talker's echo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Echo {
    /// No echo at all: T = Tr = 0, only the absolute delay impairs.
    #[default]
    Perfect,
    /// Echo with a loss: T = Ta and Tr = 2 Ta.
    Loss,
}

impl Default for Config {
    fn default() -> Self {
        let table = Parameters::default();
        Self {
            echo: Echo::default(),
            telr: table.telr,
            wepl: table.wepl,
            advantage: table.a,
            delay_sensitivity: table.s_t,
            minimum_perceivable_delay: Duration::from_secs_f64(table.m_t / 1e3),
            slr: table.slr,
            rlr: table.rlr,
            stmr: table.stmr,
            ds: table.ds,
            dr: table.dr,
            qdu: table.qdu,
            nc: table.nc,
            nfor: table.nfor,
            ps: table.ps,
            pr: table.pr,
            codecs: Vec::new(),
        }
    }
}

impl Config {
    fn declared(&self, codec: Codec) -> Option<&Declared> {
        self.codecs.iter().find(|declared| declared.codec == codec)
    }
    /// Equipment impairment factor of a codec.
    fn ie(&self, codec: Codec) -> Option<f64> {
        self.declared(codec).map(|declared| declared.ie).or_else(|| codec.spec().ie)
    }
    /// Its robustness to loss.
    fn bpl(&self, codec: Codec, concealment: Concealment) -> Option<f64> {
        let declared = self.declared(codec).and_then(|declared| declared.bpl);
        declared.or_else(|| codec.bpl(concealment))
    }

    /// The model's parameters for a mouth-to-ear delay, without codec and loss.
    fn parameters(&self, mouth_to_ear: Duration) -> Parameters {
        let ta = mouth_to_ear.as_secs_f64() * 1e3;
        let (t, tr) = match self.echo {
            Echo::Perfect => (0.0, 0.0),
            Echo::Loss => (ta, 2.0 * ta),
        };
        Parameters {
            slr: self.slr,
            rlr: self.rlr,
            stmr: self.stmr,
            ds: self.ds,
            dr: self.dr,
            telr: self.telr,
            wepl: self.wepl,
            t,
            tr,
            ta,
            qdu: self.qdu,
            nc: self.nc,
            nfor: self.nfor,
            ps: self.ps,
            pr: self.pr,
            a: self.advantage,
            s_t: self.delay_sensitivity,
            m_t: self.minimum_perceivable_delay.as_secs_f64() * 1e3,
            ..Parameters::default()
        }
    }
}

/// E-model result for a speech flow. The three losses and `mos` add up to the MOS of the same telephones
/// without delay, echo, loss and codec impairment (4.41 at the defaults).
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Transmission rating factor R, 0 (unusable) to 100; if absent, `note` has the reason.
    pub r: Option<f64>,
    /// Estimated mean opinion score, 1 to 4.5.
    pub mos: Option<f64>,
    /// R and MOS with each exceeded input at the limit of its range, which those of the call do not exceed:
    /// equal to them inside the ranges.
    pub bounds: Option<(f64, f64)>,
    /// MOS lost to delay and its echo.
    pub lost_to_delay: Option<f64>,
    /// MOS lost to missing and late frames.
    pub lost_to_loss: Option<f64>,
    /// MOS lost to the codec itself.
    pub lost_to_codec: Option<f64>,
    /// Ranges of G.107 §7.7 that were exceeded, outside of which the score is not validated.
    pub limits: Vec<String>,
    /// Assumptions made, limits exceeded, and reasons for absent values.
    pub note: String,
}

/// Scores a flow. `heard` are the codecs of the frames heard, or of the only encoding, with their numbers of
/// frames; G.107 covers one codec per call, so several use the means of their Ie and Bpl here. `loss` is the
/// share (0 to 1) of frames missing or late, `burst_ratio` the mean length of loss runs over that under random
/// loss (G.107 §7.5); values below 1, the minimum in G.107, count as 1. Where nothing is heard, R is 0.
///
/// MOS is not additive, so the loss per cause depends on the order in which the causes are applied. The values
/// are the mean over all six orders (the Shapley value): no order is preferred, and they add up exactly.
#[must_use]
pub fn score(
    config: &Config,
    heard: &[(Codec, u64)],
    concealment: Concealment,
    mouth_to_ear: Duration,
    loss: f64,
    burst_ratio: f64,
) -> Score {
    let mut note = note::Note::assuming(config, heard, concealment);
    if !(0.0..=1.0).contains(&loss) {
        return note.without_score("no score: no frames were counted");
    }
    let Some(ie) = mean(heard, |codec| config.ie(codec)) else {
        let why = note::without("Ie", heard, concealment, |codec| config.ie(codec));
        return note.without_score(&why);
    };
    let bpl = match mean(heard, |codec| config.bpl(codec, concealment)) {
        Some(bpl) => bpl,
        // Without loss, Bpl has no effect.
        None if loss == 0.0 => Parameters::default().bpl,
        None => {
            let bpl = |codec| config.bpl(codec, concealment);
            return note.without_score(&note::without("Bpl", heard, concealment, bpl));
        }
    };
    let parameters = Parameters {
        ie,
        bpl,
        ppl: 100.0 * loss,
        burst_r: if burst_ratio >= 1.0 { burst_ratio } else { 1.0 },
        ..config.parameters(mouth_to_ear)
    };
    note.limits(&parameters);
    let rating = parameters.rate();
    let undelayed = Parameters { t: 0.0, tr: 0.0, ta: 0.0, ..parameters }.rate();
    // §7.5 leaves a rest of R where nothing is heard: about 17 for G.711.
    let rest = if loss == 1.0 { rating.r().max(0.0) } else { 0.0 };
    let r = rating.r() - rest;
    let [delay, loss, codec] = shares(
        undelayed.r() + undelayed.ie_eff,
        [shortfall(&undelayed, &rating), rating.ie_eff - ie + rest, ie],
    );
    Score {
        // §7.1: R lies between 0 and 100; the equations can exceed this range.
        r: Some(r.clamp(0.0, 100.0)),
        mos: Some(mos(r)),
        bounds: Some(if note.exceeded().is_empty() {
            (r.clamp(0.0, 100.0), mos(r))
        } else {
            let shortest = mouth_to_ear.min(Duration::from_secs_f64(MAX_DELAY_MS / 1e3));
            let without_loss = Parameters { ie, bpl, ..config.parameters(shortest) };
            let limit = range::within(without_loss, &parameters).rate().r();
            (limit.clamp(0.0, 100.0), mos(limit))
        }),
        lost_to_delay: Some(delay),
        lost_to_loss: Some(loss),
        lost_to_codec: Some(codec),
        limits: note.exceeded().to_vec(),
        note: note.text(),
    }
}

/// The mean over the frames heard; `None` if one of their codecs has no value.
fn mean(heard: &[(Codec, u64)], value: impl Fn(Codec) -> Option<f64>) -> Option<f64> {
    if let [(codec, _)] = heard {
        return value(*codec);
    }
    let of = |(codec, frames): &(Codec, u64)| Some(value(*codec)? * *frames as f64);
    let sum: Option<f64> = heard.iter().filter(|(_, frames)| *frames > 0).map(of).sum();
    let frames: u64 = heard.iter().map(|(_, frames)| frames).sum();
    sum.filter(|_| frames > 0).map(|sum| sum / frames as f64)
}

/// Points of R lost to delay and echo (Ist also depends on echo).
fn shortfall(undelayed: &Rating, rating: &Rating) -> f64 {
    (rating.is + rating.id) - (undelayed.is + undelayed.id)
}

/// The Shapley value of three impairments, in MOS, that subtract `points` from a rating of `best`.
fn shares(best: f64, points: [f64; 3]) -> [f64; 3] {
    let lost =
        |causes: &[usize]| mos(best) - mos(best - causes.iter().map(|&i| points[i]).sum::<f64>());
    [(0, 1, 2), (1, 2, 0), (2, 0, 1)].map(|(it, a, b)| {
        lost(&[it]) / 3.0
            + (lost(&[it, a]) - lost(&[a])) / 6.0
            + (lost(&[it, b]) - lost(&[b])) / 6.0
            + (lost(&[it, a, b]) - lost(&[a, b])) / 3.0
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What exceeds a range has a bound, which no call beyond exceeds and the call at the limit reaches.
        #[test]
        fn bounds_are_above_what_they_bound(
            delay in 0_u64..1500, loss in 0.0_f64..1.0, burst in 0.5_f64..20.0, echo: bool,
        ) {
            let echo = if echo { Echo::Loss } else { Echo::Perfect };
            let config = Config { echo, ..Config::default() };
            let of = |delay, loss, burst| {
                let delay = Duration::from_millis(delay);
                score(&config, &[(Codec::Pcmu, 3000)], Concealment::Silence, delay, loss, burst)
            };
            let found = of(delay, loss, burst);
            let permitted = if loss >= 0.02 { 2.0 } else { 8.0 };
            let inside = delay <= 500 && loss <= 0.2 && burst <= permitted;
            prop_assert_eq!(found.limits.is_empty(), inside);
            prop_assert!(!inside || found.bounds == found.r.zip(found.mos));
            if let (Some((r, mos)), Some(its_r), Some(its_mos)) = (found.bounds, found.r, found.mos) {
                prop_assert!(r >= its_r && mos >= its_mos, "{found:?}");
                let limit = of(delay.min(500), loss.min(0.2), burst.min(permitted));
                prop_assert!(limit.mos.is_some_and(|limit| (limit - mos).abs() < 1e-12));
            }
        }
    }

    #[test]
    fn equal_causes_share_equally_and_none_costs_nothing() {
        let [a, b, c] = shares(93.2, [12.0, 12.0, 0.0]);
        assert!((a - b).abs() < 1e-12 && c.abs() < 1e-12);
        assert!((a + b - (mos(93.2) - mos(69.2))).abs() < 1e-12);
        // The Shapley value of two causes: the mean of being applied first and last.
        let [a, b, _] = shares(93.2, [5.0, 30.0, 0.0]);
        let first = mos(93.2) - mos(88.2);
        let last = mos(63.2) - mos(58.2);
        assert!((a - f64::midpoint(first, last)).abs() < 1e-12);
        assert!((a + b - (mos(93.2) - mos(58.2))).abs() < 1e-12);
        // All three together, in any order.
        let parts = shares(90.0, [3.0, 20.0, 11.0]);
        assert!((parts.iter().sum::<f64>() - (mos(90.0) - mos(56.0))).abs() < 1e-12);
    }
    #[test]
    fn a_call_of_which_nothing_is_heard_has_the_lowest_score() {
        let config = Config::default();
        for delay in [0, 100, 400, 2000].map(Duration::from_millis) {
            // The burst ratio is 0 if all frames are lost.
            let of = |loss, burst_ratio| {
                score(
                    &config,
                    &[(Codec::Pcmu, 3000)],
                    Concealment::Silence,
                    delay,
                    loss,
                    burst_ratio,
                )
            };
            let (nothing, little) = (of(1.0, 0.0), of(0.999, 1.0));
            assert_eq!((nothing.mos, nothing.r), (Some(1.0), Some(0.0)));
            assert!(little.mos.is_some_and(|mos| (1.0..1.5).contains(&mos)), "{delay} {little:?}");
            let parts = [nothing.lost_to_delay, nothing.lost_to_loss, nothing.lost_to_codec];
            let whole: f64 = parts.into_iter().flatten().sum();
            let best = of(0.0, 1.0);
            let without_delay = best.mos.zip(best.lost_to_delay).map(|(mos, delay)| mos + delay);
            assert!((whole - (without_delay.unwrap_or(0.0) - 1.0)).abs() < 0.02, "{delay} {whole}");
        }
    }
}
