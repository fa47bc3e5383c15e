//! Shapes of networks: each against the same network written link by link.

use std::path::Path;

use talkspurt_app::file::Disk;
use talkspurt_scenario::model::Scenario;
use talkspurt_scenario::{Network, load, to_toml};

const HEAD: &str = "title = 'shape'\nduration = '10s'\n";
const QUEUE: &str = "queue = { kind = 'droptail', packets = 5 }";

fn flow(name: &str, from: &str, to: &str) -> String {
    format!(
        "[flows.{name}]\nfrom = '{from}'\nto = '{to}'\n\
         transport = {{ kind = 'tcp', controller = 'newreno' }}\nsource = {{ kind = 'bulk' }}\n"
    )
}

fn one(name: &str, from: &str, to: &str, rate: &str, delay: &str) -> String {
    format!(
        "[links.{name}]\nfrom = '{from}'\nto = '{to}'\nrate = '{rate}'\ndelay = '{delay}'\n{QUEUE}\n"
    )
}

fn read_with(text: &str, sets: &[(&str, &str)]) -> Scenario {
    let sets: Vec<_> = sets.iter().map(|(p, v)| ((*p).to_owned(), (*v).to_owned())).collect();
    let study = load(&format!("{HEAD}{text}"), "shape", Path::new("."), &sets, None);
    study.unwrap_or_else(|problems| panic!("{problems}")).points[0].scenario.clone()
}

fn read(text: &str) -> Scenario {
    read_with(text, &[])
}

fn told(text: &str, sets: &[(&str, &str)]) -> String {
    let sets: Vec<_> = sets.iter().map(|(p, v)| ((*p).to_owned(), (*v).to_owned())).collect();
    match load(&format!("{HEAD}{text}"), "shape", Path::new("."), &sets, None) {
        Ok(_) => "no problem".to_owned(),
        Err(problems) => problems.to_string(),
    }
}

/// Equal as scenarios, down to the order of links, and written out alike.
fn same(short: &str, long: &str) {
    let (short, long) = (read(short), read(long));
    assert_eq!(to_toml(&short), to_toml(&long));
    assert_eq!(Network::build(&short, &Disk), Network::build(&long, &Disk));
    assert!(short.topology.is_none());
}

fn way(scenario: &Scenario, flow: &str) -> Vec<String> {
    let network = Network::build(scenario, &Disk).expect("a network");
    let index = scenario.flows.get_index_of(flow).expect("a flow");
    let links = &network.routes[index][0].forward;
    links.iter().map(|link| network.links[*link].name.clone()).collect()
}

fn dumbbell(more: &str) -> String {
    format!(
        "[topology]\nkind = 'dumbbell'\nleft = 3\n\
         [topology.access]\nrate = '100Mbit/s'\ndelay = '1ms'\ndelay_to = '20ms'\n{QUEUE}\n\
         [topology.bottleneck]\nrate = '2Mbit/s'\ndelay = '10ms'\n{QUEUE}\n{more}"
    )
}

#[test]
fn a_dumbbell_is_its_links() {
    let flows = flow("a", "left-1", "right-3");
    // Three hosts in equal steps: 1, 10.5 and 20 ms.
    let long = one("left-1", "left-1", "west", "100Mbit/s", "1ms")
        + &one("left-2", "left-2", "west", "100Mbit/s", "10.5ms")
        + &one("left-3", "left-3", "west", "100Mbit/s", "20ms")
        + &one("bottleneck", "west", "east", "2Mbit/s", "10ms")
        + &one("right-1", "east", "right-1", "100Mbit/s", "1ms")
        + &one("right-2", "east", "right-2", "100Mbit/s", "10.5ms")
        + &one("right-3", "east", "right-3", "100Mbit/s", "20ms")
        + &flows;
    same(&dumbbell(&flows), &long);
    let scenario = read(&dumbbell(&flows));
    assert_eq!(way(&scenario, "a"), ["left-1", "bottleneck", "right-3"]);
}

#[test]
fn the_right_of_a_dumbbell_may_differ() {
    let more = format!(
        "[topology.right_access]\nrate = '1Gbit/s'\ndelay = '3ms'\n{QUEUE}\n{}",
        flow("a", "left-3", "right-1")
    );
    let text = dumbbell(&more).replace("left = 3", "left = 3\nright = 1");
    let scenario = read(&text);
    assert_eq!(scenario.links.len(), 5);
    assert_eq!(scenario.links["right-1"].rate, "1Gbit/s".parse().unwrap());
    assert_eq!(scenario.links["right-1"].delay, "3ms".parse().unwrap());
    assert_eq!(scenario.links["left-3"].delay, "20ms".parse().unwrap());
}

