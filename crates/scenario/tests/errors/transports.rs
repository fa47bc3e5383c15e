//! Parameters of transports that are invalid or have no effect.

use crate::{GOOD, carried, each, told};

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
fn knobs_of_tcp_that_cannot_be() {
    // Each is rejected by name, and the value next to it is not.
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
        ("max_retransmissions", "256", "255"),
        ("max_synack_retransmissions", "256", "255"),
        ("msl", "'3601s'", "'3600s'"),
        ("window_rule", "'ns-2'", "'ns2'"),
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

#[test]
fn knobs_of_tcp_that_would_do_nothing() {
    let with = |knobs: &str| {
        told(GOOD, &[("flows.upload.transport", &format!("{{ kind = \"tcp\", {knobs} }}"))])
    };
    assert_eq!(with("controller = \"cubic\", hystart = false, initial_ssthresh = 9"), "no problem");
    insta::assert_snapshot!(
        [
            with("controller = \"newreno\", hystart = true"),
            with("controller = \"bbr\", hystart = false"),
            with("controller = \"bbr\", initial_ssthresh = 9"),
            with("controller = \"sack\", window_rule = \"ns2\""),
        ]
        .join("\n")
    );
}
