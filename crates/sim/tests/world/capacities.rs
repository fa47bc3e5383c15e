//! Capacities that change with time, to the nanosecond.

use std::path::PathBuf;

use talkspurt_proto::probe::{Note, Place};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;
use talkspurt_scenario::link_profile::LinkProfile;
use talkspurt_scenario::model::Step;
use talkspurt_sim::capacity::{Capacity, Opportunities};

use crate::support::{Look, flow, link, ms, point, scenario, watch};

fn at(nanos: u64) -> Instant {
    Instant::ZERO + Duration::from_nanos(nanos)
}

fn stepped(first: u64, steps: &[(u64, u64)]) -> Capacity {
    let steps = steps.iter().map(|(at, bps)| Step {
        at: Duration::from_nanos(*at),
        rate: Some(Rate::from_bps(*bps)),
        delay: None,
        loss: None,
    });
    Capacity::of(Rate::from_bps(first), Some(&LinkProfile::Steps(steps.collect())))
}

#[test]
fn a_transmission_over_a_step_ends_to_the_nanosecond() {
    // 8 Mbit/s, from 1 ms on 4 Mbit/s: of 1000 bytes begun at 0.5 ms half is sent by then.
    let mut capacity = stepped(8_000_000, &[(1_000_000, 4_000_000)]);
    assert_eq!(capacity.finish(at(0), 1000), Some(at(1_000_000)));
    assert_eq!(capacity.finish(at(500_000), 1000), Some(at(2_000_000)));
    assert_eq!(capacity.finish(at(1_000_000), 1000), Some(at(3_000_000)));
    // Nothing for a millisecond, then 3 Mbit/s: 4000 bits have gone, 4000 take 1 333 333.3 ns.
    let mut capacity = stepped(8_000_000, &[(1_000_000, 0), (2_000_000, 3_000_000)]);
    assert_eq!(capacity.finish(at(500_000), 1000), Some(at(3_333_334)));
    // Rates that share no grid with nanoseconds: 7 bits of 8 in 1 s at 7 bit/s, 1 at 3 bit/s.
    let mut capacity = stepped(7, &[(1_000_000_000, 3)]);
    assert_eq!(capacity.finish(at(0), 1), Some(at(1_333_333_334)));
    // Only the end is rounded: 1000 steps of 1 us at 3 and 5 Mbit/s in turn carry 4000 bits a ms.
    let steps: Vec<_> =
        (1..4000).map(|k| (k * 1000, [3_000_000, 5_000_000][k as usize % 2])).collect();
    let mut capacity = stepped(3_000_000, &steps);
    assert_eq!(capacity.finish(at(0), 1000), Some(at(2_000_000)));
    assert_eq!(stepped(1, &[(1, 0)]).finish(at(1), 1), None);
}

#[test]
fn a_capacity_adds_up_to_the_bits_that_could_be_sent() {
    const SECOND: u128 = 1_000_000_000;
    let second = Instant::ZERO + Duration::from_secs(1);
    // 1 Mbit/s is a whole number of nanoseconds per byte, 7 bit/s is not.
    assert_eq!(Capacity::fixed(Rate::from_bps(1_000_000)).until(second), 1_000_000 * SECOND);
    assert_eq!(Capacity::fixed(Rate::from_bps(7)).until(second), 7 * SECOND);
    // A quarter of a second each at 8, 4, 0 and 2 Mbit/s.
    let steps = [(250_000_000, 4_000_000), (500_000_000, 0), (750_000_000, 2_000_000)];
    let capacity = stepped(8_000_000, &steps);
    assert_eq!(capacity.until(Instant::ZERO), 0);
    assert_eq!(capacity.until(at(250_000_000)), 2_000_000 * SECOND);
    assert_eq!(capacity.until(at(600_000_000)), 3_000_000 * SECOND);
    assert_eq!(capacity.until(second), 3_500_000 * SECOND);
    // Three opportunities of 1500 bytes in 10 ms, of which those before an instant count.
    let trace = Capacity::Opportunities(Box::new(Opportunities::new([2, 2, 10].into())));
    assert_eq!(trace.until(at(2_000_000)), 0);
    assert_eq!(trace.until(at(2_000_001)), 2 * 12_000 * SECOND);
    assert_eq!(trace.until(second), (3 * 100 - 1) * 12_000 * SECOND);
}

/// When packets reach the far end, in nanoseconds.
fn arrivals(text: &str) -> Vec<u64> {
    let mut arrivals = Vec::new();
    watch(&point(text), &Look::default(), |now, place, note| {
        if let (Place::Link(0), Note::Arrived { .. }) = (place, note) {
            arrivals.push(now.as_nanos());
        }
    });
    arrivals
}

fn cbr(rate: &str, payload: u32) -> String {
    let source =
        format!("{{ kind = 'cbr', rate = '{rate}', packet = '{payload}B', noise = '0s' }}");
    flow("f", "a-z", "udp", &source, "start_spread = '0s'")
}

#[test]
fn steps_change_rate_delay_and_loss_from_their_instants_on() {
    // 128 bytes every 10 ms, from 10 ms on: 128 us, then 256 us; 5 ms, then 2 ms, then all lost, then none.
    let steps = "steps = [{ at = '50ms', rate = '4Mbit/s' }, { at = '100ms', delay = '2ms' },
        { at = '150ms', loss = 1.0 }, { at = '200ms', loss = 0.0, rate = '8Mbit/s' }]";
    let text =
        scenario("250ms", &[link("l", "a-z", "8Mbit/s", "5ms", steps), cbr("80kbit/s", 100)]);
    let expected = (1..25_u64).filter(|k| !(15..20).contains(k)).map(|k| {
        let send = if (5..20).contains(&k) { 256_000 } else { 128_000 };
        let delay = if k < 10 { 5_000_000 } else { 2_000_000 };
        k * 10_000_000 + send + delay
    });
    assert_eq!(arrivals(&text), expected.collect::<Vec<_>>());
}

