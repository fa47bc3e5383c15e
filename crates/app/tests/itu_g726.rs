//! G.726 against SpanDSP, which passes the Recommendation's test vectors: `validation/codecs/g726.py` prints
//! the hashes.

mod signals;

use proptest::prelude::*;
use signals::{fnv, noise, triangles};
use talkspurt_app::codec::{Codec, Encoding};
use talkspurt_proto::time::Duration;

fn of(codec: Codec) -> Encoding {
    Encoding::new(codec, Duration::from_millis(20))
}

#[test]
fn streams_and_sound_are_those_of_another_implementation() {
    let expected = [
        (Codec::G726At40, 0xed3f_bd48_147d_3c1d, 0x934b_0543_0e46_aa6a),
        (Codec::G726At40, 0xfb74_2dba_4582_0c66, 0xd4d0_1c22_5c93_1688),
        (Codec::G726At40, 0xbf36_b53a_4cb2_3227, 0xa9db_d75e_27d1_e01d),
        (Codec::G726At32, 0x0c34_0863_9bc3_2d7c, 0x3805_ba21_fd3e_0d13),
        (Codec::G726At32, 0xbff5_de7b_c879_2a4e, 0xe6f5_1f98_9a71_4601),
        (Codec::G726At32, 0x3b6c_95e5_137f_00f5, 0xd9a8_fed9_1c4b_992e),
        (Codec::G726At24, 0x0563_0833_38c7_c617, 0x6aaf_fa85_138b_c307),
        (Codec::G726At24, 0xd018_4dd1_b045_e3c5, 0xdd14_fcc6_528c_ab25),
        (Codec::G726At24, 0xb84a_dba8_47ba_d75c, 0x9010_726b_7300_6106),
        (Codec::G726At16, 0x0beb_a667_a3d7_01e6, 0xeb31_b10e_6a4c_4a9c),
        (Codec::G726At16, 0x5e6c_85d1_4c71_3632, 0xd828_5864_67d4_e638),
        (Codec::G726At16, 0xd320_7fd6_c346_67f4, 0x4016_6341_3072_3cfb),
    ];
    let signals = [noise(8000), noise(6), triangles()];
    for ((codec, stream, sound), pcm) in expected.into_iter().zip(signals.iter().cycle()) {
        let mut encoder = of(codec).encoder().expect("G.726 has sound");
        let packed: Vec<u8> =
            pcm.chunks(160).flat_map(|packet| encoder.encode(packet, None)).collect();
        assert_eq!(fnv(packed.iter().copied()), stream, "{}", codec.spec().name);
        let mut decoder = of(codec).decoder().expect("G.726 has sound");
        let decoded = packed.chunks(codec.spec().frame_bytes as usize * 20);
        let decoded = decoded.flat_map(|packet| decoder.decode(packet));
        assert_eq!(fnv(decoded.flat_map(i16::to_le_bytes)), sound, "{}", codec.spec().name);
    }
}

#[test]
fn more_bits_mean_less_noise() {
    let pcm = triangles();
    let noise = |codec: Codec| -> i64 {
        let packed = of(codec).encoder().expect("sound").encode(&pcm, None);
        let decoded = of(codec).decoder().expect("sound").decode(&packed);
        assert_eq!(decoded.len(), pcm.len());
        pcm.iter().zip(decoded).map(|(a, b)| (i64::from(*a) - i64::from(b)).pow(2)).sum()
    };
    let rates = [Codec::G726At40, Codec::G726At32, Codec::G726At24, Codec::G726At16];
    assert!(rates.map(noise).is_sorted());
}

proptest! {
    /// Any bytes give a sound, and any sound gives bytes.
    #[test]
    fn nothing_panics(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        pcm in prop::collection::vec(any::<i16>(), 0..2000),
        which in 0..4_usize,
    ) {
        let codec = [Codec::G726At40, Codec::G726At32, Codec::G726At24, Codec::G726At16][which];
        let bits = codec.spec().frame_bytes as usize;
        let mut decoder = of(codec).decoder().expect("sound");
        prop_assert_eq!(decoder.decode(&bytes).len(), bytes.len() * 8 / bits);
        let mut encoder = of(codec).encoder().expect("sound");
        prop_assert_eq!(encoder.encode(&pcm, None).len(), pcm.len() * bits / 8);
    }
}
