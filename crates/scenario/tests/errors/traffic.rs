//! Sources: what is drawn, frames and captures from files, conversations, and many flows as one.

use talkspurt_app::file::Disk;
use talkspurt_scenario::{Network, Use, load, load_for};

use crate::{GOOD, each, stage, told};

/// Files of the stage for [`traffic`].
fn traffic_files() {
    let stage = stage::folder();
    for (name, text) in [
        ("back.csv", "# sizes\ntime,type,size\n0ms,I,10kB\n40ms,P,1kB\n20ms,P,1kB\n"),
        ("zero.csv", "time,size\n0ms,10kB\n0ms,1kB\n"),
        ("units.csv", "time,size\n0ms,10kB\n40ms,8kbit\n"),
        ("good.csv", "time,size\n0ms,10kB\n40ms,1kB\n"),
        ("sizes.txt", "10000\n1000\n"),
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
        "kind = \"video\", file = \"sizes.txt\", frame = \"33ms\"",
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
        (sensor, "kind = \"video\", file = \"good.csv\", frame = \"33ms\""),
        (sensor, "kind = \"video\", file = \"sizes.txt\", frame = \"0s\""),
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
        ("[flows.sensor]", "[flows.sensor]\ncount = 131072"),
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
    let flows = &study.points[0].scenario.expanded().flows;
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

/// A group is kept as written and checked once, and its network is that of the single flows.
#[test]
fn a_group_is_kept_as_one() {
    let text = GOOD.replace("[flows.sensor]", "[flows.sensor]\ncount = 100000");
    assert!(told(&text, &[]).contains("record.interval: 100ms cuts the run into 600 bins"));
    // Without series, their bins are not counted.
    let wanted = Use { series: false, ..Use::of(&Disk) };
    let study = load_for(&text, "many.toml", &stage::folder(), &[], None, &wanted);
    let study = study.expect("a good scenario");
    let point = &study.points[0];
    assert_eq!((point.scenario.flows.len(), point.scenario.flow_count()), (3, 100_002));
    assert_eq!(point.scenario.flows["sensor"].count, Some(100_000));
    assert!(talkspurt_scenario::to_toml(&point.scenario).len() < 20_000);
    let network = Network::build(&point.scenario, &Disk).expect("good");
    assert_eq!(*point.network, network);
    // As single flows, it is the same scenario.
    let text = GOOD.replace("[flows.sensor]", "[flows.sensor]\ncount = 9");
    let grouped = load(&text, "many.toml", &stage::folder(), &[], None).expect("a good scenario");
    let single = talkspurt_scenario::to_toml(&grouped.points[0].expanded().scenario);
    let single = load(&single, "single.toml", &stage::folder(), &[], None).expect("single");
    assert_eq!(single.points[0].scenario, *grouped.points[0].scenario.expanded());
    assert_eq!(single.points[0].network, grouped.points[0].network);
}

/// A change of one member leaves the others as they are, and their order.
#[test]
fn a_member_differs_from_its_group() {
    let text = GOOD.replace("[flows.sensor]", "[flows.sensor]\ncount = 9");
    let sets = |path: &str, value: &str| [(path.to_owned(), value.to_owned())];
    let read = |text: &str, sets: &[(String, String)]| {
        load(text, "many.toml", &stage::folder(), sets, None).map(|study| study.points)
    };
    let alike = read(&text, &[]).expect("good").remove(0).expanded().into_owned();
    let points = read(&text, &sets("flows.sensor-7.dscp", "10")).expect("good");
    let mut flows = points[0].scenario.expanded().into_owned().flows;
    assert_eq!(flows["sensor-7"].dscp, 10);
    flows["sensor-7"].dscp = alike.scenario.flows["sensor-7"].dscp;
    assert!(flows.iter().eq(alike.scenario.flows.iter()));
    assert_eq!(points[0].network.routes, alike.network.routes);
    let again = read(&talkspurt_scenario::to_toml(&points[0].scenario), &[]).expect("resolved");
    assert_eq!(again[0].scenario, points[0].scenario);
    assert_eq!(again[0].network, points[0].network);
    // A group changed on the way has fewer members, or more.
    let mut both = sets("flows.sensor.count", "12").to_vec();
    both.extend(sets("flows.sensor-12.dscp", "1"));
    let points = read(&text, &both).expect("good");
    assert_eq!(points[0].scenario.expanded().flows.len(), 14);
    for (path, value, problem) in [
        ("flows.sensor-10.dscp", "46", "flows has no \"sensor-10\""),
        ("flows.sensor-0.dscp", "46", "flows has no \"sensor-0\""),
        ("flows.sensor-07.dscp", "46", "flows has no \"sensor-07\""),
        ("flows.sensor-7.dscp", "64", "flows.sensor-7.dscp"),
        ("flows.sensor-7.count", "2", "flows.sensor.count: makes a flow \"sensor-7\""),
        ("flows.sensor-7.group", "other", "flows.sensor.count: makes a flow \"sensor-7\""),
    ] {
        let told = read(&text, &sets(path, value)).expect_err(path).to_string();
        assert!(told.contains(problem), "{path}: {told}");
    }
    let axis = format!("{text}\n[[axes]]\npath = \"flows.sensor-2.dscp\"\nvalues = [0, 8]\n");
    let points = read(&axis, &[]).expect("good");
    let dscp = |at: usize| {
        let flows = points[at].scenario.expanded();
        ["sensor-1", "sensor-2", "sensor-3"].map(|name| flows.flows[name].dscp)
    };
    assert_eq!((dscp(0), dscp(1)), ([0, 0, 0], [0, 8, 0]));
}

/// Where programs run at nodes, a network is enough.
#[test]
fn only_programs_need_no_flow() {
    let network = "title = 't'\nduration = '1s'\n[links.l]\nfrom = 'a'\nto = 'b'\nrate = '1Mbit/s'\n\
        delay = '1ms'\nqueue = { kind = 'droptail', packets = 9 }\n";
    let read = |text: &str, hosts| {
        let wanted = Use { hosts, ..Use::of(&Disk) };
        load_for(text, "t.toml", &stage::folder(), &[], None, &wanted)
    };
    for text in [network.to_owned(), format!("{network}[flows]\n")] {
        assert!(read(&text, false).is_err());
        let study = read(&text, true).expect("it needs no flow");
        assert!(study.points[0].scenario.flows.is_empty());
    }
    let problems = read("title = 't'", true).expect_err("there is no network");
    assert!(!problems.to_string().contains("flows"), "{problems}");
}