#[test]
fn a_chain_is_its_links() {
    let flows = flow("a", "node-1", "node-4") + &flow("b", "node-3", "node-2");
    let short = format!(
        "[topology]\nkind = 'chain'\nhops = 3\nhop = {{ rate = '1Mbit/s', delay = '9ms', \
         delay_to = '1ms', {QUEUE} }}\n{flows}"
    );
    let long = one("hop-1", "node-1", "node-2", "1Mbit/s", "9ms")
        + &one("hop-2", "node-2", "node-3", "1Mbit/s", "5ms")
        + &one("hop-3", "node-3", "node-4", "1Mbit/s", "1ms")
        + &flows;
    same(&short, &long);
    assert_eq!(way(&read(&short), "a"), ["hop-1", "hop-2", "hop-3"]);
    assert_eq!(way(&read(&short), "b"), ["hop-2.back"]);
}

#[test]
fn a_parking_lot_is_its_links() {
    let flows =
        flow("long", "in", "out") + &flow("one", "in-1", "out-1") + &flow("two", "in-2", "out-2");
    let short = format!(
        "[topology]\nkind = 'parking_lot'\nbottlenecks = 2\n\
         access = {{ rate = '9Mbit/s', delay = '1ms', {QUEUE} }}\n\
         bottleneck = {{ rate = '1Mbit/s', delay = '5ms', {QUEUE} }}\n{flows}"
    );
    let access = |name, from, to| one(name, from, to, "9Mbit/s", "1ms");
    let long = access("in", "in", "router-1")
        + &access("out", "router-3", "out")
        + &access("in-1", "in-1", "router-1")
        + &one("bottleneck-1", "router-1", "router-2", "1Mbit/s", "5ms")
        + &access("out-1", "router-2", "out-1")
        + &access("in-2", "in-2", "router-2")
        + &one("bottleneck-2", "router-2", "router-3", "1Mbit/s", "5ms")
        + &access("out-2", "router-3", "out-2")
        + &flows;
    same(&short, &long);
    let scenario = read(&short);
    assert_eq!(way(&scenario, "long"), ["in", "bottleneck-1", "bottleneck-2", "out"]);
    assert_eq!(way(&scenario, "one"), ["in-1", "bottleneck-1", "out-1"]);
    assert_eq!(way(&scenario, "two"), ["in-2", "bottleneck-2", "out-2"]);
}

#[test]
fn two_paths_share_nothing() {
    let flows = "[flows.a]\nfrom = 'left'\nto = 'right'\ntransport = { kind = 'sctp' }\n\
        source = { kind = 'bulk' }\n\
        paths = [['left', 'north-west', 'north-east', 'right'], ['left', 'south-west', 'south-east', 'right']]\n";
    let short = format!(
        "[topology]\nkind = 'two_paths'\naccess = {{ rate = '9Mbit/s', delay = '1ms', {QUEUE} }}\n\
         north = {{ rate = '1Mbit/s', delay = '5ms', {QUEUE} }}\n\
         south = {{ rate = '2Mbit/s', delay = '6ms', {QUEUE} }}\n{flows}"
    );
    let access = |name, from, to| one(name, from, to, "9Mbit/s", "1ms");
    let long = access("left-north", "left", "north-west")
        + &one("north", "north-west", "north-east", "1Mbit/s", "5ms")
        + &access("north-right", "north-east", "right")
        + &access("left-south", "left", "south-west")
        + &one("south", "south-west", "south-east", "2Mbit/s", "6ms")
        + &access("south-right", "south-east", "right")
        + flows;
    same(&short, &long);
    let network = Network::build(&read(&short), &Disk).unwrap();
    let [north, south] = &network.routes[0][..] else { panic!("two paths") };
    assert!(north.forward.iter().all(|link| !south.forward.contains(link)));
}

#[test]
fn a_wireless_edge_is_its_links() {
    let flows = flow("a", "station-2", "server");
    let short = format!(
        "[topology]\nkind = 'wireless_edge'\nstations = 2\n\
         wire = {{ rate = '9Mbit/s', delay = '1ms', {QUEUE} }}\n\
         radio = {{ rate = '1Mbit/s', delay = '5ms', {QUEUE} }}\n{flows}"
    );
    let long = one("wire", "server", "base", "9Mbit/s", "1ms")
        + &one("station-1", "station-1", "base", "1Mbit/s", "5ms")
        + &one("station-2", "station-2", "base", "1Mbit/s", "5ms")
        + &flows;
    same(&short, &long);
    assert_eq!(way(&read(&short), "a"), ["station-2", "wire.back"]);
}

#[test]
fn what_is_said_of_a_link_goes_before_its_shape() {
    let more = "[links.left-2]\nloss = 0.5\n[links.bottleneck]\nqueue.packets = 7\nback.rate = '1Mbit/s'\n";
    let beside = one("radio", "left-1", "phone", "1Mbit/s", "1ms");
    let text = dumbbell(&format!("{more}{beside}{}", flow("a", "phone", "right-1")));
    let scenario = read(&text);
    assert_eq!((scenario.links["left-1"].loss, scenario.links["left-2"].loss), (0.0, 0.5));
    assert_eq!(scenario.links["bottleneck"].queue.to_string(), "DropTail 7 packets");
    assert_eq!(scenario.links["bottleneck"].rate, "2Mbit/s".parse().unwrap());
    let back = scenario.links["bottleneck"].back.clone().expect("differs");
    assert_eq!(back.rate, Some("1Mbit/s".parse().unwrap()));
    assert_eq!(way(&scenario, "a"), ["radio.back", "left-1", "bottleneck", "right-1"]);
    // The shape's links come first, whatever the file says of them.
    assert_eq!(scenario.links.keys().next().map(String::as_str), Some("left-1"));
    assert_eq!(scenario.links.keys().last().map(String::as_str), Some("radio"));
}

