//! Many errors, or large ones: reported in a few lines regardless of size.

use talkspurt_app::file::Disk;
use talkspurt_scenario::{Use, load, load_for};

use crate::{GOOD, stage, told};

fn many(line: impl Fn(usize) -> String, count: usize) -> String {
    (0..count).map(line).collect()
}

/// Number of lines reported, and the last of them.
fn lines(told: &str) -> (usize, &str) {
    (told.lines().count(), told.lines().last().unwrap_or(""))
}

#[test]
fn unknown_keys_are_told_a_few_times_and_counted() {
    let keys = many(|n| format!("zebra{n} = 1\n"), 50_000);
    let told = told(&format!("{keys}{GOOD}"), &[]);
    assert_eq!(lines(&told), (41, "call.toml: and 49960 more problems"));
    assert!(told.starts_with("call.toml:1: zebra0: unknown key"), "{told:.200}");
    // In tables with kinds, in lists, and in tables of names, too.
    let inside = many(|n| format!("zebra{n} = 1\n"), 20_000);
    let text = GOOD.replacen("[flows.call.source]\n", &format!("[flows.call.source]\n{inside}"), 1);
    assert_eq!(lines(&crate::told(&text, &[])).0, 41);
    let flows = many(|n| format!("[flows.f{n}]\nzebra = 1\n"), 5_000);
    assert_eq!(lines(&crate::told(&format!("{GOOD}{flows}"), &[])).0, 41);
    let elements = many(|n| format!("{n},"), 50_000);
    let text = GOOD.replacen("via = [", &format!("via = [{elements}"), 1);
    assert_eq!(lines(&crate::told(&text, &[])), (41, "call.toml: and 49960 more problems"));
}

#[test]
fn exactly_as_many_problems_as_are_told_have_no_rest() {
    for (count, told_lines) in [(39, 39), (40, 40), (41, 41)] {
        let keys = many(|n| format!("zebra{n} = 1\n"), count);
        let told = told(&format!("{keys}{GOOD}"), &[]);
        let rest = usize::from(count > 40);
        assert_eq!(lines(&told).0, told_lines);
        assert_eq!(told.matches("more problems").count(), rest);
    }
}

#[test]
fn faults_of_syntax_are_told_a_few_times() {
    let twice = many(|_| "seed = 1\n".to_owned(), 20_000);
    let (count, last) = (41, "more problems");
    let told = told(&format!("{twice}{GOOD}"), &[]);
    assert_eq!(told.lines().count(), count);
    assert!(told.ends_with(last), "{told:.300}");
}

#[test]
fn values_of_axes_are_told_a_few_times() {
    let same = many(|_| "1,".to_owned(), 20_000);
    let text = format!("{GOOD}\n[[axes]]\npath = \"seed\"\nvalues = [{same}]\n");
    assert_eq!(lines(&told(&text, &[])), (41, "call.toml: and 19959 more problems"));
    let wrong = many(|n| format!("\"{n}\","), 20_000);
    let text = format!("{GOOD}\n[[axes]]\npath = \"seed\"\nvalues = [{wrong}]\n");
    assert_eq!(lines(&told(&text, &[])).0, 41);
}

#[test]
fn more_axes_than_can_be_run_are_refused() {
    let one = |n: usize| format!("[[axes]]\nname = \"a{n}\"\npath = \"seed\"\nvalues = [1]\n");
    let text = format!("{GOOD}\n{}", many(one, 4_000));
    assert_eq!(told(&text, &[]), "call.toml:57: axes: 4000 axes; at most 32 are read");
    let field = |n: usize| {
        let values = many(|v| format!("{v},"), 1_000);
        format!("[[axes]]\npath = \"nodes.n{n}.clock_drift_ppm\"\nvalues = [{values}]\n")
    };
    let text = format!("{GOOD}\n{}", many(field, 3));
    let words = "the axes make 1000000000 combinations; at most 100000 are run";
    assert!(told(&text, &[]).contains(words));
}

