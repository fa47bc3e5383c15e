//! ITU-T G.711 Appendix I: properties from its text, on tones and on the included speech.

use std::f64::consts::TAU;
use std::path::Path;

use talkspurt_app::codec::Codec::Pcmu;
use talkspurt_app::codec::Encoding;
use talkspurt_app::conceal::appendix_i;
use talkspurt_app::file::Disk;
use talkspurt_app::playout::Concealment::{self, G711AppendixI, Silence};
use talkspurt_app::playout::{Received, render};
use talkspurt_app::recording::Recording;
use talkspurt_proto::math::{cos, log10, sin};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::Duration;

const START: usize = 1600;

fn tone(hz: f64, len: usize) -> Vec<i16> {
    (0..len).map(|n| (10_000.0 * sin(TAU * hz * n as f64 / 8000.0)).round() as i16).collect()
}
/// `pcm` with `len` samples from `START` lost and concealed.
fn concealed(pcm: &[i16], len: usize) -> Vec<i16> {
    let mut heard = pcm.to_vec();
    heard[START..START + len].fill(0);
    appendix_i(&mut heard, START..START + len, pcm.len(), 8000);
    heard
}
fn rms(x: &[i16]) -> f64 {
    (x.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>() / x.len() as f64).sqrt()
}
fn snr_db(clean: &[i16], heard: &[i16]) -> f64 {
    let (mut signal, mut noise) = (0.0, 0.0);
    for (&c, &h) in clean.iter().zip(heard) {
        signal += f64::from(c) * f64::from(c);
        noise += (f64::from(c) - f64::from(h)) * (f64::from(c) - f64::from(h));
    }
    10.0 * log10(signal / noise.max(1e-9))
}

#[test]
fn ten_milliseconds_of_a_steady_tone_are_filled_without_a_trace() {
    for hz in [80.0, 100.0, 160.0, 200.0] {
        // Periods of 100, 80, 50 and 40 samples: integers, so the repetition can be exact.
        let clean = tone(hz, 3200);
        let heard = concealed(&clean, 80);
        let worst = clean.iter().zip(&heard).map(|(c, h)| (c - h).abs()).max().unwrap();
        assert!(worst <= 1, "{hz} Hz is off by {worst}");
    }
}

#[test]
fn at_16_khz_everything_takes_the_same_time() {
    // Pulses of 1 ms, as below, at every period from 2.5 to 7.5 ms.
    let pulse = |k: usize| 5000.0 * (1.0 - cos(TAU * k as f64 / 16.0));
    for period in 80..=240 {
        let value = |n: usize| if n % period < 16 { pulse(n % period).round() as i16 } else { 0 };
        let clean: Vec<i16> = (0..6400).map(value).collect();
        let mut heard = clean.clone();
        heard[3200..3200 + 160].fill(0);
        appendix_i(&mut heard, 3200..3200 + 160, 6400, 16_000);
        let worst = clean.iter().zip(&heard).map(|(c, h)| (c - h).abs()).max().unwrap();
        assert!(worst <= 1, "period {period}: off by {worst}");
    }
    let angle = |n: usize| TAU * 100.0 * n as f64 / 16_000.0;
    let clean: Vec<i16> = (0..6400).map(|n| (10_000.0 * sin(angle(n))).round() as i16).collect();
    let mut long = clean.clone();
    appendix_i(&mut long, 3200..3200 + 1600, 6400, 16_000);
    for (frame, level) in [1.0, 0.9, 0.7, 0.5, 0.3, 0.1].iter().enumerate() {
        let at = 3200 + frame * 160;
        let found = rms(&long[at..at + 160]) / rms(&clean[at..at + 160]);
        assert!((found - level).abs() < 0.05, "frame {frame}: {found}");
    }
    assert!(long[3200 + 960..3200 + 1600].iter().all(|&x| x == 0));
}

#[test]
fn twenty_milliseconds_fade_by_a_fifth_and_nothing_else() {
    let clean = tone(100.0, 3200);
    let heard = concealed(&clean, 160);
    for k in 0..160 {
        let gain = 1.0 - 0.2 * (k as f64 - 80.0).max(0.0) / 80.0;
        let expected = gain * f64::from(clean[START + k]);
        assert!((f64::from(heard[START + k]) - expected).abs() < 2.0, "sample {k}");
    }
    assert!(snr_db(&clean[START..START + 160], &heard[START..START + 160]) > 15.0);
    // No seam: no step exceeds the tone's own maximum, 10 000 · 2π · 100 / 8000 = 785.
    let step = heard.windows(2).map(|w| (i32::from(w[1]) - i32::from(w[0])).abs()).max();
    assert!(step.unwrap() <= 800, "{step:?}");
}

