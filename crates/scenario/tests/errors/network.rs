//! Errors in nodes, links, link events, and routes.

use crate::{GOOD, each, stage, told};

#[test]
fn links() {
    insta::assert_snapshot!(each(&[
        ("rate = \"2Mbit/s\"", "rate = \"0bit/s\""),
        ("rate = \"2Mbit/s\"", "rate = \"100bit/s\""),
        ("delay = \"20ms\"", "delay = \"2h\""),
        ("delay = \"20ms\"", "delay = \"60001ms\""),
        ("delay = \"20ms\"", "delay = \"20ms\"\njitter = \"60001ms\""),
        ("delay = \"30ms\"", "jitter = \"60001ms\""),
        ("delay = \"30ms\"", "rate = \"0bit/s\""),
        ("mtu = \"1500B\"", "mtu = \"60B\""),
        ("mtu = \"1500B\"", "mtu = \"1MB\""),
        ("packets = 25, bytes = \"64kB\"", "packets = 0, bytes = \"0B\""),
        (", packets = 100 }", " }"),
        ("\"droptail\"", "\"cobalt\""),
        ("at = \"11s\"", "at = \"9s\""),
        ("at = \"11s\"", "at = \"90s\""),
        ("\"down\"", "\"up\""),
        ("to = \"west\"", "to = \"home\""),
        ("[nodes.west]", "[nodes.wset]"),
        ("clock_drift_ppm = 5", "clock_drift_ppm = 1e9"),
        ("clock_drift_ppm = 5", "colour = \"red\""),
        ("clock_drift_ppm = 5", "colour = \"#12345\""),
        ("clock_drift_ppm = 5", "addresses = [\"10.0.0.1\", \"10.0.0.1\", \"0.0.0.0\"]"),
        ("[\"bottleneck\"]", "[\"bottelneck\"]"),
        ("[\"bottleneck\"]", "[\"access\", \"access\"]"),
        ("[links.access]", "[links.\"a.b c\"]"),
    ]));
}

#[test]
fn media() {
    insta::assert_snapshot!(each(&[
        ("loss = 0.01", "loss = 0.01\ngilbert_elliott = { p = 0.1, r = 0.5 }"),
        ("loss = 0.01", "gilbert_elliott = { p = 0.1, r = 1.5 }"),
        ("loss = 0.01", "gilbert_elliott = { p = 0, r = 0.5 }"),
        ("loss = 0.01", "gilbert_elliott = { p = 0.1 }"),
        ("loss = 0.01", "bit_error_rate = -1e-6"),
        ("loss = 0.01", "duplicate = 2"),
        ("loss = 0.01", "reorder = \"yes\""),
        ("mtu = \"1500B\"", "framing = \"atm\""),
        ("delay = \"30ms\"", "bit_error_rate = 2"),
        ("delay = \"30ms\"", "steps = [{ at = \"90s\", loss = 1 }]"),
        ("delay = \"30ms\"", "loss = 0.1\ngilbert_elliott = { p = 0.1, r = 0 }"),
    ]));
}

#[test]
fn orbits() {
    let geo = "altitude_km = 35786, elevations = [30]";
    let leo = "altitude_km = 550, elevations = [60, 40], handover = \"15s\"";
    let with = |orbit: &str, more: &str| {
        each(&[("mtu = \"1500B\"", &format!("orbit = {{ {orbit} }}{more}"))])
    };
    assert!(with(geo, "").contains("no problem"));
    assert!(with(leo, "").contains("no problem"));
    let gap = |gap: &str| format!("{leo}, {gap}");
    insta::assert_snapshot!(
        [
            with("altitude_km = 550", ""),
            with("altitude_km = 50, elevations = [30]", ""),
            with("altitude_km = 550, elevations = []", ""),
            with("altitude_km = 550, elevations = [91, -1]", ""),
            with("altitude_km = 550, elevations = [60, 40]", ""),
            with("altitude_km = 550, elevations = [60], handover = \"15s\"", ""),
            with("altitude_km = 550, elevations = [60, 40], handover = \"999us\"", ""),
            with(&gap("gap = \"15s\""), ""),
            with(&gap("gap_loss = 1.5"), ""),
            with(&format!("{geo}, gap_loss = 0.5"), ""),
            with(geo, "\nsteps = [{ at = \"9s\", loss = 0 }]"),
            with(&gap("gap_loss = 0.5"), "\ngilbert_elliott = { p = 0.1, r = 0.5 }"),
        ]
        .join("\n\n")
    );
}

