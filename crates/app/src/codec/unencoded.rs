//! Codecs without an encoder here: some have one in PyAV ([`external`]), and packets of the others have only
//! their size and rate. Ie and Bpl are those of G.113 Appendix I, as far as it has them.

use talkspurt_proto::time::Duration;

use super::g711::MU_LAW;
use super::{Bpl, Spec, external};

/// ITU-T G.728: 16 kbit/s in frames of four vectors (RFC 3551 §4.5.5). It has no Bpl.
pub(super) const G728: Spec = Spec {
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
/// ITU-T G.729: 8 kbit/s in frames of 10 ms, with a look-ahead of 5 ms (RFC 3551 §4.5.6). Only Annex A has a
/// Bpl, with voice activity detection.
pub(super) const G729: Spec = Spec {
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
pub(super) const G729_A: Spec =
    Spec { name: "G.729A", ie: Some(11.0), bpl: Bpl::Decoder(Some(19.0)), ..G729 };
/// 10 kbit/s, for which no values are published.
pub(super) const G729_AT_10: Spec = Spec {
    name: "G.729 10",
    payload_type: 100,
    frame: Duration::from_millis(20),
    frame_bytes: 25,
    step: Duration::from_millis(20),
    ie: None,
    ..G729
};
/// ITU-T G.723.1 at 6.3 kbit/s, in frames of 30 ms with a look-ahead of 7.5 ms (RFC 3551 §4.5.3). Both rates
/// share a payload type. A frame's first bits indicate the rate; here its length does. FFmpeg's encoder has
/// only this one. Bpl is that with voice activity detection.
pub(super) const G723_1_AT_6_3: Spec = Spec {
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
/// 5.3 kbit/s. It has no Bpl.
pub(super) const G723_1_AT_5_3: Spec = Spec {
    name: "G.723.1 5.3",
    frame_bytes: 20,
    ie: Some(19.0),
    bpl: Bpl::Decoder(None),
    sound: None,
    is_external: false,
    ..G723_1_AT_6_3
};
/// AMR narrowband (3GPP TS 26.071), in frames of 20 ms with a look-ahead of 5 ms. Its RTP payload is the
/// octet-aligned one (RFC 4867 §4.4): a byte of header, then a byte and the speech bits of each frame, rounded
/// up to bytes. All modes have one payload type; here the length of a packet distinguishes them.
///
/// 12.2 kbit/s: 244 bits per frame (RFC 4867 §3.6, table 1, as for all modes).
pub(super) const AMR_12_2: Spec = Spec {
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
pub(super) const AMR_10_2: Spec = Spec { name: "AMR 10.2", frame_bytes: 1 + 26, ..AMR_12_2 };
/// 7.95 kbit/s: 159 bits.
pub(super) const AMR_7_95: Spec = Spec { name: "AMR 7.95", frame_bytes: 1 + 20, ..AMR_12_2 };
/// 7.4 kbit/s: 148 bits.
pub(super) const AMR_7_4: Spec = Spec { name: "AMR 7.4", frame_bytes: 1 + 19, ..AMR_12_2 };
/// 6.7 kbit/s: 134 bits.
pub(super) const AMR_6_7: Spec = Spec { name: "AMR 6.7", frame_bytes: 1 + 17, ..AMR_12_2 };
/// 5.9 kbit/s: 118 bits.
pub(super) const AMR_5_9: Spec = Spec { name: "AMR 5.9", frame_bytes: 1 + 15, ..AMR_12_2 };
/// 5.15 kbit/s: 103 bits.
pub(super) const AMR_5_15: Spec = Spec { name: "AMR 5.15", frame_bytes: 1 + 13, ..AMR_12_2 };
/// 4.75 kbit/s: 95 bits.
pub(super) const AMR_4_75: Spec = Spec { name: "AMR 4.75", frame_bytes: 1 + 12, ..AMR_12_2 };
