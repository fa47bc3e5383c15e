//! Timed sources: instants and sizes of their units.

use super::*;
use crate::codec::{Codec, Encoder, Encoding};
use crate::source::{Distribution, KeepAlive, Talkspurts};
use proptest::prelude::*;
use talkspurt_proto::rng::Rng;

const STOP: Instant = Instant::from_nanos(200_000_000_000_000);

/// Packets of this codec without audio.
fn unheard(codec: Codec) -> Speech {
    serde_json::from_value(serde_json::json!({ "codec": codec })).expect("a codec suffices")
}

fn cbr(noise: Duration, seed: u64) -> Timed {
    let cbr = Cbr { rate: Rate::from_bps(64_000), packet: Size::from_bytes(160), noise };
    Timed::cbr(&cbr, Rng::new(seed, "source"), Instant::from_nanos(7), STOP)
}

/// Units with the instants at which they leave.
fn units(source: &mut Timed) -> impl Iterator<Item = (Instant, Unit)> {
    std::iter::from_fn(|| {
        let due = source.due()?;
        assert!(source.take(Instant::from_nanos(due.as_nanos() - 1)).is_none());
        Some((due, source.take(due).expect("its turn has come")))
    })
}

#[test]
fn a_unit_leaves_when_its_last_sample_is_there() {
    for (index, (due, unit)) in units(&mut cbr(Duration::ZERO, 1)).take(1000).enumerate() {
        let captured = Instant::from_nanos(7) + Duration::from_millis(20) * index as u64;
        assert_eq!((unit.index as usize, unit.slot as usize), (index, index));
        assert_eq!((unit.captured, due), (captured, captured + Duration::from_millis(20)));
        assert_eq!(unit.marker, index == 0);
        assert_eq!(unit.payload, Payload::Virtual { offset: 160 * index as u64, len: 160 });
    }
}

#[test]
fn the_last_unit_is_complete_by_the_stop() {
    let last = |stop: u64| {
        let cbr = Cbr {
            rate: Rate::from_bps(64_000),
            packet: Size::from_bytes(160),
            noise: Duration::ZERO,
        };
        let stop = Instant::from_nanos(stop);
        units(&mut Timed::cbr(&cbr, Rng::new(1, "source"), Instant::ZERO, stop)).count()
    };
    assert_eq!([last(1_000_000_000), last(999_999_999), last(1)], [50, 49, 0]);
}

proptest! {
    #[test]
    fn noise_is_bounded_seeded_and_keeps_order(ms in 0_u64..100, seed: u64) {
        let noise = Duration::from_millis(ms);
        let dues = |seed| -> Vec<_> {
            units(&mut cbr(noise, seed)).take(200).map(|(due, _)| due).collect()
        };
        let noisy = dues(seed);
        for (due, turn) in noisy.iter().zip(dues_without_noise()) {
            prop_assert!(*due >= turn && *due - turn <= noise.saturating_sub(Duration::from_nanos(1)));
        }
        prop_assert!(noisy.is_sorted());
        prop_assert_eq!(&noisy, &dues(seed));
        prop_assert!(ms == 0 || noisy != dues(seed ^ 1));
    }
}

fn dues_without_noise() -> impl Iterator<Item = Instant> {
    (1_u64..).map(|turn| Instant::from_nanos(7) + Duration::from_millis(20) * turn)
}

/// Talkspurts and silences of units of 5 ms, in seconds.
fn spurts(source: &mut Timed, count: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut talk, mut silence) = (Vec::new(), Vec::new());
    let (mut began, mut last) = (0, 0);
    for (_, unit) in units(source) {
        if unit.marker && unit.index > 0 {
            talk.push((last + 1 - began) as f64 * 0.005);
            silence.push((unit.slot - last - 1) as f64 * 0.005);
            began = unit.slot;
        }
        assert_eq!(unit.marker, unit.slot == began);
        last = unit.slot;
        if talk.len() == count {
            break;
        }
    }
    (talk, silence)
}