#[test]
fn what_is_quoted_is_cut() {
    let long = "x".repeat(1_000_000);
    for (from, to) in [
        ("duration = \"60s\"", format!("duration = \"{long}\"")),
        ("seed = 1", format!("seed = \"{long}\"")),
        ("seed = 1", format!("{long} = 1")),
        ("from = \"home\"", format!("from = \"{long}\"")),
        ("kind = \"udp\"", format!("kind = \"{long}\"")),
        ("via = [", format!("via = \"{long}\" #")),
        ("[flows.call]", format!("[flows.{long}]\nfrom = 1\n[flows.call]")),
    ] {
        let told = told(&GOOD.replacen(from, &to, 1), &[]);
        assert!(told.contains(" xxx") || told.contains("xxx"), "{from}: {told:.200}");
        let longest = told.lines().map(str::len).max();
        assert!(longest < Some(2_000), "{from}: {longest:?}");
    }
    let told = told(GOOD, &[("duration", &long)]);
    assert!(told.lines().all(|line| line.len() < 2_000));
}

#[test]
fn a_text_longer_than_any_scenario_is_refused() {
    let text = "#".repeat((16 << 20) + 1);
    let words = "call.toml: has 16777217 bytes; at most 16777216 are read as a scenario";
    assert_eq!(told(&text, &[]), words);
}

#[test]
fn deep_nesting_and_enormous_numbers_are_told() {
    for deep in [
        format!("{}a = 1\n", "a.".repeat(100_000)),
        format!("[{}a]\n", "a.".repeat(100_000)),
        format!("a = {}{}\n", "[".repeat(100_000), "]".repeat(100_000)),
        format!("a = {}1{}\n", "{a=".repeat(100_000), "}".repeat(100_000)),
    ] {
        assert!(told(&deep, &[]).contains("recurs"), "{deep:.20}");
    }
    let digits = "9".repeat(100_000);
    for number in [digits.clone(), format!("-{digits}"), format!("1e{digits}"), "nan".to_owned()] {
        let text = GOOD.replacen("seed = 1", &format!("seed = {number}"), 1);
        assert!(told(&text, &[]).contains("seed"), "{number:.20}");
    }
}

#[test]
fn reading_can_be_stopped() {
    let values = many(|n| format!("{n},"), 50_000);
    let text = format!("{GOOD}\n[[axes]]\npath = \"seed\"\nvalues = [{values}]\n");
    let asked = std::cell::Cell::new(0);
    let stopped = || asked.replace(asked.get() + 1) == 3;
    let wanted = Use { stopped: &stopped, ..Use::of(&Disk) };
    let read = load_for(&text, "call.toml", &stage::folder(), &[], None, &wanted);
    assert!(read.expect_err("stopped").to_string().contains("stopped"));
    assert_eq!(asked.get(), 4, "asked again after it was told to stop");
    assert!(load(GOOD, "call.toml", &stage::folder(), &[], None).is_ok());
}

#[test]
fn a_shorter_run_keeps_the_end_of_its_window_apart_from_its_own() {
    let load = |sets: &[(&str, &str)]| {
        let sets: Vec<_> = sets.iter().map(|(p, v)| ((*p).to_owned(), (*v).to_owned())).collect();
        load(GOOD, "call.toml", &stage::folder(), &sets, None).map(|study| {
            let measure = &study.points[0].scenario.measure;
            (measure.from.to_string(), measure.to.map(|to| to.to_string()))
        })
    };
    let window = |from: &str, to: &str| (from.to_owned(), Some(to.to_owned()));
    // 60 s with a window from 5 to 55 s.
    assert_eq!(load(&[("duration", "30s")]), Ok(window("5s", "25s")));
    assert_eq!(load(&[("duration", "90s")]), Ok(window("5s", "55s")));
    assert_eq!(load(&[("duration", "57s")]), Ok(window("5s", "55s")));
    assert!(load(&[("duration", "30s"), ("measure.to", "55s")]).is_err());
}
