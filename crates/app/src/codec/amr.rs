//! AMR narrowband (3GPP TS 26.071) at its eight rates, in frames of 20 ms with a look-ahead of 5 ms. Its RTP
//! payload is the octet-aligned one (RFC 4867 §4.4): a byte of header, then a byte and the speech bits of each
//! frame, rounded up to bytes. All modes have one payload type; here the length of a packet distinguishes them.
//! G.113 Appendix I has no impairment factor for them.

use talkspurt_proto::time::Duration;

use super::g711::MU_LAW;
use super::{Bpl, Spec, external};

/// 12.2 kbit/s: 244 bits per frame (RFC 4867 §3.6, table 1, as for all modes).
pub(super) const AT_12_2: Spec = Spec {
    name: "AMR 12.2",
    // A dynamic type.
    payload_type: 102,
    frame: Duration::from_millis(20),
    frame_bytes: 1 + 31,
    header_bytes: 1,
    step: Duration::from_millis(20),
    look_ahead: Duration::from_millis(5),
    ie: None,
    bpl: Bpl::Decoder(None),
    bpl_packet: Duration::from_millis(20),
    sound: Some(external::SOUND),
    is_external: true,
    ..MU_LAW
};
/// 10.2 kbit/s: 204 bits.
pub(super) const AT_10_2: Spec = Spec { name: "AMR 10.2", frame_bytes: 1 + 26, ..AT_12_2 };
/// 7.95 kbit/s: 159 bits.
pub(super) const AT_7_95: Spec = Spec { name: "AMR 7.95", frame_bytes: 1 + 20, ..AT_12_2 };
/// 7.4 kbit/s: 148 bits.
pub(super) const AT_7_4: Spec = Spec { name: "AMR 7.4", frame_bytes: 1 + 19, ..AT_12_2 };
/// 6.7 kbit/s: 134 bits.
pub(super) const AT_6_7: Spec = Spec { name: "AMR 6.7", frame_bytes: 1 + 17, ..AT_12_2 };
/// 5.9 kbit/s: 118 bits.
pub(super) const AT_5_9: Spec = Spec { name: "AMR 5.9", frame_bytes: 1 + 15, ..AT_12_2 };
/// 5.15 kbit/s: 103 bits.
pub(super) const AT_5_15: Spec = Spec { name: "AMR 5.15", frame_bytes: 1 + 13, ..AT_12_2 };
/// 4.75 kbit/s: 95 bits.
pub(super) const AT_4_75: Spec = Spec { name: "AMR 4.75", frame_bytes: 1 + 12, ..AT_12_2 };
