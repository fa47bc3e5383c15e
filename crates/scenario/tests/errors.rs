//! What a user is told: one snapshot for each class of mistake, read as they would read it.
//!
//! Each test changes a good scenario without moving its lines, so that the line numbers in the
//! snapshots can be checked against [`GOOD`] by eye.

use talkspurt_scenario::load;

mod stage;

/// A good scenario.
const GOOD: &str = r#"title = "Test"
duration = "60s"
seed = 1
measure = { from = "5s", to = "55s" }
record = { interval = "100ms", pcapng = ["bottleneck"] }

[nodes.west]
clock_drift_ppm = 5

[links.access]
from = "home"
to = "west"
rate = "100Mbit/s"
delay = "5ms"
queue = { kind = "droptail", packets = 100 }

[links.bottleneck]
from = "west"
to = "east"
rate = "2Mbit/s"
delay = "20ms"
mtu = "1500B"
loss = 0.01
queue = { kind = "droptail", packets = 25, bytes = "64kB" }
events = [{ at = "10s", state = "down" }, { at = "11s", state = "up" }]

[links.bottleneck.back]
delay = "30ms"

[flows.call]
from = "home"
to = "east"
start = "1s"
transport = { kind = "udp" }
ip = "v4"
dscp = 46
via = ["home", "west", "east"]

[flows.call.source]
kind = "speech"
file = "../speech/call.wav"
codec = "pcmu"
packet = "20ms"

[flows.upload]
from = "home"
to = "east"
transport = { kind = "tcp", controller = "newreno" }
source = { kind = "bulk" }

[flows.sensor]
from = "home"
to = "east"
transport = { kind = "udp" }
source = { kind = "cbr", rate = "64kbit/s", packet = "160B" }
"#;

fn told(text: &str, sets: &[(&str, &str)]) -> String {
    let sets: Vec<_> = sets.iter().map(|(p, v)| ((*p).to_owned(), (*v).to_owned())).collect();
    match load(text, "call.toml", &stage::folder(), &sets, None) {
        Ok(_) => "no problem".to_owned(),
        Err(problems) => {
            let stage = stage::folder().canonicalize().expect("stage");
            let root = stage.parent().expect("stage").display().to_string();
            problems.to_string().replace(&root, "/stage")
        }
    }
}

/// What is told of [`GOOD`] after these replacements, each change in a paragraph of its own.
fn each(changes: &[(&str, &str)]) -> String {
    let tell = |(from, to): &(&str, &str)| {
        assert!(GOOD.contains(from), "{from} is not in the good scenario");
        format!("{to}\n    {}", told(&GOOD.replacen(from, to, 1), &[]).replace('\n', "\n    "))
    };
    changes.iter().map(tell).collect::<Vec<_>>().join("\n\n")
}

fn sets(sets: &[(&str, &str)]) -> String {
    let tell = |set: &(&str, &str)| {
        format!("{}={}\n    {}", set.0, set.1, told(GOOD, &[*set]).replace('\n', "\n    "))
    };
    sets.iter().map(tell).collect::<Vec<_>>().join("\n\n")
}

/// [`GOOD`] with axes behind it; they begin on line 58.
fn axes(axes: &str) -> String {
    told(&format!("{GOOD}\n{axes}"), &[])
}

#[test]
fn the_good_scenario_is_good() {
    assert_eq!(told(GOOD, &[]), "no problem");
}

#[test]
fn all_errors_at_once_in_the_order_of_the_file() {
    let text = GOOD
        .replace("seed = 1", "sead = 1")
        .replace("rate = \"2Mbit/s\"", "rate = \"2Mbps\"")
        .replace("loss = 0.01", "loss = 1.5")
        .replace("\"down\"", "\"broken\"")
        .replace("kind = \"udp\" }\nip", "kind = \"udpp\" }\nip")
        .replace("codec = \"pcmu\"", "# no codec")
        .replace("controller = \"newreno\"", "controller = \"new-reno\"")
        .replace("packet = \"160B\"", "packet = 160");
    insta::assert_snapshot!(told(&text, &[("duration", "20"), ("flows.call.dscp", "99")]));
}

#[test]
fn wrong_shapes_do_not_hide_wrong_meanings() {
    let text = GOOD
        .replace("seed = 1", "sead = 1")
        .replace("loss = 0.01", "loss = \"much\"")
        .replace("to = \"east\"\nstart", "to = \"eats\"\nstart")
        .replace("packet = \"160B\"", "packet = \"9kB\"");
    insta::assert_snapshot!(told(&text, &[]));
}

#[test]
fn syntax() {
    insta::assert_snapshot!(each(&[
        ("seed = 1", "seed ="),
        ("\"60s\"", "60s"),
        ("title = \"Test\"", "title = \"Test"),
        ("[links.access]", "[links.access"),
        ("seed = 1", "title = \"again\""),
        ("[flows.sensor]", "[flows.upload]"),
        ("loss = 0.01", "loss = 0.01.2"),
    ]));
}