#[test]
fn it_fades_to_silence_after_60_ms() {
    let clean = tone(125.0, 4800);
    let heard = concealed(&clean, 800);
    let level = |frame: usize| rms(&heard[START + frame * 80..START + (frame + 1) * 80]);
    // Mean square of a linear fade from a to b is (a² + ab + b²) / 3; 1.25 cycles of the tone in
    // 10 ms spread around it.
    let full = 10_000.0 / 2.0_f64.sqrt();
    for (frame, (a, b)) in
        [(1.0, 1.0), (1.0, 0.8), (0.8, 0.6), (0.6, 0.4), (0.4, 0.2), (0.2, 0.0)].iter().enumerate()
    {
        let expected = full * ((a * a + a * b + b * b) / 3.0_f64).sqrt();
        assert!((level(frame) / expected - 1.0).abs() < 0.15, "{frame}: {}", level(frame));
    }
    assert!(heard[START + 480..START + 800].iter().all(|&x| x == 0));
}

#[test]
fn the_overlap_behind_an_erasure_grows_with_it() {
    // Appendix I: a quarter pitch period after 10 ms, 4 ms more per further 10 ms, at most 10 ms.
    // A change of signal during the erasure shows how far the overlap reaches.
    for (erased, overlap) in [(80, 20), (160, 52), (240, 80), (480, 80), (800, 80)] {
        let mut pcm = tone(100.0, 4800);
        pcm[START..].fill(5000);
        let heard = concealed(&pcm, erased);
        let behind = &heard[START + erased..];
        let reach = behind.iter().rposition(|&x| x != 5000).map_or(0, |at| at + 1);
        assert!((overlap - 2..=overlap).contains(&reach), "{erased}: {reach} not {overlap}");
    }
}

/// A triangle and its third harmonic, falling from 145 to 85 Hz, with some noise; integers only, so that
/// another program can reproduce it.
fn falling_voice(len: i64) -> Vec<i16> {
    let triangle = |n: i64, period: i64, amplitude: i64| {
        let phase = n % period;
        let folded = if 2 * phase < period { 4 * phase - period } else { 3 * period - 4 * phase };
        (amplitude * folded).div_euclid(period)
    };
    let mut noise = 1_i64;
    let sample = |n: i64| {
        noise = (noise * 1_103_515_245 + 12_345) % (1 << 31);
        let period = 55 + n / 80;
        let tone = triangle(n, period, 6000) + triangle(3 * n, period, 1500);
        (tone + (noise >> 16) % 401 - 200) as i16
    };
    (0..len).map(sample).collect()
}