#[test]
fn steps() {
    let with = |steps| each(&[("mtu = \"1500B\"", steps)]);
    insta::assert_snapshot!(
        [
            "steps = [{ at = \"9s\", loss = 0.1 }, { at = \"8s\", loss = 0 }]",
            "steps = [{ at = \"9s\", loss = 0.1 }, { at = \"9s\", loss = 0 }]",
            "steps = [{ at = \"90s\", rate = \"1Mbit/s\" }]",
            "steps = [{ at = \"9s\" }]",
            "steps = [{ at = \"9s\", rate = \"0bit/s\" }, { at = \"10s\", loss = 0 }]",
            "steps = [{ at = \"9s\", rate = \"100bit/s\" }]",
            "steps = [{ at = \"9s\", delay = \"2h\" }]",
            "steps = [{ at = \"9s\", delay = \"60001ms\" }]",
            "steps = [{ at = \"9s\", loss = 1.5 }]",
        ]
        .map(with)
        .join("\n\n")
    );
}

#[test]
fn traces() {
    let folder = stage::folder().join("traces");
    std::fs::create_dir_all(&folder).expect("temporary folder");
    let tell = |(kind, name, text): (&str, &str, &str)| {
        if !text.is_empty() || name != "missing" {
            std::fs::write(folder.join(name), text).expect("temporary file");
        }
        let trace = format!("trace = {{ kind = \"{kind}\", file = \"traces/{name}\" }}");
        let text = GOOD.replacen("mtu = \"1500B\"", &trace, 1);
        format!("{name}\n    {}", told(&text, &[]).replace('\n', "\n    "))
    };
    insta::assert_snapshot!(
        [
            ("mahimahi", "missing", ""),
            ("mahimahi", "empty", "\n"),
            ("mahimahi", "words", "1\n2\nthree\n"),
            ("mahimahi", "negative", "-1\n2\n"),
            ("mahimahi", "back-in-time", "1\n5\n4\n"),
            ("mahimahi", "no-period", "0\n0\n"),
            ("mahimahi", "too-late", "61000\n"),
            ("csv", "empty.csv", ""),
            ("csv", "only-names.csv", "time,rate\n"),
            ("csv", "no-time.csv", "rate\n1Mbit/s\n"),
            ("csv", "only-time.csv", "time\n1s\n"),
            ("csv", "unknown.csv", "time,jitter\n1s,1ms\n"),
            ("csv", "twice.csv", "time,rate,rate\n1s,1Mbit/s,1Mbit/s\n"),
            ("csv", "back-in-time.csv", "time,loss\n# pass\n2s,0\n1s,0\n"),
            ("csv", "no-period.csv", "time,loss\n2s,0\n2s,0\n"),
            ("csv", "unit.csv", "time_h,rate\n1,1Mbit/s\n"),
            ("csv", "two-units.csv", "time_s,time_ms,loss\n1,1000,0\n"),
            ("csv", "no-names.csv", "0.0,3000000\n0.1,2000000\n"),
            ("csv", "spaces.csv", "time rate\n1s 1Mbit/s\n"),
            ("csv", "epoch.csv", "time_s,rate_kbps\n1582018702,100\n"),
            ("csv", "words.csv", "time_s,rate_kbps\n1,fast\n"),
            ("csv", "minus.csv", "time_s,rate_kbps\n-1,1\n"),
            ("csv", "infinite.csv", "time_s,rate_kbps\n1,inf\n"),
            ("csv", "percent.csv", "time_s,loss_percent\n1,101\n"),
            ("csv", "bare.csv", "time,rate\n2s,1000\n"),
            ("csv", "no-instant.csv", "time,rate\n,1Mbit/s\n"),
            ("csv", "cells.csv", "time,rate\n1s,1Mbit/s,1ms\n"),
            ("csv", "loss.csv", "time,loss\n1s,1.01\n"),
            ("csv", "delay.csv", "time,delay\n1s,2h\n"),
            ("csv", "beyond.csv", "time,delay\n1s,61s\n"),
            ("csv", "slow.csv", "time,rate\n1s,100bit/s\n"),
            ("csv", "silent.csv", "time,rate\n1s,1Mbit/s\n2s,0bit/s\n"),
        ]
        .map(tell)
        .join("\n\n")
    );
    std::fs::write(folder.join("good"), "1\n2\n").expect("temporary file");
    let both = "steps = [{ at = \"9s\", loss = 0 }]\ntrace = { kind = \"mahimahi\", file = \"traces/good\" }";
    let why = "call.toml:23: links.bottleneck.trace: a direction of a link follows `steps` or a `trace`, not both";
    assert!(each(&[("mtu = \"1500B\"", both)]).contains(why));
}

