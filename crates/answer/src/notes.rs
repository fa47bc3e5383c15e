//! What must be known about the scores and the sound of calls.

use indexmap::{IndexMap, IndexSet};
use serde_json::json;

use crate::ask::of_calls;
use crate::say::unranked_by;
use crate::text::{listed, show, some, with_unit};
use crate::{ADVANTAGE, Flows, Runs, metric};

/// Names in one sentence.
const MAX_NAMES: usize = 5;
/// In a note: the values of a codec, and their source.
const DECLARED: &str = " as declared, not from ITU-T: ";

/// The share of speech that is too late, above which a note says why.
const MOSTLY: f64 = 0.5;

type Names<'a> = IndexSet<&'a str>;

pub(crate) fn notes(flows: &Flows, runs: &dyn Runs, sentences: &[String]) -> Vec<String> {
    // A sentence names what left the range of its model already.
    let told = |score: &str| sentences.iter().any(|it| it.starts_with(&unranked_by(score)));
    let mut unscored: IndexMap<&str, Names<'_>> = IndexMap::new();
    let mut estimated: IndexMap<&str, Names<'_>> = IndexMap::new();
    let mut declared: IndexMap<&str, (Names<'_>, Names<'_>)> = IndexMap::new();
    let (mut outside, mut limits) = (Names::new(), Vec::new());
    let (mut beyond, mut fit_limits) = (Names::new(), Vec::new());
    let mut heard: IndexMap<&str, Names<'_>> = IndexMap::new();
    let mut eased: IndexMap<&str, Names<'_>> = IndexMap::new();
    for row in 0..flows.name.len() {
        let unit = flows.unit(row);
        let clauses =
            |column| Flows::text(column, row).into_iter().flat_map(|text| text.split("; "));
        if flows.value(row, "r_factor").is_none() {
            if let Some(reason) = clauses(&flows.quality_note).next() {
                let reason = reason.strip_prefix("no score: ").unwrap_or(reason);
                let is_estimated = flows.value(row, "estimated_mos").is_some();
                let by = if is_estimated { &mut estimated } else { &mut unscored };
                by.entry(reason).or_default().insert(unit);
            }
        } else {
            for (values, source) in
                clauses(&flows.quality_note).filter_map(|it| it.split_once(DECLARED))
            {
                let (names, told) = declared.entry(source).or_default();
                names.insert(unit);
                told.insert(values);
            }
        }
        if let Some(factor) = flows.advantage(row).filter(|_| flows.value(row, "mos").is_some()) {
            eased.entry(factor).or_default().insert(unit);
        }
        if let Some(its) = Flows::text(&flows.quality_limits, row) {
            outside.insert(unit);
            limits.push((unit, flows.run[row], its));
        }
        // Where it is the score that a reader sees.
        if flows.value(row, "mos").is_none()
            && let Some(its) = Flows::text(&flows.estimate_limits, row)
        {
            beyond.insert(unit);
            fit_limits.push((unit, flows.run[row], its));
        }
        for part in clauses(&flows.stand_in) {
            heard.entry(part).or_default().insert(unit);
        }
    }
    let named =
        |names: Names<'_>| listed(some(names.into_iter().map(str::to_owned).collect(), MAX_NAMES));
    let unscored = unscored
        .into_iter()
        .map(|(reason, names)| format!("No score for {}: {reason}.", named(names)));
    let estimated = estimated.into_iter().map(|(reason, names)| {
        // Without what would give another score.
        let reason = reason.split(": ").next().unwrap_or(reason);
        format!(
            "The MOS of {} is estimated (our fit to PESQ and ViSQOL, not ITU-T's, and not validated against \
             listeners): {reason}.",
            named(names)
        )
    });
    // Calls that have both scores, too, are then judged by the estimate.
    let by_estimate = of_calls(flows).measures[0].name == "estimated_mos";
    let judged = (by_estimate && estimated.len() == 0).then(|| {
        "All calls are judged by the estimated MOS (our fit to PESQ and ViSQOL, not ITU-T's, and not validated \
         against listeners), because not all have a MOS within the range of the E-model."
            .to_owned()
    });
    let declared = declared.into_iter().map(|(source, (names, values))| {
        format!("The score of {} uses declared values: {} ({source}).", named(names), named(values))
    });
    let eased = eased.into_iter().map(|(factor, names)| {
        format!(
            "The MOS of {} contains the advantage factor A = {factor}{ADVANTAGE}.",
            named(names)
        )
    });
    let heard = heard.into_iter().filter_map(|(part, names)| {
        let (codec, other) = part.split_once(": ")?;
        Some(format!(
            "{}: the sound of {codec} is that of {other}, since it has no encoder here; its packets and \
             the score are its own.",
            named(names)
        ))
    });
    let without = |names: Names<'_>, limits: &[(&str, usize, &str)], range: &str| {
        let (unit, run, limit) = limits.first()?;
        let of = match limits.len() {
            1 => String::new(),
            _ if names.len() > 1 => format!("of {unit}, "),
            _ if limits.iter().all(|it| it.1 == *run) => "of one call, ".to_owned(),
            _ => "in one run, ".to_owned(),
        };
        Some(format!("The score of {} is outside the range of {range}: {of}{limit}.", named(names)))
    };
    let outside = without(outside, &limits, "the E-model").filter(|_| !told("MOS"));
    let beyond = without(beyond, &fit_limits, "the fit").filter(|_| !told("estimated MOS"));
    let late = late(flows, runs);
    late.into_iter()
        .chain(eased)
        .chain(outside)
        .chain(judged)
        .chain(estimated)
        .chain(beyond)
        .chain(unscored)
        .chain(declared)
        .chain(heard)
        .collect()
}