#[test]
fn keys() {
    insta::assert_snapshot!(each(&[
        ("duration = ", "durration = "),
        ("from = \"home\"", "form = \"home\""),
        ("packets = 25", "packet = 25"),
        ("{ kind = \"udp\" }", "{ kind = \"udp\", mss = \"1kB\" }"),
        ("{ kind = \"udp\" }", "{ kind = \"tcp\" }"),
        ("{ kind = \"udp\" }", "{ }"),
        ("kind = \"bulk\"", "knid = \"bulk\""),
        ("kind = \"cbr\", rate", "kind = \"cbr\", zebra = 1, rate"),
        ("title = \"Test\"", ""),
        ("[flows.call.source]", "[flows.call.sauce]"),
    ]));
}

#[test]
fn types_and_units() {
    insta::assert_snapshot!(each(&[
        ("\"60s\"", "60"),
        ("\"60s\"", "\"60\""),
        ("\"60s\"", "\"60 sec\""),
        ("\"60s\"", "\"-60s\""),
        ("\"60s\"", "-60"),
        ("\"60s\"", "\"soon\""),
        ("\"60s\"", "2026-11-21"),
        ("\"60s\"", "\"99999999999h\""),
        ("\"64kbit/s\"", "\"64kbps\""),
        ("\"64kbit/s\"", "\"64kB/s\""),
        ("\"64kbit/s\"", "64000"),
        ("\"1500B\"", "1500"),
        ("seed = 1", "seed = -1"),
        ("seed = 1", "seed = 1.5"),
        ("seed = 1", "seed = \"1\""),
        ("seed = 1", "seed = 9223372036854775808"),
        ("packets = 25", "packets = 99999999999"),
        ("loss = 0.01", "loss = -0.5"),
        ("loss = 0.01", "loss = nan"),
        ("dscp = 46", "dscp = 64"),
        ("dscp = 46", "dscp = true"),
        ("{ kind = \"udp\" }", "\"udp\""),
        ("via = [\"home\", \"west\", \"east\"]", "via = \"west\""),
        ("title = \"Test\"", "title = 5"),
        ("ip = \"v4\"", "ip = \"ipv6\""),
        ("[nodes.west]\nclock_drift_ppm = 5", "[nodes.west]\naddresses = [\"10.0.0.256\"]"),
    ]));
}

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
fn links() {
    insta::assert_snapshot!(each(&[
        ("rate = \"2Mbit/s\"", "rate = \"0bit/s\""),
        ("rate = \"2Mbit/s\"", "rate = \"100bit/s\""),
        ("delay = \"20ms\"", "delay = \"2h\""),
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
            ("csv", "bare.csv", "time,rate\n2s,1000\n"),
            ("csv", "no-instant.csv", "time,rate\n,1Mbit/s\n"),
            ("csv", "cells.csv", "time,rate\n1s,1Mbit/s,1ms\n"),
            ("csv", "loss.csv", "time,loss\n1s,1.01\n"),
            ("csv", "delay.csv", "time,delay\n1s,2h\n"),
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
        "kind = \"pie\", target = \"0s\", update = \"0s\"",
        "kind = \"pie\", alpha = -1, mark_below = 1.1",
    ]));
    let fits = [
        "kind = \"droptail\", time = \"100ms\"",
        "kind = \"red\", packets = 50, adaptive = true",
        "kind = \"codel\"",
        "kind = \"fq_codel\"",
        "kind = \"pie\"",
    ];
    for queue in fits {
        assert!(with(&[queue]).contains("no problem"), "{queue}");
    }
}

#[test]
fn flows() {
    insta::assert_snapshot!(each(&[
        ("to = \"east\"\nstart", "to = \"eats\"\nstart"),
        ("to = \"east\"\nstart", "to = \"moon\"\nstart"),
        ("to = \"east\"\nstart", "to = \"home\"\nstart"),
        ("[\"home\", \"west\", \"east\"]", "[\"home\", \"east\"]"),
        ("[\"home\", \"west\", \"east\"]", "[\"west\", \"east\"]"),
        ("[\"home\", \"west\", \"east\"]", "[\"home\", \"west\", \"home\", \"west\", \"east\"]"),
        ("from = \"home\"\nto = \"west\"", "from = \"home\"\nto = \"nowhere\""),
        ("packet = \"20ms\"", "packet = \"25ms\""),
        ("packet = \"20ms\"", "packet = \"70ms\""),
        ("packet = \"20ms\"", "lead = \"60s\""),
        ("packet = \"20ms\"", "noise = \"2s\""),
        ("call.wav", "cal.wav"),
        ("call.wav", ""),
        ("packet = \"160B\"", "packet = \"1473B\""),
        ("packet = \"160B\"", "packet = \"0B\""),
        ("rate = \"64kbit/s\"", "rate = \"0bit/s\""),
        ("rate = \"64kbit/s\"", "rate = \"1bit/s\""),
        ("kind = \"cbr\", rate = \"64kbit/s\", packet = \"160B\"", "kind = \"bulk\""),
        ("kind = \"cbr\", rate", "kind = \"on_off\", on = \"0s\", rate"),
        ("kind = \"cbr\", rate", "kind = \"on_off\", on = \"1ns\", off = \"1ns\", rate"),
        ("file = \"../speech/call.wav\"", "talkspurts = { on = \"999us\", off = \"1ms\" }"),
        ("rate = \"64kbit/s\", packet = \"160B\"", "rate = \"8Gbit/s\", packet = \"1B\""),
        ("kind = \"bulk\"", "kind = \"bulk\", total = \"0B\""),
        ("controller = \"newreno\"", "controller = \"newreno\", mss = \"10B\""),
        (
            "controller = \"newreno\"",
            "controller = \"newreno\", initial_window = 0, initial_ssthresh = 1"
        ),
        (
            "controller = \"newreno\"",
            "controller = \"newreno\", receive_buffer = \"1kB\", send_buffer = \"2GB\""
        ),
        ("controller = \"newreno\"", "controller = \"newreno\", ack_delay = \"500ms\""),
        (
            "controller = \"newreno\"",
            "controller = \"newreno\", min_rto = \"2s\", max_rto = \"1s\""
        ),
        ("controller = \"newreno\"", "controller = \"newreno\", min_rto = \"999us\""),
        ("controller = \"newreno\"", "controller = \"bbr\", recovery = \"newreno\""),
    ]));
}