/// Mean and standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    (mean, square.sqrt())
}

#[test]
fn talkspurts_have_the_means_of_p59() {
    const COUNT: usize = 10_000;
    let on_off = OnOff {
        rate: Rate::from_bps(64_000),
        packet: Size::from_bytes(40),
        on: Talkspurts::default().on,
        off: Talkspurts::default().off,
        noise: Duration::ZERO,
        spread: Distribution::Exponential,
    };
    let mut source = Timed::on_off(&on_off, Rng::new(5, "source"), Instant::ZERO, STOP);
    let (talk, silence) = spurts(&mut source, COUNT);
    // Spurts too short for a unit vanish, one in 400 and 630: their neighbours are joined.
    for (values, mean, blur) in [(talk, 1.004, 0.005), (silence, 1.587, 0.005)] {
        let (measured, deviation) = moments(&values);
        // An exponential's deviation equals its mean: the standard error is 1 %; four of them.
        assert!((measured / mean - 1.0).abs() < 0.04 + blur, "{measured}");
        assert!((deviation / measured - 1.0).abs() < 0.08, "{deviation}");
        let beyond = values.iter().filter(|x| **x > mean).count() as f64 / COUNT as f64;
        assert!((beyond - 0.3679).abs() < 0.02, "{beyond}");
    }
}

#[test]
fn slots_go_on_beyond_32_bits() {
    let on_off = OnOff {
        rate: Rate::from_bps(8_000_000_000),
        packet: Size::from_bytes(1),
        on: Duration::from_micros(1),
        off: Duration::from_secs(5),
        noise: Duration::ZERO,
        spread: Distribution::Exponential,
    };
    let mut source = Timed::on_off(&on_off, Rng::new(3, "source"), Instant::ZERO, STOP);
    let (mut spurts, mut last) = (0, None);
    for (due, unit) in units(&mut source).take(200_000) {
        // An interval is a nanosecond: the slot gives the time, and every unit has its own.
        assert_eq!(unit.captured, Instant::from_nanos(unit.slot));
        assert_eq!(due, Instant::from_nanos(unit.slot + 1));
        assert!(last < Some(unit.slot), "{last:?} {}", unit.slot);
        spurts += u64::from(unit.marker);
        last = Some(unit.slot);
    }
    let mean_gap = last.expect("units") as f64 / spurts as f64;
    assert!(last > Some(10 << 32), "{last:?}");
    // 200 gaps: the standard error is 7 %; three of them.
    assert!((4e9..6e9).contains(&mean_gap), "{mean_gap}");
}

fn speech(samples: usize, repeat: bool) -> Timed {
    let pcm: Vec<i16> = (0..samples).map(|x| (x * 7 % 20_000) as i16).collect();
    let recording =
        Recording::from_pcm(pcm, &Encoding::new(Codec::Pcma, Duration::from_millis(20)));
    let speech = Speech {
        repeat,
        lead: Duration::from_secs(1),
        noise: Duration::ZERO,
        ..unheard(Codec::Pcma)
    };
    let rng = Rng::new(1, "source");
    Timed::speech(&speech, Some(Arc::new(recording)), None, rng, Instant::ZERO, STOP)
}

/// Numbers its packets; each holds its number, the number of samples and the first and last of them, and the
/// requested rate in kbit/s.
#[derive(Debug)]
struct Numbering(u8);

impl Encoder for Numbering {
    fn encode(&mut self, pcm: &[i16], target: Option<Rate>) -> Bytes {
        self.0 += 1;
        let kbps = target.map_or(0, |rate| rate.as_bps() / 1000);
        let ends = [pcm[0] as u8, pcm[pcm.len() - 1] as u8];
        [self.0, (pcm.len() / 80) as u8, ends[0], ends[1], kbps as u8].to_vec().into()
    }
}