/// Why most of the speech of calls was too late: the playout buffer.
fn late(flows: &Flows, runs: &dyn Runs) -> Vec<String> {
    let share = metric("unheard_late_ratio").expect("a metric");
    let mut found: IndexMap<String, (Names<'_>, f64)> = IndexMap::new();
    for row in 0..flows.name.len() {
        let Some(late) = flows.value(row, share.name).filter(|late| *late > MOSTLY) else {
            continue;
        };
        let name = &flows.name[row];
        let flow = runs.flow(flows.run[row], name.strip_suffix(".reverse").unwrap_or(name));
        let playout = flow.as_ref().and_then(|flow| flow.get("playout"));
        let is = |key: &str, text| playout.is_some_and(|it| it.get(key) == Some(&json!(text)));
        let fixed = if is("kind", "fixed") { "fixed " } else { "" };
        let than = if is("anchor", "capture") { "delay" } else { "variation of the delay" };
        let remedy = if fixed.is_empty() { "" } else { "; the default buffer adapts" };
        let why = format!("the {fixed}playout buffer is shorter than the {than}{remedy}");
        let (names, most) = found.entry(why).or_default();
        names.insert(flows.unit(row));
        *most = most.max(late);
    }
    let said = found.into_iter().map(|(why, (names, most))| {
        let up_to = if names.len() > 1 { "up to " } else { "" };
        let most = format!("{up_to}{}", with_unit(share, &show(share, most)));
        let names = listed(some(names.into_iter().map(str::to_owned).collect(), MAX_NAMES));
        format!("Most of the speech of {names} was too late ({most}): {why}.")
    });
    said.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::Frames;

    /// All flows have these settings of playout.
    struct Played(Value);

    impl Runs for Played {
        fn flow(&self, _: usize, flow: &str) -> Option<Value> {
            assert!(!flow.ends_with(".reverse"));
            Some(json!({ "playout": self.0 }))
        }
        fn network(&self, _: usize) -> Option<Value> {
            None
        }
        fn frames(&self, _: usize, _: &str) -> Option<Frames> {
            None
        }
    }

    fn said(late: &[f64], playout: Value) -> Vec<String> {
        let names = ["call", "call.reverse", "other"].iter().map(ToString::to_string);
        let flows = Flows {
            run: vec![0; late.len()],
            name: names.take(late.len()).collect(),
            transport: vec![Some("udp".into()); late.len()],
            numbers: IndexMap::from([(
                "unheard_late_ratio".to_owned(),
                late.iter().copied().map(Some).collect(),
            )]),
            ..Flows::default()
        };
        notes(&flows, &Played(playout), &[])
    }

    #[test]
    fn why_most_of_a_call_was_too_late() {
        let fixed = json!({ "kind": "fixed", "anchor": "first_arrival", "buffer": 0.1 });
        assert_eq!(
            said(&[0.75, 0.9751, 0.5], fixed),
            [
                "Most of the speech of call and call.reverse was too late (up to 97.51\u{a0}%): the fixed playout \
              buffer is shorter than the variation of the delay; the default buffer adapts."
            ]
        );
        let capture = json!({ "kind": "fixed", "anchor": "capture", "buffer": 0.1 });
        let [note] = &said(&[0.6], capture)[..] else { panic!("one note") };
        assert!(note.ends_with("shorter than the delay; the default buffer adapts."), "{note}");
        let [note] = &said(&[0.6], json!({ "kind": "adaptive" }))[..] else { panic!("one note") };
        assert!(note.ends_with("the playout buffer is shorter than the variation of the delay."));
        assert_eq!(said(&[0.5, 0.1], json!({})), [""; 0]);
    }

    #[test]
    fn one_call_of_a_group_and_one_run_of_a_call_are_told_apart() {
        let outside = |name: [&str; 2], run: [usize; 2]| {
            let flows = Flows {
                run: run.to_vec(),
                name: name.map(str::to_owned).to_vec(),
                transport: vec![None; 2],
                group: vec![Some("call".into()); 2],
                quality_limits: vec![Some("too much loss".into()); 2],
                ..Flows::default()
            };
            notes(&flows, &(), &[]).join(" ")
        };
        let said = |of| {
            format!("The score of call is outside the range of the E-model: {of}, too much loss.")
        };
        assert_eq!(outside(["call-1", "call-2"], [0, 0]), said("of one call"));
        assert_eq!(outside(["call", "call"], [0, 1]), said("in one run"));
    }
}
