//! Equal inputs give equal results: on every thread, under any probe, and regardless of other parts
//! of the file (common random numbers).

use talkspurt_proto::time::Duration;
use talkspurt_proto::wire::Ends;
use talkspurt_record::pcapng::{CaptureProbe, Pcapng};
use talkspurt_record::{FlowSummary, LinkSummary};
use talkspurt_scenario::Point;

use crate::support::{self, Look, flow, link, point, run, scenario};

fn dumbbell(name: &str, loss: f64) -> String {
    let core = format!("loss = {loss:?}\nqueue = {{ kind = 'droptail', packets = 10 }}");
    let ends = |a: &str, b: &str| format!("{name}{a}-{name}{b}");
    [
        link(&format!("{name}in"), &ends("a", "l"), "10Mbit/s", "2ms", ""),
        link(&format!("{name}core"), &ends("l", "r"), "1Mbit/s", "20ms", &core),
        link(&format!("{name}out"), &ends("r", "z"), "10Mbit/s", "2ms", ""),
        flow(
            &format!("{name}call"),
            &ends("a", "z"),
            "udp",
            "{ kind = 'speech', codec = 'pcmu', talkspurts = {} }",
            "reverse = { kind = 'speech', codec = 'pcma' }",
        ),
        flow(
            &format!("{name}call-over-tcp"),
            &ends("a", "z"),
            "tcp",
            "{ kind = 'speech', codec = 'pcmu' }",
            "reverse = { kind = 'on_off', rate = '40kbit/s', packet = '100B' }",
        ),
        flow(&format!("{name}bulk"), &ends("z", "a"), "tcp", "{ kind = 'bulk' }", ""),
    ]
    .concat()
}

fn question(seed: u64, parts: &[String]) -> String {
    scenario("8s", &[vec![format!("seed = {seed}\n")], parts.to_vec()].concat())
}