/// What is told of [`GOOD`] when this carries its sensor.
fn carried(transports: &[&str]) -> String {
    let sensor = "transport = { kind = \"udp\" }\nsource";
    let by = |transport: &&str| format!("transport = {{ {transport} }}\nsource");
    let changes: Vec<String> = transports.iter().map(by).collect();
    each(&changes.iter().map(|change| (sensor, change.as_str())).collect::<Vec<_>>())
}

#[test]
fn impossible_connections_of_dccp() {
    insta::assert_snapshot!(carried(&[
        "kind = \"dccp\"",
        "kind = \"dccp\", ccid = 5",
        "kind = \"dccp\", ccid = \"ccid3\"",
        "kind = \"dccp\", ccid = 2, ccid_back = 0",
        "kind = \"dccp\", ccid = 2, profile = \"ns-2\"",
        "kind = \"dccp\", ccid = 2, service = \"RTP-audio\"",
        "kind = \"dccp\", ccid = 2, service = \"a b\"",
        "kind = \"dccp\", ccid = 2, service = 4294967295",
        "kind = \"dccp\", ccid = 2, sequence_window = 31",
        "kind = \"dccp\", ccid = 2, sequence_window = 70368744177664",
        "kind = \"dccp\", ccid = 2, sequence_window = 4194305, allow_short_seqnos = true",
        "kind = \"dccp\", ccid = 2, checksum_coverage = 16, minimum_checksum_coverage = 16",
        "kind = \"dccp\", ccid = 2, checksum_coverage = 2",
        "kind = \"dccp\", ccid = 2, checksum_coverage = 2, minimum_checksum_coverage = 3",
        "kind = \"dccp\", ccid = 2, request_timeout = \"0s\", max_timeout = \"2h\", mtu = \"67B\"",
        "kind = \"dccp\", ccid = 2, request_timeout = \"9s\", max_timeout = \"8s\"",
        "kind = \"dccp\", ccid = 2, window = { initial_window = 0, initial_ssthresh = 0, ack_ratio = 0, ack_delay = \"0s\", initial_rto = \"0s\", min_rto = \"2s\", max_rto = \"1s\" }",
        "kind = \"dccp\", ccid = 2, window = { initial_window = 65536, slow_start = \"double\" }",
        "kind = \"dccp\", ccid = 3, window = { initial_window = 4 }",
        "kind = \"dccp\", ccid = 2, rate = { nominal_size = \"160B\" }",
        "kind = \"tfrc\", ccid = 3",
    ]));
    let fits = [
        "kind = \"dccp\", ccid = 2, sequence_window = 32, service = \"RTPV\"",
        "kind = \"dccp\", ccid = 4, sequence_window = 70368744177663, service = 1381257281",
        "kind = \"dccp\", ccid = 2, sequence_window = 4194304, allow_short_seqnos = true",
        "kind = \"dccp\", ccid = 2, checksum_coverage = 2, minimum_checksum_coverage = 2",
        "kind = \"dccp\", ccid = 2, ccid_back = 3, window = { initial_ssthresh = 2 }, rate = { nominal_size = \"160B\" }",
    ];
    for transport in fits {
        assert!(carried(&[transport]).contains("no problem"), "{transport}");
    }
}

