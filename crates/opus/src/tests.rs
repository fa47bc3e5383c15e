//! libopus as this crate calls it.

use super::*;

/// Voiced sound that changes its pitch.
fn voice(samples: usize) -> Vec<i16> {
    let wave = |k: usize, h: f64| {
        let t = k as f64 / SAMPLE_RATE as f64;
        (std::f64::consts::TAU * h * (120.0 * t + 15.0 * t * t)).sin() / h
    };
    (0..samples)
        .map(|k| (5000.0 * (1..=12).map(|h| wave(k, f64::from(h))).sum::<f64>()) as i16)
        .collect()
}

fn encoder(bps: u32, control: RateControl) -> Encoder {
    let mut encoder = Encoder::new(1, Application::Voip).unwrap();
    encoder.set_bitrate(bps).unwrap();
    encoder.set_rate_control(control).unwrap();
    encoder
}

fn decoder() -> Decoder {
    Decoder::new(1, 0).unwrap()
}

/// The voice in packets of 20 ms with redundancy.
fn packets(fec: bool, dred: u8) -> Vec<Vec<u8>> {
    let mut encoder = encoder(32_000, RateControl::Constant);
    encoder.set_fec(fec).unwrap();
    encoder.set_dred(dred).unwrap();
    encoder.set_expected_loss(20).unwrap();
    voice(96_000).chunks_exact(960).map(|pcm| encoder.encode(pcm, 80).unwrap()).collect()
}

fn energy(sound: &[i16]) -> f64 {
    sound.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>() / sound.len() as f64
}

/// Correlation of two sounds, −1 to 1.
fn likeness(a: &[i16], b: &[i16]) -> f64 {
    let product: f64 = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    product / a.len() as f64 / (energy(a) * energy(b)).sqrt()
}

#[test]
fn constant_rate_gives_packets_of_the_same_length() {
    for bps in [6_000, 9_600, 16_000, 24_000, 33_000, 64_000, 128_000, 510_000] {
        for samples in [120, 240, 480, 960, 1920, 2880, 5760] {
            let bytes = (bps as usize * samples + 192_000) / 384_000;
            if bytes < 3 {
                continue;
            }
            for (fec, dred) in [(false, 0), (true, 0), (false, 100)] {
                let mut encoder = encoder(bps, RateControl::Constant);
                encoder.set_fec(fec).unwrap();
                encoder.set_dred(dred).unwrap();
                encoder.set_expected_loss(20).unwrap();
                for pcm in voice(96_000).chunks_exact(samples) {
                    let len = encoder.encode(pcm, bytes).unwrap().len();
                    assert_eq!(len, bytes, "{bps} bit/s, {samples} samples, {fec}, {dred}");
                }
            }
        }
    }
}

#[test]
fn decoded_sound_is_the_input_later_by_the_look_ahead() {
    for application in [Application::Voip, Application::Audio, Application::LowDelay] {
        let mut encoder = Encoder::new(1, application).unwrap();
        encoder.set_bitrate(96_000).unwrap();
        let late = encoder.look_ahead().unwrap();
        assert_eq!(late, if application == Application::LowDelay { 120 } else { 312 });
        let (voice, mut decoder, mut heard) = (voice(96_000), decoder(), Vec::new());
        for pcm in voice.chunks_exact(960) {
            let packet = encoder.encode(pcm, usize::MAX).unwrap();
            heard.extend(decoder.decode(&packet).unwrap());
        }
        let alike = |late| likeness(&heard[late..], &voice[..voice.len() - late]);
        // VoIP includes a high-pass filter, which shifts the phase of low frequencies.
        assert!(alike(late) > 0.85, "{application:?}: {}", alike(late));
        assert!(alike(late) > alike(late - 12) && alike(late) > alike(late + 12));
    }
}

