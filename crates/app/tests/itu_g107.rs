//! ITU-T G.107: published ratings, closed forms, and the parts of a score adding up.

use proptest::prelude::*;
use talkspurt_app::codec::Codec;
use talkspurt_app::playout::Concealment::{self, G711AppendixI, Silence};
use talkspurt_app::quality::emodel::{Parameters, mos};
use talkspurt_app::quality::{Config, Echo, Score, score};
use talkspurt_proto::time::Duration;
use talkspurt_proto::validate::Validate;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
fn scored(config: &Config, how: Concealment, delay: Duration, loss: f64, burst: f64) -> Score {
    score(config, &[(Codec::Pcmu, 1)], how, delay, loss, burst)
}
#[track_caller]
fn assert_near(value: f64, printed: f64, half_a_unit: f64) {
    assert!((value - printed).abs() <= half_a_unit, "{value} is not {printed}");
}

#[test]
fn defaults_give_93_2_and_4_41() {
    // G.107 §7.7: "If all parameters are set to the default values … R = 93.2."
    let r = Parameters::default().rate().r();
    assert_near(r, 93.2, 0.05);
    assert_near(mos(r), 4.41, 0.005);
}

#[test]
fn delay_with_perfect_echo_control() {
    for (delay, r) in [(150, 93.04), (250, 84.29), (400, 69.14)] {
        let score = scored(&Config::default(), G711AppendixI, ms(delay), 0.0, 1.0);
        assert_near(score.r.unwrap(), r, 0.005);
    }
}

#[test]
fn delay_with_echo_loss_65() {
    let config = Config { echo: Echo::Loss, ..Config::default() };
    for (delay, r) in [(150, 89.54), (250, 79.18), (400, 62.25)] {
        assert_near(scored(&config, Silence, ms(delay), 0.0, 1.0).r.unwrap(), r, 0.005);
    }
}

#[test]
fn loss_follows_the_closed_form() {
    // §7.5 with Ie = 0: 95 · Ppl / (Ppl / BurstR + Bpl).
    let clean = Parameters::default().rate().r();
    for (how, bpl) in [(Silence, 4.3), (G711AppendixI, 25.1)] {
        for (ppl, burst) in [(0.5, 1.0), (2.0, 1.0), (5.0, 2.0), (20.0, 1.5)] {
            // R has no values below 0.
            let expected = (clean - 95.0 * ppl / (ppl / burst + bpl)).max(0.0);
            let score = scored(&Config::default(), how, ms(50), ppl / 100.0, burst);
            assert_near(score.r.unwrap(), expected, 1e-9);
        }
    }
}

#[test]
fn mos_by_its_formula_and_its_ends() {
    // Annex B, table B.1: limits of the categories of G.109 (it prints 4.03 for 4.024).
    for (r, printed) in [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
        assert_near(mos(r), printed, 0.0061);
    }
    assert_eq!((mos(-5.0), mos(0.0), mos(100.0), mos(120.0)), (1.0, 1.0, 4.5, 4.5));
    assert_eq!(mos(3.0), 1.0);
}

#[test]
fn far_from_the_defaults_it_equals_an_independent_computation() {
    // Computed in Python, in double precision, from the equations of G.107 (06/2015): R and the terms Ro, Is,
    // Id, Ie-eff. The first three differ only in STMR and so cover TERVs (below 9 dB), TERV, and Idtes (above
    // 20 dB).
    let default = Parameters::default();
    let echo = Parameters { t: 100.0, tr: 200.0, ta: 100.0, telr: 35.0, ..default };
    let noisy = Parameters {
        slr: 2.0,
        rlr: -3.0,
        ps: 60.0,
        pr: 55.0,
        nc: -55.0,
        ds: -1.0,
        dr: 2.0,
        ..default
    };
    let everything = Parameters {
        ta: 300.0,
        s_t: 0.4,
        m_t: 150.0,
        qdu: 4.0,
        wepl: 40.0,
        tr: 120.0,
        a: 10.0,
        ie: 11.0,
        bpl: 19.0,
        ppl: 3.0,
        burst_r: 1.7,
        ..default
    };
    let hopeless = Parameters { slr: 18.0, rlr: 14.0, stmr: 20.0, qdu: 14.0, pr: 85.0, ..default };
    for (parameters, [ro, is, id, ie_eff, r]) in [
        (Parameters { stmr: 8.0, ..echo }, [94.746526, 1.731227, 45.706276, 0.0, 47.309023]),
        (Parameters { stmr: 12.0, ..echo }, [94.763369, 1.414078, 46.101852, 0.0, 47.247439]),
        (Parameters { stmr: 25.0, ..echo }, [94.773706, 3.895229, 46.179513, 0.0, 44.698964]),
        (noisy, [59.639786, 6.108368, 0.144567, 0.0, 53.386851]),
        (everything, [94.768822, 6.416627, 9.143866, 23.135977, 66.072352]),
        (hopeless, [-9.574074, 12.900166, 0.136487, 0.0, -22.610727]),
    ] {
        let rating = parameters.rate();
        assert_near(rating.ro, ro, 1e-6);
        assert_near(rating.is, is, 1e-6);
        assert_near(rating.id, id, 1e-6);
        assert_near(rating.ie_eff, ie_eff, 1e-6);
        assert_near(rating.r(), r, 1e-6);
    }
}

