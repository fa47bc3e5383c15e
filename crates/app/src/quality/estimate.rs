//! An estimate of the opinion score of calls in any codec with a fitted curve, Opus first. It is a fit of this
//! project to signal-based scores, not ITU-T's and not validated against listeners:
//! `docs/validation/estimate.md` has protocol, data and acceptance.

use talkspurt_proto::math::{log10, pow};
use talkspurt_proto::time::Duration;

use super::emodel::mos;
use super::range::MAX_DELAY_MS;
use super::{Config, curves, mean};
use crate::codec::{Codec, opus};
use crate::playout::Concealment;

/// What was heard of a call.
#[derive(Clone, Copy, Debug)]
pub struct Listening<'a> {
    /// The codecs of the frames heard, or the only one, with their numbers of frames.
    pub heard: &'a [(Codec, u64)],
    /// Parameters of Opus.
    pub opus: &'a opus::Config,
    /// Mean bit rate of Opus, bit/s, without copies.
    pub opus_bps: f64,
    /// Concealment of gaps.
    pub concealment: Concealment,
    /// Speech per packet.
    pub packet: Duration,
    /// Share of speech time that was not heard, 0 to 1.
    pub unheard: f64,
    /// Burst ratio of what was not heard.
    pub burst_ratio: f64,
    /// Share of frames recovered from the redundancy of later packets, 0 to 1.
    pub recovered: f64,
    /// Whether packets have in-band FEC, and less of the rate for speech.
    pub has_fec: bool,
    /// Whether they have DRED.
    pub has_dred: bool,
}

/// The estimate of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Mean opinion score, 1 to 4.41; absent for codecs without a curve.
    pub mos: Option<f64>,
    /// It with each input outside the range of the fit at its limit, which that of the call does not exceed.
    pub bound: Option<f64>,
    /// Ranges of the fit and of G.107 that were exceeded.
    pub limits: Vec<String>,
}

/// Loss, recovered frames, and mean lengths of gaps in packets and in ms (whichever is longer) up to which the
/// curves were fitted.
const MAX_UNHEARD: f64 = 0.2;
const MAX_RECOVERED: f64 = 0.2;
const MAX_GAP: (f64, f64) = (5.0, 100.0);
/// Upper end of the equipment impairment (G.107 §7.5).
const WORST: f64 = 95.0;

/// Robustness to loss of a codec with its concealment; `None` without data.
fn bpl(codec: Codec, concealment: Concealment, opus: &opus::Config) -> Option<f64> {
    let own = |bpl| match (concealment, codec.spec().is_adaptive) {
        // Unlike G.711's, these decoders differ after a gap.
        (Concealment::G711AppendixI, _) | (Concealment::G711AppendixIFrozen, false) => Some(bpl),
        _ => None,
    };
    match codec {
        Codec::Pcmu | Codec::Pcma if concealment == Concealment::Silence => {
            Some(curves::BPL_G711_SILENCE)
        }
        Codec::Pcmu | Codec::Pcma => own(curves::BPL_G711),
        Codec::G722 => own(curves::BPL_G722),
        Codec::G726At40 | Codec::G726At32 | Codec::G726At24 | Codec::G726At16 => {
            own(curves::BPL_G726)
        }
        Codec::Opus if opus.decoder_complexity >= opus::DEEP => Some(curves::BPL_OPUS_DEEP),
        Codec::Opus => Some(curves::BPL_OPUS),
        _ => codec.spec().name.starts_with("AMR").then_some(curves::BPL_AMR),
    }
}

/// Impairment of a codec without loss.
fn ie(codec: Codec, it: &Listening<'_>) -> Option<f64> {
    if codec != Codec::Opus {
        return curves::IE.iter().find(|(known, _)| *known == codec).map(|(_, ie)| *ie);
    }
    let cost = match (it.has_dred, it.has_fec) {
        (true, _) => curves::DRED_COST,
        (false, true) => curves::FEC_COST,
        (false, false) => 0.0,
    };
    let kbps = it.opus_bps / 1e3 * (1.0 - cost);
    let (first, last) = (curves::OPUS_IE.first()?, curves::OPUS_IE.last()?);
    let between = curves::OPUS_IE.windows(2).find(|pair| kbps < pair[1].0);
    Some(match between {
        _ if kbps <= first.0 => first.1,
        Some(&[(low, before), (high, after)]) => {
            before + (after - before) * log10(kbps / low) / log10(high / low)
        }
        _ => last.1,
    })
}