#[test]
fn impossible_rates() {
    insta::assert_snapshot!(carried(&[
        "kind = \"tfrc\", rate = { nominal_size = \"0B\", initial_window = 0, loss_intervals = 1, p_floor = 1.5, rtt_weight = 1.0, feedback_per_rtt = 0 }",
        "kind = \"tfrc\", rate = { minimum_interval = \"2s\", timer_granularity = \"1h\", credit = \"2min\", minimum_timeout = \"2min\" }",
        "kind = \"tfrc\", rate = { token_bucket = { depth = \"1GB\", header_bytes = 256, step_up = \"2min\", step_up_tokens = 1.5 } }",
        "kind = \"tfrc\", rate = { counter_follows_acks = false, elapsed_time = true, loss_intervals_option = true, ask_loss_event_rate = false }",
        "kind = \"beritelli\", threshold = \"0s\", decrease = 1.0, initial_rate = \"0bit/s\"",
        "kind = \"beritelli\", treshold = \"20ms\"",
        "kind = \"dccp\", ccid = 3, rate = { nominal_size = \"65536B\" }",
    ]));
}

#[test]
fn packets_longer_than_the_path_less_their_headers() {
    let with = |transport: &str, packet: &str| {
        told(
            &GOOD
                .replace(
                    "transport = { kind = \"udp\" }\nsource",
                    &format!("transport = {{ {transport} }}\nsource"),
                )
                .replace("packet = \"160B\"", &format!("packet = \"{packet}\"")),
            &[],
        )
    };
    // 1500 bytes less 20 of IP; DCCP's header with an Acknowledgement Number is 24 and it keeps 32 for
    // options; TFRC has UDP's 8 and its own 16. ns-2 counts 32 in front of either.
    for (transport, most) in [
        ("kind = \"dccp\", ccid = 2", 1500 - 20 - 24 - 32),
        ("kind = \"tfrc\"", 1500 - 20 - 8 - 16),
        ("kind = \"beritelli\"", 1500 - 20 - 8 - 16),
    ] {
        assert_eq!(with(transport, &format!("{most}B")), "no problem", "{transport}");
        let told = with(transport, &format!("{}B", most + 1));
        assert!(told.contains("flows.sensor.source.packet"), "{told}");
        assert!(told.contains("least MTU on the way (1500B)"), "{told}");
    }
}

#[test]
fn send_queues_that_contradict_themselves() {
    let queue = |queue: &str| {
        each(&[(
            "source = { kind = \"cbr\"",
            &format!("send_queue = {{ {queue} }}\nsource = {{ kind = \"cbr\""),
        )])
    };
    insta::assert_snapshot!(
        [
            queue("lifetime = \"100ms\""),
            queue("drop = \"oldest\", lifetime = \"100ms\""),
            queue("drop = \"stale\", lifetime = \"0s\""),
            queue("drop = \"stale\", lifetime = \"2h\""),
            queue("drop = \"freshest\""),
        ]
        .join("\n")
    );
    assert!(queue("drop = \"stale\", lifetime = \"100ms\", packets = 3").contains("no problem"));
}

