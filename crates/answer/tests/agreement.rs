//! Over random studies, every number of a sentence is that of the study's table, which this test computes
//! from the rows.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use proptest::prelude::*;
use talkspurt_answer::{Answer, Axis, Flows, Input, Run, Verdict, answer};

/// What a call of a run has: MOS and whether it is in the range of the model, delay, unheard share.
type Call = Option<(f64, bool, f64, f64)>;
/// Above this delay, the estimated score is out of its range, too; from this MOS on, there is none.
const ESTIMATED: (f64, f64) = (0.585, 4.48);

fn estimated(call: Call) -> (Option<f64>, bool) {
    let found = call.filter(|it| it.0 < ESTIMATED.1);
    (found.map(|it| it.0 / 2.0 + 1.0), call.is_some_and(|it| it.2 > ESTIMATED.0))
}

fn study(options: usize, settings: usize, seeds: u32, calls: &[Call]) -> Input {
    let labels: Vec<_> = (0..options).map(|at| format!("option{}", letter(at))).collect();
    let others: Vec<_> = (0..settings).map(|at| format!("setting{}", letter(at))).collect();
    let axis = |name: &str, path: &str, labels: &[String]| Axis {
        name: name.into(),
        path: path.into(),
        labels: labels.to_vec(),
        ..Axis::default()
    };
    let (mut runs, mut flows) = (Vec::new(), Flows::default());
    let mut columns: IndexMap<String, Vec<Option<f64>>> = IndexMap::new();
    let mut calls = calls.iter().cycle();
    for label in &labels {
        for setting in &others {
            for replicate in 0..seeds {
                let call = *calls.next().expect("calls");
                flows.run.push(runs.len());
                flows.name.push("call".into());
                flows.transport.push(Some("udp".into()));
                let outside = call.is_some_and(|(_, inside, ..)| !inside);
                flows.quality_limits.push(outside.then(|| "too much loss".into()));
                let (estimate, beyond) = estimated(call);
                flows.estimate_limits.push(beyond.then(|| "too much delay".into()));
                let mut add =
                    |name: &str, value| columns.entry(name.into()).or_default().push(value);
                add("mos", call.map(|it| it.0));
                add("estimated_mos", estimate);
                add("mouth_to_ear_mean_s", call.map(|it| it.2));
                add("concealed_ratio", Some(call.map_or(1.0, |it| it.3)));
                let settings = vec![label.clone(), setting.clone()];
                runs.push(Run { settings, replicate, duration_s: 60.0 });
            }
        }
    }
    flows.numbers = columns;
    let axes =
        vec![axis("queue", "links.a.queue", &labels), axis("rate", "links.a-b.rate", &others)];
    Input { axes, replications: seeds as usize, confidence: 0.95, runs, flows }
}

fn letter(at: usize) -> char {
    (b'A' + at as u8).into()
}

/// The means of a metric by option and setting.
fn table(input: &Input, metric: &str) -> BTreeMap<(String, String), Vec<(u32, f64)>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (row, &run) in input.flows.run.iter().enumerate() {
        if let Some(value) = input.flows.numbers[metric][row] {
            let run = &input.runs[run];
            let key = (run.settings[0].clone(), run.settings[1].clone());
            found.entry(key).or_default().push((run.replicate, value));
        }
    }
    found
}

fn mean(values: &[(u32, f64)]) -> f64 {
    values.iter().map(|it| it.1).sum::<f64>() / values.len() as f64
}