/// Estimates the score of a call; the delay impairment is that of G.107.
#[must_use]
pub fn estimate(config: &Config, it: &Listening<'_>, mouth_to_ear: Duration) -> Estimate {
    let known = (
        mean(it.heard, |codec| ie(codec, it)),
        mean(it.heard, |codec| bpl(codec, it.concealment, it.opus)),
    );
    let ((Some(ie), Some(bpl)), true) = (known, (0.0..=1.0).contains(&it.unheard)) else {
        return Estimate::default();
    };
    let weight = if it.has_dred { curves::DRED_WEIGHT } else { curves::FEC_WEIGHT };
    let packet_ms = it.packet.as_secs_f64() * 1e3;
    let gap = it.burst_ratio.max(0.0) / (1.0 - it.unheard).max(1e-3) * packet_ms;
    let longest_gap = MAX_GAP.1.max(MAX_GAP.0 * packet_ms);
    let rating = |unheard: f64, recovered: f64, gap: f64, delay: Duration| {
        let percent = 100.0 * (unheard + weight * recovered);
        let q = pow(percent, curves::LOSS_EXPONENT) * pow(gap / 20.0, curves::GAP_EXPONENT);
        let impairment = ie + (WORST - ie) * q / (q + bpl);
        config.parameters(delay).rate().r() - impairment
    };
    let mut limits = Vec::new();
    let delay_ms = mouth_to_ear.as_secs_f64() * 1e3;
    if delay_ms > MAX_DELAY_MS {
        limits.push(format!("{delay_ms:.0} ms of delay is beyond G.107's {MAX_DELAY_MS}"));
    }
    for (what, found, most) in
        [("unheard", it.unheard, MAX_UNHEARD), ("recovered", it.recovered, MAX_RECOVERED)]
    {
        if found > most {
            let (found, most) = (100.0 * found, 100.0 * most);
            limits.push(format!("{found:.1} % {what} is beyond the fit's {most}"));
        }
    }
    if it.unheard > 0.0 && gap > longest_gap {
        limits.push(format!("gaps of {gap:.0} ms on average are beyond the fit's {longest_gap}"));
    }
    let own =
        if it.unheard < 1.0 { rating(it.unheard, it.recovered, gap, mouth_to_ear) } else { 0.0 };
    let longest = mouth_to_ear.min(Duration::from_secs_f64(MAX_DELAY_MS / 1e3));
    let within = rating(
        it.unheard.min(MAX_UNHEARD),
        it.recovered.min(MAX_RECOVERED),
        gap.min(longest_gap),
        longest,
    );
    Estimate {
        mos: Some(mos(own)),
        bound: Some(mos(if limits.is_empty() { own } else { within })),
        limits,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use talkspurt_proto::units::Rate;

    use super::*;

    fn call<'a>(heard: &'a [(Codec, u64)], opus: &'a opus::Config) -> Listening<'a> {
        Listening {
            heard,
            opus,
            opus_bps: opus.bitrate.as_bps() as f64,
            concealment: Concealment::G711AppendixI,
            packet: Duration::from_millis(20),
            unheard: 0.0,
            burst_ratio: 1.0,
            recovered: 0.0,
            has_fec: opus.fec,
            has_dred: !opus.dred.is_zero(),
        }
    }

    fn of(it: &Listening<'_>, delay_ms: u64) -> Estimate {
        estimate(&Config::default(), it, Duration::from_millis(delay_ms))
    }

    #[test]
    fn unimpaired_g711_is_the_anchor_of_the_scale() {
        let opus = opus::Config::default();
        let found = of(&call(&[(Codec::Pcmu, 1)], &opus), 0).mos.expect("it has a curve");
        assert!((found - mos(93.2)).abs() < 0.001, "{found}");
    }

    #[test]
    fn a_codec_without_data_has_no_estimate() {
        let opus = opus::Config::default();
        for codec in [Codec::G728, Codec::G729A, Codec::G7231At63] {
            assert_eq!(of(&call(&[(codec, 1)], &opus), 0), Estimate::default(), "{codec:?}");
        }
        let silent =
            Listening { concealment: Concealment::Silence, ..call(&[(Codec::G722, 1)], &opus) };
        assert_eq!(of(&silent, 0), Estimate::default());
    }

    proptest! {
        /// More of anything that impairs is never better, and the bound is never below.
        #[test]
        fn what_impairs_never_improves(
            codec in prop::sample::select(vec![Codec::Pcmu, Codec::G722, Codec::Amr795, Codec::Opus]),
            kbps in 6_u64..128, less in 0_u64..40,
            unheard in 0.0_f64..0.99, more in 0.0_f64..0.5,
            burst in 0.5_f64..20.0, longer in 0.0_f64..5.0,
            recovered in 0.0_f64..0.5, delay in 0_u64..900, later in 0_u64..300,
        ) {
            let config = |kbps: u64| {
                opus::Config { bitrate: Rate::from_bps(1000 * kbps.max(6)), ..opus::Config::default() }
            };
            let (opus, lower) = (config(kbps), config(kbps.saturating_sub(less)));
            let heard = [(codec, 1)];
            let it = Listening { unheard, burst_ratio: burst, recovered, ..call(&heard, &opus) };
            let best = of(&it, delay);
            let score = |it: &Listening<'_>, delay| of(it, delay).mos.expect("it has a curve");
            let worse = [
                score(&Listening { unheard: (unheard + more).min(1.0), ..it }, delay),
                score(&Listening { burst_ratio: burst + longer, ..it }, delay),
                score(&Listening { recovered: recovered + more, ..it }, delay),
                score(&Listening { opus: &lower, opus_bps: lower.bitrate.as_bps() as f64, ..it }, delay),
                score(&it, delay + later),
            ];
            let own = best.mos.expect("it has a curve");
            for found in worse {
                prop_assert!(found <= own + 1e-12, "{worse:?} above {own}");
            }
            let bound = best.bound.expect("it has a curve");
            prop_assert!(bound >= own - 1e-12 && (best.limits.is_empty() <= (bound == own)));
        }
    }
}