fn no_background() -> Background {
    Background { pcm: Arc::new([]), step: 1, window: 0 }
}

#[test]
fn an_encoder_with_state_works_as_the_packets_leave() {
    // 500 samples repeated, in steps of 10 ms: 560 with the last one held.
    let content = |repeat, ladder: &[u64]| {
        let pcm: Vec<i16> = (0..500).map(|x| x / 2).collect();
        let encoding = |ms| Encoding::new(Codec::Pcmu, Duration::from_millis(ms));
        let encoder = || -> Box<dyn Encoder> { Box::new(Numbering(0)) };
        let pcm: Arc<[i16]> = pcm.into();
        let voice = |ms| {
            let pcm = Arc::clone(&pcm);
            Voice { encoding: encoding(ms), encoder: encoder(), pcm, step: 80, ahead: 0 }
        };
        let voices = ladder.iter().map(|ms| voice(*ms)).collect();
        let live = Live { channels: 1, voices, target: None, microphone: None };
        Content { repeat, form: Form::Live(live), background: no_background() }
    };
    let shape = |steps| Shape { steps, bytes: 1, look_ahead: Duration::ZERO };
    let source = |repeat, ladder: &[u64]| {
        let (step, rng) = (Duration::from_millis(10), Rng::new(1, "source"));
        let shapes = ladder.iter().map(|ms| shape(ms / 10)).collect();
        let mut source = Timed::new(shapes, step, Duration::ZERO, rng, Instant::ZERO, STOP);
        source.rates = vec![Rate::from_bps(20_000), Rate::from_bps(10_000)];
        source.begun(Some(content(repeat, ladder)), None, None)
    };
    let take = |source: &mut Timed| {
        let unit = source.due().and_then(|due| source.take(due)).expect("more speech");
        let Payload::Real(bytes) = unit.payload else { panic!("recorded") };
        (unit.slot, unit.encoding, bytes.to_vec())
    };
    let mut once = source(false, &[20, 30]);
    assert_eq!(take(&mut once), (0, 0, vec![1, 2, 0, 79, 0]));
    assert_eq!(take(&mut once), (2, 0, vec![2, 2, 80, 159, 0]));
    // The current unit is finished in its encoding; then packets are longer and another encoder makes them.
    // Each encoder of a ladder has one rate.
    once.set_target_rate(Rate::from_bps(15_000));
    assert_eq!(take(&mut once), (4, 0, vec![3, 2, 160, 239, 0]));
    assert_eq!(take(&mut once), (6, 1, vec![1, 3, 240, 249, 0]));
    assert_eq!((once.due(), once.spoken()), (None, Duration::from_millis(90)));
    // A single encoder gets the new rate less 4.8 kbit/s of headers.
    let mut alone = source(false, &[20]);
    alone.rates.truncate(1);
    alone.set_target_rate(Rate::from_bps(15_000));
    assert_eq!(take(&mut alone), (0, 0, vec![1, 2, 0, 79, 10]));
    let mut again = source(true, &[20, 30]);
    for _ in 0..3 {
        take(&mut again);
    }
    assert_eq!(take(&mut again), (6, 0, vec![4, 2, 240, 39, 0]));
    assert_eq!(take(&mut again), (8, 0, vec![5, 2, 40, 119, 0]));
}

#[test]
fn a_recording_ends_or_starts_over() {
    let lengths = |repeat: bool| -> Vec<usize> {
        let mut source = speech(340, repeat);
        units(&mut source).take(7).map(|(_, unit)| unit.payload.len()).collect()
    };
    assert_eq!(lengths(false), [160, 160, 20]);
    assert_eq!(lengths(true), [160; 7]);
    let mut source = speech(340, true);
    let all: Vec<_> = units(&mut source).take(6).map(|(_, unit)| unit.payload).collect();
    assert_eq!(all[..3], all[3..]);
    let Payload::Real(last) = &all[2] else { panic!("recorded") };
    assert!(last[19..].iter().all(|code| *code == last[19]));
    assert_eq!(units(&mut speech(0, true)).count(), 0);
    // The lead comes first.
    assert_eq!(speech(340, false).due(), Some(Instant::ZERO + Duration::from_millis(1020)));
}

