//! ITU-T G.728: 16 kbit/s in frames of four vectors (RFC 3551 §4.5.5).

use talkspurt_proto::time::Duration;

use super::g711::MU_LAW;
use super::{Bpl, Spec};

/// G.728. Ie of G.113 Appendix I, which has no Bpl.
pub(super) const SPEC: Spec = Spec {
    name: "G.728",
    payload_type: 15,
    frame: Duration::from_micros(2500),
    frame_bytes: 5,
    step: Duration::from_micros(2500),
    ie: Some(7.0),
    bpl: Bpl::Decoder(None),
    bpl_packet: Duration::from_millis(20),
    sound: None,
    ..MU_LAW
};