#[test]
fn the_seed_decides() {
    let of = |seed| run(&question(seed, &[dumbbell("x", 0.01)])).digest;
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn two_threads_agree() {
    let point = point(&question(1, &[dumbbell("x", 0.01)]));
    let go = |point: &Point| support::watch(point, &Look::default(), |_, _, _| {});
    let (a, b) = std::thread::scope(|scope| {
        let a = scope.spawn(|| go(&point));
        let b = scope.spawn(|| go(&point));
        (a.join().expect("no panic"), b.join().expect("no panic"))
    });
    assert_eq!(a.digest, b.digest);
    assert_eq!(a.flows, b.flows);
}

#[test]
fn who_looks_on_changes_nothing() {
    let text = question(1, &[dumbbell("x", 0.01)]);
    let plain = run(&text);
    let packets = Look { packets: true, ..Look::default() };
    let with_packets = support::watch(&point(&text), &packets, |_, _, _| {});
    assert_eq!(plain.digest, with_packets.digest);
    assert_eq!(plain.flows, with_packets.flows);

    let mut coarse = point(&text);
    coarse.scenario.record.interval = Duration::from_millis(37);
    let coarse = support::watch(&coarse, &Look::default(), |_, _, _| {});
    assert_eq!(plain.digest, coarse.digest);
    assert_eq!(plain.flows, coarse.flows);
    assert_eq!(plain.links, coarse.links);

    let ends = Ends {
        src: "10.0.0.1".parse().expect("an address"),
        dst: "10.0.0.2".parse().expect("an address"),
        src_port: 5004,
        dst_port: 5004,
    };
    let routes: Vec<_> = (0..6).map(|peer| ((peer / 2, peer), ends)).collect();
    let mut capture = CaptureProbe::new(routes);
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("who-looks-on.pcapng");
    let file = Pcapng::create(&path, &["xcore", "xcore.back"]).expect("a file");
    capture.tap(file, &[2, 3]);
    let (captured, capture) = support::watch_with(&point(&text), &Look::default(), capture);
    capture.finish().expect("written");
    assert!(std::fs::metadata(&path).expect("written").len() > 100_000);
    assert_eq!(plain.digest, captured.digest);
    assert_eq!(plain.flows, captured.flows);
}

#[test]
fn nobody_watching_gives_the_same_links() {
    let text = question(1, &[dumbbell("x", 0.01)]);
    let watched = run(&text);
    let alone = support::counters(&point(&text));
    let sent: Vec<_> = alone.iter().map(|link| Some(link.sent_packets)).collect();
    let drops: Vec<_> = alone.iter().map(|link| link.drops.map(Some)).collect();
    assert_eq!(watched.links.iter().map(|link| link.sent_packets).collect::<Vec<_>>(), sent);
    let reasons = watched.links.iter().map(|link| {
        let LinkSummary { drops_full, drops_early, drops_medium, drops_down, .. } = *link;
        [drops_full, drops_early, drops_medium, drops_down, link.drops_too_big, link.drops_retries]
    });
    assert_eq!(reasons.collect::<Vec<_>>(), drops);
}

fn flows_of(run: &support::Run, name: &str) -> Vec<FlowSummary> {
    run.flows.iter().filter(|flow| flow.name.starts_with(name)).cloned().collect()
}

#[test]
fn a_neighbour_on_other_links_changes_no_other_random_stream() {
    let alone = run(&question(1, &[dumbbell("x", 0.01)]));
    assert!(alone.flows.iter().any(|flow| flow.lost_packets > 0));
    for parts in [
        [dumbbell("x", 0.01), dumbbell("y", 0.1)],
        // Before it, so that every index moves.
        [dumbbell("y", 0.1), dumbbell("x", 0.01)],
    ] {
        let both = run(&question(1, &parts));
        assert_eq!(flows_of(&both, "x"), alone.flows);
        for link in &alone.links {
            assert_eq!(both.link(&link.name), link);
        }
        assert_ne!(flows_of(&both, "y")[0].received_packets, alone.flows[0].received_packets);
    }
}

/// With many peers, the engine requests the memory of the next ones; that is no event.
#[test]
fn many_calls_elsewhere_change_nothing() {
    let alone = run(&question(1, &[dumbbell("x", 0.01)]));
    let crowd = [
        link("crowd", "q-p", "100Mbit/s", "5ms", "loss = 0.001"),
        flow("crowd", "q-p", "udp", "{ kind = 'speech', codec = 'g729' }", "count = 520"),
    ];
    for parts in [[dumbbell("x", 0.01), crowd.concat()], [crowd.concat(), dumbbell("x", 0.01)]] {
        let both = run(&question(1, &parts));
        assert_eq!(flows_of(&both, "x"), alone.flows);
        for link in &alone.links {
            assert_eq!(both.link(&link.name), link);
        }
        assert_eq!(both.flows.len(), alone.flows.len() + 520);
    }
}

#[test]
fn a_new_flow_on_the_same_links_leaves_the_others_sources_alone() {
    // Nothing is lost and no queue is full, so calls do not affect each other.
    let wide = link("l", "a-z", "1Gbit/s", "1ms", "");
    let speech = "{ kind = 'speech', codec = 'pcmu', talkspurts = {} }";
    let call = flow("call", "a-z", "udp", speech, "");
    let other = flow("other", "z-a", "tcp", speech, "");
    let sends = |text: &str| {
        let mut times = Vec::new();
        let point = point(text);
        let call = point.scenario.flows.get_index_of("call").expect("it is there") as u32;
        support::watch(&point, &Look::default(), |now, place, note| {
            use talkspurt_proto::probe::{Note, Place};
            if let (Place::Peer(peer), Note::Sent { packet, .. }) = (place, note)
                && peer == 2 * call
            {
                times.push((now, packet.ip_bytes));
            }
        });
        times
    };
    let alone = sends(&question(1, &[wide.clone(), call.clone()]));
    assert!(alone.len() > 50);
    assert_eq!(sends(&question(1, &[wide.clone(), other.clone(), call.clone()])), alone);
    assert_eq!(sends(&question(1, &[wide, call, other])), alone);
}
