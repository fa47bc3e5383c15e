//! Error messages: one snapshot for each class of mistake, as users read them.
//!
//! Each test changes a good scenario without moving its lines, so that the line numbers in the
//! snapshots can be checked against [`GOOD`] by eye.

use talkspurt_scenario::load;

mod associations;
mod cells;
mod flows;
mod much;
mod network;
mod run;
#[path = "../stage/mod.rs"]
mod stage;
mod study;
mod text;
mod traffic;
mod transports;

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

/// The errors in [`GOOD`] after these replacements, one paragraph per change.
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

/// The errors in [`GOOD`] with this as its sensor's transport.
fn carried(transports: &[&str]) -> String {
    let sensor = "transport = { kind = \"udp\" }\nsource";
    let by = |transport: &&str| format!("transport = {{ {transport} }}\nsource");
    let changes: Vec<String> = transports.iter().map(by).collect();
    each(&changes.iter().map(|change| (sensor, change.as_str())).collect::<Vec<_>>())
}
