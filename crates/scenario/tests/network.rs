//! Routes, directions and addresses, against hand-made graphs and a search of all paths.

use std::path::Path;

use talkspurt_app::file::Disk;
use talkspurt_scenario::model::{IpVersion, Scenario};
use talkspurt_scenario::{Network, load};

/// A scenario of links `name from to delay` and one bulk flow between two nodes.
fn scenario(links: &[(&str, &str, &str, &str)], from: &str, to: &str, more: &str) -> Scenario {
    let mut text = String::from("title = \"graph\"\nduration = \"10s\"\n");
    for (name, from, to, delay) in links {
        text.push_str(&format!(
            "[links.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1Mbit/s\"\ndelay = \"{delay}\"\nqueue = {{ kind = \"droptail\", packets = 5 }}\n"
        ));
    }
    text.push_str(&format!(
        "[flows.f]\nfrom = \"{from}\"\nto = \"{to}\"\ntransport = {{ kind = \"tcp\", controller = \"newreno\" }}\nsource = {{ kind = \"bulk\" }}\n{more}"
    ));
    let study = load(&text, "graph.toml", Path::new("."), &[], None)
        .unwrap_or_else(|problems| panic!("{problems}"));
    study.points[0].scenario.clone()
}

fn names(network: &Network, route: &[usize]) -> Vec<String> {
    route.iter().map(|link| network.links[*link].name.clone()).collect()
}

#[test]
fn delay_goes_before_hops_and_hops_before_the_order_of_the_file() {
    // 10 ms by three links, 10 ms by two, 11 ms by one: two links win.
    let s = scenario(
        &[
            ("direct", "a", "d", "11ms"),
            ("ab", "a", "b", "3ms"),
            ("bc", "b", "c", "3ms"),
            ("cd", "c", "d", "4ms"),
            ("ae", "a", "e", "5ms"),
            ("ed", "e", "d", "5ms"),
        ],
        "a",
        "d",
        "",
    );
    let network = Network::build(&s, &Disk).unwrap();
    assert_eq!(names(&network, &network.routes[0][0].forward), ["ae", "ed"]);
    assert_eq!(names(&network, &network.routes[0][0].backward), ["ed.back", "ae.back"]);
}

#[test]
fn of_equal_ways_the_first_in_the_file_is_taken() {
    let upper = ("au", "a", "u", "5ms");
    let lower = ("al", "a", "l", "5ms");
    let ends = [("ub", "u", "b", "5ms"), ("lb", "l", "b", "5ms")];
    for (first, second) in [(upper, lower), (lower, upper)] {
        let s = scenario(&[first, second, ends[0], ends[1]], "a", "b", "");
        let network = Network::build(&s, &Disk).unwrap();
        assert_eq!(names(&network, &network.routes[0][0].forward)[0], first.0);
    }
    // Two links side by side: the first.
    let s = scenario(&[("one", "a", "b", "5ms"), ("two", "a", "b", "5ms")], "a", "b", "");
    let network = Network::build(&s, &Disk).unwrap();
    assert_eq!(names(&network, &network.routes[0][0].forward), ["one"]);
}

#[test]
fn the_way_back_is_the_shortest_by_its_own_delays() {
    let mut s = scenario(&[("one", "a", "b", "5ms"), ("two", "a", "b", "6ms")], "a", "b", "");
    s.links["one"].back = Some(talkspurt_scenario::model::Back {
        jitter: Some("3ms".parse().unwrap()),
        delay: Some("7ms".parse().unwrap()),
        rate: Some("9kbit/s".parse().unwrap()),
        loss: Some(0.5),
        queue: None,
        ..Default::default()
    });
    let network = Network::build(&s, &Disk).unwrap();
    assert_eq!(names(&network, &network.routes[0][0].forward), ["one"]);
    assert_eq!(names(&network, &network.routes[0][0].backward), ["two.back"]);
    let back = &network.links[1];
    assert_eq!((back.name.as_str(), back.from, back.to, back.link), ("one.back", 1, 0, 0));
    assert_eq!((back.rate, back.loss), ("9kbit/s".parse().unwrap(), 0.5));
    assert_eq!((back.jitter.as_nanos(), network.links[0].jitter.as_nanos()), (3_000_000, 0));
    assert_eq!(back.queue, network.links[0].queue);
    assert_eq!(network.links[3].delay, network.links[2].delay);
}