/// Each number of a sentence that begins with a setting is that of the table; returns how many were found.
fn check(input: &Input, found: &Answer) -> usize {
    let mut checked = 0;
    let all = |metric: &str, limits: &[Option<String>]| {
        input.flows.numbers[metric].iter().all(Option::is_some)
            && limits.iter().all(Option::is_none)
    };
    let by_model = all("mos", &input.flows.quality_limits);
    let by_fit = !by_model && all("estimated_mos", &input.flows.estimate_limits);
    let scored = by_model || by_fit;
    let compared = |it: &&String| !it.contains("settings of the other axes") && !is_unranked(it);
    for sentence in found.sentences.iter().filter(compared) {
        let sentence = sentence.replace(['\u{a0}'], " ").replace('\u{202f}', "");
        let head = sentence.split_once(": ").expect("a flow").0;
        let setting = head.rsplit("rate ").next().filter(|it| it.starts_with("setting"));
        let setting = setting.unwrap_or("settingA").to_owned();
        // What is in parentheses is a cause, or the range of what does not differ.
        let said: String = sentence
            .split_once(": ")
            .expect("a flow")
            .1
            .split('(')
            .enumerate()
            .map(|(at, part)| if at == 0 { part } else { part.split_once(')').expect("closed").1 })
            .collect();
        // The measures a sentence names are those of the instrument that all calls allow.
        assert_eq!(sentence.contains("MOS"), scored, "{sentence}");
        assert_eq!(sentence.contains("estimated MOS"), by_fit, "{sentence}");
        let measures: &[(&str, &str, f64, usize, &str)] = if by_model {
            &[("mos", "MOS ", 1.0, 2, " MOS less")]
        } else if by_fit {
            &[("estimated_mos", "estimated MOS ", 1.0, 2, " estimated MOS less")]
        } else {
            &[
                ("mouth_to_ear_mean_s", "mean mouth-to-ear delay ", 1e3, 1, " ms more"),
                ("concealed_ratio", "unheard ", 100.0, 2, " percentage points more unheard"),
            ]
        };
        let best = said.split([' ', ':']).find(|word| word.starts_with("option"));
        for (metric, label, scale, digits, less) in measures {
            let table = table(input, metric);
            let of = |option: &str| table.get(&(option.to_owned(), setting.clone()));
            let mut option = best;
            for part in said.split([';', ':', ',']) {
                option = part.split([' ', '.']).find(|word| word.starts_with("option")).or(option);
                let Some(option) = option else { continue };
                // A value: "MOS 4.31".
                let number = part.split_once(label).map(|it| it.1);
                if let Some(number) =
                    number.filter(|it| it.starts_with(|at: char| at == '–' || at.is_ascii_digit()))
                {
                    let number =
                        number.split([' ', ')']).next().expect("a number").trim_end_matches('.');
                    let shown = of(option)
                        .map_or("–".into(), |it| format!("{:.digits$}", mean(it) * scale));
                    assert_eq!(number, shown, "{sentence}: {option}");
                    checked += 1;
                }
                // A difference: "1.20 ± 0.30 MOS less".
                if let Some((before, _)) = part.split_once(less) {
                    let words: Vec<_> = before.split_whitespace().collect();
                    // The last number: those of the other measure may be before it.
                    let margin = words.len().checked_sub(2).filter(|at| words[*at] == "±");
                    let at = margin.unwrap_or(words.len());
                    let (here, there) =
                        (of(option).expect("a value"), of(best.expect("one")).expect("one"));
                    let pairs: Vec<_> = here
                        .iter()
                        .filter_map(|(seed, value)| {
                            let other = there.iter().find(|(it, _)| it == seed)?.1;
                            Some((*seed, value - other))
                        })
                        .collect();
                    let difference = mean(&pairs);
                    assert_eq!(
                        words[at - 1],
                        format!("{:.digits$}", difference.abs() * scale),
                        "{sentence}"
                    );
                    // Less of a score, more of delay and loss.
                    assert_eq!(difference < 0.0, metric.ends_with("mos"), "{sentence}");
                    checked += 1;
                }
            }
            let full = table.values().all(|it| it.len() == input.replications);
            // Of several measures, nothing has a noticeably better mean than what is called best.
            let is_best = said.contains(" is best: ") || said.contains(" did best: ");
            if let Some(best) = best.and_then(of).filter(|_| !scored && full && is_best) {
                let noticed = if *metric == "concealed_ratio" { 0.005 } else { 0.01 };
                let others = table.iter().filter(|(key, _)| key.1 == setting);
                let least = others.map(|it| mean(it.1)).fold(f64::INFINITY, f64::min);
                assert!(mean(best) - least <= noticed + 1e-9, "{sentence}");
            }
            // With all seeds, what is called best has the best mean of the only measure.
            if scored && full && said.contains("best") {
                let best = best.expect("an option");
                let most = table.iter().filter(|(key, _)| key.1 == setting).map(|it| mean(it.1));
                assert_eq!(
                    most.fold(0.0, f64::max),
                    mean(of(best).expect("a value")),
                    "{sentence}"
                );
            }
        }
    }
    checked
}

