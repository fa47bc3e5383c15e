//! Several flows in one SCTP association: head-of-line blocking between their messages, shared send
//! capacity, and when it closes.

use talkspurt_proto::body::Body;
use talkspurt_proto::endpoint::Event;
use talkspurt_proto::probe::{Note, Place};
use talkspurt_proto::sctp::Chunk;

use crate::support::{Look, Run, flow, link, ms, point, run, scenario, watch};

const WIDE: &str = "queue = { kind = 'droptail', packets = 200 }";

/// 200 bytes every 20 ms, the first at once.
fn beat(name: &str, transport: &str, more: &str) -> String {
    let cbr = "{ kind = 'cbr', rate = '80kbit/s', packet = '200B', noise = '0s' }";
    flow(name, "a-z", transport, cbr, &format!("start_spread = '0s'\n{more}"))
}

/// Two such flows of 2 s; the link is down when a message of the owner leaves after 500 ms, and no other.
fn two(owner: &str, guest: &str) -> Run {
    let down = "events = [{ at = '499ms', state = 'down' }, { at = '505ms', state = 'up' }]";
    let parts = [
        link("first", "a-m", "100Mbit/s", "1us", down),
        link("l", "m-z", "10Mbit/s", "50ms", ""),
        beat("owner", &format!("{{ kind = 'sctp'{owner} }}"), "start = '100ms'\nstop = '2s'"),
        beat(
            "guest",
            &format!("{{ kind = 'sctp', association = 'owner'{guest} }}"),
            "start = '110ms'\nstop = '2s'",
        ),
    ];
    run(&scenario("4s", &parts))
}

fn all_arrived(run: &Run) {
    for name in ["owner", "guest"] {
        let flow = run.flow(name);
        assert_eq!(flow.generated_packets, Some(flow.handed_over_packets));
        let bits = flow.goodput_bps.expect("measured") * 4.0;
        let generated = flow.generated_packets.expect("simulated");
        assert_eq!(bits, (generated * 1600) as f64, "{name}");
        assert!(generated >= 94, "{name}: {generated}");
    }
    // One association: its packets are the owner's.
    assert_eq!(run.flow("guest").sent_packets, 0);
}

/// RFC 9260 §6.6. The lost message of the owner is followed by one every 10 ms; the third SACK that misses
/// it leaves when the third has come, and the repetition comes three ways of 50 ms and 30 ms, more or less
/// a serialisation time, after the loss. Until then those of its own stream wait: seven sent 20 to 140 ms
/// later, since those arrive before it; on one stream the guest's eight, too.
#[test]
fn messages_wait_for_those_of_their_own_stream() {
    let separate = two("", "");
    all_arrived(&separate);
    let (owner, guest) = (separate.flow("owner"), separate.flow("guest"));
    assert_eq!(guest.held_back_packets, Some(0));
    assert_eq!((guest.head_of_line_mean_s, guest.head_of_line_max_s), (Some(0.0), Some(0.0)));
    let held = owner.held_back_packets.expect("SCTP tells");
    assert!((6..=7).contains(&held), "{held}");
    let longest = owner.head_of_line_max_s.expect("some waited");
    assert!((longest - 0.110).abs() < 0.002, "{longest}");

    let one = two(", multistreaming = false", "");
    all_arrived(&one);
    let (owner, guest) = (one.flow("owner"), one.flow("guest"));
    assert_eq!(owner.held_back_packets, Some(held));
    let others = guest.held_back_packets.expect("SCTP tells");
    assert!((6..=7).contains(&others), "{others}");
    let longest = guest.head_of_line_max_s.expect("some waited");
    assert!((longest - 0.120).abs() < 0.002, "{longest}");
    let mean = guest.head_of_line_mean_s.expect("some waited");
    let sum: f64 = (0..others).map(|after| longest - 0.02 * after as f64).sum();
    let messages = guest.generated_packets.expect("simulated");
    assert!((mean * messages as f64 - sum).abs() < 0.001, "{mean}");

    // Each says for its own messages whether they are in order.
    let unordered = two(", multistreaming = false", ", ordered = false");
    all_arrived(&unordered);
    assert_eq!(unordered.flow("guest").held_back_packets, Some(0));
    assert_eq!(unordered.flow("owner").held_back_packets, Some(held));
    // The same packets cross the same network.
    assert_eq!(unordered.link("first").drops, separate.link("first").drops);
    assert_ne!(separate.digest, one.digest);
    assert_eq!(separate.digest, two("", "").digest);
}