#[test]
fn the_length_of_the_send_queue_is_the_profiles_unless_given() {
    let packets = |transport: &str, more: &str| {
        let text = GOOD.replace(
            "transport = { kind = \"udp\" }\nsource",
            &format!("transport = {{ {transport} }}\n{more}source"),
        );
        let study = load(&text, "call.toml", &stage::folder(), &[], None).expect("good");
        study.points[0].scenario.flows["sensor"].send_queue.packets
    };
    assert_eq!(packets("kind = \"udp\"", ""), Some(50));
    for (profile, expected) in [("rfc", 50), ("ns2", 1000), ("linux", 5)] {
        let dccp = format!("kind = \"dccp\", ccid = 2, profile = \"{profile}\"");
        assert_eq!(packets(&dccp, ""), Some(expected));
        assert_eq!(
            packets(&format!("kind = \"tfrc\", profile = \"{profile}\""), ""),
            Some(expected)
        );
        assert_eq!(packets(&dccp, "send_queue = { packets = 7 }\n"), Some(7));
    }
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
fn only_speech_has_its_length_before_it_in_a_stream() {
    let tcp = |flow: &str, packet: &str, buffer: &str| {
        let transport = format!(
            "{{ kind = \"tcp\", controller = \"newreno\", mss = \"64B\", send_buffer = \"{buffer}\" }}"
        );
        let (path, size) =
            (format!("flows.{flow}.transport"), format!("flows.{flow}.source.packet"));
        told(GOOD, &[(&path, &transport), (&size, packet)])
    };
    assert_eq!(tcp("sensor", "160B", "160B"), "no problem");
    assert!(tcp("sensor", "160B", "159B").contains("send_buffer"));
    // RFC 3550 §5.1 and RFC 4571 §2: 12 + 2 bytes before 20 ms of G.711.
    assert_eq!(tcp("call", "20ms", "174B"), "no problem");
    assert!(tcp("call", "20ms", "173B").contains("send_buffer"));
    // A low water mark says when to write, not how much.
    let marked = |lowat: &str| {
        let transport =
            format!("{{ kind = \"tcp\", controller = \"newreno\", notsent_lowat = \"{lowat}\" }}");
        told(GOOD, &[("flows.call.transport", &transport), ("flows.call.source.packet", "20ms")])
    };
    assert_eq!(marked("1B"), "no problem");
    assert!(marked("0B").contains("notsent_lowat"));
}

#[test]
fn knobs_of_tcp_that_cannot_be() {
    // Each is refused by its name, and the value next to it is not.
    for (knob, bad, good) in [
        ("mss", "'63B'", "'64B'"),
        ("mss", "'65496B'", "'1400B'"),
        ("initial_window", "0", "1"),
        ("initial_window", "65536", "65535"),
        ("initial_ssthresh", "1", "2"),
        ("receive_buffer", "'1459B'", "'1460B'"),
        ("receive_buffer", "'1073741825B'", "'1073741824B'"),
        ("send_buffer", "'1459B'", "'1460B'"),
        ("send_buffer", "'1073741825B'", "'1073741824B'"),
        ("notsent_lowat", "'4000001B'", "'4000000B'"),
        ("notsent_lowat", "'soon'", "'16kB'"),
        ("ack_delay", "'500ms'", "'499ms'"),
        ("min_rto", "'999us'", "'1ms'"),
        ("min_rto", "'61s'", "'60s'"),
        ("max_rto", "'3601s'", "'3600s'"),
        ("msl", "'3601s'", "'3600s'"),
        ("f_rto", "'yes'", "true"),
        ("f_rto", "1", "false"),
        ("delayed_ack", "2", "false"),
        ("nagle", "'on'", "true"),
        ("timestamps", "0", "false"),
        ("ecn", "'ect0'", "true"),
        ("recovery", "'frto'", "'rack'"),
        ("controller", "'vegas'", "'cubic'"),
        ("window", "20", ""),
    ] {
        let with = |value: &str| {
            let base = if knob == "controller" { "" } else { "controller = 'newreno', " };
            let transport = format!("{{ kind = 'tcp', {base}{knob} = {value} }}");
            told(GOOD, &[("flows.upload.transport", &transport)])
        };
        let answer = with(bad);
        assert!(answer.contains(&format!("flows.upload.transport.{knob}")), "{knob}: {answer}");
        assert!(good.is_empty() || with(good) == "no problem", "{knob}: {}", with(good));
    }
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
fn ipv6_needs_1280_bytes() {
    let text = GOOD.replace("\"v4\"", "\"v6\"").replace("mtu = \"1500B\"", "mtu = \"1279B\"");
    insta::assert_snapshot!(told(&text, &[]));
    assert_eq!(told(&text.replace("1279B", "1280B"), &[]), "no problem");
}

#[test]
fn the_limits_themselves_are_allowed() {
    for (from, to) in [
        ("\"60s\"", "\"33h\""),
        ("delay = \"20ms\"", "delay = \"1h\""),
        ("delay = \"20ms\"", "delay = \"20ms\"\njitter = \"1h\""),
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

#[test]
fn no_way_between_islands() {
    let text = GOOD
        .replace("via = ", "# via = ")
        .replace("from = \"west\"\nto = \"east\"", "from = \"north\"\nto = \"east\"");
    insta::assert_snapshot!(told(&text, &[]));
}

#[test]
fn more_slots_than_the_schedule_has() {
    use std::fmt::Write as _;
    let mut text = GOOD.to_owned();
    for index in 0..33_000 {
        writeln!(text, "[links.l{index}]\nfrom = \"n{index}\"\nto = \"east\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\nqueue = {{ kind = \"droptail\", packets = 1 }}").unwrap();
    }
    insta::assert_snapshot!(told(&text, &[]));
}

#[test]
fn changes() {
    insta::assert_snapshot!(sets(&[
        ("duration", "20"),
        ("duration", "soon"),
        ("durration", "20s"),
        ("flows.cal.start", "2s"),
        ("flows.call.sorce.packet", "30ms"),
        ("flows.call.source.packet.size", "30ms"),
        ("flows.*.source.packet", "30ms"),
        ("flows.*.source.codec", "pcma"),
        ("flows.upload.transport.msss", "1kB"),
        ("links.bottleneck.loss", "2"),
        ("links.bottleneck.jitter", "61min"),
        ("links.bottleneck.back", "{ jitter = \"2h\" }"),
        ("links.bottleneck.events[7].at", "2s"),
        ("links.*", "1"),
        ("seed.*", "1"),
        ("a..b", "1"),
        ("flows.call.transport", "udp"),
        ("flows.call.transport", "{ kind = \"tcp\" }"),
        ("flows.call.to", "eats"),
        ("duration", "1979-05-27"),
        ("flows.call.transport.kind", "tcp"),
    ]));
}

#[test]
fn axes_that_cannot_be() {
    let all = [
        "[[axes]]\npath = \"flows.call.trnsport\"\nvalues = [1]",
        "[[axes]]\npath = \"flows.cal.transport\"\nvalues = [1]",
        "[[axes]]\npath = \"links.bottleneck.delay\"\nvalues = []",
        "[[axes]]\npath = \"links.bottleneck.delay\"\nvalues = [\"20ms\", \"20 sec\", 30]",
        "[[axes]]\npath = \"links.*.loss\"\nvalues = [0.1, 2.0]",
        "[[axes]]\npath = \"links.bottleneck.delay\"\nvalues = [\"20ms\", \"30ms\"]\nlabels = [\"near\"]",
        "[[axes]]\npath = \"links.bottleneck.delay\"\nvalues = [\"20ms\", \"30ms\"]\nlabels = [\"a\", \"a\"]",
        "[[axes]]\npath = \"links.bottleneck.delay\"\nvalues = [\"20ms\", \"20ms\"]",
        "[[axes]]\npath = \"links.bottleneck.delay\"\nvalues = [\"20ms\"]\n[[axes]]\npath = \"links.*.delay\"\nvalues = [\"1ms\"]",
        "[[axes]]\nname = \"a\"\npath = \"links.access.delay\"\nvalues = [\"20ms\"]\n[[axes]]\nname = \"a\"\npath = \"links.bottleneck.delay\"\nvalues = [\"1ms\"]",
        "[[axes]]\npath = \"replications.count\"\nvalues = [1, 2]",
        "[[axes]]\npath = \"flows.call.transport\"\nvalues = [{ kind = \"udp\" }, { kind = \"tcp\" }, { kind = \"quic\" }]",
        "[[axes]]\npath = \"duration\"\nvalues = [\"60s\", \"4s\"]",
        "[[axes]]\npath = \"links.bottleneck.delay\"\nvalue = [\"20ms\"]",
        "[[axes]]\npath = \"seed\"\nvalues = [1, 2]\n[replications]\ncount = 60000",
        "[replications]\ncount = 0\nconfidence = 95",
    ];
    let tell = |text: &&str| format!("{text}\n    {}", axes(text).replace('\n', "\n    "));
    insta::assert_snapshot!(all.iter().map(tell).collect::<Vec<_>>().join("\n\n"));
}

#[test]
fn a_change_that_an_axis_would_undo() {
    let text = format!("{GOOD}\n[[axes]]\npath = \"links.*.delay\"\nvalues = [\"1ms\", \"2ms\"]\n");
    insta::assert_snapshot!(told(&text, &[("links.bottleneck.delay", "100ms")]));
    assert_eq!(told(&text, &[("axes.0.values", "[\"100ms\"]")]), "no problem");
    assert_eq!(told(&text, &[("axes", "[]"), ("links.bottleneck.delay", "1s")]), "no problem");
}

#[test]
fn an_empty_file() {
    insta::assert_snapshot!(told("", &[]));
}

#[test]
fn no_text_makes_the_reader_panic() {
    let pieces = [
        "",
        "=",
        "[",
        "]",
        "\"",
        "'",
        "{",
        "\n",
        "é",
        "*",
        "-1",
        "1e999",
        "99999999999999999999",
        "[[",
        ".",
        "inf",
    ];
    let mut good = 0;
    for (turn, (at, _)) in GOOD.char_indices().enumerate() {
        let piece = pieces[turn % pieces.len()];
        for cut in [0, 1, 7] {
            let rest =
                GOOD[at..].char_indices().nth(cut).map_or("", |(skip, _)| &GOOD[at + skip..]);
            let text = format!("{}{piece}{rest}", &GOOD[..at]);
            let answer = told(&text, &[]);
            assert!(!answer.contains("error in talkspurt"), "{text}\n{answer}");
            good += usize::from(answer == "no problem");
        }
    }
    // Some changes do no harm (a space more or less), most must be told.
    assert!((1..1500).contains(&good), "{good}");
}

#[test]
fn codecs_and_ladders() {
    let file = "file = \"../speech/call.wav\"\ncodec = \"pcmu\"\npacket = \"20ms\"";
    let good = "codec = \"pcmu\"\npacket = \"20ms\"\n\
                ladder = [\"pcmu\", \"g726-32\", \"g728\", \"g729-10\", \"g723.1-6.3\"]\n\
                talkspurts = {}\nkeep_alive = {}";
    assert_eq!(told(&GOOD.replace(file, good), &[]), "no problem");
    insta::assert_snapshot!(each(&[
        // A recording needs an encoder.
        ("codec = \"pcmu\"", "codec = \"g729\""),
        ("codec = \"pcmu\"", "codec = \"pcmu\"\nladder = [\"pcmu\", \"g729\"]"),
        ("codec = \"pcmu\"", "codec = \"g730\""),
        // Whole frames.
        (file, "codec = \"g723.1-6.3\"\npacket = \"20ms\""),
        (file, "codec = \"g728\"\npacket = \"11ms\""),
        (file, "codec = \"g729-10\"\npacket = \"30ms\""),
        (file, "codec = \"g723.1-5.3\"\npacket = \"90ms\""),
        (file, "codec = \"pcmu\"\nladder = [\"pcmu\", \"g728\"]\npacket = \"12.5ms\""),
        // A ladder begins with the codec, descends, and is neither one nor nine.
        (file, "codec = \"pcma\"\nladder = [\"pcmu\", \"g728\"]"),
        (file, "codec = \"g728\"\nladder = [\"g728\", \"g726-16\"]"),
        (file, "codec = \"g729\"\nladder = [\"g729\", \"pcmu\", \"g723.1-6.3\"]"),
        (file, "codec = \"pcmu\"\nladder = [\"pcmu\"]"),
        (
            file,
            "codec = \"pcmu\"\nladder = [\"pcmu\", \"g726-40\", \"g726-32\", \"g726-24\", \
             \"g728\", \"g729-10\", \"g729\", \"g723.1-6.3\", \"g723.1-5.3\"]",
        ),
        // Keep-alive needs silence.
        (file, "codec = \"pcmu\"\nkeep_alive = {}"),
        (file, "codec = \"pcmu\"\ntalkspurts = {}\nkeep_alive = { every = \"0s\", size = \"0B\" }"),
    ]));
}

#[test]
fn impossible_associations_of_sctp() {
    insta::assert_snapshot!(carried(&[
        "kind = \"sctp\", mtu = \"67B\"",
        "kind = \"sctp\", mtu = \"65536B\"",
        "kind = \"sctp\", streams = 0",
        "kind = \"sctp\", streams = 65536",
        "kind = \"sctp\", receive_buffer = \"1499B\"",
        "kind = \"sctp\", send_buffer = \"2GB\"",
        "kind = \"sctp\", sack_frequency = 0",
        "kind = \"sctp\", max_burst = 0",
        "kind = \"sctp\", lifetime = \"0ms\"",
        "kind = \"sctp\", lifetime = \"100ms\", max_retransmissions = 1",
        "kind = \"sctp\", sack_delay = \"501ms\"",
        "kind = \"sctp\", rto_min = \"999us\"",
        "kind = \"sctp\", rto_min = \"2s\", rto_max = \"1s\"",
        "kind = \"sctp\", rto_initial = \"61s\"",
        "kind = \"sctp\", rto_initial = \"0s\"",
        "kind = \"sctp\", initial_window = \"0B\"",
        "kind = \"sctp\", rto_max = \"61min\"",
        "kind = \"sctp\", heartbeat_interval = \"2h\"",
        "kind = \"sctp\", cookie_life = \"0s\"",
        "kind = \"sctp\", potentially_failed = 5",
        "kind = \"sctp\", potentially_failed = 3, path_max_retrans = 2",
        "kind = \"sctp\", unordered = true",
        "kind = \"sctp\", scheduler = \"fair\"",
    ]));
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
            paths(sctp, "paths = [[]]"),
            paths(sctp, &format!("paths = {west}")),
            paths(sctp, &format!("via = {west}\npaths = [{west}, {north}]")),
        ]
        .join("\n\n")
    );
}

#[test]
fn buckets_of_tokens() {
    let bulk = "transport = { kind = \"tcp\", controller = \"newreno\" }";
    let udp = "transport = { kind = \"udp\" }\nip";
    insta::assert_snapshot!(each(&[
        (bulk, "transport = { kind = \"tfrc\", rate.token_bucket = {} }"),
        (udp, "transport = { kind = \"tfrc\", rate.token_bucket.initial_rung = 1 }\nip"),
        (udp, "transport = { kind = \"dccp\", ccid = 3, rate.token_bucket.initial_rung = 0 }\nip"),
        (udp, "transport = { kind = \"tfrc\", rate.token_bucket.step_up_tokens = 1.5 }\nip"),
        (udp, "transport = { kind = \"tfrc\", rate.token_bucket.depth = \"200MB\" }\nip"),
        (udp, "transport = { kind = \"beritelli\", decrease = 1.0, threshold = \"0ms\" }\nip"),
    ]));
}

/// Files of the stage for [`traffic`].
fn traffic_files() {
    let stage = stage::folder();
    for (name, text) in [
        ("back.csv", "# sizes\ntime,type,size\n0ms,I,10kB\n40ms,P,1kB\n20ms,P,1kB\n"),
        ("zero.csv", "time,size\n0ms,10kB\n0ms,1kB\n"),
        ("units.csv", "time,size\n0ms,10kB\n40ms,8kbit\n"),
        ("good.csv", "time,size\n0ms,10kB\n40ms,1kB\n"),
    ] {
        std::fs::write(stage.join(name), text).expect("temporary file");
    }
    let mut pcap = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    pcap.resize(20, 0);
    pcap.push(1);
    pcap.resize(24, 0);
    std::fs::write(stage.join("empty.pcap"), pcap).expect("temporary file");
}

#[test]
fn traffic() {
    traffic_files();
    let file = "file = \"../speech/call.wav\"\ncodec = \"pcmu\"\npacket = \"20ms\"";
    let sensor = "kind = \"cbr\", rate = \"64kbit/s\", packet = \"160B\"";
    let bulk = "kind = \"bulk\"";
    for good in [
        "kind = \"video\", file = \"good.csv\", repeat = true",
        "kind = \"video\", rate = \"1Mbit/s\", frame = \"33ms\"",
        "kind = \"poisson\", rate = \"1Mbit/s\", packet = \"500B\"",
        "kind = \"on_off\", rate = \"64kbit/s\", packet = \"160B\", \
         spread = { kind = \"pareto\", shape = 1.5 }",
    ] {
        assert_eq!(told(&GOOD.replace(sensor, good), &[]), "no problem");
    }
    for good in [
        "kind = \"bulk\", pauses = { on = \"2s\", off = \"1s\" }",
        "kind = \"web\"",
        "kind = \"web\", sizes = { kind = \"lognormal\", sigma = 1.5 }, thinks = { kind = \"constant\" }",
    ] {
        assert_eq!(told(&GOOD.replace(bulk, good), &[]), "no problem");
    }
    let both = GOOD.replace(file, "codec = \"pcmu\"\nconversation = {}").replace(
        "[flows.upload]",
        "[flows.call.reverse]\nkind = \"speech\"\ncodec = \"pcmu\"\n\
                                    conversation = {}\n\n[flows.upload]",
    );
    assert_eq!(told(&both, &[]), "no problem");
    let other = both.replacen("conversation = {}", "conversation = { interruption = 0.5 }", 1);
    insta::assert_snapshot!("conversations", told(&other, &[]));
    insta::assert_snapshot!(each(&[
        // No mean.
        (
            sensor,
            "kind = \"on_off\", rate = \"64kbit/s\", packet = \"160B\", spread = { kind = \"pareto\", shape = 1.0 }"
        ),
        (
            bulk,
            "kind = \"bulk\", pauses = { on = \"1s\", off = \"0s\", spread = { kind = \"lognormal\", sigma = 0.0 } }"
        ),
        (
            bulk,
            "kind = \"web\", size = \"0B\", sizes = { kind = \"pareto\", shape = 0.9 }, think = \"0s\""
        ),
        (sensor, "kind = \"web\""),
        (sensor, "kind = \"poisson\", rate = \"0bit/s\", packet = \"500B\""),
        (sensor, "kind = \"poisson\", rate = \"64kbit/s\", packet = \"1500B\""),
        // Frames.
        (sensor, "kind = \"video\""),
        (sensor, "kind = \"video\", file = \"good.csv\", rate = \"1Mbit/s\""),
        (sensor, "kind = \"video\", file = \"back.csv\""),
        (sensor, "kind = \"video\", file = \"zero.csv\""),
        (sensor, "kind = \"video\", file = \"units.csv\""),
        (sensor, "kind = \"video\", file = \"none.csv\""),
        (sensor, "kind = \"video\", rate = \"1Mbps\""),
        (sensor, "kind = \"video\", rate = \"1bit/s\""),
        (sensor, "kind = \"video\", rate = \"1Mbit/s\", packet = \"1461B\", repeat = true"),
        // Captures.
        (sensor, "kind = \"replay\", file = \"empty.pcap\""),
        (sensor, "kind = \"replay\", file = \"good.csv\""),
        // Conversations.
        (file, "codec = \"pcmu\"\nconversation = { interruption = 1.5, double_talk = \"0s\" }"),
        (
            file,
            "file = \"../speech/call.wav\"\ncodec = \"pcmu\"\ntalkspurts = {}\nconversation = {}"
        ),
        // Many.
        ("[flows.sensor]", "[flows.sensor]\ncount = 0"),
        ("[flows.sensor]", "[flows.sensor]\ncount = 30000"),
        ("[flows.sensor]", "[flows.sensor]\ncount = 2.5"),
        ("[flows.sensor]", "[flows.sensor]\ndscp = 46\ncount = 3\nstart = \"70s\""),
    ]));
    let twice = GOOD.replace("[flows.upload]", "[flows.sensor-2]\nfrom = \"home\"\nto = \"east\"\n\
        transport = { kind = \"udp\" }\nsource = { kind = \"cbr\", rate = \"64kbit/s\", packet = \"160B\" }\n\n[flows.upload]")
        .replace("[flows.sensor]", "[flows.sensor]\ncount = 3");
    insta::assert_snapshot!("names_of_many", told(&twice, &[]));
}

/// Each of many flows has the values that were written, a name of its own and its group.
#[test]
fn many_flows_are_written_as_one() {
    let text = GOOD.replace("[flows.sensor]", "[flows.sensor]\ncount = 500\nstart_spread = \"5s\"");
    let study = load(&text, "many.toml", &stage::folder(), &[], None).expect("a good scenario");
    let flows = &study.points[0].scenario.flows;
    let names: Vec<&str> = flows.keys().map(String::as_str).collect();
    assert_eq!(
        (names.len(), &names[..3], names[501]),
        (502, &["call", "upload", "sensor-1"][..], "sensor-500")
    );
    let one = &flows["sensor-77"];
    assert_eq!((one.group.as_deref(), one.count), (Some("sensor"), None));
    assert_eq!(study.points[0].network.routes.len(), 502);
    let resolved = talkspurt_scenario::to_toml(&study.points[0].scenario);
    let again = load(&resolved, "again.toml", &stage::folder(), &[], None).expect("resolved");
    assert_eq!(again.points[0].scenario, study.points[0].scenario);
}