#[test]
fn via_is_followed_and_turned_round_for_the_way_back() {
    let links = [("ab", "a", "b", "1ms"), ("bc", "b", "c", "1ms"), ("ac", "a", "c", "1ms")];
    let s = scenario(&links, "a", "c", "via = [\"a\", \"b\", \"c\"]\n");
    let network = Network::build(&s, &Disk).unwrap();
    assert_eq!(names(&network, &network.routes[0][0].forward), ["ab", "bc"]);
    assert_eq!(names(&network, &network.routes[0][0].backward), ["bc.back", "ab.back"]);
}

#[test]
fn routers_reach_everyone() {
    let links = [("ab", "a", "b", "1ms"), ("bc", "b", "c", "1ms"), ("xy", "x", "y", "1ms")];
    let network = Network::build(&scenario(&links, "a", "c", ""), &Disk).unwrap();
    let node = |name| network.node(name).unwrap();
    assert_eq!(network.route(node("b"), node("a")), Some(vec![1]));
    assert_eq!(network.route(node("b"), node("b")), Some(vec![]));
    assert_eq!(network.route(node("b"), node("x")), None);
    assert_eq!(network.node("z"), None);
}

#[test]
fn addresses_are_given_in_order_and_written_ones_kept() {
    let links = [("ab", "a", "b", "1ms"), ("bc", "b", "c", "1ms")];
    let more = "[nodes.c]\naddresses = [\"10.0.0.2\", \"192.0.2.9\"]\n";
    let network = Network::build(&scenario(&links, "a", "c", more), &Disk).unwrap();
    assert_eq!(network.nodes, ["c", "a", "b"]);
    let text = |node: usize| {
        let a = &network.addresses[node];
        (a.v4.iter().map(ToString::to_string).collect::<Vec<_>>(), a.v6[0].to_string())
    };
    assert_eq!(
        text(0),
        (vec!["10.0.0.2".to_owned(), "192.0.2.9".to_owned()], "fd00::1".to_owned())
    );
    assert_eq!(text(1), (vec!["10.0.0.3".to_owned()], "fd00::2".to_owned()));
    assert_eq!(text(2), (vec!["10.0.0.4".to_owned()], "fd00::3".to_owned()));
    let all: std::collections::BTreeSet<_> =
        network.addresses.iter().flat_map(|a| a.v4.clone()).collect();
    assert_eq!(all.len(), 4);
}

/// A flow over `paths` from a to z, with these nodes written.
fn over(paths: &[&str], nodes: &str) -> Network {
    let links = [
        ("am", "a", "m", "1ms"),
        ("mz", "m", "z", "1ms"),
        ("an", "a", "n", "1ms"),
        ("nz", "n", "z", "1ms"),
        ("az", "a", "z", "9ms"),
    ];
    let mut s = scenario(&links, "a", "z", nodes);
    s.flows["f"].transport = talkspurt_scenario::model::Transport::Sctp(Box::default());
    let nodes = |path: &&str| path.chars().map(String::from).collect();
    s.flows["f"].paths = paths.iter().map(nodes).collect();
    // A second flow, so that numbers beyond the first matter.
    let mut second = s.flows["f"].clone();
    second.paths.clear();
    s.flows.insert("g".to_owned(), second);
    Network::build(&s, &Disk).unwrap()
}

#[test]
fn further_paths_are_numbered_behind_all_flows() {
    let network = over(&["amz", "anz", "az"], "");
    let ways: Vec<_> = network
        .ways()
        .map(|way| (way.flow, way.side, way.path, names(&network, way.links).join(" ")))
        .collect();
    let of = |flow, side, path, links: &str| (flow, side, path, links.to_owned());
    assert_eq!(
        ways,
        [
            of(0, 0, 0, "am mz"),
            of(0, 1, 0, "mz.back am.back"),
            of(1, 0, 0, "am mz"),
            of(1, 1, 0, "mz.back am.back"),
            of(0, 0, 1, "an nz"),
            of(0, 0, 2, "az"),
            of(0, 1, 1, "nz.back an.back"),
            of(0, 1, 2, "az.back"),
        ]
    );
}

