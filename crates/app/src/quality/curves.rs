//! The curves of [`super::estimate`], written by `validation/estimate/fit.py`.

use crate::codec::Codec;

/// Impairment without loss.
pub(super) const IE: &[(Codec, f64)] = &[
    (Codec::Pcmu, 0.00),
    (Codec::Pcma, 0.00),
    (Codec::G722, 3.13),
    (Codec::G726At40, 1.48),
    (Codec::G726At32, 12.29),
    (Codec::G726At24, 23.95),
    (Codec::G726At16, 45.39),
    (Codec::Amr1220, 13.29),
    (Codec::Amr1020, 13.48),
    (Codec::Amr795, 19.84),
    (Codec::Amr740, 20.95),
    (Codec::Amr670, 22.64),
    (Codec::Amr590, 25.56),
    (Codec::Amr515, 29.45),
    (Codec::Amr475, 29.45),
];
/// The same of Opus by kbit/s, in order.
pub(super) const OPUS_IE: &[(f64, f64)] = &[
    (6.0, 40.60),
    (8.0, 18.53),
    (12.0, 12.88),
    (16.0, 7.07),
    (20.0, 5.87),
    (24.0, 2.96),
    (32.0, 2.27),
    (40.0, 1.47),
    (48.0, 0.79),
    (64.0, 0.79),
];

pub(super) const BPL_G711: f64 = 14.354;
pub(super) const BPL_G711_SILENCE: f64 = 11.527;
pub(super) const BPL_G722: f64 = 13.628;
pub(super) const BPL_G726: f64 = 15.292;
pub(super) const BPL_AMR: f64 = 16.624;
pub(super) const BPL_OPUS: f64 = 17.312;
pub(super) const BPL_OPUS_DEEP: f64 = 18.370;
pub(super) const LOSS_EXPONENT: f64 = 0.775;
pub(super) const GAP_EXPONENT: f64 = 0.166;
pub(super) const FEC_WEIGHT: f64 = 0.000;
pub(super) const DRED_WEIGHT: f64 = 0.280;
pub(super) const FEC_COST: f64 = 0.167;
pub(super) const DRED_COST: f64 = 0.336;