#[test]
fn queues() {
    let with = |queues: &[&str]| {
        let changes: Vec<String> = queues.iter().map(|queue| format!("{{ {queue} }}")).collect();
        let change = |to: &String| ("{ kind = \"droptail\", packets = 100 }", to.clone());
        let changes: Vec<_> = changes.iter().map(change).collect();
        each(&changes.iter().map(|(from, to)| (*from, to.as_str())).collect::<Vec<_>>())
    };
    insta::assert_snapshot!(with(&[
        "kind = \"droptail\", time = \"0s\"",
        "kind = \"droptail\", packets = 1, ns2 = true",
        "kind = \"droptail\", bytes = \"9kB\", ns2 = true",
        "kind = \"droptail\", bytes = \"9kB\", follow_rate = true",
        "kind = \"red\"",
        "kind = \"red\", packets = 50, min_threshold = 15, max_threshold = 5",
        "kind = \"red\", packets = 50, min_threshold = -1, max_threshold = 15",
        "kind = \"red\", packets = 50, max_threshold = 15",
        "kind = \"red\", packets = 10, min_threshold = 5",
        "kind = \"red\", packets = 50, max_p = 1.5",
        "kind = \"red\", packets = 50, max_p = 0",
        "kind = \"red\", packets = 50, weight = 0, mean_packet = \"0B\", target_delay = \"0s\"",
        "kind = \"red\", packets = 50, mode = \"byte\"",
        "kind = \"codel\", packets = 0",
        "kind = \"codel\", target = \"0s\"",
        "kind = \"codel\", interval = \"0s\"",
        "kind = \"codel\", target = \"100ms\", interval = \"5ms\"",
        "kind = \"fq_codel\", queues = 0, quantum = \"0B\"",
        "kind = \"dualpi2\", target = \"0s\", update = \"0s\", packets = 0",
        "kind = \"dualpi2\", coupling = 0.5, c_protection = 2",
        "kind = \"pie\", target = \"0s\", update = \"0s\"",
        "kind = \"pie\", alpha = -1, mark_below = 1.1",
        "kind = \"priority\", bands = []",
        "kind = \"priority\", bands = [{ dscp = [46], queue = { kind = \"codel\", target = \"0s\" } }]",
        "kind = \"priority\", bands = [{ dscp = [99], queue = { kind = \"codel\" } }, { queue = { kind = \"pi\" } }]",
        "kind = \"priority\", bands = [{ dscp = [46, 8], queue = { kind = \"codel\" } }, { dscp = [8], queue = { kind = \"pie\" } }, { queue = { kind = \"pie\" } }, { queue = { kind = \"pie\" } }]",
        "kind = \"policer\", rate = \"0bit/s\", burst = \"0B\", excess_burst = \"0B\", yellow_dscp = 64, queue = { kind = \"codel\" }",
        "kind = \"policer\", rate = \"2Mbit/s\", burst = \"2kB\", excess_burst = \"2kB\", peak_rate = \"1Mbit/s\", peak_burst = \"2kB\", queue = { kind = \"codel\" }",
        "kind = \"policer\", rate = \"2Mbit/s\", burst = \"2kB\", peak_rate = \"1Mbit/s\", yellow_dscp = 1, queue = { kind = \"codel\" }",
        "kind = \"policer\", rate = \"2Mbit/s\", burst = \"2kB\", peak_burst = \"2kB\", yellow_dscp = 1, queue = { kind = \"codel\" }",
        "kind = \"policer\", rate = \"2Mbit/s\", burst = \"2kB\"",
        "kind = \"shaper\", rate = \"0bit/s\", burst = \"1499B\", queue = { kind = \"priority\", bands = [{ queue = { kind = \"droptail\" } }] }",
        "kind = \"shaper\", rate = \"2Mbit/s\", burst = \"2kB\", peak_rate = \"1Mbit/s\", queue = { kind = \"codel\" }",
    ]));
    let fits = [
        "kind = \"droptail\", time = \"100ms\"",
        "kind = \"red\", packets = 50, adaptive = true",
        "kind = \"codel\"",
        "kind = \"fq_codel\"",
        "kind = \"pie\"",
        "kind = \"dualpi2\"",
        "kind = \"policer\", rate = \"64kbit/s\", burst = \"400B\", red_dscp = 0, queue = { kind = \"codel\" }",
        "kind = \"shaper\", rate = \"1Mbit/s\", burst = \"3kB\", queue = { kind = \"priority\", bands = [{ dscp = [46], queue = { kind = \"codel\" } }, { queue = { kind = \"pie\" } }] }",
    ];
    for queue in fits {
        assert!(with(&[queue]).contains("no problem"), "{queue}");
    }
}

