//! Decoders of G.722 and G.726 follow the concealment of a gap.
#![expect(clippy::disallowed_methods, reason = "compared with tolerances only")]

use bytes::Bytes;

use talkspurt_app::playout::{Concealment, Received, render};
use talkspurt_app::{Codec, Encoding};

const MS: usize = 20;

/// A voice whose loudness and pitch change from sound to sound.
fn voice(samples: usize, rate: f64) -> Vec<i16> {
    let mut phase = 0.0_f64;
    let sample = |k: usize| {
        let seconds = k as f64 / rate;
        phase += (110.0 + 60.0 * (seconds * 1.7).sin()) / rate;
        let loudness = (0.5 + 0.5 * (seconds * 9.0).sin()).powi(3);
        let tone = |h: f64| (std::f64::consts::TAU * phase * h).sin() / h;
        (9000.0 * loudness * (1..=12).map(|h| tone(f64::from(h))).sum::<f64>()) as i16
    };
    (0..samples).map(sample).collect()
}

/// The largest sample after each gap, relative to the same without a gap.
fn peaks(codec: Codec, concealment: Concealment) -> Vec<f64> {
    let encoding = Encoding::new(codec, talkspurt_proto::time::Duration::from_millis(MS as u64));
    let rate = codec.spec().sample_rate as usize;
    let length = rate * MS / 1000;
    let said = voice(300 * length, rate as f64);
    let mut encoder = encoding.encoder().expect("it has sound");
    let sent: Vec<Bytes> = said.chunks(length).map(|pcm| encoder.encode(pcm, None)).collect();
    let heard = |lost: Option<usize>| {
        let packet = |(slot, payload): (usize, &Bytes)| {
            let (payload, index) = (payload.clone(), slot as u32);
            let is_there = lost.is_none_or(|lost| !(lost..lost + 3).contains(&slot));
            is_there.then(|| Received {
                payload,
                encoding: Some(0),
                index,
                marker: false,
                ahead: 0,
            })
        };
        let packets: Vec<_> = sent.iter().enumerate().map(packet).collect();
        render(&[encoding], concealment, &packets, None, said.len(), None).pcm
    };
    let clean = heard(None);
    let places = (5..290).step_by(6);
    let largest = |pcm: &[i16], at: usize| {
        let after = &pcm[(at + 3) * length..(at + 6) * length];
        after.iter().map(|x| f64::from(*x).abs()).fold(300.0, f64::max)
    };
    places.map(|at| largest(&heard(Some(at)), at) / largest(&clean, at)).collect()
}

#[test]
fn what_follows_a_gap_clicks_less() {
    let codecs = [Codec::G726At16, Codec::G726At24, Codec::G726At32, Codec::G726At40, Codec::G722];
    let (mut clicks, mut naive_clicks) = (0, 0);
    for codec in codecs {
        let followed = peaks(codec, Concealment::G711AppendixI);
        let frozen = peaks(codec, Concealment::G711AppendixIFrozen);
        let mean = |peaks: &[f64]| peaks.iter().map(|peak| peak.ln()).sum::<f64>();
        assert!(mean(&followed) < mean(&frozen), "{codec:?}: {followed:?} {frozen:?}");
        let number = |peaks: &[f64]| peaks.iter().filter(|peak| **peak > 2.0).count();
        clicks += number(&followed);
        naive_clicks += number(&frozen);
    }
    assert!(4 * clicks <= 3 * naive_clicks, "{clicks} of {naive_clicks}");
}