/// Talkspurts and silences with a Pareto tail: P(X > x) = (k/x)^1.5 with k = mean / 3.
#[test]
fn pareto_talkspurts_have_the_tail_of_their_shape() {
    const COUNT: usize = 10_000;
    let on_off = OnOff {
        rate: Rate::from_bps(64_000),
        packet: Size::from_bytes(40),
        on: Duration::from_millis(1500),
        off: Duration::from_millis(3000),
        spread: Distribution::Pareto { shape: 1.5 },
        noise: Duration::ZERO,
    };
    let mut source = Timed::on_off(&on_off, Rng::new(6, "source"), Instant::ZERO, STOP);
    let (talk, silence) = spurts(&mut source, COUNT);
    for (values, least) in [(talk, 0.5), (silence, 1.0)] {
        // Lengths are quantised to units of 5 ms.
        assert!(values.iter().all(|x| *x >= least - 0.0051));
        for times in [2.0, 4.0, 16.0] {
            let expected = talkspurt_proto::math::pow(times, -1.5);
            let beyond = values.iter().filter(|x| **x > least * times).count() as f64;
            let error = (expected * (1.0 - expected) / COUNT as f64).sqrt();
            let blur = expected * 1.5 * 0.005 / (least * times);
            let share = beyond / COUNT as f64;
            assert!((share - expected).abs() < 4.0 * error + blur, "{share} beyond {times} k");
        }
    }
}

/// RFC 3389 §5: at the beginning of a silence a packet of comfort noise is transmitted, its
/// timestamp the beginning of the noise.
#[test]
fn comfort_noise_begins_with_the_silence_if_asked() {
    let gaps = |at_once: bool| -> Vec<(u64, u64)> {
        let every = Duration::from_millis(200);
        let keep_alive = Some(KeepAlive { every, at_once, ..KeepAlive::default() });
        let speech = Speech {
            talkspurts: Some(Talkspurts::default()),
            keep_alive,
            noise: Duration::ZERO,
            ..unheard(Codec::Pcmu)
        };
        let rng = Rng::new(9, "source");
        let mut source = Timed::speech(&speech, None, None, rng, Instant::ZERO, STOP);
        let all: Vec<_> = units(&mut source).take(20_000).collect();
        // It replaces a speech packet and leaves when that would have.
        let wait = Duration::from_millis(if at_once { 20 } else { 0 });
        let noise = all.iter().filter(|(_, unit)| unit.keep_alive);
        assert!(noise.clone().all(|(due, unit)| *due == unit.captured + wait));
        let all: Vec<_> = all.into_iter().map(|(_, unit)| unit).collect();
        let first = all.windows(2).filter(|pair| pair[1].keep_alive && !pair[0].keep_alive);
        let first = first.map(|pair| pair[1].slot - pair[0].slot - 1);
        let later = all.windows(2).filter(|pair| pair[1].keep_alive && pair[0].keep_alive);
        let later = later.map(|pair| pair[1].slot - pair[0].slot);
        assert!(all.iter().all(|unit| !(unit.marker && unit.keep_alive)));
        first.zip(later).collect()
    };
    // Slots are 20 ms.
    assert!(gaps(true).len() > 100 && gaps(true).iter().all(|gap| *gap == (0, 10)));
    assert!(gaps(false).len() > 100 && gaps(false).iter().all(|gap| *gap == (10, 10)));
}

/// Returns its input, of which each sample is a byte, unless that is silent.
#[derive(Debug)]
struct Copying;

