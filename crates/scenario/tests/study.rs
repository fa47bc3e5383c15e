//! Axes, replications and changes: which runs a file asks for, and what they are called.

use std::path::Path;

use talkspurt_scenario::model::{IpVersion, Transport};
use talkspurt_scenario::{Study, load};

const BASE: &str = r#"title = "Study"
duration = "10s"
seed = 40
[links.one]
from = "a"
to = "b"
rate = "1Mbit/s"
delay = "1ms"
queue = { kind = "droptail", packets = 5 }
[links.two]
from = "b"
to = "c"
rate = "1Mbit/s"
delay = "2ms"
queue = { kind = "droptail", packets = 5 }
[flows.x]
from = "a"
to = "c"
transport = { kind = "tcp", controller = "newreno" }
source = { kind = "cbr", rate = "64kbit/s", packet = "160B" }
[flows.y]
from = "a"
to = "c"
transport = { kind = "udp" }
source = { kind = "cbr", rate = "64kbit/s", packet = "160B" }
"#;

fn study(more: &str, sets: &[(&str, &str)], seed: Option<u64>) -> Study {
    let sets: Vec<_> = sets.iter().map(|(p, v)| ((*p).to_owned(), (*v).to_owned())).collect();
    load(&format!("{BASE}{more}"), "study.toml", Path::new("."), &sets, seed)
        .unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn the_first_axis_varies_slowest_and_the_replication_fastest() {
    let study = study(
        "[[axes]]\npath = \"links.one.delay\"\nvalues = [\"1ms\", \"3ms\"]\n[[axes]]\npath = \"flows.y.dscp\"\nvalues = [0, 46, 10]\n[replications]\ncount = 2\nconfidence = 0.9\n",
        &[],
        None,
    );
    let told: Vec<String> = study
        .points
        .iter()
        .map(|p| format!("{} {} {}", p.settings[0].1, p.settings[1].1, p.scenario.seed))
        .collect();
    assert_eq!(
        told,
        [
            "1ms 0 40",
            "1ms 0 41",
            "1ms 46 40",
            "1ms 46 41",
            "1ms 10 40",
            "1ms 10 41",
            "3ms 0 40",
            "3ms 0 41",
            "3ms 46 40",
            "3ms 46 41",
            "3ms 10 40",
            "3ms 10 41",
        ]
    );
    assert_eq!((study.replications, study.confidence), (2, 0.9));
    let last = &study.points[11];
    assert_eq!(last.replicate, 1);
    assert_eq!(last.scenario.links["one"].delay.to_string(), "3ms");
    assert_eq!(last.scenario.links["two"].delay.to_string(), "2ms");
    assert_eq!(last.scenario.flows["y"].dscp, 10);
    assert_eq!(last.network.links[0].delay.to_string(), "3ms");
    assert!(
        study
            .points
            .iter()
            .all(|p| p.scenario.axes.is_empty() && p.scenario.replications.count == 1)
    );
}

/// Values that are quantities of one kind are numbers of one unit; with labels of their own, the labels count.
#[test]
fn axes_of_quantities_are_numbers() {
    let numbers = |path: &str, rest: &str| {
        let study = study(&format!("[[axes]]\npath = \"{path}\"\n{rest}\n"), &[], None);
        let numbers = study.axes[0].numbers.clone();
        numbers.map(|numbers| (numbers.unit, numbers.values))
    };
    let delays = "values = [\"1ms\", \"3ms\"]";
    assert_eq!(numbers("links.one.delay", delays), Some(("s", vec![0.001, 0.003])));
    let labelled = format!("{delays}\nlabels = [\"near\", \"far\"]");
    assert_eq!(numbers("links.one.delay", &labelled), None);
    let rates = "values = [\"64kbit/s\", \"2Mbit/s\"]";
    assert_eq!(numbers("links.one.rate", rates), Some(("bit/s", vec![64e3, 2e6])));
    let sizes = "values = [\"160B\", \"1kB\"]";
    assert_eq!(numbers("flows.x.source.packet", sizes), Some(("B", vec![160.0, 1000.0])));
    assert_eq!(numbers("flows.y.dscp", "values = [0, 46]"), Some(("1", vec![0.0, 46.0])));
    let kinds = "values = [{ kind = \"udp\" }, { kind = \"tcp\", controller = \"newreno\" }]";
    assert_eq!(numbers("flows.y.transport", kinds), None);
}

#[test]
fn a_star_stands_for_every_name() {
    let study = study(
        "[[axes]]\npath = \"flows.*.transport\"\nvalues = [{ kind = \"udp\" }, { kind = \"tcp\", controller = \"newreno\" }]\n",
        &[],
        None,
    );
    assert_eq!(study.axes[0].name, "transport");
    assert_eq!(study.axes[0].labels, ["udp", "tcp-newreno"]);
    let udp = |point: usize| {
        study.points[point]
            .scenario
            .flows
            .values()
            .map(|f| matches!(f.transport, Transport::Udp(_)))
            .collect::<Vec<_>>()
    };
    assert_eq!((udp(0), udp(1)), (vec![true, true], vec![false, false]));
}

#[test]
fn labels_say_what_differs() {
    let study = study(
        "[[axes]]\npath = \"flows.x.transport\"\nvalues = [{ kind = \"tcp\", controller = \"newreno\" }, { kind = \"tcp\", controller = \"newreno\", mss = \"536B\" }]\n[[axes]]\npath = \"links.one.queue\"\nvalues = [{ kind = \"droptail\", packets = 1 }, { kind = \"droptail\", bytes = \"9kB\" }]\n[[axes]]\npath = \"links.one.loss\"\nvalues = [0, 0.25]\n",
        &[],
        None,
    );
    assert_eq!(study.axes[0].labels, ["tcp-newreno", "tcp-newreno mss=536B"]);
    assert_eq!(study.axes[1].labels, ["droptail packets=1", "droptail bytes=9kB"]);
    assert_eq!(study.axes[2].labels, ["0", "0.25"]);
}

#[test]
fn axes_that_end_alike_are_named_in_full() {
    let study = study(
        "[[axes]]\npath = \"links.one.delay\"\nvalues = [\"1ms\"]\n[[axes]]\npath = \"links.two.delay\"\nvalues = [\"1ms\"]\n",
        &[],
        None,
    );
    let names: Vec<&str> = study.axes.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["links.one.delay", "links.two.delay"]);
}

