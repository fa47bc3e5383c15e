//! Packets too long for a link in the middle: the router's answer goes back and is obeyed
//! (RFC 1191, RFC 8201).

use std::sync::Arc;

use talkspurt_proto::body::Body;
use talkspurt_proto::packet::Ecn;
use talkspurt_proto::probe::{DropReason, Note, Place};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Size;

use crate::support::{Look, Run, flow, link, point, scenario, watch};

fn narrow_middle(mtu: u32) -> String {
    [
        link("l0", "a-r", "1Mbit/s", "10ms", ""),
        link("l1", "r-s", "1Mbit/s", "10ms", &format!("mtu = '{mtu}B'")),
        link("l2", "s-z", "1Mbit/s", "10ms", ""),
    ]
    .concat()
}

#[derive(Default)]
struct Story {
    /// Lengths of data packets sent by the opening side, with their times.
    sent: Vec<(Instant, u32)>,
    /// Refusals: when and how long.
    refused: Vec<(Instant, u32)>,
    /// Messages of routers.
    answered: usize,
    /// Messages at the opening side: when, length, MTU.
    told: Vec<(Instant, u32, u32)>,
    events: Vec<(u32, talkspurt_proto::endpoint::Event)>,
    delivered: u64,
}

fn tell(text: &str) -> (Run, Story) {
    let mut story = Story::default();
    let run = watch(&point(text), &Look::default(), |now, place, note| match (place, note) {
        (Place::Peer(0), Note::Sent { packet, body }) if body.layers().payload > 0 => {
            story.sent.push((now, packet.ip_bytes));
        }
        (Place::Link(_), Note::Dropped { packet, why: DropReason::TooBig }) => {
            story.refused.push((now, packet.ip_bytes));
        }
        (Place::Link(_), Note::Answered { refused, packet, body }) => {
            let Body::TooBig { quote, .. } = body else { panic!("an answer") };
            assert_eq!(story.refused.last(), Some(&(now, quote.ip_bytes)));
            assert_eq!((quote.mark, quote.ttl, quote.dscp), (refused.mark(), 63, 46));
            assert_eq!((refused.dscp, packet.dscp, packet.ecn), (46, 0, Ecn::NotEct));
            story.answered += 1;
        }
        (Place::Peer(0), Note::Received { packet, body: Body::TooBig { mtu, .. } }) => {
            story.told.push((now, packet.ip_bytes, *mtu));
        }
        (Place::Peer(1), Note::Delivered { bytes, .. }) => story.delivered += u64::from(*bytes),
        (Place::Peer(peer), Note::Event(event)) => story.events.push((peer, *event)),
        _ => {}
    });
    (run, story)
}

#[test]
fn tcp_shrinks_its_segments_and_completes() {
    use talkspurt_proto::endpoint::Event;
    for (ip, mtu, answer) in [("v4", 576, 56), ("v6", 1280, 96), ("v4", 68, 56)] {
        let bulk = "{ kind = 'bulk', total = '100kB' }";
        let tcp = "{ kind = 'tcp', controller = 'newreno', mss = '1440B' }";
        let flow = flow("f", "a-z", tcp, bulk, &format!("ip = '{ip}'\ndscp = 46"));
        let (run, story) = tell(&scenario("60s", &[narrow_middle(mtu), flow]));
        let (first, length) = story.refused[0];
        assert_eq!(length, if ip == "v4" { 1480 } else { 1500 });
        // The answer: IP and ICMP headers and the quote, over 1 Mbit/s and 10 ms.
        let way = Duration::from_micros(u64::from(answer) * 8) + Duration::from_millis(10);
        assert_eq!(story.told[0], (first + way, answer, mtu));
        // From then on no packet is longer, and the full ones use all there is.
        let after = || story.sent.iter().filter(|(at, _)| *at > story.told[0].0);
        assert!(after().all(|(_, bytes)| *bytes <= mtu));
        assert_eq!(after().map(|(_, bytes)| *bytes).max(), Some(mtu));
        assert_eq!(story.delivered, 100_000);
        for peer in [0, 1] {
            assert!(story.events.contains(&(peer, Event::PeerClosed)), "{:?}", story.events);
        }
        assert!(!story.events.iter().any(|(_, event)| *event == Event::TimedOut));
        assert_eq!(run.link("l1").drops_too_big, Some(story.refused.len() as u64));
        // At most the first window met the link.
        assert!(story.refused.len() <= 10);
        assert_eq!(story.refused.len(), story.told.len());
        assert_eq!(story.refused.len(), story.answered);
    }
}