impl Encoder for Copying {
    fn encode(&mut self, pcm: &[i16], _: Option<Rate>) -> Bytes {
        let is_silent = pcm.iter().all(|x| *x == 0);
        if is_silent { Bytes::new() } else { pcm.iter().map(|x| *x as u8).collect() }
    }
}

#[test]
fn what_the_encoder_leaves_out_is_not_sent_and_its_input_is_ahead_by_its_delay() {
    // Steps of four samples, of which the encoder delays its output by two; in stereo, two and one.
    for channels in [1, 2] {
        let pcm: Vec<i16> = [1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 7, 8, 9, 10].into();
        let encoding = Encoding::new(Codec::Pcmu, Duration::from_millis(10));
        let (encoder, pcm) = (Box::new(Copying), pcm.into());
        let voices = vec![Voice { encoding, encoder, pcm, step: 4, ahead: 2 }];
        let live = Live { channels, voices, target: None, microphone: None };
        let content =
            Content { repeat: false, form: Form::Live(live), background: no_background() };
        let shapes = vec![Shape { steps: 1, bytes: 4, look_ahead: Duration::ZERO }];
        let (step, rng) = (Duration::from_millis(10), Rng::new(1, "source"));
        let source = Timed::new(shapes, step, Duration::ZERO, rng, Instant::ZERO, STOP);
        let mut source = source.begun(Some(content), None, None);
        let mut taken = Vec::new();
        while let Some(due) = source.due() {
            let Some(unit) = source.take(due) else { continue };
            let Payload::Real(bytes) = unit.payload else { panic!("recorded") };
            taken.push((unit.index, unit.slot, unit.marker, bytes.to_vec()));
        }
        // The last sample of each channel is held.
        let held = if channels == 1 { [10, 10, 10, 10] } else { [9, 10, 9, 10] };
        let expected = [
            (0, 0, true, vec![3, 4, 5, 6]),
            (1, 3, true, vec![7, 8, 9, 10]),
            (2, 4, false, held.to_vec()),
        ];
        assert_eq!(taken, expected, "{channels} channels");
    }
}

#[test]
fn packets_without_content_have_the_length_of_the_requested_rate() {
    let speech = Speech { noise: Duration::ZERO, ..unheard(Codec::Opus) };
    let rng = Rng::new(1, "source");
    let mut source = Timed::speech(&speech, None, None, rng, Instant::ZERO, STOP);
    let mut len = |target: Option<u64>| {
        if let Some(target) = target {
            source.set_target_rate(Rate::from_bps(target));
        }
        source.due().and_then(|due| source.take(due)).map(|unit| unit.payload.len())
    };
    // 20 ms: 32 kbit/s are 80 bytes. Of the rates requested, 4.8 kbit/s are headers; Opus has at least 6
    // kbit/s.
    assert_eq!(len(None), Some(80));
    assert_eq!(len(Some(20_800)), Some(40));
    assert_eq!(len(Some(90_000)), Some(80));
    assert_eq!(len(Some(1_000)), Some(15));
}

/// Units of a recording of 1 s whose speech is from 35 to 95 ms, 205 to 280 ms and, after a pause that vanishes
/// in steps of 20 ms, 285 to 300 ms: slot, marker, and whether it is comfort noise.
fn active(repeat: bool, keep_alive: Option<KeepAlive>) -> Vec<(u64, bool, bool, Payload)> {
    let pcm: Vec<i16> = (0..8000).map(|x| if x % 2 == 0 { 1000 } else { -1000 }).collect();
    let mut recording =
        Recording::from_pcm(pcm, &Encoding::new(Codec::Pcma, Duration::from_millis(20)));
    let ms = Duration::from_millis;
    recording.activity = Some(Arc::new([ms(35)..ms(95), ms(205)..ms(280), ms(285)..ms(300)]));
    let speech = Speech { repeat, keep_alive, noise: Duration::ZERO, ..unheard(Codec::Pcma) };
    let rng = Rng::new(1, "source");
    let recording = Some(Arc::new(recording));
    let mut source = Timed::speech(&speech, recording, None, rng, Instant::ZERO, STOP);
    let units = units(&mut source).take(20);
    units.map(|(_, unit)| (unit.slot, unit.marker, unit.keep_alive, unit.payload)).collect()
}