#[test]
fn a_later_axis_reaches_into_the_value_of_an_earlier_one() {
    let study = study(
        "[[axes]]\npath = \"links.one.queue\"\nvalues = [{ kind = \"droptail\", packets = 1 }]\n[[axes]]\npath = \"links.one.queue.packets\"\nvalues = [7, 8]\n",
        &[],
        None,
    );
    assert!(format!("{:?}", study.points[1].scenario.links["one"].queue).contains("Some(8)"));
}

#[test]
fn an_axis_may_supply_what_the_scenario_leaves_out() {
    let text = BASE.replacen("delay = \"1ms\"\n", "", 1)
        + "[[axes]]\npath = \"links.one.delay\"\nvalues = [\"9ms\"]\n";
    let study = load(&text, "study.toml", Path::new("."), &[], None).unwrap();
    assert_eq!(study.points[0].scenario.links["one"].delay.to_string(), "9ms");
}

#[test]
fn changes_are_values_or_else_text() {
    let sets = [
        ("duration", "20s"),
        ("flows.*.ip", "v6"),
        ("links.one.queue", "{ kind = \"droptail\", bytes = \"9kB\" }"),
        ("links.two.loss", "0.5"),
        ("flows.x.transport.delayed_ack", "false"),
        ("nodes.b.clock_drift_ppm", "-3"),
        ("title", "a title, of [words]"),
        ("record.pcapng", "[\"one\"]"),
        ("record.pcapng[0]", "two"),
    ];
    let study = study("", &sets, None);
    let scenario = &study.points[0].scenario;
    assert_eq!(scenario.duration.to_string(), "20s");
    assert!(scenario.flows.values().all(|f| f.ip == IpVersion::V6));
    assert!(format!("{:?}", scenario.links["one"].queue).contains("9kB"));
    assert_eq!(scenario.links["two"].loss, 0.5);
    assert!(matches!(&scenario.flows["x"].transport, Transport::Tcp(c) if !c.delayed_ack));
    assert_eq!(scenario.nodes["b"].clock_drift_ppm, -3.0);
    assert_eq!(study.title, "a title, of [words]");
    assert_eq!(scenario.record.pcapng, ["two"]);
}