/// What leaves: stream, Payload Protocol Identifier and the side it is from.
fn streams(text: &str) -> Vec<(u16, u32, u32)> {
    let mut seen = Vec::new();
    watch(&point(text), &Look::default(), |_, place, note| {
        if let (Place::Peer(peer), Note::Sent { body: Body::Sctp(packet), .. }) = (place, note) {
            for chunk in &packet.chunks {
                if let Chunk::Data(data) = chunk {
                    seen.push((data.stream, data.ppid, peer));
                }
            }
        }
    });
    seen.sort_unstable();
    seen.dedup();
    seen
}

#[test]
fn streams_are_numbered_in_the_order_of_the_file() {
    let text = |owner: &str| {
        let reverse = "reverse = { kind = 'cbr', rate = '80kbit/s', packet = '200B' }";
        let guest = "{ kind = 'sctp', association = 'owner' }";
        let parts = [
            link("l", "a-z", "10Mbit/s", "5ms", WIDE),
            beat("first", guest, ""),
            beat("owner", &format!("{{ kind = 'sctp'{owner} }}"), ""),
            beat("second", guest, reverse),
            beat("many", "{ kind = 'sctp', association = 'owner' }", "count = 2"),
        ];
        scenario("1s", &parts)
    };
    let ppid = |number: u32| 0x7473_0000 + number;
    let seen = [(0, 0, 2), (1, ppid(1), 2), (2, ppid(2), 2), (2, ppid(2), 3)];
    let more = [(3, ppid(3), 2), (4, ppid(4), 2)];
    assert_eq!(streams(&text("")), [&seen[..], &more].concat());
    let mut one: Vec<_> =
        seen.into_iter().chain(more).map(|(_, ppid, peer)| (0, ppid, peer)).collect();
    one.sort_unstable();
    assert_eq!(streams(&text(", multistreaming = false")), one);
}

#[test]
fn flows_of_a_count_travel_in_associations_of_another_one_by_one() {
    let parts = [
        link("l", "a-z", "10Mbit/s", "5ms", WIDE),
        beat("call", "{ kind = 'sctp' }", "count = 2"),
        beat("video", "{ kind = 'sctp', association = 'call-*' }", "count = 2"),
    ];
    let ppid = 0x7473_0001;
    // Peers 0 and 2 are the openers of the two calls.
    let seen = [(0, 0, 0), (0, 0, 2), (1, ppid, 0), (1, ppid, 2)];
    assert_eq!(streams(&scenario("1s", &parts)), seen);
}

/// Speech both ways beside data both ways: every frame is played by the ear it was meant for, and reports
/// come to the right flow.
#[test]
fn media_and_reports_find_their_flow() {
    let speech = "{ kind = 'speech', codec = 'pcmu' }";
    let both = format!("reverse = {speech}\nstop = '9s'\nrtcp = {{ minimum_interval = '1s' }}");
    let parts = [
        link("l", "a-z", "10Mbit/s", "20ms", WIDE),
        beat("data", "{ kind = 'sctp' }", "stop = '9s'"),
        flow("call", "a-z", "{ kind = 'sctp', association = 'data' }", speech, &both),
        flow("other", "a-z", "{ kind = 'sctp', association = 'data' }", speech, &both),
    ];
    let (mut trips, mut bytes) = (Vec::new(), [0; 6]);
    let run = watch(&point(&scenario("10s", &parts)), &Look::default(), |_, place, note| {
        let Place::Peer(peer) = place else { return };
        match note {
            Note::Gauge { gauge: talkspurt_proto::probe::Gauge::RtcpRtt, value } => {
                trips.push(peer);
                assert!((0.04..0.05).contains(value), "{value}");
            }
            Note::Delivered { bytes: len, .. } => bytes[peer as usize] += len,
            _ => {}
        }
    });
    trips.sort_unstable();
    trips.dedup();
    assert_eq!(trips, [2, 3, 4, 5]);
    for name in ["call", "call.reverse", "other", "other.reverse"] {
        let flow = run.flow(name);
        assert_eq!((flow.missing_packets, flow.late_packets), (Some(0), Some(0)), "{name}");
        assert!(flow.generated_packets >= Some(440), "{name}");
    }
    assert_eq!(Some(u64::from(bytes[1]) / 200), run.flow("data").generated_packets);
    assert_eq!(bytes[1] % 200, 0);
    assert_eq!(bytes[0], 0);
}