#[test]
fn an_end_has_an_address_for_each_path() {
    let address =
        |network: &Network, node, path| network.address(node, IpVersion::V4, path).to_string();
    let network = over(&["amz", "anz"], "[nodes.z]\naddresses = [\"192.0.2.9\"]\n");
    // z is the first node, for it was written; those of paths come after those of all nodes.
    assert_eq!(address(&network, "z", 0), "192.0.2.9");
    assert_eq!(address(&network, "a", 0), "10.0.0.2");
    assert_eq!((network.addresses.len(), network.nodes.join("")), (4, "zamn".to_owned()));
    assert_eq!(address(&network, "a", 1), "10.0.0.5");
    assert_eq!(address(&network, "z", 1), "10.0.0.6");
    assert_eq!(network.address("z", IpVersion::V6, 1).to_string(), "fd00::6");
    // A single way needs no second address.
    let network = over(&["amz"], "");
    assert!(network.addresses.iter().all(|all| all.v4.len() == 1 && all.v6.len() == 1));
}

#[test]
fn the_least_mtu_of_a_way() {
    let links = [("ab", "a", "b", "1ms"), ("bc", "b", "c", "1ms")];
    let mut s = scenario(&links, "a", "c", "");
    s.links["bc"].mtu = "576B".parse().unwrap();
    s.flows["f"].ip = IpVersion::V4;
    let network = Network::build(&s, &Disk).unwrap();
    assert_eq!(network.mtu(&network.routes[0][0].forward).as_bytes(), 576);
}

#[test]
fn a_missing_way_is_a_problem_without_a_line() {
    let mut s = scenario(&[("ab", "a", "b", "1ms"), ("xy", "x", "y", "1ms")], "a", "b", "");
    s.flows["f"].to = "y".to_owned();
    let problems = Network::build(&s, &Disk).unwrap_err();
    assert_eq!(problems.to_string(), "flows.f.to: no links lead from \"a\" to \"y\"");
}

/// All ways without a loop, by (delay, links, links in the order of the file).
fn best_of_all(network: &Network, from: usize, to: usize) -> Option<Vec<usize>> {
    fn search(
        network: &Network,
        here: usize,
        to: usize,
        way: &mut Vec<usize>,
        seen: &mut Vec<usize>,
        all: &mut Vec<(u64, usize, Vec<usize>)>,
    ) {
        if here == to {
            let delay = way.iter().map(|l| network.links[*l].delay.as_nanos()).sum();
            all.push((delay, way.len(), way.clone()));
            return;
        }
        for (index, link) in network.links.iter().enumerate() {
            if link.from == here && !seen.contains(&link.to) {
                way.push(index);
                seen.push(link.to);
                search(network, link.to, to, way, seen, all);
                seen.pop();
                way.pop();
            }
        }
    }
    let mut all = Vec::new();
    search(network, from, to, &mut Vec::new(), &mut vec![from], &mut all);
    all.into_iter().min().map(|(_, _, way)| way)
}

#[test]
fn routes_equal_a_search_of_all_paths() {
    let mut state = 7_u64;
    let mut rng = |sides: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % sides
    };
    let nodes = ["a", "b", "c", "d", "e", "f"];
    let mut reached = 0;
    for _ in 0..200 {
        let mut links = vec![("l0".to_owned(), "a", "b", "1ms".to_owned())];
        for index in 1..9 {
            let (from, to) = (nodes[rng(6) as usize], nodes[rng(6) as usize]);
            if from != to {
                // Few different delays, zero among them: many ties.
                links.push((format!("l{index}"), from, to, format!("{}ms", rng(3))));
            }
        }
        let links: Vec<_> =
            links.iter().map(|(n, f, t, d)| (n.as_str(), *f, *t, d.as_str())).collect();
        let network = Network::build(&scenario(&links, "a", "b", ""), &Disk).unwrap();
        for from in 0..network.nodes.len() {
            for to in 0..network.nodes.len() {
                let route = network.route(from, to);
                assert_eq!(route, best_of_all(&network, from, to), "{links:?} {from} {to}");
                reached += usize::from(route.is_some());
            }
        }
    }
    assert!(reached > 2000, "{reached}");
}
