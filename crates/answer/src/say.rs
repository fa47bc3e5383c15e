//! Sentences. Each number in one is the text of a cell, a difference from the first option, or of its cause.
//!
//! Sentences on one run of each setting are in the past tense: what it shows may be chance.

use indexmap::{IndexMap, IndexSet};
use talkspurt_proto::metric::Metric;

use crate::ask::{Settings, is_call, is_picture, of_calls, settings};
use crate::judge::Told;
use crate::stats::sign;
use crate::text::{half, listed, show, some, with_unit};
use crate::{
    Choice, Flows, INSTRUMENTS, Input, Measure, OF_PICTURES, Question, Verdict, WITHOUT_SCORE,
};

/// Sentences.
const MAX_SENTENCES: usize = 6;
/// Options in one sentence.
const MAX_OPTIONS: usize = 6;
/// Settings of the other axes with a sentence each; of more, one sentence counts which option is best.
const MAX_SETTINGS: usize = 3;
/// Settings named beside their number.
const MAX_NAMED: usize = 2;
/// Worse options of a sentence with a cause each; of more, the last.
const MAX_CAUSES: usize = 2;
/// Calls named that have no score within the range of its model.
const MAX_UNRANKED: usize = 3;

/// Where calls in different codecs are judged by delay and unheard speech.
const BUT_FOR_CODECS: &str = "but for what the codecs cost, ";

/// What questions under several settings have in common: axis, flow, and the calls that are compared.
type Asked<'a> = (Option<&'a str>, &'a str, Vec<&'a str>);

/// The sentences, differences first, and what their intervals mean.
pub(crate) fn sentences(
    input: &Input,
    questions: &[Question],
    comparisons: usize,
) -> (Vec<String>, String) {
    let mut together: IndexMap<Asked<'_>, Vec<&Question>> = IndexMap::new();
    for question in questions {
        let mut calls: Vec<_> = question.options.iter().map(|it| it.label.as_str()).collect();
        calls.sort_unstable();
        // Along an axis the options are its values, of which some may have none.
        calls.retain(|_| question.axis.is_none());
        together
            .entry((question.axis.as_deref(), &question.flow, calls))
            .or_default()
            .push(question);
    }
    let sayer = Sayer(input);
    let mut said: Vec<(bool, usize, String)> = Vec::new();
    let differs = |question: &Question| question.verdict != Verdict::Same;
    for asked in together.values() {
        let some_differ = asked.iter().any(|it| differs(it));
        let of_kind = |it: &Question| it.instrument == asked[0].instrument;
        if asked.len() > MAX_SETTINGS {
            said.push((some_differ, 0, sayer.counted(asked)));
        } else if some_differ || !questions.iter().any(|it| of_kind(it) && differs(it)) {
            // Where no sound, or no picture, differs anywhere, that is said.
            let sentences = asked.iter().enumerate();
            said.extend(sentences.map(|(at, it)| (differs(it), at, sayer.sentence(it))));
        }
    }
    if questions.is_empty() {
        return (sayer.each_call(), String::new());
    }
    // Sound and picture under the first setting before the others.
    said.sort_by_key(|(differs, at, _)| (!differs, *at));
    let mut said: Vec<_> = said.into_iter().map(|(.., text)| text).collect();
    if questions.iter().any(|it| it.instrument.calls)
        && let Some(unranked) = sayer.unranked()
    {
        said.insert(1, unranked);
    }
    said.truncate(MAX_SENTENCES);
    let about = sayer.about(&said, comparisons);
    (said, about)
}

/// How the sentence begins that says why calls are not ranked by a score.
pub(crate) fn unranked_by(score: &str) -> String {
    format!("Not ranked by {score}:")
}

struct Sayer<'a>(&'a Input);

