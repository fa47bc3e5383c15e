//! ITU-T G.729: 8 kbit/s in frames of 10 ms, with a look-ahead of 5 ms (RFC 3551 §4.5.6).

use talkspurt_proto::time::Duration;

use super::g711::MU_LAW;
use super::{Bpl, Spec};

/// G.729. Ie of G.113 Appendix I, which has a Bpl only for Annex A with voice activity detection.
pub(super) const SPEC: Spec = Spec {
    name: "G.729",
    payload_type: 18,
    frame: Duration::from_millis(10),
    frame_bytes: 10,
    look_ahead: Duration::from_millis(5),
    ie: Some(10.0),
    bpl: Bpl::Decoder(None),
    bpl_packet: Duration::from_millis(20),
    sound: None,
    ..MU_LAW
};
/// Annex A.
pub(super) const ANNEX_A: Spec =
    Spec { name: "G.729A", ie: Some(11.0), bpl: Bpl::Decoder(Some(19.0)), ..SPEC };
/// 10 kbit/s, for which no values are published.
pub(super) const AT_10: Spec = Spec {
    name: "G.729 10",
    payload_type: 100,
    frame: Duration::from_millis(20),
    frame_bytes: 25,
    step: Duration::from_millis(20),
    ie: None,
    ..SPEC
};
