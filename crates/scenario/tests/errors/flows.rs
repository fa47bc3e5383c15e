//! Ends, sources, send queues and times of flows.

use talkspurt_scenario::load;

use crate::{GOOD, each, stage, told};

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
    // SCTP cuts, to what its knob says, and never again (RFC 9260 §6.9).
    assert_eq!(with("kind = \"sctp\"", "20000B"), "no problem");
    let told = with("kind = \"sctp\", mtu = \"9000B\"", "20000B");
    assert!(told.contains("flows.sensor.source.packet"), "{told}");
    assert!(told.contains("transport.mtu"), "{told}");
    assert_eq!(with("kind = \"sctp\", mtu = \"9000B\"", "1000B"), "no problem");
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
fn codecs_and_ladders() {
    let file = "file = \"../speech/call.wav\"\ncodec = \"pcmu\"\npacket = \"20ms\"";
    let good = "codec = \"pcmu\"\npacket = \"20ms\"\n\
                ladder = [\"pcmu\", \"g726-32\", \"g728\", \"g729-10\", \"g723.1-6.3\"]\n\
                talkspurts = {}\nkeep_alive = {}";
    assert_eq!(told(&GOOD.replace(file, good), &[]), "no problem");
    for good in [
        "codec = \"g729\"",
        "codec = \"g728\"\nstand_in = \"opus\"",
        "codec = \"amr-12.2\"\nstand_in = \"opus-for-av\"",
        "codec = \"pcmu\"\nladder = [\"pcmu\", \"g729\"]",
        "codec = \"g722\"\nladder = [\"g722\", \"g726-32\", \"opus\"]\nopus = { bitrate = \"24kbit/s\" }",
    ] {
        let all = GOOD.replace("codec = \"pcmu\"", good);
        assert_eq!(told(&all, &[]), "no problem", "{good}");
    }
    insta::assert_snapshot!(each(&[
        // A recording needs an encoder or a stand-in, which needs a recording and a use.
        ("codec = \"pcmu\"", "codec = \"amr-12.2\""),
        ("codec = \"pcmu\"", "codec = \"pcmu\"\nladder = [\"pcmu\", \"amr-7.4\", \"amr-4.75\"]"),
        ("codec = \"pcmu\"", "codec = \"amr-12.2\"\nstand_in = \"opus\""),
        ("codec = \"pcmu\"", "codec = \"pcmu\"\nstand_in = \"opus\""),
        (file, "codec = \"g729\"\nstand_in = \"opus\""),
        (file, "codec = \"g729\"\nstand_in = \"speex\""),
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
        ("codec = \"pcmu\"", "codec = \"pcmu\"\nkeep_alive = {}"),
        ("codec = \"pcmu\"", "codec = \"opus\"\nvad = {}\nkeep_alive = {}"),
        (file, "codec = \"pcmu\"\nvad = { hangover = \"11s\", margin = 0.5 }"),
        ("codec = \"pcmu\"", "codec = \"pcmu\"\nvad = true"),
    ]));
}

#[test]
fn parameters_of_opus() {
    let file = "file = \"../speech/call.wav\"\ncodec = \"pcmu\"\npacket = \"20ms\"";
    let opus = |packet: &str, more: &str| {
        format!("codec = \"opus\"\npacket = \"{packet}\"\nopus = {{ {more} }}")
    };
    let heard = |more: &str| format!("file = \"../speech/call.wav\"\n{}", opus("20ms", more));
    for good in [
        format!("{}\nred = 3", opus("60ms", "")),
        opus("2.5ms", ""),
        opus("120ms", "bitrate = \"6kbit/s\""),
        heard("channels = 2, bitrate = \"510kbit/s\", rate_control = \"vbr\", dtx = true"),
        heard("fec = true, dred = \"1.04s\", expected_loss = 0.1, decoder_complexity = 10"),
    ] {
        assert_eq!(told(&GOOD.replace(file, &good), &[]), "no problem", "{good}");
    }
    let bad = [
        heard("bitrate = \"5.9kbit/s\""),
        heard("bitrate = \"511kbit/s\", channels = 3, complexity = 11, decoder_complexity = 99"),
        heard("dred = \"15ms\", expected_loss = 1.5"),
        heard("dred = \"2s\", expected_loss = nan"),
        heard("application = \"low-delay\", fec = true, dred = \"40ms\", expected_loss = 0.1"),
        heard("max_bandwidth = \"uwb\""),
        format!("{}\nred = 4", opus("20ms", "")),
        format!("{}\nred = 3", opus("120ms", "")),
        format!("{}\nred = 1", opus("60ms", "bitrate = \"200kbit/s\"")),
        "codec = \"pcmu\"\nladder = [\"pcmu\", \"g729\"]\nred = 1".to_owned(),
        opus("30ms", ""),
        opus("2.5ms", "bitrate = \"8kbit/s\""),
        opus("10ms", "bitrate = \"0bit/s\""),
        opus("20ms", "dtx = true"),
        "codec = \"pcmu\"\nopus = { fec = true }".to_owned(),
        "codec = \"opus\"\nladder = [\"opus\", \"g729\"]\nopus = { rate_control = \"vbr\", channels = 2 }"
            .to_owned(),
        "codec = \"pcmu\"\nladder = [\"pcmu\", \"opus\"]\nopus = { bitrate = \"1kbit/s\" }".to_owned(),
        format!("{}\n[flows.call.rtcp]\nenabled = false", opus("20ms", "fec = true")),
    ];
    let bad: Vec<_> = bad.iter().map(|bad| (file, bad.as_str())).collect();
    insta::assert_snapshot!(each(&bad));
}