#[test]
fn segments_fit_the_first_link_from_the_start() {
    for (ip, mtu) in [("v4", 600), ("v6", 1300)] {
        let links = link("l", "a-z", "1Mbit/s", "10ms", &format!("mtu = '{mtu}B'"));
        let bulk = "{ kind = 'bulk', total = '100kB' }";
        let flow = flow("f", "a-z", "tcp", bulk, &format!("ip = '{ip}'"));
        let (_, story) = tell(&scenario("60s", &[links, flow]));
        // RFC 9293 §3.7.1: the MSS is the MTU less the fixed headers.
        assert!(story.refused.is_empty());
        assert_eq!(story.sent.iter().map(|(_, bytes)| *bytes).max(), Some(mtu));
        assert_eq!(story.delivered, 100_000);
    }
}

#[test]
fn udp_is_told_and_goes_on() {
    for (ip, headers, answer) in [("v4", 28, 56), ("v6", 48, 96)] {
        let cbr = "{ kind = 'cbr', rate = '80kbit/s', packet = '1400B', noise = '0s' }";
        let text = scenario(
            "10s",
            &[narrow_middle(1500), flow("f", "a-z", "udp", cbr, &format!("ip = '{ip}'"))],
        );
        // Checks refuse such a scenario; a network may still be like that.
        let mut point = point(&text);
        Arc::make_mut(&mut point.network).links[2].mtu = Size::from_bytes(1300);
        let mut told = 0;
        let run = watch(&point, &Look::default(), |_, place, note| {
            if let Note::Received { packet, body: Body::TooBig { mtu, .. } } = note {
                assert_eq!((place, packet.ip_bytes, *mtu), (Place::Peer(0), answer, 1300));
                told += 1;
            }
        });
        let flow = run.flow("f");
        assert_eq!(flow.sent_bytes, flow.sent_packets * (1400 + headers));
        assert!(flow.sent_packets > 50);
        assert_eq!(flow.received_packets, 0);
        assert_eq!(flow.sent_packets, flow.lost_packets + flow.in_flight_packets);
        // The last may still be on its way back.
        assert!(told + 1 >= flow.lost_packets && told <= flow.lost_packets);
    }
}

#[test]
fn the_answer_finds_its_own_way_where_the_way_back_passes_by() {
    // Forth a-r-z, back z-q-a; the narrow link begins at r, which is not on the way back.
    let links = [
        link("ar", "a-r", "1Mbit/s", "1ms", "back = { delay = '30ms' }"),
        link("rz", "r-z", "1Mbit/s", "1ms", "mtu = '600B'\nback = { delay = '30ms' }"),
        link("aq", "a-q", "1Mbit/s", "20ms", "back = { delay = '5ms' }"),
        link("qz", "q-z", "1Mbit/s", "20ms", "back = { delay = '5ms' }"),
    ];
    let flow = flow("f", "a-z", "tcp", "{ kind = 'bulk', total = '50kB' }", "dscp = 46");
    let text = scenario("60s", &[links.concat(), flow]);
    let point = point(&text);
    let routes = &point.network.routes[0][0];
    let names = |route: &[usize]| -> Vec<_> {
        route.iter().map(|link| point.network.links[*link].name.clone()).collect()
    };
    assert_eq!(names(&routes.forward), ["ar", "rz"]);
    assert_eq!(names(&routes.backward), ["qz.back", "aq.back"]);
    let (run, story) = tell(&text);
    // Least delay from r: on to z and round by q, 1 + 5 + 5 ms rather than 30.
    let hops = Duration::from_micros(3 * 56 * 8) + Duration::from_millis(11);
    let (at, _, mtu) = story.told[0];
    assert_eq!(mtu, 600);
    assert!(at >= story.refused[0].0 + hops);
    assert!(at < story.refused[0].0 + hops + Duration::from_millis(10));
    assert_eq!(story.delivered, 50_000);
    assert_eq!(run.flow("f").in_flight_packets, 0);
}