fn is_unranked(sentence: &str) -> bool {
    sentence.starts_with("Not ranked by ")
}

/// The second sentence names each setting that is outside the range of the model, or without a score, and no
/// other, if and only if some calls have the score and others have not; the ranking of all is by one
/// instrument.
fn check_unranked(input: &Input, found: &Answer) {
    let flows = &input.flows;
    let set = |is: &dyn Fn(usize) -> bool| -> BTreeSet<String> {
        let rows = (0..flows.run.len()).filter(|&row| is(row));
        let name = |row: usize| {
            let labels = input.axes.iter().zip(&input.runs[flows.run[row]].settings);
            let several = labels.filter(|(axis, _)| axis.labels.len() > 1);
            let labels: Vec<_> = several.map(|(_, label)| label.as_str()).collect();
            format!("call ({})", labels.join(", "))
        };
        rows.map(name).collect()
    };
    let named = |settings: BTreeSet<String>, rest: &str| {
        let parts: Vec<_> = rest.split("call (").skip(1).collect();
        let more = rest.split(" and ").find_map(|it| it.split_once(" more")?.0.parse().ok());
        let more: usize = more.unwrap_or_default();
        for part in &parts {
            let name = format!("call ({})", part.split_once(')').expect("closed").0);
            assert!(settings.contains(&name), "{rest}: {name} in {settings:?}");
        }
        if rest.contains("all calls") {
            assert_eq!(settings, set(&|_| true), "{rest}");
        } else {
            assert_eq!(parts.len() + more, settings.len(), "{rest}");
        }
    };
    for question in &found.questions {
        assert_eq!(question.measures, found.judged_by);
    }
    let mut said = None;
    for (score, label, limits) in [
        ("mos", "MOS", &flows.quality_limits),
        ("estimated_mos", "estimated MOS", &flows.estimate_limits),
    ] {
        if found.judged_by == [score] {
            break;
        }
        let values = &flows.numbers[score];
        if values.iter().any(Option::is_some) {
            let outside = set(&|row| values[row].is_some() && limits[row].is_some());
            said = Some((label, outside, set(&|row| values[row].is_none())));
            break;
        }
    }
    let sentences: Vec<_> = found.sentences.iter().filter(|it| is_unranked(it)).collect();
    let Some((label, outside, without)) = said.filter(|_| !found.questions.is_empty()) else {
        return assert_eq!(sentences, [""; 0]);
    };
    assert_eq!(sentences, [&found.sentences[1]]);
    let rest = sentences[0].strip_prefix(&format!("Not ranked by {label}: ")).expect("the score");
    let (first, last) = match rest.split_once("; ") {
        Some(parts) => parts,
        None if rest.contains("outside the range") => (rest, ""),
        None => ("", rest),
    };
    named(outside, first);
    named(without, last);
}

/// What a sentence counts in settings of the other axes is what the questions tell.
fn check_counted(found: &Answer) {
    for sentence in found.sentences.iter().filter(|it| it.contains("settings of the other axes")) {
        let said = sentence.split_once("other axes: ").expect("a head").1;
        let mut counted: BTreeMap<Verdict, usize> = BTreeMap::new();
        let mut bests: BTreeMap<String, usize> = BTreeMap::new();
        for part in said.trim_end_matches('.').split("; ") {
            // Settings in parentheses may contain the separator.
            let Some((told, count)) = part.rsplit_once(" in ") else { continue };
            let count = count.trim_start_matches("all ").split(' ').next().expect("a count");
            let count: usize = count.parse().expect("a number");
            let verdict = match told {
                "no difference" => Verdict::Same,
                "no single best" => Verdict::TradeOff,
                _ if told.contains("but not of all") => Verdict::Ahead,
                _ => Verdict::Best,
            };
            *counted.entry(verdict).or_default() += count;
            if verdict == Verdict::Best {
                let option = told.split(' ').next().expect("an option").to_owned();
                *bests.entry(option).or_default() += count;
            }
        }
        let (mut verdicts, mut firsts) = (BTreeMap::new(), BTreeMap::new());
        for question in &found.questions {
            *verdicts.entry(question.verdict).or_default() += 1;
            if question.verdict == Verdict::Best {
                *firsts.entry(question.options[0].label.clone()).or_default() += 1;
            }
        }
        assert_eq!((counted, bests), (verdicts, firsts), "{sentence}");
    }
}

