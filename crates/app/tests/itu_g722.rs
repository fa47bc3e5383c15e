//! G.722 against SpanDSP, which passes the Recommendation's test vectors: `validation/codecs/g722.py` prints
//! the hashes.

mod signals;

use proptest::prelude::*;
use signals::{COUNT, fnv, noise, triangles};
use talkspurt_app::codec::{Codec, Decoder, Encoder, Encoding};
use talkspurt_proto::math::{cos, sin};
use talkspurt_proto::time::Duration;

fn codec() -> (Box<dyn Encoder>, Box<dyn Decoder>) {
    let encoding = Encoding::new(Codec::G722, Duration::from_millis(20));
    encoding.encoder().zip(encoding.decoder()).expect("G.722 has sound")
}

#[test]
fn streams_and_sound_are_those_of_another_implementation() {
    let expected = [
        (noise(8000), 0x0dc8_295b_e044_3507, 0x6e04_d6dc_c872_0d49, 0x1020_0c16_1561_7eb7),
        (noise(6), 0x3e8e_efb9_19c9_5450, 0xfccd_66cb_f43d_31ce, 0xd2fa_2da9_801f_44b3),
        (noise(16_000), 0xa14d_527e_1143_0254, 0x95c3_eed0_9be9_4b81, 0x1cdf_0c16_ff95_1b43),
        (triangles(), 0x4f18_ed6e_255e_10cb, 0xdc61_d650_2278_ce95, 0xd63f_b563_3398_36be),
    ];
    for (pcm, stream, sound, random) in expected {
        let (mut encoder, mut decoder) = codec();
        let packed: Vec<u8> = pcm.chunks(320).flat_map(|it| encoder.encode(it, None)).collect();
        assert_eq!((packed.len(), fnv(packed.iter().copied())), (COUNT / 2, stream));
        let decoded = packed.chunks(160).flat_map(|packet| decoder.decode(packet));
        assert_eq!(fnv(decoded.flat_map(i16::to_le_bytes)), sound);
        // Any byte is a code, also those that an encoder does not send. Quiet ones, because SpanDSP's output
        // wraps around where the Recommendation saturates.
        let (_, mut decoder) = codec();
        let code = |x: u8| 64 | x & 128 | if x & 16 > 0 { x & 3 } else { 60 | x & 3 };
        let codes: Vec<u8> = pcm.iter().map(|sample| code(*sample as u8)).collect();
        assert_eq!(fnv(decoder.decode(&codes).into_iter().flat_map(i16::to_le_bytes)), random);
    }
}

/// Energy of `pcm` at a frequency, by Goertzel's algorithm, over that of a full-scale sine.
fn level(pcm: &[i16], hertz: f64) -> f64 {
    let turn = 2.0 * cos(std::f64::consts::TAU * hertz / 16_000.0);
    let (a, b) = pcm.iter().fold((0.0, 0.0), |(a, b), x| (f64::from(*x) + turn * a - b, a));
    let (n, full) = (pcm.len() as f64, 32_768.0);
    (a * a + b * b - turn * a * b) / (n * full / 2.0 * n * full / 2.0)
}

#[test]
fn a_tone_above_4_khz_survives() {
    let tone = |hertz: f64| -> Vec<i16> {
        let angle = |k: i32| std::f64::consts::TAU * hertz * f64::from(k) / 16_000.0;
        (0..16_000).map(|k| (8000.0 * sin(angle(k))) as i16).collect()
    };
    for hertz in [300.0, 1000.0, 3000.0, 5000.0, 6500.0] {
        let (mut encoder, mut decoder) = codec();
        let sent = tone(hertz);
        let heard = decoder.decode(&encoder.encode(&sent, None));
        let ratio = level(&heard[800..], hertz) / level(&sent[800..], hertz);
        assert!((0.9..1.1).contains(&ratio), "{hertz} Hz: {ratio}");
    }
}

proptest! {
    /// Any bytes give a sound, and any sound gives bytes.
    #[test]
    fn nothing_panics(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        pcm in prop::collection::vec(any::<i16>(), 0..2000),
    ) {
        let (mut encoder, mut decoder) = codec();
        prop_assert_eq!(decoder.decode(&bytes).len(), bytes.len() * 2);
        prop_assert_eq!(encoder.encode(&pcm, None).len(), pcm.len().div_ceil(2));
    }
}