/// Two ways between home and east: over west, and over the north.
fn paths(transport: &str, paths: &str) -> String {
    let north = |name: &str, ends: [&str; 2]| {
        format!(
            "[links.{name}]\nfrom = \"{}\"\nto = \"{}\"\nrate = \"2Mbit/s\"\ndelay = \"20ms\"\nqueue = {{ kind = \"droptail\", packets = 25 }}\n",
            ends[0], ends[1]
        )
    };
    let text = GOOD
        .replace("transport = { kind = \"udp\" }\nip", &format!("transport = {transport}\nip"))
        .replace("via = [\"home\", \"west\", \"east\"]", paths);
    let more = north("up", ["home", "north"]) + &north("down", ["north", "east"]);
    format!("{paths}\n    {}", told(&format!("{text}\n{more}"), &[]).replace('\n', "\n    "))
}

#[test]
fn paths_that_cannot_be() {
    let sctp = "{ kind = \"sctp\" }";
    let west = "[\"home\", \"west\", \"east\"]";
    let north = "[\"home\", \"north\", \"east\"]";
    let good = paths(sctp, &format!("paths = [{west}, {north}]"));
    assert!(good.ends_with("no problem"), "{good}");
    // One path is a way like any other.
    let good = paths("{ kind = \"udp\" }", &format!("paths = [{north}]"));
    assert!(good.ends_with("no problem"), "{good}");
    insta::assert_snapshot!(
        [
            paths("{ kind = \"udp\" }", &format!("paths = [{west}, {north}]")),
            paths(
                "{ kind = \"tcp\", controller = \"newreno\" }",
                &format!("paths = [{west}, {north}]")
            ),
            paths(sctp, &format!("paths = [{west}, {west}]")),
            paths(sctp, &format!("paths = [{west}, {north}, {north}]")),
            paths(sctp, &format!("paths = [{west}, [\"home\", \"nort\", \"east\"]]")),
            paths(sctp, &format!("paths = [{west}, [\"home\", \"east\"]]")),
            paths(sctp, &format!("paths = [{west}, [\"home\", \"north\"]]")),
            paths(sctp, &format!("paths = [[\"west\", \"east\"], {north}]")),
            paths(sctp, "paths = []"),
            paths(sctp, "paths = [[]]"),
            paths(sctp, &format!("paths = {west}")),
            paths(sctp, &format!("via = {west}\npaths = [{west}, {north}]")),
        ]
        .join("\n\n")
    );
}

