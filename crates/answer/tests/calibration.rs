//! Synthetic studies of which the truth is known: how often intervals contain it, how often claims contradict
//! it, and how often a true difference is found. `docs/validation/answer.md` has the numbers.

use std::fmt::Write as _;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use talkspurt_answer::stats::Mean;
use talkspurt_answer::{Axis, Flows, Input, Run, Verdict, answer};
use talkspurt_proto::math::ln;

/// Random numbers with mean 0 and variance 1.
struct Random(Xoshiro256PlusPlus);

impl Random {
    fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Normal (Marsaglia and Bray 1964).
    fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let s = x * x + y * y;
            if s < 1.0 {
                return x * (-2.0 * ln(s) / s).sqrt();
            }
        }
    }

    /// Exponential: as skewed as rare bursts of loss.
    fn skewed(&mut self) -> f64 {
        -ln(self.uniform()) - 1.0
    }
}

/// A study of a call over an axis: each option has a true mean, and a standard deviation of 1 in units of 0.1
/// MOS beside what its seeds have in common.
fn study(random: &mut Random, truth: &[f64], settings: usize, seeds: u32) -> Input {
    let labels: Vec<_> = (0..truth.len()).map(|at| format!("option-{at}")).collect();
    let others: Vec<_> = (0..settings).map(|at| format!("setting-{at}")).collect();
    let axis = |name: &str, path: &str, labels: &[String]| Axis {
        name: name.into(),
        path: path.into(),
        labels: labels.to_vec(),
        ..Axis::default()
    };
    let (mut runs, mut flows, mut scores) = (Vec::new(), Flows::default(), Vec::new());
    for setting in &others {
        for replicate in 0..seeds {
            let common = random.normal();
            for (label, mean) in labels.iter().zip(truth) {
                scores.push(Some(3.0 + 0.1 * (mean + common + random.normal())));
                flows.run.push(runs.len());
                flows.name.push("call".into());
                flows.transport.push(Some("udp".into()));
                let settings = vec![label.clone(), setting.clone()];
                runs.push(Run { settings, replicate, duration_s: 60.0 });
            }
        }
    }
    flows.numbers.insert("concealed_ratio".into(), vec![Some(0.0); scores.len()]);
    flows.numbers.insert("mos".into(), scores);
    let axes = vec![
        axis("transport", "flows.call.transport", &labels),
        axis("rate", "links.a-b.rate", &others),
    ];
    Input { axes, replications: seeds as usize, confidence: 0.95, runs, flows }
}

/// The share of 95 % intervals of a mean of `count` numbers that contain the true mean, 0.
fn coverage(random: &mut Random, count: usize, number: fn(&mut Random) -> f64) -> f64 {
    const ALL: u32 = 20_000;
    let inside = (0..ALL).filter(|_| {
        let numbers: Vec<_> = (0..count).map(|_| number(random)).collect();
        let mean = Mean::of(&numbers).expect("numbers");
        mean.mean.abs() <= mean.half(0.95).expect("chance")
    });
    inside.count() as f64 / f64::from(ALL)
}

/// What 500 studies claim.
#[derive(Default)]
struct Claims {
    /// Studies with a false "worse" or "best".
    wrong: u32,
    /// Questions with options of which one is truly the best alone, and those that name it so.
    asked: u32,
    found: u32,
}

const STUDIES: usize = 500;

fn claims(random: &mut Random, truths: &[&[f64]], seeds: impl Fn(usize) -> u32) -> Claims {
    let mut claims = Claims::default();
    for at in 0..STUDIES {
        let truth = truths[at % truths.len()];
        let found = answer(&study(random, truth, 1 + at % 3, seeds(at)), &());
        let of = |label: &str| {
            truth[label.trim_start_matches("option-").parse::<usize>().expect("a number")]
        };
        let best = truth.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let alone = truth.iter().filter(|it| **it == best).count() == 1;
        let mut wrong = false;
        for question in &found.questions {
            let (first, others) = question.options.split_first().expect("options");
            let said = question.verdict == Verdict::Best;
            wrong |= others.iter().any(|other| {
                let told = other.differences[0].is_some_and(|it| it.significant == Some(true));
                (told || said) && of(&other.label) >= of(&first.label)
            });
            claims.asked += u32::from(alone);
            claims.found += u32::from(alone && said && of(&first.label) == best);
        }
        claims.wrong += u32::from(wrong);
    }
    claims
}

/// The tables of the page, whose numbers the bands hold for.
fn tables() -> String {
    let mut page = String::from("| numbers in a mean | normal | exponential |\n|---|---|---|\n");
    let mut random = Random::new(1);
    for count in [2, 3, 5, 10, 30] {
        let normal = coverage(&mut random, count, Random::normal);
        let skewed = coverage(&mut random, count, Random::skewed);
        assert!((0.93..=0.97).contains(&normal), "{count}: {normal}");
        writeln!(page, "| {count} | {:.1} % | {:.1} % |", normal * 100.0, skewed * 100.0)
            .expect("a text");
    }
    page.push_str(
        "\n| options, true means in standard deviations | seeds | studies with a false claim | best option found |\n\
         |---|---|---|---|\n",
    );
    let kinds: [(&str, &[&[f64]]); 4] = [
        ("2 to 6, all equal", &[&[0.0; 2], &[0.0; 3], &[0.0; 6]]),
        ("2 best ones of 3, 1 and −1", &[&[1.0, 1.0, -1.0]]),
        ("4, 0.5 to 0.2", &[&[0.5, 0.4, 0.3, 0.2]]),
        ("3, 10 apart", &[&[10.0, 0.0, -10.0]]),
    ];
    for (what, truths) in kinds {
        for (seeds, count) in [("2 to 10", None), ("3", Some(3)), ("10", Some(10))] {
            let found = claims(&mut random, truths, |at| count.unwrap_or(2 + at as u32 % 9));
            let share = f64::from(found.wrong) / STUDIES as f64;
            assert!(share <= 0.07, "{what}, {seeds} seeds: {share}");
            let right = match found.asked {
                0 => "–".into(),
                asked => format!("{:.1} %", 100.0 * f64::from(found.found) / f64::from(asked)),
            };
            writeln!(page, "| {what} | {seeds} | {:.1} % | {right} |", 100.0 * share)
                .expect("a text");
        }
    }
    page
}

#[test]
fn intervals_and_claims_hold_as_often_as_they_say() {
    let tables = tables();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/validation/answer.md");
    let page = std::fs::read_to_string(file).expect("the page of the calibration");
    assert!(page.ends_with(&tables), "the page has other numbers; its tables are now\n{tables}");
}