#[test]
fn one_cause_alone_takes_all_that_is_lost() {
    let config = Config::default();
    let best = mos(Parameters::default().rate().r());
    let delay = scored(&config, Silence, ms(300), 0.0, 1.0);
    assert_near(delay.lost_to_delay.unwrap(), best - delay.mos.unwrap(), 1e-12);
    assert_near(delay.lost_to_loss.unwrap(), 0.0, 1e-12);
    let loss = scored(&config, Silence, ms(80), 0.02, 1.0);
    assert_near(loss.lost_to_loss.unwrap(), best - loss.mos.unwrap(), 1e-12);
    assert_near(loss.lost_to_delay.unwrap(), 0.0, 1e-12);
}

#[test]
fn a_note_says_what_was_assumed_and_exceeded() {
    let note =
        |how, delay, loss, burst| scored(&Config::default(), how, ms(delay), loss, burst).note;
    insta::assert_snapshot!(note(G711AppendixI, 100, 0.01, 1.0),
        @"perfect echo control assumed (T = Tr = 0); Bpl 25.1 for G.711 µ-law, gaps concealed by G.711 Appendix I (G.113 Appendix I, 10 ms packets)");
    insta::assert_snapshot!(note(Silence, 600, 0.25, 3.0),
        @"perfect echo control assumed (T = Tr = 0); Bpl 4.3 for G.711 µ-law, gaps played as silence (G.113 Appendix I, 10 ms packets); 600 ms of delay is beyond G.107's 500; 25.0 % of loss is beyond G.107's 20; burst ratio 3.0 at 25.0 % of loss is beyond G.107's 2");
    let none = scored(&Config::default(), Silence, ms(0), f64::NAN, 1.0);
    assert_eq!((none.r, none.mos, none.lost_to_delay), (None, None, None));
    assert!(none.note.starts_with("no score: no frames were counted"));
}

#[test]
fn the_schemas_ranges_are_the_ones_checked() {
    let schema = serde_json::to_value(schemars::schema_for!(Config)).unwrap();
    let default = Config::default();
    assert_eq!(default.errors(), []);
    for (knob, property) in schema["properties"].as_object().unwrap() {
        let Some(least) = property["minimum"].as_f64() else { continue };
        let greatest = property["maximum"].as_f64().unwrap();
        for (value, good) in
            [(least, true), (greatest, true), (least - 0.1, false), (greatest + 0.1, false)]
        {
            let config: Config =
                serde_json::from_value(serde_json::json!({ knob: value })).unwrap();
            let problems = config.errors();
            assert_eq!(problems.is_empty(), good, "{knob} = {value}: {problems:?}");
            assert!(problems.iter().all(|problem| problem.key == *knob));
        }
    }
    let config = Config { telr: f64::NAN, ..default };
    assert_eq!(config.errors().len(), 1);
    assert!(serde_json::from_str::<Config>(r#"{"tler": 60}"#).is_err());
}

proptest! {
    #[test]
    fn parts_add_up_and_are_never_negative(
        delay in 0..2000_u64,
        loss in 0.0..1.0_f64,
        burst in 0.5..10.0_f64,
        echo in prop_oneof![Just(Echo::Perfect), Just(Echo::Loss)],
    ) {
        let config = Config { echo, ..Config::default() };
        let score = scored(&config, G711AppendixI, ms(delay), loss, burst);
        let parts = [score.lost_to_delay, score.lost_to_loss, score.lost_to_codec]
            .map(Option::unwrap);
        let best = mos(Parameters::default().rate().r());
        prop_assert!((score.mos.unwrap() + parts.iter().sum::<f64>() - best).abs() < 1e-9);
        // Near R = 6, where the cubic bends, a part may be slightly negative.
        prop_assert!(parts.iter().all(|&part| part > -0.01), "{parts:?}");
        prop_assert_eq!(parts[2], 0.0);
    }

    #[test]
    fn worse_never_scores_better(
        delay in 0..500_u64, more_delay in 0..500_u64,
        loss in 0.0..0.2_f64, more_loss in 0.0..0.2_f64,
    ) {
        let r = |d, l| scored(&Config::default(), Silence, ms(d), l, 1.0).r.unwrap();
        prop_assert!(r(delay + more_delay, loss) <= r(delay, loss) + 1e-9);
        prop_assert!(r(delay, loss + more_loss) <= r(delay, loss) + 1e-9);
    }
}
