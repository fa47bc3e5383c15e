//! ITU-T G.726: adaptive differential PCM of two to five bits a sample, eight samples in whole bytes
//! (RFC 3551 §4.5.4). G.113 Appendix I has Ie for each rate and no Bpl.

use talkspurt_proto::time::Duration;

use super::g711::MU_LAW;
use super::{Bpl, Spec};

/// 40 kbit/s.
pub(super) const AT_40: Spec = Spec {
    name: "G.726 40",
    payload_type: 96,
    frame: Duration::from_millis(1),
    frame_bytes: 5,
    ie: Some(2.0),
    bpl: Bpl::Playout { silence: None, appendix_i: None },
    sound: None,
    ..MU_LAW
};
/// 32 kbit/s.
pub(super) const AT_32: Spec =
    Spec { name: "G.726 32", payload_type: 97, frame_bytes: 4, ie: Some(7.0), ..AT_40 };
/// 24 kbit/s.
pub(super) const AT_24: Spec =
    Spec { name: "G.726 24", payload_type: 98, frame_bytes: 3, ie: Some(25.0), ..AT_40 };
/// 16 kbit/s.
pub(super) const AT_16: Spec =
    Spec { name: "G.726 16", payload_type: 99, frame_bytes: 2, ie: Some(50.0), ..AT_40 };