#[test]
fn links_of_a_shape_are_set_and_varied_like_any_other() {
    let text = dumbbell(&flow("a", "left-1", "right-1"));
    let scenario = read_with(
        &text,
        &[("links.*.loss", "0.25"), ("topology.left", "2"), ("links.bottleneck.rate", "1Mbit/s")],
    );
    assert_eq!(scenario.links.len(), 5);
    assert!(scenario.links.values().all(|link| link.loss == 0.25));
    assert_eq!(scenario.links["bottleneck"].rate, "1Mbit/s".parse().unwrap());
    // Two hosts: the first and the last delay.
    assert_eq!(scenario.links["left-2"].delay, "20ms".parse().unwrap());
    let axis = "[[axes]]\npath = 'links.bottleneck.rate'\nvalues = ['1Mbit/s', '2Mbit/s']\n";
    let study = load(&format!("{HEAD}{text}{axis}"), "shape", Path::new("."), &[], None).unwrap();
    let rates: Vec<_> =
        study.points.iter().map(|point| point.scenario.links["bottleneck"].rate).collect();
    assert_eq!(rates, ["1Mbit/s".parse().unwrap(), "2Mbit/s".parse().unwrap()]);
}

#[test]
fn mistakes_in_a_shape_are_told_once_and_where_they_stand() {
    let good = dumbbell(&flow("a", "left-1", "right-1"));
    assert_eq!(told(&good, &[]), "no problem");
    let tell = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        format!("{to}\n    {}", told(&good.replacen(from, to, 1), &[]).replace('\n', "\n    "))
    };
    let all = [
        tell("'dumbbell'", "'dumbell'"),
        tell("left = 3", "lefts = 3"),
        tell("left = 3", "left = 0"),
        tell("rate = '100Mbit/s'", "rate = '100Mbps'"),
        tell("rate = '100Mbit/s'", "rate = '100bit/s'"),
        tell("rate = '100Mbit/s'\n", ""),
        tell("delay_to = '20ms'", "delay_to = '2h'"),
        tell("rate = '2Mbit/s'", "rate = '2Mbit/s'\ndelay_to = '9ms'"),
        tell("rate = '2Mbit/s'", "rate = '2Mbit/s'\nfrom = 'west'"),
        tell("rate = '2Mbit/s'", "rate = '2Mbit/s'\nloss = 2"),
        tell("from = 'left-1'", "from = 'left-4'"),
        tell("[flows.a]", "[links.left-2]\nloss = 1.5\n[flows.a]"),
        tell("[flows.a]", "[links.lefft-2]\nloss = 0.5\n[flows.a]"),
        tell("[flows.a]", "[[axes]]\npath = 'topology.left'\nvalues = [1, 2]\n[flows.a]"),
        told(&good, &[("topology.left", "0")]),
        told(&good, &[("topology.access.rate", "100bit/s")]),
        told(&flow("a", "left-1", "right-1"), &[]),
    ];
    insta::assert_snapshot!(all.join("\n\n"));
}

/// A flow for each host of a dumbbell, written once; without the host, the mistake is told once.
#[test]
fn many_flows_have_hosts_of_their_own() {
    let text = |hosts: u32| {
        format!(
            "title = 'many'\nduration = '2s'\n[topology]\nkind = 'dumbbell'\nleft = {hosts}\n\
             access = {{ rate = '100Mbit/s', delay = '1ms', queue = {{ kind = 'droptail', packets = 9 }} }}\n\
             bottleneck = {{ rate = '1Mbit/s', delay = '1ms', queue = {{ kind = 'droptail', packets = 9 }} }}\n\
             [flows.up]\ncount = 3\nfrom = 'left-*'\nto = 'right-*'\n\
             transport = {{ kind = 'udp' }}\nsource = {{ kind = 'cbr', rate = '64kbit/s', packet = '200B' }}\n"
        )
    };
    let study = load(&text(3), "many", Path::new("."), &[], None).expect("sound");
    let flows = &study.points[0].scenario.expanded().flows;
    let ends: Vec<_> = flows.values().map(|flow| (flow.from.as_str(), flow.to.as_str())).collect();
    assert_eq!(ends, [("left-1", "right-1"), ("left-2", "right-2"), ("left-3", "right-3")]);
    let problems = load(&text(2), "many", Path::new("."), &[], None).expect_err("no third host");
    assert!(
        problems.to_string().contains("flows.up.from: no link reaches a node \"left-3\""),
        "{problems}"
    );
}
