//! Rate control: ARF step by step, and both against the best of all fixed rates.

use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::Instant;
use talkspurt_proto::units::Rate;
use talkspurt_scenario::model;
use talkspurt_sim::cell::rates::Rates;
use talkspurt_sim::cell::timing::Timing;

use super::hops::{cafe, cbr};
use super::saturation;
use crate::support::{point, run, scenario};

#[test]
fn arf_falls_after_two_climbs_after_ten_and_regrets_at_once() {
    let point =
        point(&scenario("1s", &[cafe(&["a"], ""), cbr("up", "a-net", "1Mbit/s", 1400, "")]));
    let timing = Timing::new(&point.scenario.cells[0]);
    let words = model::Arf { up_after: 10, down_after: 2, timer: 15 };
    let mut rates = Rates::new(&model::RateControl::Arf(words), &timing);
    let mut rng = Rng::new(1, "unused");
    let mut send = |acknowledged: bool| {
        let rate = rates.choose(0, Instant::ZERO, &mut rng);
        rates.learn(rate, acknowledged);
        Rate::from_bps(timing.rates[rate].bps).to_string()
    };
    // Kamerman and Monteban 1997 §V: two failures in a row, one step down; one between, none.
    let told: Vec<String> = [false, true, false, false].map(&mut send).into();
    assert_eq!(told, ["11Mbit/s", "11Mbit/s", "11Mbit/s", "11Mbit/s"]);
    // Ten in a row, one step up; the first after it fails: back.
    for _ in 0..10 {
        assert_eq!(send(true), "5500kbit/s");
    }
    assert_eq!(send(false), "11Mbit/s");
    assert_eq!(send(true), "5500kbit/s");
    // Not ten in a row, but fifteen since: up in any case, with the next acknowledgement.
    for _ in 0..7 {
        assert_eq!(send(true), "5500kbit/s");
    }
    assert_eq!(send(false), "5500kbit/s");
    for _ in 0..6 {
        assert_eq!(send(true), "5500kbit/s");
    }
    for _ in 0..9 {
        assert_eq!(send(true), "11Mbit/s");
    }
}

/// Goodput in Mbit/s of a station that has always something to send.
fn goodput(standard: &str, rate: &str, snr_db: f64) -> f64 {
    let words = format!("standard = '{standard}'\nsnr_db = {snr_db:?}\nrate = {rate}");
    let run =
        run(&scenario("8s", &[cafe(&["a"], &words), cbr("up", "a-net", "40Mbit/s", 1400, "")]));
    run.flow("up").goodput_bps.expect("something arrives") / 1e6
}

#[test]
fn both_come_near_the_best_fixed_rate() {
    for (standard, fixed) in [
        ("802.11b", &["1", "2", "5.5", "11"][..]),
        ("802.11g", &["6", "9", "12", "18", "24", "36", "48", "54"]),
        ("802.11n", &["6.5", "13", "19.5", "26", "39", "52", "58.5", "65"]),
    ] {
        for snr_db in [7.0, 14.0, 22.0, 30.0] {
            let of = |rate: &str| {
                goodput(standard, &format!("{{ kind = 'fixed', rate = '{rate}Mbit/s' }}"), snr_db)
            };
            let best = fixed.iter().map(|rate| of(rate)).fold(0.0, f64::max);
            let arf = goodput(standard, "{ kind = 'arf' }", snr_db);
            let minstrel = goodput(standard, "{ kind = 'minstrel' }", snr_db);
            println!(
                "{standard} {snr_db} dB: best {best:.2}, ARF {arf:.2}, Minstrel {minstrel:.2}"
            );
            assert!(minstrel > 0.85 * best, "{standard} {snr_db} dB: Minstrel {minstrel}, {best}");
            assert!(arf > 0.5 * best, "{standard} {snr_db} dB: ARF {arf}, {best}");
        }
    }
}

/// ARF cannot distinguish a collision from a bad channel.
#[test]
fn arf_slows_down_a_crowd() {
    let of = |n, rate: &str| {
        saturation::goodput(n, 1500, 60, &format!("standard = '802.11b'\nrate = {rate}")) / 1e6
    };
    let fixed = "{ kind = 'fixed', rate = '11Mbit/s' }";
    let (alone, crowd) = (of(1, "{ kind = 'arf' }"), of(20, "{ kind = 'arf' }"));
    println!("ARF: alone {alone:.2}, 20 stations {crowd:.2}; fixed {:.2}", of(20, fixed));
    assert!((alone / of(1, fixed) - 1.0).abs() < 0.01);
    assert!(crowd < 0.7 * of(20, fixed), "{crowd}");
}
