//! The source with a ladder: departure times and codecs on one media clock; and the score of a call in several
//! codecs.

use talkspurt_app::codec::{Codec, step};
use talkspurt_app::playout::Concealment;
use talkspurt_app::quality;
use talkspurt_app::source::{Config, KeepAlive, Speech, Talkspurts, Timed, Unit};
use talkspurt_proto::rate::Rung;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};

const MS: Duration = Duration::from_millis(1);
const STOP: Instant = Instant::from_nanos(60_000_000_000);

/// Packets of this codec without audio.
fn unheard(codec: Codec) -> Speech {
    serde_json::from_value(serde_json::json!({ "codec": codec })).expect("a codec suffices")
}

fn ladder() -> Speech {
    Speech {
        ladder: vec![Codec::Pcmu, Codec::G726At32, Codec::G728, Codec::G729, Codec::G7231At63],
        noise: Duration::ZERO,
        ..unheard(Codec::Pcmu)
    }
}

fn source(speech: &Speech) -> Timed {
    Timed::speech(speech, None, None, Rng::new(1, "source"), Instant::ZERO, STOP)
}

/// Units and their departure times.
fn take(source: &mut Timed, count: usize) -> Vec<(u64, Unit)> {
    let mut units = Vec::new();
    for _ in 0..count {
        let due = source.due().expect("more to come");
        let unit = source.take(due).expect("its turn");
        units.push((due.as_nanos() / 1_000_000, unit));
    }
    units
}

#[test]
fn rungs_are_what_a_packet_hands_over() {
    // RTP's 12 bytes and 160, 80, 40, 20 bytes in 20 ms; 24 bytes in G.723.1's 30 ms.
    let rung = |packet_bytes, ms| Rung { packet_bytes, interval: MS * ms };
    let expected = [rung(172, 20), rung(92, 20), rung(52, 20), rung(32, 20), rung(36, 30)];
    assert_eq!(Config::Speech(ladder()).rungs(), expected);
    // Packets of 40 ms are two frames of G.723.1.
    let longer = Speech { packet: MS * 40, ..ladder() };
    assert_eq!(longer.encodings()[4].packet, MS * 60);
    assert_eq!(step(&ladder().encodings()), MS * 10);
    assert_eq!(step(&unheard(Codec::G7231At53).encodings()[..1]), MS * 20);
}

#[test]
fn the_interval_changes_and_the_media_clock_goes_on() {
    let mut source = source(&ladder());
    let best = take(&mut source, 3);
    // 36 bytes in 30 ms are 9.6 kbit/s, and the rung above has 12.8.
    source.set_target_rate(Rate::from_bps(12_799));
    let after = take(&mut source, 3);
    source.set_target_rate(Rate::from_bps(12_800));
    let back = take(&mut source, 3);
    let seen: Vec<_> = best
        .iter()
        .chain(&after)
        .chain(&back)
        .map(|(due, unit)| {
            let captured = unit.captured.as_nanos() / 1_000_000;
            (unit.index, unit.slot, captured, *due, unit.encoding, unit.payload.len())
        })
        .collect();
    assert_eq!(
        seen,
        [
            // Number, position in steps of 10 ms, first sample and departure in ms, rung, bytes.
            (0, 0, 0, 20, 0, 160),
            (1, 2, 20, 40, 0, 160),
            (2, 4, 40, 60, 0, 160),
            // Begun before the change was requested: finished as begun.
            (3, 6, 60, 80, 0, 160),
            // 30 ms, and G.723.1's look-ahead of 7.5.
            (4, 8, 80, 117, 4, 24),
            (5, 11, 110, 147, 4, 24),
            (6, 14, 140, 177, 4, 24),
            // G.729's look-ahead is 5 ms.
            (7, 17, 170, 195, 3, 20),
            (8, 19, 190, 215, 3, 20),
        ]
    );
}

#[test]
fn before_the_first_unit_the_change_is_at_once() {
    let mut source = source(&ladder());
    source.set_target_rate(Rate::ZERO);
    let first = take(&mut source, 1);
    assert_eq!((first[0].0, first[0].1.encoding), (37, 4), "the lowest there is");
}

#[test]
fn silence_carries_small_packets_and_talk_resumes_on_the_clock() {
    let every = KeepAlive { every: MS * 295, size: Size::from_bytes(3), at_once: false };
    let speech =
        Speech { talkspurts: Some(Talkspurts::default()), keep_alive: Some(every), ..ladder() };
    let silent = Speech { keep_alive: None, ..speech.clone() };
    let units = |speech: &Speech| {
        let mut source = source(speech);
        std::iter::from_fn(|| source.take(source.due()?)).collect::<Vec<_>>()
    };
    let (kept, plain) = (units(&speech), units(&silent));
    // Talk is unchanged: the same slots, the same marks.
    let talk: Vec<_> = kept.iter().filter(|unit| !unit.keep_alive).collect();
    assert!(talk.len() > 500);
    let same = |unit: &&Unit| (unit.slot, unit.marker, unit.captured);
    assert!(talk.iter().map(same).eq(plain.iter().collect::<Vec<_>>().iter().map(same)));
    // In silence, 3 bytes every 300 ms (295 in steps of 20), and no longer gap.
    let mut gaps = 0;
    for pair in kept.windows(2) {
        let gap = (pair[1].captured - pair[0].captured).as_nanos() / 1_000_000;
        if pair[1].keep_alive {
            let talked = u64::from(!pair[0].keep_alive) * 20;
            assert_eq!(gap, 300 + talked);
            assert_eq!((pair[1].payload.len(), pair[1].marker), (3, false));
            gaps += 1;
        }
        assert!(gap <= 320, "{gap}");
    }
    assert!(gaps > 50, "{gaps}");
}

