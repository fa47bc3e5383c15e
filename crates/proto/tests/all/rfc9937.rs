//! RFC 9937: proportional rate reduction. One thousand bytes a segment, segments named by number.

use talkspurt_proto::probe::Gauge;
use talkspurt_proto::tcp::Config;
use talkspurt_testing::tcp::*;

/// How many segments each of these acknowledgements brings: `ack`, and blocks.
fn answers(alone: &mut Alone, acks: &[(u32, &[(u32, u32)])]) -> Vec<usize> {
    let wire = |number: u32| 1 + 1000 * number;
    let one = |(ack, blocks): &(u32, &[(u32, u32)])| {
        let blocks: Vec<_> = blocks.iter().map(|(l, r)| (wire(*l), wire(*r))).collect();
        alone.sack(wire(*ack), &blocks).len()
    };
    acks.iter().map(one).collect()
}

fn sender(window: u32, segments: u32) -> Alone {
    let config = Config { initial_window: window, ..selective() };
    let mut alone = Alone::established(&config);
    alone.send(1000 * segments);
    alone
}

/// §6: with more in flight than ssthresh, one segment leaves for every two that arrive, where
/// ssthresh is half of it: the reduction is spread over the round trip.
#[test]
fn proportional() {
    let mut alone = sender(10, 100);
    // Two duplicates, two new segments; then the retransmission. Twelve are outstanding, of which
    // two were named before: RecoverFS = 10, and with the n-th segment delivered in recovery
    // n · 5/10 have been let out, of which whole ones leave.
    assert_eq!(answers(&mut alone, &[(0, &[(1, 2)]), (0, &[(1, 3)]), (0, &[(1, 4)])]), [1, 1, 1]);
    assert_eq!(alone.notes.last(Gauge::Ssthresh), Some(5_000.0));
    let blocks: Vec<[(u32, u32); 1]> = (5..=12).map(|right| [(1, right)]).collect();
    let acks: Vec<(u32, &[(u32, u32)])> = blocks.iter().map(|block| (0, &block[..])).collect();
    let sent = answers(&mut alone, &acks);
    // n = 2 to 5: the first is the retransmission, n = 4 brings one more. Then 13 were sent, and
    // n = 6 leaves five in flight, ssthresh; from n = 7 on one leaves for each that arrives.
    assert_eq!(sent, [0, 0, 1, 0, 0, 1, 1, 1]);
    assert_eq!(alone.notes.last(Gauge::Flight), Some(5_000.0));
}

/// §6, PRR-CRB: below ssthresh, as many leave as have arrived, no more, while losses come to light.
#[test]
fn conservative_bound() {
    let mut alone = sender(20, 100);
    // The first 16 of 20 are lost. One acknowledgement names 17 to 19: flight falls to 1.
    assert_eq!(answers(&mut alone, &[(0, &[(17, 20)])]), [3]);
    assert_eq!(alone.notes.last(Gauge::Flight), Some(3_000.0));
}

/// §6, PRR-SSRB: one segment more for each acknowledgement that advances and tells of no loss.
#[test]
fn slow_start_bound() {
    let mut alone = sender(20, 100);
    answers(&mut alone, &[(0, &[(17, 20)])]);
    // 0 arrives: one delivered, one more for progress.
    assert_eq!(answers(&mut alone, &[(1, &[(17, 20)])]), [2]);
    assert_eq!(answers(&mut alone, &[(2, &[(17, 20)])]), [2]);
    // Up to ssthresh = 10 and no further.
    let sent = answers(&mut alone, &[(3, &[(17, 20)]), (4, &[(17, 20)]), (5, &[(17, 20)])]);
    assert_eq!(sent, [2, 2, 2]);
    let flight = |alone: &Alone| alone.notes.last(Gauge::Flight);
    assert_eq!(flight(&alone), Some(8_000.0));
    answers(&mut alone, &[(6, &[(17, 20)]), (7, &[(17, 20)]), (8, &[(17, 20)])]);
    assert_eq!(flight(&alone), Some(10_000.0));
}

/// §6: the retransmission leaves however full the path is; §5: recovery ends with cwnd = ssthresh.
#[test]
fn the_first_and_the_last() {
    let mut pair = Pair::connected(&Config { initial_window: 20, ..selective() });
    pair.drop_data(Client, &[3]);
    pair.send(Client, 200_000);
    pair.drive_for(ms(100));
    let again = pair.trace(Client).iter().filter(|sent| sent.1 == 2).count();
    assert_eq!(again, 2);
    pair.drive_for(ms(100));
    let reduced = pair.client.notes.gauges.iter().find(|note| note.1 == Gauge::Ssthresh);
    let ssthresh = reduced.expect("a loss").2;
    let mut after = pair.client.notes.gauges.iter().filter(|note| note.1 == Gauge::Cwnd);
    let last = after.next_back().expect("a window").2;
    assert!((ssthresh..ssthresh + 2000.0).contains(&last), "{last} after {ssthresh}");
}
