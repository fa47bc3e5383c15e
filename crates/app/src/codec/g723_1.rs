//! ITU-T G.723.1: 6.3 and 5.3 kbit/s in frames of 30 ms, with a look-ahead of 7.5 ms (RFC 3551 §4.5.3). Both
//! rates share a payload type. A frame's first bits indicate the rate; here its length does. FFmpeg's encoder
//! has only the higher rate.

use talkspurt_proto::time::Duration;

use super::g711::MU_LAW;
use super::{Bpl, Spec, external};

/// 6.3 kbit/s. Ie of G.113 Appendix I, and Bpl with voice activity detection.
pub(super) const AT_6_3: Spec = Spec {
    name: "G.723.1 6.3",
    payload_type: 4,
    frame: Duration::from_millis(30),
    frame_bytes: 24,
    step: Duration::from_millis(30),
    look_ahead: Duration::from_micros(7500),
    ie: Some(15.0),
    bpl: Bpl::Decoder(Some(16.1)),
    bpl_packet: Duration::from_millis(30),
    sound: Some(external::SOUND),
    is_external: true,
    ..MU_LAW
};
/// 5.3 kbit/s. Ie of G.113 Appendix I, which has no Bpl for it.
pub(super) const AT_5_3: Spec = Spec {
    name: "G.723.1 5.3",
    frame_bytes: 20,
    ie: Some(19.0),
    bpl: Bpl::Decoder(None),
    sound: None,
    is_external: false,
    ..AT_6_3
};