#[test]
fn no_way_between_islands() {
    let text = GOOD
        .replace("via = ", "# via = ")
        .replace("from = \"west\"\nto = \"east\"", "from = \"north\"\nto = \"east\"");
    insta::assert_snapshot!(told(&text, &[]));
}

#[test]
fn more_slots_than_the_schedule_has() {
    let text = GOOD.replace("[flows.sensor]", "[flows.sensor]\ncount = 131071");
    insta::assert_snapshot!(told(&text, &[]));
}

/// With many wake-up slots, times have fewer bits.
#[test]
fn a_run_is_too_long_for_many_flows() {
    let text = GOOD.replace("[flows.sensor]", "[flows.sensor]\ncount = 32764");
    let run = |duration| told(&text, &[("duration", duration), ("record.interval", "1h")]);
    insta::assert_snapshot!(run("20h"));
    assert_eq!(run("19h"), "no problem");
}

#[test]
fn ipv6_needs_1280_bytes() {
    let text = GOOD.replace("\"v4\"", "\"v6\"").replace("mtu = \"1500B\"", "mtu = \"1279B\"");
    insta::assert_snapshot!(told(&text, &[]));
    assert_eq!(told(&text.replace("1279B", "1280B"), &[]), "no problem");
}

#[test]
fn the_limits_themselves_are_allowed() {
    for (from, to) in [
        ("\"60s\"", "\"33h\""),
        ("delay = \"20ms\"", "delay = \"60s\""),
        ("delay = \"20ms\"", "delay = \"20ms\"\njitter = \"60s\""),
        ("mtu = \"1500B\"", "mtu = \"65535B\""),
        ("loss = 0.01", "loss = 1"),
        ("dscp = 46", "dscp = 63"),
        ("packet = \"20ms\"", "packet = \"60ms\""),
        ("packet = \"160B\"", "packet = \"1472B\""),
        ("packets = 25", "packets = 1"),
        ("seed = 1", "seed = 0"),
        ("seed = 1", "seed = 0xff_ff"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        assert_eq!(told(&GOOD.replacen(from, to, 1), &[]), "no problem", "{to}");
    }
}

/// A key that depends on a wrong one is not told to lack it.
#[test]
fn the_first_cause_is_told_alone() {
    let queue = "{ kind = \"droptail\", packets = 100 }";
    for (from, wrong, field) in [
        (queue, "{ kind = \"droptail\", time = 5 }", "queue.time"),
        (queue, "{ kind = \"droptail\", packets = 9, time = 5, follow_rate = true }", "queue.time"),
        (
            queue,
            "{ kind = \"red\", packets = 50, min_threshold = \"5\", max_threshold = 15 }",
            "queue.min_threshold",
        ),
        (
            queue,
            "{ kind = \"policer\", rate = \"1Mbit/s\", burst = \"9kB\", peak_rate = \"2Mbit/s\", \
             peak_burst = 9, yellow_dscp = 1, queue = { kind = \"codel\" } }",
            "queue.peak_burst",
        ),
        (
            queue,
            "{ kind = \"policer\", rate = \"1Mbit/s\", burst = \"9kB\", excess_burst = 9, \
             yellow_dscp = 1, queue = { kind = \"codel\" } }",
            "queue.excess_burst",
        ),
    ] {
        let told = told(&GOOD.replacen(from, wrong, 1), &[]);
        assert!(told.contains(field) && !told.contains('\n'), "{wrong}: {told}");
    }
}
