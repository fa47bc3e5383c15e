//! Links that fail and return: packets on the medium are lost, arriving packets are dropped, queued
//! ones keep waiting; TCP recovers.

use talkspurt_proto::endpoint::Event;
use talkspurt_proto::probe::{DropReason, Note, Place};
use talkspurt_proto::time::{Duration, Instant};

use crate::support::{Look, flow, link, ms, point, run, scenario, watch};

/// Packets of 125 bytes at a millisecond each over 5 ms, eight at once every 100 ms; the first
/// ones are at the link at 100 ms.
fn eight_at_once(events: &str) -> String {
    let link = link("l", "a-z", "1Mbit/s", "5ms", &format!("events = [{events}]"));
    let source = "{ kind = 'cbr', rate = '10kbit/s', packet = '125B', noise = '0s' }";
    let more = "sizing = 'ns2'\nstart_spread = '0s'";
    let flows = (0..8).map(|f| flow(&format!("f{f}"), "a-z", "udp", source, more));
    scenario("150ms", &[link, flows.collect::<Vec<_>>().concat()])
}

/// Which flow's packets, and when.
type Packets = Vec<(u32, Instant)>;

/// Those received, and those lost to an outage.
fn arrivals(text: &str) -> (Packets, Packets) {
    let (mut received, mut lost) = (Vec::new(), Vec::new());
    watch(&point(text), &Look::default(), |now, place, note| match (place, note) {
        (Place::Peer(_), Note::Received { packet, .. }) => received.push((packet.flow, now)),
        (Place::Link(_), Note::Dropped { packet, why: DropReason::Down }) => {
            lost.push((packet.flow, now));
        }
        _ => {}
    });
    (received, lost)
}

#[test]
fn the_medium_loses_and_the_queue_keeps() {
    // Down at 103.5 ms: three packets are on the medium, a fourth is being sent.
    let text = eight_at_once("{ at = '103500us', state = 'down' }, { at = '120ms', state = 'up' }");
    let (received, lost) = arrivals(&text);
    let down = Instant::from_nanos(103_500_000);
    assert_eq!(lost, [0, 1, 2, 3].map(|flow| (flow, down)));
    // The other four wait for the link and then take their millisecond each.
    assert_eq!(received, [4, 5, 6, 7].map(|flow| (flow, ms(120 + u64::from(flow) - 3 + 5))));
    let run = run(&text);
    // Busy: 3.5 ms before, 4 ms after, of 150.
    assert!((run.link("l").utilisation.unwrap() - 7.5 / 150.0).abs() < 1e-12);
    // Waiting: 8 − k at the k-th millisecond, four from 103 ms on until 120, then 3 + 2 + 1.
    let area = 7.0 + 6.0 + 5.0 + 17.0 * 4.0 + 6.0;
    assert!((run.link("l").queue_mean_packets.unwrap() - area / 150.0).abs() < 1e-12);
    assert_eq!(run.link("l").drops_down, Some(4));
}

#[test]
fn what_arrives_while_it_is_down_is_refused() {
    let text = eight_at_once("{ at = '99ms', state = 'down' }, { at = '110ms', state = 'up' }");
    let (received, lost) = arrivals(&text);
    assert_eq!(received, []);
    assert_eq!(lost.len(), 8);
    assert!(lost.iter().all(|(_, at)| *at == ms(100)));
}

#[test]
fn at_one_instant_a_packet_arrives_before_the_link_fails() {
    // The first packet reaches the far end at 106 ms sharp, when the link fails.
    let text = eight_at_once("{ at = '106ms', state = 'down' }, { at = '107ms', state = 'up' }");
    let (received, lost) = arrivals(&text);
    assert_eq!(received[0], (0, ms(106)));
    // On the medium: those sent from 101 to 106; the seventh has just begun.
    assert_eq!(lost, [1, 2, 3, 4, 5, 6].map(|flow| (flow, ms(106))));
    assert_eq!(received[1..], [(7, ms(113))]);
}

#[test]
fn a_link_may_fail_twice_and_stay_down() {
    let text = eight_at_once(
        "{ at = '102ms', state = 'down' }, { at = '103ms', state = 'up' }, { at = '104ms', state = 'down' }",
    );
    let (received, lost) = arrivals(&text);
    assert_eq!(received, []);
    // 0 and 1 and the one just begun at 102 ms; the next is lost a millisecond after the return.
    assert_eq!(lost[..3], [0, 1, 2].map(|flow| (flow, ms(102))));
    assert_eq!(lost[3..], [3, 4].map(|flow| (flow, ms(104))));
}

#[test]
fn tcp_recovers() {
    let events = "events = [{ at = '3s', state = 'down' }, { at = '5s', state = 'up' }]\nqueue = { kind = 'droptail', packets = 20 }";
    let links = link("l", "a-z", "2Mbit/s", "20ms", events);
    let bulk = flow("f", "a-z", "tcp", "{ kind = 'bulk', total = '2MB' }", "");
    let (mut bytes, mut closed, mut during) = (0, 0, 0);
    let point = point(&scenario("80s", &[links, bulk]));
    watch(&point, &Look::default(), |now, place, note| match (place, note) {
        (Place::Peer(1), Note::Delivered { bytes: more, .. }) => {
            bytes += u64::from(*more);
            during += u32::from(ms(3000) < now && now < ms(5000) + Duration::from_millis(20));
        }
        (_, Note::Event(Event::Closed | Event::PeerClosed)) => closed += 1,
        (_, Note::Event(event)) => assert_eq!(*event, Event::Connected),
        _ => {}
    });
    assert_eq!(bytes, 2_000_000);
    assert!(closed >= 2, "{closed}");
    assert_eq!(during, 0);
}
