//! The curves of [`super::estimate`], written by `validation/estimate/fit.py`.

use crate::codec::Codec;

/// Impairment without loss.
pub(super) const IE: &[(Codec, f64)] = &[
    (Codec::Pcmu, 0.00),
    (Codec::Pcma, 0.00),
    (Codec::G722, 3.07),
    (Codec::G726At40, 0.88),
    (Codec::G726At32, 10.44),
    (Codec::G726At24, 21.04),
    (Codec::G726At16, 44.01),
    (Codec::G729A, 22.25),
    (Codec::G729, 22.25),
    (Codec::G7231At63, 23.02),
    (Codec::Amr1220, 11.74),
    (Codec::Amr1020, 12.82),
    (Codec::Amr795, 18.74),
    (Codec::Amr740, 19.92),
    (Codec::Amr670, 22.66),
    (Codec::Amr590, 25.19),
    (Codec::Amr515, 28.53),
    (Codec::Amr475, 28.53),
];
/// The same of Opus by kbit/s, in order.
pub(super) const OPUS_IE: &[(f64, f64)] = &[
    (6.0, 37.47),
    (8.0, 16.58),
    (12.0, 10.73),
    (16.0, 5.34),
    (20.0, 3.63),
    (24.0, 1.77),
    (32.0, 1.77),
    (40.0, 1.57),
    (48.0, 0.00),
    (64.0, 0.00),
];

pub(super) const BPL_G711: f64 = 15.097;
pub(super) const BPL_G711_SILENCE: f64 = 11.874;
pub(super) const BPL_G722: f64 = 14.689;
pub(super) const BPL_G726: f64 = 15.939;
pub(super) const BPL_G729: f64 = 20.472;
pub(super) const BPL_G723_1: f64 = 17.566;
pub(super) const BPL_AMR: f64 = 17.237;
pub(super) const BPL_OPUS: f64 = 18.291;
pub(super) const BPL_OPUS_DEEP: f64 = 18.938;
pub(super) const LOSS_EXPONENT: f64 = 0.763;
pub(super) const GAP_EXPONENT: f64 = 0.192;
pub(super) const FEC_WEIGHT: f64 = 0.000;
pub(super) const DRED_WEIGHT: f64 = 0.280;
pub(super) const FEC_COST: f64 = 0.250;
pub(super) const DRED_COST: f64 = 0.428;
