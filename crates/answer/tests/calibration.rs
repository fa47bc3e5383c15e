//! Synthetic studies of which the truth is known: how often intervals contain it, and claims contradict it.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use talkspurt_answer::stats::Mean;
use talkspurt_answer::{Axis, Flows, Input, Run, Verdict, answer};

/// Standard normal numbers (Box and Muller 1958).
struct Normal(Xoshiro256PlusPlus);

impl Normal {
    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
    fn next(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// A study of a call over an axis: each option has a true mean; the seeds are a common part of chance.
fn study(normal: &mut Normal, truth: &[f64], settings: usize, seeds: u32) -> Input {
    let labels: Vec<_> = (0..truth.len()).map(|at| format!("option-{at}")).collect();
    let others: Vec<_> = (0..settings).map(|at| format!("setting-{at}")).collect();
    let axis = |name: &str, path: &str, labels: &[String]| Axis {
        name: name.into(),
        path: path.into(),
        labels: labels.to_vec(),
        numeric: false,
        factor: false,
    };
    let (mut runs, mut flows, mut scores) = (Vec::new(), Flows::default(), Vec::new());
    for setting in &others {
        for replicate in 0..seeds {
            let common = normal.next();
            for (label, mean) in labels.iter().zip(truth) {
                scores.push(Some(3.0 + 0.1 * (mean + common + normal.next())));
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

#[test]
fn intervals_of_one_mean_contain_the_truth() {
    let mut normal = Normal(Xoshiro256PlusPlus::seed_from_u64(1));
    let mut inside = 0;
    const ALL: usize = 4_000;
    for at in 0..ALL {
        let numbers: Vec<_> = (0..2 + at % 9).map(|_| normal.next()).collect();
        let mean = Mean::of(&numbers).expect("numbers");
        inside += usize::from(mean.mean.abs() <= mean.half(0.95).expect("chance"));
    }
    let share = inside as f64 / ALL as f64;
    assert!((0.93..=0.97).contains(&share), "{share}");
}

#[test]
fn false_claims_are_rare() {
    let mut normal = Normal(Xoshiro256PlusPlus::seed_from_u64(2));
    let truths: [&[f64]; 4] = [&[0.0, 0.0], &[0.0; 5], &[1.0, 1.0, -1.0], &[0.5, 0.4, 0.3, 0.2]];
    let mut wrong = 0;
    const ALL: usize = 500;
    for at in 0..ALL {
        let truth = truths[at % truths.len()];
        let input = study(&mut normal, truth, 1 + at % 3, 2 + at as u32 % 9);
        let found = answer(&input, &());
        let of = |label: &str| {
            truth[label.trim_start_matches("option-").parse::<usize>().expect("a number")]
        };
        // A claim is a difference that is told, or an option that is called the best.
        wrong += usize::from(found.questions.iter().any(|question| {
            let (first, others) = question.options.split_first().expect("options");
            others.iter().any(|other| {
                let told = other.differences[0].is_some_and(|it| it.significant == Some(true));
                (told || question.verdict == Verdict::Best) && of(&other.label) >= of(&first.label)
            })
        }));
    }
    let share = wrong as f64 / ALL as f64;
    assert!(share <= 0.07, "{share}");
}

#[test]
fn true_differences_are_found() {
    let mut normal = Normal(Xoshiro256PlusPlus::seed_from_u64(3));
    let found = answer(&study(&mut normal, &[0.0, 20.0, -20.0], 1, 5), &());
    assert_eq!(found.questions[0].verdict, Verdict::Best);
    assert_eq!(found.questions[0].options[0].label, "option-1");
    assert_eq!(found.comparisons, 3);
    println!("{:#?}", found.sentences);
}
