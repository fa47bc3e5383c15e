//! Each arrival wakes its link once, wherever its wake-up lies. Packets here find their link idle, so
//! that they arrive by way of the schedule's lane; a wake-up too many or too few changes the count.

use talkspurt_proto::probe::{DropReason, Note};
use talkspurt_proto::time::Duration;

use crate::support::{Look, flow, link, ms, point, scenario, watch};

/// A millisecond on the link, every 100 ms from 100 ms on.
fn small(ends: &str) -> String {
    let source = "{ kind = 'cbr', rate = '10kbit/s', packet = '125B', noise = '0s' }";
    flow("small", ends, "udp", source, "sizing = 'ns2'\nstart_spread = '0s'")
}

/// How many wake-ups there were, and how many packets arrived at the first flow's end.
fn wakes(text: &str, settle_every: Option<Duration>) -> (u64, u64) {
    let look = Look { settle_every, ..Look::default() };
    let run = watch(&point(text), &look, |_, _, _| {});
    (run.events, run.flows[0].received_packets)
}

#[test]
fn what_an_outage_takes_does_not_wake() {
    let outage = |down: &str, up: &str| {
        let events = format!(
            "events = [{{ at = '{down}', state = 'down' }}, {{ at = '{up}', state = 'up' }}]"
        );
        let text = scenario("350ms", &[link("l", "a-z", "1Mbit/s", "5ms", &events), small("a-z")]);
        wakes(&text, None)
    };
    let (all, received) = outage("150ms", "151ms");
    assert_eq!(received, 3);
    // The first packet is on the medium from 101 to 106 ms.
    assert_eq!(outage("103ms", "104ms"), (all - 1, 2));
}

#[test]
fn what_is_too_big_wakes_nobody_twice() {
    let links = [
        link("first", "a-r", "1Mbit/s", "1ms", ""),
        link("narrow", "r-s", "1Mbit/s", "50ms", "mtu = '576B'"),
        link("last", "s-z", "1Mbit/s", "1ms", ""),
    ];
    // After one round trip a segment is refused at some 215 ms, when the small packet of 200 ms flies.
    let tcp = "{ kind = 'tcp', controller = 'newreno', mss = '1440B' }";
    let big = flow("big", "a-z", tcp, "{ kind = 'bulk', total = '1000B' }", "start = '100ms'");
    let of = |flows: &[String]| {
        let mut refused = Vec::new();
        let text = scenario("450ms", &[links.concat(), flows.concat()]);
        let run = watch(&point(&text), &Look::default(), |now, _, note| {
            if matches!(note, Note::Dropped { why: DropReason::TooBig, .. }) {
                refused.push(now);
            }
        });
        (run.events, refused)
    };
    let ((both, refused), (one, none), (other, again)) =
        (of(&[small("r-s"), big.clone()]), of(&[small("r-s")]), of(&[big]));
    assert_eq!((refused.len(), &refused, none.len()), (1, &again, 0));
    assert!(ms(201) < refused[0] && refused[0] < ms(251));
    assert_eq!(both, one + other);
}

/// RFC 4443 §2.4 (e): a router's message that is too big itself is answered by none. Its way back is
/// shorter than the flow's way, and has the least MTU that IPv4's checks let pass.
#[test]
fn a_message_too_big_for_its_way_back_wakes_nobody_twice() {
    let links = [
        link("one", "a-m", "1Mbit/s", "2ms", ""),
        link("two", "m-r", "1Mbit/s", "2ms", ""),
        link("far", "r-s", "1Mbit/s", "20ms", "mtu = '1280B'"),
        link("last", "s-z", "1Mbit/s", "2ms", ""),
        link("narrow", "r-a", "5kbit/s", "1ms", "mtu = '90B'"),
    ];
    let tcp = "{ kind = 'tcp', controller = 'newreno', mss = '1440B' }";
    let more = "start = '100ms'\nip = 'v6'\nvia = ['a', 'm', 'r', 's', 'z']";
    let big = flow("big", "a-z", tcp, "{ kind = 'bulk', total = '1440B' }", more);
    let of = |flows: &[String]| {
        let mut refused = 0;
        let text = scenario("350ms", &[links.concat(), flows.concat()]);
        let run = watch(&point(&text), &Look::default(), |_, _, note| {
            refused += u64::from(matches!(note, Note::Dropped { why: DropReason::TooBig, .. }));
        });
        (run.events, refused)
    };
    let small = small("r-a").replace("125B", "62B").replace("10kbit/s", "4kbit/s");
    let ((both, refused), (one, none), (other, again)) =
        (of(&[small.clone(), big.clone()]), of(&[small]), of(&[big]));
    // The segment and the message that says so, while the small packet of 124 ms is on its way.
    assert_eq!((refused, none, again), (2, 0, 2));
    assert_eq!(both, one + other);
}

#[test]
fn a_look_at_the_links_wakes_nobody() {
    let link = link("l", "a-z", "1Mbit/s", "5ms", "");
    let text = scenario("350ms", &[link, small("a-z")]);
    assert_eq!(wakes(&text, Some(Duration::from_millis(1))), wakes(&text, None));
}