#[test]
fn a_shorter_delay_lets_packets_overtake_only_where_they_may() {
    // 100 bytes' payload every 1 ms; at 50 ms the way becomes 20 ms shorter.
    let over = |reorder: bool| {
        let more = format!("reorder = {reorder}\nsteps = [{{ at = '50ms', delay = '5ms' }}]");
        let link = link("l", "a-z", "8Mbit/s", "25ms", &more);
        arrivals(&scenario("100ms", &[link, cbr("800kbit/s", 100)]))
    };
    let base = |k: u64| k * 1_000_000 + 128_000;
    let own = |k: u64| base(k) + if k < 50 { 25_000_000 } else { 5_000_000 };
    let in_time = |at: &u64| *at < 100_000_000;
    let mut free: Vec<u64> = (1..100).map(own).filter(in_time).collect();
    // In order, those behind the last of the long way come with it.
    let last = own(49);
    let kept = (1..100).map(|k| if k < 50 { own(k) } else { own(k).max(last) });
    let kept: Vec<u64> = kept.filter(in_time).collect();
    free.sort_unstable();
    assert_eq!(over(true), free);
    assert_eq!(over(false), kept);
}

#[test]
fn opportunities_are_used_as_they_come() {
    // Twice at 2 ms, once at 5 ms, again from 5 ms on: 7, 7, 10, 12 …
    let mut trace = Capacity::Opportunities(Box::new(Opportunities::new([2, 2, 5].into())));
    let mut finish =
        |start: u64, bytes| trace.finish(ms(start), bytes).expect("it goes on") - ms(0);
    let at = Duration::from_millis;
    // Two packets share one opportunity, a third lies over its end into the second.
    assert_eq!([finish(0, 700), finish(2, 700)], [at(2), at(2)]);
    assert_eq!(finish(2, 200), at(2));
    // 1400 left of the second one; a packet in the queue then takes it, and 100 of the next.
    assert_eq!(finish(2, 1500), at(5));
    // What begins later finds nothing of it.
    assert_eq!(finish(6, 1500), at(7));
    assert_eq!(finish(7, 1500), at(7));
    assert_eq!(finish(7, 1501), at(12));
    // An opportunity is there for a packet that comes with it, the period's last too.
    assert_eq!(finish(15, 1500), at(15));
    assert_eq!(finish(1_000_002, 1), at(1_000_002));
}

/// A trace file for one test.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("temporary file");
    path
}

#[test]
fn a_saturated_mahimahi_link_delivers_exactly_the_opportunities() {
    let times = [3_u64, 4, 4, 9, 20];
    let text: String = times.iter().map(|time| format!("{time}\n")).collect();
    let trace = file("saturated.trace", &text);
    let more = format!("trace = {{ kind = 'mahimahi', file = '{}' }}", trace.display());
    let link = link("l", "a-z", "3Mbit/s", "7ms", &more);
    // 1500 bytes each, far more than there are opportunities, from the first millisecond on.
    let text = scenario("1s", &[link, cbr("11776kbit/s", 1472)]);
    let expected = (0..50).flat_map(|lap| times.map(|time| (lap * 20 + time + 7) * 1_000_000));
    let expected: Vec<u64> = expected.filter(|at| *at < 1_000_000_000).collect();
    assert_eq!(arrivals(&text), expected);
}

#[test]
fn a_table_of_conditions_does_what_the_same_steps_do() {
    let table =
        "# a pass\ntime, rate, delay, loss\n0s, 8Mbit/s, 5ms,\n\n50ms, 4Mbit/s,,\n100ms,,2ms,0.5\n";
    let trace = file("conditions.csv", table);
    let by_file = format!("trace = {{ kind = 'csv', file = '{}' }}", trace.display());
    let by_hand = "steps = [{ at = '0s', rate = '8Mbit/s', delay = '5ms' },
        { at = '50ms', rate = '4Mbit/s' }, { at = '100ms', delay = '2ms', loss = 0.5 }]";
    let over = |more: &str| {
        arrivals(&scenario("1s", &[link("l", "a-z", "1Mbit/s", "9ms", more), cbr("80kbit/s", 100)]))
    };
    let came = over(&by_file);
    assert_eq!(came, over(by_hand));
    assert_eq!(came[0], 15_128_000);
    assert!(came.len() > 30 && came.len() < 80, "{}", came.len());
}

#[test]
fn the_way_back_follows_unless_it_says_otherwise() {
    let links = |back: &str| {
        let more = format!("steps = [{{ at = '1s', rate = '4Mbit/s' }}]\nloss = 0.1\n{back}");
        let text =
            scenario("2s", &[link("l", "a-z", "8Mbit/s", "5ms", &more), cbr("80kbit/s", 100)]);
        point(&text).network.links.clone()
    };
    let same = links("back = { duplicate = 0.5 }");
    assert_eq!(same[0].course, same[1].course);
    assert!(same[0].course.is_some());
    assert_eq!((same[0].duplicate, same[1].duplicate), (0.0, 0.5));
    let own = links("back = { rate = '1Mbit/s', gilbert_elliott = { p = 0.1, r = 0.5 } }");
    assert!(own[0].course.is_some() && own[1].course.is_none());
    assert_eq!((own[0].loss, own[1].loss), (0.1, 0.0));
    assert!(own[0].gilbert_elliott.is_none() && own[1].gilbert_elliott.is_some());
}