/// The association ends only when all flows have sent everything.
#[test]
fn it_closes_after_the_last_flow() {
    let guest = "{ kind = 'sctp', association = 'owner' }";
    let parts = [
        link("l", "a-z", "10Mbit/s", "5ms", WIDE),
        beat("owner", "{ kind = 'sctp' }", "stop = '2s'"),
        beat("guest", guest, "start = '1s'\nstop = '5s'"),
        flow("file", "a-z", guest, "{ kind = 'bulk', total = '50kB' }", "start = '3s'"),
    ];
    let mut closed = Vec::new();
    let mut first = Vec::new();
    let run =
        watch(&point(&scenario("8s", &parts)), &Look::default(), |now, place, note| match note {
            Note::Event(Event::Closed) => closed.push((place, now)),
            Note::Delivered { index: 0, .. } => first.push((place, now)),
            _ => {}
        });
    let generated = run.flow("guest").generated_packets.expect("simulated");
    assert_eq!(run.flow("guest").goodput_bps, Some(generated as f64 * 200.0));
    assert!(generated >= 199);
    assert_eq!(run.flow("file").goodput_bps, Some(50_000.0));
    // Both ends of the one association, told in the owner's name.
    closed.sort_unstable_by_key(|(place, _)| *place);
    assert_eq!(closed.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [0, 1].map(Place::Peer));
    assert!(closed.iter().all(|(_, at)| (ms(4990)..ms(5300)).contains(at)), "{closed:?}");
    let at =
        |peer| first.iter().find(|(place, _)| *place == Place::Peer(peer)).expect("delivered").1;
    assert!((ms(1000)..ms(1040)).contains(&at(3)) && (ms(3000)..ms(3010)).contains(&at(5)));
}

/// Bulk data fills all capacity; the order of requests rotates, so that no flow starves.
#[test]
fn bulk_data_leaves_room_for_others() {
    for owner_is_bulk in [true, false] {
        let transport = "{ kind = 'sctp', send_buffer = '30kB', scheduler = 'round_robin' }";
        let guest = "{ kind = 'sctp', association = 'owner' }";
        let bulk =
            |name: &str, transport: &str| flow(name, "a-z", transport, "{ kind = 'bulk' }", "");
        let flows = if owner_is_bulk {
            [bulk("owner", transport), beat("beat", guest, ""), bulk("bulk", guest)]
        } else {
            [beat("owner", transport, ""), bulk("bulk", guest), bulk("more", guest)]
        };
        let links =
            link("l", "a-z", "2Mbit/s", "20ms", "queue = { kind = 'droptail', packets = 50 }");
        let run = run(&scenario("20s", &[links, flows.concat()]));
        let (beats, [one, two]) = if owner_is_bulk {
            (run.flow("beat"), ["owner", "bulk"])
        } else {
            (run.flow("owner"), ["bulk", "more"])
        };
        assert_eq!(beats.discarded_packets, Some(0));
        assert!(beats.goodput_bps.expect("measured") > 0.98 * 80e3);
        let [one, two] = [one, two].map(|name| run.flow(name).goodput_bps.expect("measured"));
        assert!((one / two - 1.0).abs() < 0.1, "{one} {two}");
        assert!(one + two > 1.6e6, "{one} {two}");
    }
}