impl Sayer<'_> {
    fn is_once(&self) -> bool {
        self.0.replications < 2
    }

    /// Where nothing is compared, what each call and picture came to; nothing if there are too many to read.
    fn each_call(&self) -> Vec<String> {
        let varied = self.0.axes.iter().any(|axis| axis.labels.len() > 1);
        let calls = self.each(is_call, of_calls(&self.0.flows).measures);
        if varied || calls.len() > MAX_SENTENCES {
            return Vec::new();
        }
        let pictures = self.each(is_picture, OF_PICTURES);
        calls.into_iter().chain(pictures).take(MAX_SENTENCES).collect()
    }

    /// What each flow of a kind came to.
    fn each(&self, is: fn(&Flows, usize) -> bool, measures: &[Measure]) -> Vec<String> {
        let flows = &self.0.flows;
        let mut calls: IndexMap<&str, Vec<usize>> = IndexMap::new();
        for row in (0..flows.name.len()).filter(|&row| is(flows, row)) {
            calls.entry(flows.unit(row)).or_default().push(row);
        }
        let said = calls.into_iter().filter_map(|(unit, rows)| {
            let values = measures.iter().filter_map(|measure| {
                let mean = flows.mean(rows.iter().copied(), measure.name)?;
                let metric = measure.metric();
                Some(labelled(metric, &with_unit(metric, &show(metric, mean))))
            });
            let values: Vec<_> = values.collect();
            // Beside a score, what it is made of.
            let scored = measures.len() == 1 && !values.is_empty();
            let parts = WITHOUT_SCORE.iter().filter(|_| scored).filter_map(|measure| {
                let metric = measure.metric();
                let mean = flows.mean(rows.iter().copied(), measure.name)?;
                Some(labelled(metric, &with_unit(metric, &show(metric, mean))))
            });
            let parts: Vec<_> = parts.collect();
            let of = Flows::text(&flows.transport, rows[0]);
            let of = of.map_or(String::new(), |transport| format!(" ({transport})"));
            let mean = if rows.len() > 1 { "on average, " } else { "" };
            let factor = self.advantage(measures[0].name, &rows).unwrap_or_default();
            let with =
                if parts.is_empty() { String::new() } else { format!(", with {}", listed(parts)) };
            (!values.is_empty())
                .then(|| format!("{unit}{of}: {mean}{}{factor}{with}.", listed(values)))
        });
        said.collect()
    }

    /// Why calls are not ranked by the score that some of them have: which ones lack it, or leave its range.
    /// The others are not ranked by it either, since ranks by several measures cannot be compared.
    fn unranked(&self) -> Option<String> {
        let flows = &self.0.flows;
        let judge = of_calls(flows).measures[0].name;
        let calls = || (0..flows.name.len()).filter(|&row| is_call(flows, row));
        let scores = INSTRUMENTS[..2].iter().map(|it| it.measures[0].metric());
        let score = scores
            .take_while(|score| score.name != judge)
            .find(|score| calls().any(|row| flows.value(row, score.name).is_some()))?;
        let (limits, model) = match score.name {
            "mos" => (&flows.quality_limits, "the E-model"),
            _ => (&flows.estimate_limits, "the fit"),
        };
        let of = |row: usize| (settings(self.0, flows.run[row], None), flows.unit(row));
        let (mut all, mut outside) = (IndexSet::new(), IndexSet::new());
        let (mut without, mut limit) = (IndexSet::new(), None);
        for row in calls() {
            all.insert(of(row));
            if flows.value(row, score.name).is_none() {
                without.insert(of(row));
            } else if let Some(text) = Flows::text(limits, row) {
                outside.insert(of(row));
                limit = limit.or(text.split("; ").next());
            }
        }
        let named = |calls: &IndexSet<(Settings, &str)>| {
            if calls.len() == all.len() && calls.len() > MAX_UNRANKED {
                return "all calls".to_owned();
            }
            let name = |(settings, unit): &(Settings, &str)| {
                let settings = settings.iter().map(|(axis, label)| in_words(axis, label));
                let settings = settings.collect::<Vec<_>>().join(", ");
                if settings.is_empty() {
                    (*unit).to_owned()
                } else {
                    format!("{unit} ({settings})")
                }
            };
            listed(some(calls.iter().map(name).collect(), MAX_UNRANKED))
        };
        let beyond = limit.map(|limit| {
            let such = if outside.len() > 1 { "the first since" } else { "since" };
            format!("for {} it is outside the range of {model}, {such} {limit}", named(&outside))
        });
        let has = if without.len() > 1 || without.len() == all.len() { "have" } else { "has" };
        let lacking = (!without.is_empty()).then(|| format!("{} {has} none", named(&without)));
        let why: Vec<_> = beyond.into_iter().chain(lacking).collect();
        Some(format!("{} {}.", unranked_by(score.label), why.join("; ")))
    }

    fn about(&self, said: &[String], comparisons: usize) -> String {
        if said.is_empty() {
            return String::new();
        }
        if self.is_once() {
            let what = if self.0.axes.is_empty() { "one run" } else { "one run of each setting" };
            return format!(
                "From {what}: more seeds (replications) tell whether chance explains it."
            );
        }
        let (level, seeds) = (self.0.confidence * 100.0, self.0.replications);
        let several = comparisons > 1;
        if said.iter().any(|it| it.contains('±')) {
            let all = if several {
                format!(", at which all {comparisons} comparisons hold together")
            } else {
                String::new()
            };
            format!(
                "± is half of a {level}\u{a0}% interval of differences paired by {seeds} seeds{all}."
            )
        } else {
            let all = if several {
                format!(", for all {comparisons} comparisons together")
            } else {
                String::new()
            };
            format!("Differences are paired by {seeds} seeds and tested at {level}\u{a0}%{all}.")
        }
    }

    fn sentence(&self, question: &Question) -> String {
        let settings = question.settings.iter().map(|(axis, label)| format!("{axis} {label}"));
        let flow = std::iter::once(question.flow.clone()).filter(|it| !it.is_empty());
        let head: Vec<_> = flow.chain(settings).collect();
        let head = if head.is_empty() { String::new() } else { head.join(", ") + ": " };
        let said = match question.verdict {
            Verdict::Same => self.same(question),
            Verdict::TradeOff => self.trade_off(question),
            Verdict::Best | Verdict::Ahead => self.ranked(question),
        };
        let but = if question.apart_from_codecs { BUT_FOR_CODECS } else { "" };
        let said = format!("{but}{said}");
        let text = format!("{head}{said}.");
        let mut letters = text.chars();
        // A sentence that begins with a name keeps it.
        match letters.next() {
            Some(first)
                if head.is_empty() && ["no ", "but "].iter().any(|it| said.starts_with(it)) =>
            {
                first.to_uppercase().chain(letters).collect()
            }
            _ => text,
        }
    }

    fn ranked(&self, question: &Question) -> String {
        let (first, others) = question.options.split_first().expect("two options or more");
        let is = match (question.verdict, self.is_once()) {
            (Verdict::Best, false) => "is best",
            (Verdict::Best, true) => "did best",
            _ if question.measures.len() == 1 => "has the best mean",
            _ => "is ahead",
        };
        let mut parts =
            vec![format!("{} {is}: {}", self.name(question, first), self.values(question, first))];
        let told = |choice: &&Choice| worse(question, choice).next().is_some();
        let (worse_ones, level): (Vec<_>, Vec<_>) = others.iter().partition(told);
        parts.extend(self.level(question, &level));
        let causes = if worse_ones.len() <= MAX_CAUSES { 0 } else { worse_ones.len() - 1 };
        let worse_ones = worse_ones.iter().enumerate().map(|(at, choice)| {
            let sizes = worse(question, choice).map(|at| size(question, choice, at));
            let named = at >= causes && !choice.cause.is_empty();
            let cause = if named { format!(" ({})", choice.cause) } else { String::new() };
            format!("{}: {}{cause}", self.name(question, choice), listed(sizes.collect()))
        });
        parts.extend(some(worse_ones.collect(), MAX_OPTIONS));
        parts.join("; ")
    }

    /// The values of an option; a MOS with its advantage factor, without which it says too much.
    fn values(&self, question: &Question, choice: &Choice) -> String {
        let values = listed(known(question).map(|at| value(question, choice, at)).collect());
        values + &self.advantage(question.measures[0], &choice.rows).unwrap_or_default()
    }

    fn advantage(&self, score: &str, rows: &[usize]) -> Option<String> {
        let factor = rows.iter().find_map(|&row| self.0.flows.advantage(row));
        factor.filter(|_| score == "mos").map(|factor| format!(" (A\u{a0}=\u{a0}{factor})"))
    }

    /// Options that do not differ from the first, by the reason.
    fn level(&self, question: &Question, level: &[&Choice]) -> Vec<String> {
        let surely = |choice: &&&Choice| {
            choice
                .differences
                .iter()
                .flatten()
                .any(|it| it.significant == Some(true) && it.mean.mean != 0.0)
        };
        let (small, unsure): (Vec<&&Choice>, Vec<_>) = level.iter().partition(surely);
        let parts = [(unsure, !self.is_once()), (small, false)];
        let parts = parts.into_iter().filter(|(choices, _)| !choices.is_empty());
        parts
            .map(|(choices, unsure)| {
                let names = choices.iter().map(|choice| {
                    format!("{} ({})", self.name(question, choice), texts(question, choice))
                });
                let names: Vec<_> = names.collect();
                let one = names.len() == 1;
                let names = listed(some(names, MAX_OPTIONS));
                match (unsure, one) {
                    (true, true) => format!("{names} does not differ significantly"),
                    (true, false) => format!("{names} do not differ significantly"),
                    (false, true) => format!("{names} does not differ noticeably"),
                    (false, false) => format!("{names} do not differ noticeably"),
                }
            })
            .collect()
    }

    fn same(&self, question: &Question) -> String {
        let what = match &question.axis {
            Some(axis) => format!("along {axis}"),
            None => "between calls".to_owned(),
        };
        let ranges = (0..question.measures.len()).filter_map(|at| {
            let metric = question.instrument.measures[at].metric();
            let cells = question.options.iter().filter_map(|it| it.cells[at].as_ref());
            let ordered = |one: &&crate::Cell, other: &&crate::Cell| {
                one.mean.mean.total_cmp(&other.mean.mean)
            };
            let (low, high) = (cells.clone().min_by(ordered)?, cells.max_by(ordered)?);
            let range = if low.text == high.text {
                low.text.clone()
            } else {
                format!("{} to {}", low.text, high.text)
            };
            let rows = &question.options[0].rows;
            let factor = self.advantage(metric.name, rows).unwrap_or_default();
            Some(format!("{} {}{factor}", metric.label, with_unit(metric, &range)))
        });
        let sure = if self.is_once() { "noticeable" } else { "significant" };
        format!("no {sure} difference {what} ({})", ranges.collect::<Vec<_>>().join(", "))
    }

    /// The options that are best in some measure, as the table shows them. One that is so in several is named
    /// once.
    fn trade_off(&self, question: &Question) -> String {
        let mean = |choice: &Choice, at: usize| {
            let better = sign(question.instrument.measures[at].metric().better);
            choice.cells[at].as_ref().map_or(f64::NEG_INFINITY, |it| better * it.mean.mean)
        };
        let mut leaders: Vec<(&Choice, Vec<usize>)> = Vec::new();
        for at in known(question) {
            let options = question.options.iter();
            let order = |one: &&Choice, other: &&Choice| mean(one, at).total_cmp(&mean(other, at));
            let best = options.rev().max_by(order).expect("options");
            // Of equal ones, one that is named already.
            let shown = |it: &Choice| it.cells[at].as_ref().map(|cell| cell.text.clone());
            match leaders.iter_mut().find(|(it, _)| shown(it) == shown(best)) {
                Some((_, led)) => led.push(at),
                None => leaders.push((best, vec![at])),
            }
        }
        let parts = leaders.iter().map(|(choice, led)| {
            let texts = |leading: bool| -> Vec<String> {
                let found = known(question).filter(|at| led.contains(at) == leading);
                found.map(|at| value(question, choice, at)).collect()
            };
            let (best, but) = (texts(true), texts(false));
            let leads =
                format!("{} has the best {}", self.name(question, choice), best.join(" and "));
            if but.is_empty() { leads } else { format!("{leads}, with {}", but.join(" and ")) }
        });
        let parts = parts.collect::<Vec<_>>().join("; ");
        match leaders.len() {
            1 => format!("not surely the best: {parts}"),
            _ => format!("no single best: {parts}"),
        }
    }

    /// What each verdict is on, and in how many settings of the other axes.
    fn counted(&self, asked: &[&Question]) -> String {
        let once = self.is_once();
        let mut found: IndexMap<String, Vec<String>> = IndexMap::new();
        for question in asked {
            let first = self.name(question, &question.options[0]);
            let told = match (question.verdict, once) {
                (Verdict::Best, true) => format!("{first} did best"),
                (Verdict::Best, false) => format!("{first} is best"),
                (Verdict::Ahead, _) => format!("{first} is ahead, but not of all,"),
                (Verdict::Same, _) => "no difference".to_owned(),
                (Verdict::TradeOff, _) => "no single best".to_owned(),
            };
            let with = question.settings.iter().map(|(axis, label)| format!("{axis} {label}"));
            found.entry(told).or_default().push(with.collect::<Vec<_>>().join(", "));
        }
        found.sort_by(|_, one, _, other| other.len().cmp(&one.len()));
        let parts = found.into_iter().map(|(told, settings)| match settings.len() {
            all if all == asked.len() => format!("{told} in all {all}"),
            count if count > MAX_NAMED => format!("{told} in {count}"),
            count => format!("{told} in {count} ({})", settings.join("; ")),
        });
        let parts: Vec<_> = parts.collect();
        let mut options: Vec<_> = asked[0].options.iter().map(|it| it.label.clone()).collect();
        options.sort_unstable();
        let options = listed(some(options, MAX_OPTIONS));
        let (flow, first) = (&asked[0].flow, asked[0]);
        let of = match (&first.axis, flow.is_empty()) {
            (Some(axis), false) => format!("{flow}, along {axis} ({options})"),
            (Some(axis), true) => format!("along {axis} ({options})"),
            (None, _) => format!("between {options}"),
        };
        let but = if first.apart_from_codecs { BUT_FOR_CODECS } else { "" };
        format!("{of}, {but}in {} settings of the other axes: {}.", asked.len(), parts.join("; "))
    }

    fn name(&self, question: &Question, choice: &Choice) -> String {
        let label = &choice.label;
        let quoted = quoted(label);
        match &question.axis {
            Some(axis) => in_words(axis, label),
            None => {
                let transport =
                    choice.rows.first().and_then(|&row| Flows::text(&self.0.flows.transport, row));
                transport.map_or(quoted.clone(), |transport| format!("{quoted} ({transport})"))
            }
        }
    }
}

