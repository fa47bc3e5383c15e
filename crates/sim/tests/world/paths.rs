//! Several paths between two ends: which path packets take, the effect of outages on the way and at
//! the first link, and which path a router's message concerns.

use talkspurt_proto::body::Body;
use talkspurt_proto::probe::{Note, Place};
use talkspurt_proto::sctp::Chunk;
use talkspurt_proto::time::Instant;

use crate::support::{Look, flow, link, ms, point, scenario, watch};

/// `a` and `z` with the ways `a-m-z` and `a-n-z`, and a call over both.
fn two_ways(transport: &str, upper: [&str; 2], lower: [&str; 2]) -> String {
    let links = [
        link("am", "a-m", "1Mbit/s", "5ms", upper[0]),
        link("mz", "m-z", "1Mbit/s", "5ms", upper[1]),
        link("an", "a-n", "1Mbit/s", "20ms", lower[0]),
        link("nz", "n-z", "1Mbit/s", "20ms", lower[1]),
    ];
    let source = "{ kind = 'cbr', rate = '16kbit/s', packet = '200B', noise = '0s' }";
    let more = "start_spread = '0s'\npaths = [['a', 'm', 'z'], ['a', 'n', 'z']]";
    scenario("120s", &[links.concat(), flow("f", "a-z", transport, source, more)])
}

/// When data was delivered, and when a data chunk began its way on a link of this number.
#[derive(Default)]
struct Seen {
    delivered: Vec<Instant>,
    lower: Vec<Instant>,
    /// HEARTBEATs on the lower way.
    heartbeats: Vec<Instant>,
}

/// Directed links: `an` is the third of the file.
const AN: u32 = 4;

fn seen(text: &str) -> Seen {
    let mut seen = Seen::default();
    let (mut data, mut asks) = (Vec::new(), Vec::new());
    watch(&point(text), &Look::default(), |now, place, note| match (place, note) {
        (Place::Peer(0), Note::Sent { packet, body: Body::Sctp(sctp) }) => {
            let is = |kind: fn(&Chunk) -> bool| sctp.chunks.iter().any(kind);
            if is(|chunk| matches!(chunk, Chunk::Data(_))) {
                data.push(packet.number);
            }
            if is(|chunk| matches!(chunk, Chunk::Heartbeat(_))) {
                asks.push(packet.number);
            }
        }
        (Place::Peer(1), Note::Delivered { .. }) => seen.delivered.push(now),
        (Place::Link(AN), Note::Dequeued { packet, .. }) => {
            if data.contains(&packet.number) {
                seen.lower.push(now);
            }
            if asks.contains(&packet.number) {
                seen.heartbeats.push(now);
            }
        }
        _ => {}
    });
    seen
}

/// The longest time without a delivery.
fn gap(delivered: &[Instant]) -> u64 {
    let gaps = delivered.windows(2).map(|pair| (pair[1] - pair[0]).as_nanos() / 1_000_000);
    gaps.max().expect("deliveries")
}

const SCTP: &str = "{ kind = 'sctp' }";

/// RFC 9260 §6.4, §5.4: data keeps to the primary path while it is sound, and the other is asked
/// whether it is there.
#[test]
fn data_keeps_to_the_primary_path() {
    let seen = seen(&two_ways(SCTP, ["", ""], ["", ""]));
    assert_eq!(seen.lower, []);
    assert!(seen.heartbeats.len() >= 3, "{:?}", seen.heartbeats);
    assert!(gap(&seen.delivered) <= 100);
}

/// RFC 9260 §8.2: the path is given up after Path.Max.Retrans + 1 timeouts in a row, each twice the
/// last: 1 + 2 + 4 + 8 + 16 + 32 s. What is sent again meanwhile goes the other way (§6.4.1), new
/// data waits for the window.
#[test]
fn an_outage_on_the_way_takes_a_minute_to_believe() {
    let down = "events = [{ at = '10s', state = 'down' }]";
    let seen = seen(&two_ways(SCTP, ["", down], ["", ""]));
    let after = |from: u64, to: u64| {
        let all = seen.delivered.iter();
        all.filter(|at| (ms(from)..ms(to)).contains(at)).count()
    };
    // 10 messages a second; all of those of the last half minute come in time.
    assert!(after(80_000, 120_000) >= 398, "{}", after(80_000, 120_000));
    // The first timeout is that of the last message that was not lost, a second after it.
    assert!(seen.lower[0] >= ms(10_900), "{:?}", seen.lower[0]);
    assert!(gap(&seen.delivered) > 20_000, "{}", gap(&seen.delivered));
}

/// With Path.Max.Retrans 0 and RFC 7829's PF state after the first timeout (PFMR 0) new data goes
/// elsewhere after one timeout.
#[test]
fn potentially_failed_is_elsewhere_after_one_timeout() {
    let down = "events = [{ at = '10s', state = 'down' }]";
    let seen = seen(&two_ways("{ kind = 'sctp', potentially_failed = 0 }", ["", down], ["", ""]));
    let gap = gap(&seen.delivered);
    assert!((1000..1400).contains(&gap), "{gap}");
}

/// An outage of the end's own link is detected at once: only the path's delay remains.
#[test]
fn an_outage_at_the_door_is_known_at_once() {
    let down = "events = [{ at = '10s', state = 'down' }, { at = '20s', state = 'up' }]";
    let seen = seen(&two_ways(SCTP, [down, ""], ["", ""]));
    // The message that was on the medium is sent again at once, and every later one goes below.
    assert!(gap(&seen.delivered) <= 150, "{}", gap(&seen.delivered));
    let first = seen.lower.first().expect("some went below");
    assert!((ms(10_000)..ms(10_101)).contains(first), "{first:?}");
    // Back again: a HEARTBEAT is answered, and data returns to the primary path.
    let last = seen.lower.last().expect("some went below");
    assert!((ms(20_000)..ms(20_200)).contains(last), "{last:?}");
}

/// A router's Packet Too Big lowers the MTU of the path it came from, and of no other.
#[test]
fn too_big_concerns_its_path() {
    // The upper way fails for a while; what waited meanwhile is bundled, too long for `nz`.
    let down = "events = [{ at = '10s', state = 'down' }, { at = '40s', state = 'up' }]";
    let sctp = "{ kind = 'sctp', potentially_failed = 0 }";
    let text = two_ways(sctp, ["", down], ["", "mtu = '400B'"]);
    let (mut told, mut longest) = (0, [0; 2]);
    let mut last = ms(0);
    watch(&point(&text), &Look::default(), |now, place, note| match (place, note) {
        (Place::Peer(0), Note::Received { body: Body::TooBig { mtu, .. }, .. }) => {
            assert_eq!(*mtu, 400);
            (told, last) = (told + 1, now);
        }
        // Of the packets sent after the last such news, by route.
        (Place::Peer(0), Note::Sent { packet, .. }) if told > 0 => {
            let route = usize::from(packet.route > 1);
            longest[route] = longest[route].max(packet.ip_bytes);
        }
        _ => {}
    });
    assert!((1..=4).contains(&told), "{told}");
    assert!(last < ms(13_000), "{last:?}");
    assert!(longest[1] <= 400, "{longest:?}");
}