#[test]
fn parity_packets() {
    let file = "file = \"../speech/call.wav\"\ncodec = \"pcmu\"\npacket = \"20ms\"";
    let call = "transport = { kind = \"udp\" }\nip";
    let with = |packet: &str, block: &str| {
        format!("codec = \"pcmu\"\npacket = \"{packet}\"\nflexfec = {{ {block} }}")
    };
    let over = |transport: &str| format!("transport = {{ {transport} }}\nip");
    let rows = with("20ms", "columns = 1");
    let both = with("20ms", "columns = 255, rows = 11, parity = \"both\"");
    let partial = over("kind = \"sctp\", max_retransmissions = 0");
    for good in [&rows, &both] {
        for transport in [call, &over("kind = \"dccp\", ccid = 3"), &partial] {
            let text = GOOD.replace(file, good).replace(call, transport);
            assert_eq!(told(&text, &[]), "no problem", "{good} {transport}");
        }
    }
    let bad = [
        with("20ms", ""),
        with("20ms", "columns = 0"),
        with("20ms", "columns = 256, rows = 1, parity = \"both\""),
        with("20ms", "columns = 4, rows = 1, parity = \"both\""),
        with("20ms", "columns = 4, rows = 256, parity = \"columns\""),
        with("20ms", "columns = 4, parity = \"columns\""),
        with("20ms", "columns = 4, parity = \"both\""),
        with("20ms", "columns = 4, rows = 4"),
        with("20ms", "columns = 4, parity = \"diagonal\""),
        // 255 rows of 12 packets of 20 ms are 61.2 s.
        with("20ms", "columns = 12, rows = 255, parity = \"columns\""),
        format!("{rows}\nladder = [\"pcmu\", \"g729\"]"),
        // The packet fits, and the repair packet does not.
        "codec = \"opus\"\npacket = \"60ms\"\nopus = { bitrate = \"194kbit/s\" }\nflexfec = { columns = 4 }".to_owned(),
    ];
    let mut bad: Vec<_> = bad.iter().map(|bad| (file, bad.clone())).collect();
    let reliable = ["kind = \"tcp\", controller = \"reno\"", "kind = \"sctp\""].map(over);
    let whole = GOOD.replace(file, &rows);
    for transport in &reliable {
        bad.push((call, transport.clone()));
    }
    let found = bad.iter().map(|(from, bad)| {
        let text = if *from == call { &whole } else { GOOD };
        format!("{bad}\n{}\n", told(&text.replacen(from, bad, 1), &[]))
    });
    insta::assert_snapshot!(found.collect::<Vec<_>>().join("\n"));
}

#[test]
fn declared_impairments() {
    let call = "via = [\"home\", \"west\", \"east\"]";
    let with = |codecs: &str| format!("{call}\nquality.codecs = [{codecs}]");
    let good = with("{ codec = \"g728\", ie = 7, source = \"a paper\" }");
    assert_eq!(told(&GOOD.replacen(call, &good, 1), &[]), "no problem");
    let bad = [
        "{ codec = \"g728\", ie = 7 }",
        "{ codec = \"speex\", ie = 7, source = \"a paper\" }",
        "{ codec = \"g728\", ie = 9, source = \" \" }, { codec = \"g729\", ie = 9, source = \"a\\u0007b\" }",
        "{ codec = \"g728\", ie = 96, bpl = 0.5, source = \" \" }",
        "{ codec = \"g728\", ie = nan, bpl = 41, source = \"a\\u0007b\" }",
        "{ codec = \"g728\", ie = 1, source = \"a\" }, { codec = \"g728\", ie = 2, source = \"b\" }",
    ]
    .map(with);
    let bad: Vec<_> = bad.iter().map(|bad| (call, bad.as_str())).collect();
    insta::assert_snapshot!(each(&bad));
}