#[test]
fn it_equals_the_itus_reference_algorithm() {
    let reference: Vec<i16> = include_str!("g711_appendix_i/reference.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| line.split(' ').map(|x| x.parse::<i16>().unwrap()))
        .collect();
    let mut heard = falling_voice(40 * 80);
    // Erasures of 10, 20, 30, 70, 10 and 40 ms, in frames of 10 ms; between the last two, the overlap after one
    // is the history of the next.
    let erasures = [6..7, 9..11, 14..17, 20..27, 29..30, 31..35];
    let next = erasures.iter().skip(1).map(|gap| gap.start).chain([40]);
    for (gap, until) in erasures.iter().zip(next) {
        heard[gap.start * 80..gap.end * 80].fill(0);
        appendix_i(&mut heard, gap.start * 80..gap.end * 80, until * 80, 8000);
    }
    let worst = heard.iter().zip(&reference).map(|(h, r)| (h - r).abs()).max().unwrap();
    // The reference truncates after every step; this code rounds once.
    assert!(worst <= 4, "off by {worst}");
}

#[test]
fn the_pitch_is_found_at_every_period() {
    // Glottis-like pulses, 8 samples wide; a period wrong by one sample misplaces all of them.
    let pulse = [0, 1464, 5000, 8536, 10_000, 8536, 5000, 1464];
    for period in 40..=120 {
        let clean: Vec<i16> =
            (0..3200).map(|n| pulse.get(n % period).copied().unwrap_or(0)).collect();
        let heard = concealed(&clean, 80);
        let worst = clean.iter().zip(&heard).map(|(c, h)| (c - h).abs()).max().unwrap();
        assert!(worst <= 1, "period {period}: off by {worst}");
    }
}

#[test]
fn without_history_there_is_silence() {
    let mut pcm = vec![0; 400];
    pcm[160..].fill(1000);
    let mut heard = pcm.clone();
    appendix_i(&mut heard, 0..160, 400, 8000);
    assert!(heard[..160].iter().all(|&x| x == 0));
    assert_eq!(heard[160 + 80..], pcm[160 + 80..]);
}

/// The included speech with 5 % of its 20 ms packets lost: clean, and with a concealment.
fn call(how: Concealment) -> (Vec<i16>, Vec<i16>, Vec<(usize, usize)>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../speech/sense-and-sensibility.wav");
    let recording =
        Recording::open(&Disk, &path, &[Encoding::new(Pcmu, Duration::from_millis(20))], None)
            .unwrap();
    let mut rng = Rng::new(1, "appendix-i");
    let encoded = recording.encoded.expect("a codec without state");
    let received =
        |payload, index| Received { payload, encoding: Some(0), index, marker: false, ahead: 0 };
    let packets: Vec<_> = encoded
        .chunks(160)
        .zip(0..)
        .map(|(chunk, index)| {
            (!rng.chance(0.05)).then(|| received(encoded.slice_ref(chunk), index))
        })
        .collect();
    let encoding = Encoding::new(Pcmu, Duration::from_millis(20));
    let heard = render(&[encoding], how, &packets, None, encoded.len(), None);
    (encoding.decoder().expect("it is heard").decode(&encoded), heard.pcm, heard.gaps)
}

/// Log-spectral distance in dB over 32 ms: the root mean square difference of power spectra.
fn log_spectral_distance(clean: &[i16], heard: &[i16]) -> f64 {
    const N: usize = 256;
    let spectrum = |x: &[i16]| -> Vec<f64> {
        (1..N / 2)
            .map(|bin| {
                let (mut re, mut im) = (0.0, 0.0);
                for (n, &x) in x.iter().enumerate() {
                    let window = 0.5 - 0.5 * cos(TAU * n as f64 / N as f64);
                    let angle = TAU * (bin * n % N) as f64 / N as f64;
                    re += window * f64::from(x) * cos(angle);
                    im += window * f64::from(x) * sin(angle);
                }
                // The floor is about one step of 16 bits.
                10.0 * log10((re * re + im * im).max(1e4))
            })
            .collect()
    };
    let (a, b) = (spectrum(clean), spectrum(heard));
    let sum: f64 = a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum();
    (sum / a.len() as f64).sqrt()
}

#[test]
fn on_speech_it_is_closer_to_the_original_than_silence() {
    let distances = |how| {
        let (clean, heard, gaps) = call(how);
        let (mut spectral, mut snr, mut gaps_heard) = (0.0, 0.0, 0.0);
        for (start, len) in gaps {
            let span = start..start + len;
            if rms(&clean[span.clone()]) < 200.0 || start < 160 || start + 320 > clean.len() {
                continue; // pauses and the ends are ignored
            }
            let around = start - 48..start + 208;
            spectral += log_spectral_distance(&clean[around.clone()], &heard[around]);
            snr += snr_db(&clean[span.clone()], &heard[span]).clamp(-10.0, 35.0);
            gaps_heard += 1.0;
        }
        (spectral / gaps_heard, snr / gaps_heard, gaps_heard)
    };
    let (filled, silent) = (distances(G711AppendixI), distances(Silence));
    println!("log-spectral distance, segmental SNR, gaps: {filled:?} silence {silent:?}");
    assert!(filled.2 >= 10.0, "too few gaps to tell");
    assert!(filled.0 < 0.75 * silent.0, "{filled:?} {silent:?}");
    assert!(filled.1 > silent.1 + 0.5, "{filled:?} {silent:?}");
}

#[test]
fn gaps_are_where_packets_were_lost_and_nowhere_else() {
    let (clean, heard, gaps) = call(Silence);
    let lost = |at: usize| gaps.iter().any(|&(start, len)| (start..start + len).contains(&at));
    for at in 0..clean.len() {
        assert_eq!(heard[at], if lost(at) { 0 } else { clean[at] }, "sample {at}");
    }
}