#[test]
fn a_seed_from_outside_goes_before_the_file() {
    let study = study("[replications]\ncount = 3\n", &[], Some(100));
    let seeds: Vec<u64> = study.points.iter().map(|p| p.scenario.seed).collect();
    assert_eq!(seeds, [100, 101, 102]);
}

#[test]
fn flows_and_links_keep_the_order_of_the_file() {
    let text = BASE.replace("flows.x", "flows.zz").replace("links.one", "links.zz");
    let study = load(&text, "study.toml", Path::new("."), &[], None).unwrap();
    let scenario = &study.points[0].scenario;
    assert_eq!(scenario.flows.keys().collect::<Vec<_>>(), ["zz", "y"]);
    assert_eq!(scenario.links.keys().collect::<Vec<_>>(), ["zz", "two"]);
}

#[test]
fn fields_can_vary_together_and_by_part_of_their_names() {
    let study = study(
        "[[axes]]\npaths = [\"links.t*.delay\", \"links.*e.rate\", \"flows.y.dscp\"]\n\
         values = [[\"30ms\", \"2Mbit/s\", 46], [\"270ms\", \"4Mbit/s\", 0]]\n\
         labels = [\"terrestrial\", \"satellite\"]\n\
         [[axes]]\npath = \"seed\"\nvalues = [1, 2]\n",
        &[],
        None,
    );
    let told: Vec<_> = study
        .points
        .iter()
        .map(|point| {
            let links = &point.scenario.links;
            let of = |name: &str| (links[name].delay.to_string(), links[name].rate.to_string());
            let dscp = point.scenario.flows["y"].dscp;
            (point.settings[0].1.as_str(), point.scenario.seed, of("one"), of("two"), dscp)
        })
        .collect();
    let pair = |delay: &str, rate: &str| (delay.to_owned(), rate.to_owned());
    let near = (pair("1ms", "2Mbit/s"), pair("30ms", "1Mbit/s"));
    let far = (pair("1ms", "4Mbit/s"), pair("270ms", "1Mbit/s"));
    assert_eq!(
        told,
        [
            ("terrestrial", 1, near.0.clone(), near.1.clone(), 46),
            ("terrestrial", 2, near.0, near.1, 46),
            ("satellite", 1, far.0.clone(), far.1.clone(), 0),
            ("satellite", 2, far.0, far.1, 0),
        ]
    );
    assert_eq!(study.axes[0].name, "delay+rate+dscp");
    assert_eq!(study.axes[0].path, "links.t*.delay, links.*e.rate, flows.y.dscp");
    assert_eq!(study.axes[0].numbers, None);
}

#[test]
fn values_that_vary_together_are_labelled_by_their_parts() {
    let study = study(
        "[[axes]]\nname = \"path\"\npaths = [\"links.two.delay\", \"flows.*.dscp\"]\n\
         values = [[\"30ms\", 46], [\"30ms\", 0]]\n",
        &[("links.t*.rate", "8Mbit/s")],
        None,
    );
    assert_eq!((study.axes[0].name.as_str(), study.axes[0].labels.len()), ("path", 2));
    assert_eq!(study.axes[0].labels, ["30ms, 46", "30ms, 0"]);
    let scenario = &study.points[1].scenario;
    assert!(scenario.flows.values().all(|flow| flow.dscp == 0));
    assert_eq!(scenario.links["two"].rate.to_string(), "8Mbit/s");
    assert_eq!(scenario.links["one"].rate.to_string(), "1Mbit/s");
}