#[test]
fn with_voice_activity_detection_the_talkspurts_are_those_of_the_recording() {
    let slots = |repeat| -> Vec<(u64, bool)> {
        let units = active(repeat, None);
        assert!(units.iter().all(|unit| unit.3.len() == 160));
        units.into_iter().map(|(slot, marker, ..)| (slot, marker)).collect()
    };
    let talk = |first: u64| [1, 2, 3, 4, 10, 11, 12, 13, 14].map(|slot| first + slot);
    let marked = |slot: u64| (slot, [1, 10].contains(&(slot % 50)));
    assert_eq!(slots(false), talk(0).map(marked));
    let twice: Vec<_> = [talk(0), talk(50)].concat().into_iter().map(marked).collect();
    assert_eq!(slots(true)[..18], twice);
}

/// RFC 3551 §4.1: the marker is set in the first packet after silence.
#[test]
fn a_recording_that_speaks_to_its_end_starts_over_without_the_marker() {
    let pcm = vec![1000; 800];
    let mut recording =
        Recording::from_pcm(pcm, &Encoding::new(Codec::Pcma, Duration::from_millis(20)));
    recording.activity = Some(Arc::new([Duration::ZERO..Duration::from_millis(100)]));
    let speech = Speech { repeat: true, noise: Duration::ZERO, ..unheard(Codec::Pcma) };
    let rng = Rng::new(1, "source");
    let recording = Some(Arc::new(recording));
    let mut source = Timed::speech(&speech, recording, None, rng, Instant::ZERO, STOP);
    let marked: Vec<_> = units(&mut source).take(20).map(|(_, unit)| unit.marker).collect();
    assert!(marked[0] && marked[1..].iter().all(|marker| !marker), "{marked:?}");
}

#[test]
fn comfort_noise_describes_the_recording_and_ends_with_it() {
    let every = Duration::from_millis(100);
    let noise = |at_once| {
        let keep_alive = KeepAlive { every, at_once, ..KeepAlive::default() };
        let noise = active(false, Some(keep_alive)).into_iter().filter(|unit| unit.2);
        noise.map(|(slot, marker, _, payload)| (slot, marker, payload)).collect::<Vec<_>>()
    };
    let slots = |at_once| noise(at_once).into_iter().map(|unit| unit.0).collect::<Vec<_>>();
    let after: Vec<u64> = (20..50).step_by(5).collect();
    assert_eq!(slots(false), after[..], "15 is the first slot of the last silence");
    let at_once: Vec<u64> = [0, 5].into_iter().chain((15..50).step_by(5)).collect();
    assert_eq!(slots(true), at_once);
    // 1000 of 32768 is −30.3 dBov.
    for (slot, marker, payload) in noise(false) {
        let Payload::Real(payload) = payload else { panic!("recorded") };
        assert_eq!((marker, &payload[..]), (false, &[30][..]), "{slot}");
    }
}

#[test]
fn silence_throughout_sends_nothing() {
    for repeat in [false, true] {
        let mut recording = Recording::from_pcm(
            vec![0; 4000],
            &Encoding::new(Codec::Pcma, Duration::from_millis(20)),
        );
        recording.activity = Some(Arc::new([]));
        let speech = Speech { repeat, noise: Duration::ZERO, ..unheard(Codec::Pcma) };
        let rng = Rng::new(1, "source");
        let recording = Some(Arc::new(recording));
        let mut source = Timed::speech(&speech, recording, None, rng, Instant::ZERO, STOP);
        assert_eq!(units(&mut source).count(), 0);
    }
}