fn quoted(label: &str) -> String {
    if label.contains([',', ':', ';']) { format!("“{label}”") } else { label.to_owned() }
}

/// A value of an axis, with the axis if it is a number.
fn in_words(axis: &str, label: &str) -> String {
    let number = label.starts_with(|first: char| first.is_ascii_digit() || "-−+.".contains(first));
    if number { format!("{axis} {}", quoted(label)) } else { quoted(label) }
}

/// The measures in which an option is worse than the first.
fn worse(question: &Question, choice: &Choice) -> impl Iterator<Item = usize> {
    let of = |at: &usize| question.told(*at, choice.differences[*at].as_ref()) == Told::Worse;
    (0..question.measures.len()).filter(of).collect::<Vec<_>>().into_iter()
}

fn value(question: &Question, choice: &Choice, at: usize) -> String {
    let metric = question.instrument.measures[at].metric();
    let text =
        choice.cells[at].as_ref().map_or("–".to_owned(), |cell| with_unit(metric, &cell.text));
    labelled(metric, &text)
}

fn labelled(metric: &Metric, text: &str) -> String {
    format!("{}\u{a0}{text}", metric.label)
}

/// The measures that an option has a value of. In imported traces, delays may be unknown.
fn known(question: &Question) -> impl Iterator<Item = usize> {
    let is_known = |at: &usize| question.options.iter().any(|it| it.cells[*at].is_some());
    (0..question.measures.len()).filter(is_known)
}

/// The values without names of measures.
fn texts(question: &Question, choice: &Choice) -> String {
    let texts = known(question).map(|at| {
        let metric = question.instrument.measures[at].metric();
        choice.cells[at].as_ref().map_or("–".to_owned(), |cell| with_unit(metric, &cell.text))
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// How much worse an option is.
fn size(question: &Question, choice: &Choice, at: usize) -> String {
    let metric = question.instrument.measures[at].metric();
    let found = choice.differences[at].as_ref().expect("a difference");
    let more = if found.mean.mean > 0.0 { "more" } else { "less" };
    let spread =
        found.half.map_or(String::new(), |it| format!("\u{a0}±\u{a0}{}", half(metric, it)));
    let text = format!("{}{spread}", show(metric, found.mean.mean.abs()));
    match metric.shown_unit {
        "%" => format!("{text}\u{a0}percentage points {more} {}", metric.label),
        "" => format!("{text}\u{a0}{} {more}", metric.label),
        // Of several with units, which one is meant.
        unit if question.instrument.measures == OF_PICTURES => {
            format!("{text}\u{a0}{unit} {more} {}", metric.label)
        }
        unit => format!("{text}\u{a0}{unit} {more}"),
    }
}