fn call() -> impl Strategy<Value = Call> {
    let number = (100_u32..450, 0_u32..60, 0_u32..40, prop::bool::weighted(0.97));
    let number = number.prop_map(|(mos, delay, unheard, inside)| {
        (f64::from(mos) / 100.0, inside, f64::from(delay) / 100.0, f64::from(unheard) / 100.0)
    });
    prop::option::weighted(0.99, number)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn sentences_agree_with_tables(
        options in 2_usize..6,
        settings in 1_usize..7,
        seeds in 1_u32..6,
        calls in prop::collection::vec(call(), 1..90),
    ) {
        let input = study(options, settings, seeds, &calls);
        let found = answer(&input, &());
        check(&input, &found);
        check_unranked(&input, &found);
        check_counted(&found);
        // Sentences are there unless nothing differs.
        prop_assert!(!found.questions.is_empty() || calls.len() < 2 || calls.iter().all(Option::is_none));
    }
}

#[test]
fn the_check_finds_a_disagreement() {
    let calls = [Some((4.0, true, 0.1, 0.01)), Some((2.0, true, 0.4, 0.2))];
    let input = study(2, 1, 1, &calls);
    let mut found = answer(&input, &());
    assert!(check(&input, &found) >= 2);
    for (from, to) in [("4.00", "4.10"), ("2.00", "1.00"), ("less", "more"), ("optionA", "optionB")]
    {
        let right = found.sentences.clone();
        found.sentences[0] = found.sentences[0].replacen(from, to, 1);
        assert_ne!(found.sentences, right);
        let failed =
            std::panic::catch_unwind(|| check(&input, &found)).map_or(true, |checked| checked < 2);
        assert!(failed, "{}", found.sentences[0]);
        found.sentences = right;
    }
}

#[test]
fn one_setting_out_of_range_is_named_second() {
    let (good, out) = ((4.0, true, 0.1, 0.01), (2.0, false, 0.1, 0.3));
    let mut input = study(2, 2, 1, &[good, good, out, good].map(Some));
    input.flows.numbers["estimated_mos"] = vec![None; 4];
    let found = answer(&input, &());
    assert_eq!(
        found.sentences[1],
        "Not ranked by MOS: for call (optionB, settingA) it is outside the range of the E-model, since too much \
         loss."
    );
    assert_eq!(found.judged_by, ["mouth_to_ear_mean_s", "concealed_ratio"]);
    // What the sentence says is not said again.
    assert_eq!(found.notes, [""; 0]);
}

#[test]
fn an_advantage_factor_is_named_beside_the_score() {
    let mut input = study(2, 1, 1, &[Some((4.0, true, 0.1, 0.01)), Some((2.0, true, 0.4, 0.2))]);
    let note =
        "perfect echo control assumed (T = Tr = 0); advantage factor A = 10 (quality.advantage)";
    input.flows.quality_note = vec![Some(note.into()); 2];
    input.flows.numbers.insert("r_factor".into(), vec![Some(90.0); 2]);
    let found = answer(&input, &());
    assert_eq!(
        found.sentences[0].replace('\u{a0}', " "),
        "call: optionA did best: MOS 4.00 (A = 10); optionB: 2.00 MOS less."
    );
    assert_eq!(
        found.notes,
        ["The MOS of call contains the advantage factor A = 10 (quality.advantage)."]
    );
}

#[test]
fn a_call_alone_has_its_values() {
    let said = |input| answer(&input, &()).sentences;
    let [scored] = &said(study(1, 1, 1, &[Some((4.0, true, 0.1, 0.01))]))[..] else {
        panic!("one sentence")
    };
    assert_eq!(
        scored,
        "call (udp): MOS\u{a0}4.00, with mean mouth-to-ear delay\u{a0}100.0\u{a0}ms and unheard\u{a0}1.00\u{a0}%."
    );
    let mut input = study(1, 1, 1, &[Some((4.0, false, 0.1234, 0.0156))]);
    input.flows.numbers["estimated_mos"] = vec![None];
    let [bare] = &said(input)[..] else { panic!("one sentence") };
    assert!(
        bare.contains(": mean mouth-to-ear delay\u{a0}123.4\u{a0}ms and unheard\u{a0}1.56\u{a0}%."),
        "{bare}"
    );
}