#[test]
fn two_channels_stay_apart() {
    let mut encoder = Encoder::new(2, Application::Audio).unwrap();
    encoder.set_bitrate(128_000).unwrap();
    let mut decoder = Decoder::new(2, 0).unwrap();
    let left: Vec<_> = voice(48_000).into_iter().flat_map(|x| [x, 0]).collect();
    let decode = |pcm: &[i16]| decoder.decode(&encoder.encode(pcm, 1275).unwrap()).unwrap();
    let heard: Vec<i16> = left.chunks_exact(1920).flat_map(decode).collect();
    assert_eq!(heard.len(), left.len());
    let side = |n| heard.iter().skip(n).step_by(2).copied().collect::<Vec<_>>();
    assert!(energy(&side(1)) < energy(&side(0)) / 100.0);
}

/// Every tenth packet is lost; where the later packets have redundancy for it, the result's share of the
/// original's energy, and their likeness. `None` if none has.
fn replaced(
    packets: &[Vec<u8>],
    mut replace: impl FnMut(&mut Decoder, &[Vec<u8>]) -> Option<Vec<i16>>,
) -> Option<(f64, f64)> {
    let (voice, mut decoder) = (voice(96_000), decoder());
    let (mut original, mut there) = (Vec::new(), Vec::new());
    for n in 0..packets.len() - 10 {
        if n % 10 == 9 {
            let Some(sound) = replace(&mut decoder, &packets[n + 1..]) else { continue };
            there.extend(sound);
            original.extend_from_slice(&voice[n * 960 - 312..][..960]);
        } else {
            decoder.decode(&packets[n]).unwrap();
        }
    }
    (!there.is_empty()).then(|| (energy(&there) / energy(&original), likeness(&there, &original)))
}

#[test]
fn fec_restores_the_sound_before() {
    let fec = |decoder: &mut Decoder, later: &[Vec<u8>]| decoder.recover(&later[0], 960).unwrap();
    let (energy, alike) = replaced(&packets(true, 0), fec).expect("most packets have FEC");
    assert!((0.7..1.3).contains(&energy) && alike > 0.7, "{energy}, {alike}");
    let conceal = |decoder: &mut Decoder, _: &[Vec<u8>]| Some(decoder.conceal(960).unwrap());
    let (_, concealed) = replaced(&packets(true, 0), conceal).unwrap();
    assert!(concealed < alike, "{concealed}");
    assert_eq!(replaced(&packets(false, 0), fec), None);
}

#[test]
fn dred_restores_the_envelope_of_sound_long_before() {
    for ahead in [1, 2, 3, 5] {
        let dred = |decoder: &mut Decoder, later: &[Vec<u8>]| {
            decoder.redeem(&later[ahead - 1], ahead * 960, 960).unwrap()
        };
        let (energy, _) =
            replaced(&packets(false, 100), dred).expect("some packets are as deep as that");
        assert!((0.3..3.0).contains(&energy), "{ahead}: {energy}");
        assert_eq!(replaced(&packets(false, 0), dred), None);
    }
    // No deeper than it was encoded: 100 ms.
    let deep =
        |decoder: &mut Decoder, later: &[Vec<u8>]| decoder.redeem(&later[8], 9 * 960, 960).unwrap();
    assert_eq!(replaced(&packets(false, 10), deep), None);
}

#[test]
fn any_bytes_may_come() {
    let (mut random, mut decoder) = (1_u64, Decoder::new(2, 0).unwrap());
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize
    };
    for _ in 0..3000 {
        let len = next() % 300;
        let packet: Vec<u8> = (0..len).map(|_| next() as u8).collect();
        if let Ok(sound) = decoder.decode(&packet) {
            assert!(!sound.is_empty() && sound.len() <= 2 * LONGEST);
        }
        let _ = decoder.recover(&packet, 1920);
        let _ = decoder.redeem(&packet, 1920 * (1 + next() % 50), 1920);
        assert_eq!(decoder.conceal(240).unwrap().len(), 240);
    }
    assert!(decoder.decode(&[]).is_err() && decoder.recover(&[], 1920).is_err());
    let mut packet = vec![0; 3];
    pad(&mut packet, 60).unwrap();
    assert_eq!((packet.len(), decoder.decode(&packet).unwrap().len()), (60, 960));
    assert!(Encoder::new(3, Application::Voip).is_err() && Decoder::new(1, 11).is_err());
    assert!(encoder(6000, RateControl::Variable).encode(&[0; 100], 100).is_err());
}
