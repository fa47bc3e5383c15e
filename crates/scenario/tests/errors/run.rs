//! The length of the run, its windows, its seed, and the size of its records.

use talkspurt_scenario::load;

use crate::{GOOD, each, stage, told};

#[test]
fn time() {
    insta::assert_snapshot!(each(&[
        ("\"60s\"", "\"0s\""),
        ("\"60s\"", "\"79h\""),
        ("from = \"5s\"", "from = \"55s\""),
        ("to = \"55s\"", "to = \"61s\""),
        ("\"100ms\"", "\"0s\""),
        ("\"100ms\"", "\"1ns\""),
        ("\"100ms\"", "\"30us\""),
        ("start = \"1s\"", "start = \"60s\""),
        ("start = \"1s\"", "stop = \"61s\""),
        ("ip = \"v4\"", "stop = \"500ms\""),
        ("ip = \"v4\"", "start_spread = \"60s\""),
        ("title = \"Test\"", "title = \" \""),
    ]));
}

#[test]
fn one_limit_of_seeds_everywhere() {
    let seeded = |seed: u64, more: &str| {
        let loaded = load(&format!("{GOOD}{more}"), "call.toml", &stage::folder(), &[], Some(seed));
        loaded.map(|study| study.points.len()).map_err(|problems| problems.to_string())
    };
    let most = i64::MAX as u64;
    assert_eq!(seeded(most, ""), Ok(1));
    let above = seeded(most + 1, "").unwrap_err();
    assert!(above.contains("must be 0 to 9223372036854775807"), "{above}");
    assert_eq!(seeded(most - 1, "[replications]\ncount = 2\n"), Ok(2));
    let beyond = seeded(most, "[replications]\ncount = 2\n").unwrap_err();
    assert!(beyond.contains("beyond 9223372036854775807"), "{beyond}");
    let schema = talkspurt_scenario::schema();
    assert_eq!(schema["properties"]["seed"]["maximum"].as_u64(), Some(most));
}

#[test]
fn more_than_can_be_kept_or_counted() {
    let long = [("duration", "78h"), ("record.interval", "1s")];
    let with = |more: &[(&str, &str)]| told(GOOD, &[&long, more].concat());
    let fast = [("links.*.rate", "10Gbit/s")];
    let heard = [("flows.call.source.repeat", "true")];
    insta::assert_snapshot!([with(&[]), with(&fast), with(&heard)].join("\n\n"));
    // A link of 200 Mbit/s carries 4.8 thousand million segments in 78 hours.
    let end = |more: (&'static str, &'static str)| with(&[("links.*.rate", "200Mbit/s"), more]);
    assert!(end(("flows.upload.dscp", "1")).contains("packets in the run"));
    assert_eq!(end(("flows.upload.source.total", "5GB")), "no problem");
    assert_eq!(end(("flows.upload.stop", "60h")), "no problem");
    // Twelve hours of speech are kept.
    let until = |stop: &'static str| with(&[heard[0], ("flows.call.stop", stop)]);
    assert!(until("43202s").contains("hours of recorded speech"));
    assert_eq!(until("43201s"), "no problem");
}

#[test]
fn animation() {
    let with = |more: &[(&str, &str)]| told(GOOD, more);
    let (from, to) = ("record.animation.from", "record.animation.to");
    let told = [
        with(&[(to, "61s"), ("record.animation.packets", "20001"), ("record.snaplen", "39B")]),
        with(&[(from, "60s")]),
        with(&[(from, "20s"), (to, "20s")]),
        with(&[(to, "0s")]),
    ];
    insta::assert_snapshot!(told.join("\n\n"));
    assert_eq!(
        with(&[(from, "20s"), (to, "60s"), ("record.animation.packets", "0")]),
        "no problem"
    );
}