#[test]
fn several_codecs_score_by_their_means() {
    let score = |heard: &[(Codec, u64)], loss| {
        quality::score(
            &quality::Config::default(),
            heard,
            Concealment::G711AppendixI,
            Duration::from_millis(100),
            loss,
            1.0,
        )
    };
    let r = |heard: &[(Codec, u64)]| score(heard, 0.0).r.expect("G.113 has Ie");
    // Without loss R falls by Ie itself: 0, 7 and 15 weighted 2, 1, 1 are 5.5.
    let pcmu = r(&[(Codec::Pcmu, 1)]);
    let mixed = [(Codec::Pcmu, 200), (Codec::G728, 100), (Codec::G7231At63, 100)];
    assert!((pcmu - r(&mixed) - 5.5).abs() < 1e-9);
    assert!((pcmu - r(&[(Codec::G729, 7)]) - 10.0).abs() < 1e-9);
    // A codec of the ladder that was not used needs no value; one that was does.
    let unused = [(Codec::Pcmu, 10), (Codec::G729At10, 0)];
    assert!((r(&unused) - pcmu).abs() < 1e-9);
    let invented = score(&[(Codec::Pcmu, 10), (Codec::G729At10, 1)], 0.0);
    assert_eq!((invented.r, invented.mos), (None, None));
    let told = "no Ie for G.729 10, and quality.codecs declares none: declare one, or use g729a";
    assert!(invented.note.contains(told), "{}", invented.note);
    let pointed = [
        (Codec::G729, "no Bpl for G.729,", "use g729a, which has both"),
        (Codec::G7231At53, "no Bpl for G.723.1 5.3,", "use g723.1-6.3, which has both"),
    ];
    for (codec, lacks, other) in pointed {
        let note = score(&[(codec, 7)], 0.01).note;
        assert!(note.contains(lacks) && note.contains(other), "{note}");
        assert!(note.contains("quality.codecs declares none: declare one"), "{note}");
    }
    // Nothing of these Recommendations is published.
    for codec in [Codec::G728, Codec::Opus, Codec::G722, Codec::Amr475, Codec::G726At32] {
        let note = score(&[(codec, 7)], 0.01).note;
        let whole = format!("for {}, and quality.codecs declares none;", codec.spec().name);
        assert!(note.contains(&whole), "{note}");
    }
    // Declared values replace those of G.113, and give a score where it has none.
    let declared = quality::Declared {
        codec: Codec::G729At10,
        ie: 12.0,
        bpl: Some(19.0),
        source: "a guess; nothing else".to_owned(),
    };
    let config = quality::Config { codecs: vec![declared], ..quality::Config::default() };
    let own = |loss| {
        let heard = [(Codec::Pcmu, 1), (Codec::G729At10, 1)];
        let delay = Duration::from_millis(100);
        quality::score(&config, &heard, Concealment::G711AppendixI, delay, loss, 1.0)
    };
    assert!((pcmu - own(0.0).r.expect("declared") - 6.0).abs() < 1e-9);
    let (ie, bpl) = (6.0, f64::midpoint(25.1, 19.0));
    let ie_eff = ie + (95.0 - ie) * 2.0 / (2.0 + bpl);
    assert!((pcmu - own(0.02).r.expect("declared") - ie_eff).abs() < 1e-9);
    let note = own(0.0).note;
    let name = Codec::G729At10.spec().name;
    let clause =
        format!("Ie 12 and Bpl 19 for {name} as declared, not from ITU-T: a guess, nothing else");
    assert!(note.split("; ").any(|part| part == clause), "{note}");
    // With loss, Bpl must be known too: G.113 has none for G.728; these have 16.1 and 25.1.
    assert_eq!(score(&mixed, 0.01).mos, None);
    let known = [(Codec::Pcmu, 50), (Codec::G7231At63, 50)];
    let (ie, bpl, ppl) = (7.5, f64::midpoint(25.1, 16.1), 1.0);
    // G.107 equation 7-29 with BurstR 1.
    let ie_eff = ie + (95.0 - ie) * ppl / (ppl + bpl);
    let lossy = score(&known, 0.01).r.expect("both have Bpl");
    assert!((pcmu - lossy - ie_eff).abs() < 1e-9, "{lossy}");
}
