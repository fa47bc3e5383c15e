//! Queue disciplines against their papers and RFCs, worked out on paper for scripted
//! arrivals; and TCP with ECN through each of them.

use talkspurt_proto::body::{Bodies, Body};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Ecn, Packet, Payload};
use talkspurt_proto::probe::{DropReason, Note, Place, Probe, Topic};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};
use talkspurt_scenario::link_profile::LinkProfile;
use talkspurt_scenario::model;
use talkspurt_sim::capacity::Capacity;
use talkspurt_sim::discipline::{Discipline, Hop, Pie, Red, Served};
use talkspurt_sim::link::{Link, Parts};
use talkspurt_sim::pool::Pool;

use crate::support::{self, Look, flow, link, ms, parts, scenario};

/// On this link a packet of 125 bytes takes a millisecond.
const RATE: Rate = Rate::from_bps(1_000_000);

fn words(toml: &str) -> model::Queue {
    let point = support::point(&scenario(
        "1s",
        &[
            link("l", "a-z", "1Mbit/s", "0s", &format!("queue = {{ {toml} }}")),
            flow("f", "a-z", "udp", "{ kind = 'cbr', rate = '8kbit/s', packet = '100B' }", ""),
        ],
    ));
    point.scenario.links["l"].queue.clone()
}

fn red(toml: &str) -> Red {
    let model::Queue::Red(words) = words(&format!("kind = 'red', {toml}")) else { panic!() };
    Red::new(&words, RATE, Size::from_bytes(1500))
}

fn label(pool: &mut Pool, now: Instant, flow: u32, number: u32, ecn: Ecn) -> Packet {
    let body = pool.put(|| Body::Udp(Frame::Data(Payload::default())));
    Packet {
        body,
        ip_bytes: 125,
        route: 2 * flow,
        flow,
        number,
        ecn,
        sent: now,
        ..Packet::default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Sent,
    Marked,
    Dropped(DropReason),
}

/// Time, flow, packet number, and fate.
type Line = (Instant, u32, u32, Verdict);

#[derive(Default)]
struct Journal(Vec<Line>);

impl Probe for Journal {
    fn wants(&self, _: Topic) -> bool {
        true
    }
    fn record(&mut self, now: Instant, _: Place, note: &Note<'_>) {
        let (packet, verdict) = match note {
            Note::Dequeued { packet, .. } => (packet, Verdict::Sent),
            Note::Marked { packet } => (packet, Verdict::Marked),
            Note::Dropped { packet, why } => (packet, Verdict::Dropped(*why)),
            _ => return,
        };
        self.0.push((now, packet.flow, packet.number, verdict));
    }
}

/// What a link does with bursts of packets of 125 bytes: when, flow, how many.
fn bursts(queue: &str, ecn: Ecn, bursts: &[(Duration, u32, u32)]) -> Vec<Line> {
    bursts_over(Capacity::fixed(RATE), queue, ecn, bursts)
}

/// The same over a link whose rate changes.
fn bursts_over(
    capacity: Capacity,
    queue: &str,
    ecn: Ecn,
    bursts: &[(Duration, u32, u32)],
) -> Vec<Line> {
    let mut link = Link::new(Parts { capacity, ..parts(&words(queue), RATE, 125) });
    let (mut pool, mut journal) = (Pool::default(), Journal::default());
    for (at, flow, packets) in bursts {
        let now = Instant::ZERO + *at;
        for number in 0..*packets {
            let packet = label(&mut pool, now, *flow, number, ecn);
            let _ = link.offer(now, &packet, &mut pool, &mut journal);
        }
    }
    link.advance(ms(10_000), &mut pool, &mut journal);
    let of = |verdict: Verdict| journal.0.iter().filter(|line| line.3 == verdict).count() as u64;
    let counters = link.counters(ms(10_000));
    assert_eq!(counters.marks, of(Verdict::Marked));
    assert_eq!(counters.drops[DropReason::Early as usize], of(Verdict::Dropped(DropReason::Early)));
    assert_eq!(counters.queue_packets, 0);
    journal.0
}

fn times_of(lines: &[Line], verdict: Verdict) -> Vec<u64> {
    let of_fate = lines.iter().filter(|line| line.3 == verdict);
    of_fate.map(|line| line.0.as_nanos() / 1_000_000).collect()
}

fn numbers_of(lines: &[Line], verdict: Verdict) -> Vec<u32> {
    lines.iter().filter(|line| line.3 == verdict).map(|line| line.2).collect()
}

/// Asks a discipline by hand.
struct Bench {
    pool: Pool,
    rng: Rng,
    drops: [u64; DropReason::COUNT],
    marks: u64,
    free_at: Instant,
    bytes: u32,
    ecn: Ecn,
}

impl Bench {
    fn new() -> Self {
        let (pool, rng) = (Pool::default(), Rng::new(5, "bench"));
        let drops = [0; DropReason::COUNT];
        Self { pool, rng, drops, marks: 0, free_at: ms(0), bytes: 125, ecn: Ecn::NotEct }
    }
    fn hop<'a>(&'a mut self, now: Instant, probe: &'a mut ()) -> Hop<'a, ()> {
        let Self { pool, rng, drops, marks, free_at, .. } = self;
        Hop { now, place: Place::Link(0), pool, probe, rng, drops, marks, free_at: *free_at }
    }
    /// Whether the packet was kept.
    fn give(&mut self, queue: &mut impl Discipline, now: Instant) -> bool {
        let mut packet = label(&mut self.pool, now, 0, 0, self.ecn);
        packet.ip_bytes = self.bytes;
        queue.enqueue(packet, &mut self.hop(now, &mut ()))
    }
    fn take(&mut self, queue: &mut impl Discipline, now: Instant) {
        let Served::Packet(packet) = queue.dequeue(&mut self.hop(now, &mut ())) else {
            panic!("a packet waits")
        };
        self.pool.take(packet.body);
    }
    /// Offers packets to a queue that is held at its length, and counts the steps from drop to drop.
    fn gaps(&mut self, queue: &mut Red, waiting: usize, drops: usize) -> Vec<usize> {
        while queue.packets() < waiting as u32 {
            self.give(queue, ms(0));
        }
        let (mut gaps, mut gap) = (Vec::new(), 0);
        while gaps.len() <= drops {
            gap += 1;
            if self.give(queue, ms(0)) {
                self.take(queue, ms(0));
            } else {
                gaps.push(std::mem::take(&mut gap));
            }
        }
        gaps.split_off(1)
    }
}

/// Asserts that the gaps take each of these values equally often, and no other: within four
/// standard deviations.
fn assert_uniform(gaps: &[usize], over: std::ops::RangeInclusive<usize>) {
    let share = 1.0 / over.clone().count() as f64;
    let all = gaps.len() as f64;
    assert!(gaps.iter().all(|gap| over.contains(gap)), "{over:?}: {gaps:?}");
    for value in over {
        let count = gaps.iter().filter(|gap| **gap == value).count() as f64;
        let deviation = (all * share * (1.0 - share)).sqrt();
        assert!((count - all * share).abs() <= 4.0 * deviation, "{value}: {count} of {all}");
    }
}

#[test]
fn droptail_counts_packets_bytes_time_and_as_ns_2_does() {
    // One is sent at once; the others wait or are dropped.
    for (limit, kept) in [
        ("packets = 4", 5),
        ("packets = 4, ns2 = true", 4),
        ("bytes = '375B'", 4),
        ("time = '3ms'", 4),
        ("time = '3.9ms'", 4),
        ("packets = 2, time = '3ms'", 3),
    ] {
        let lines =
            bursts(&format!("kind = 'droptail', {limit}"), Ecn::Ect0, &[(Duration::ZERO, 0, 9)]);
        assert_eq!(numbers_of(&lines, Verdict::Sent), (0..kept).collect::<Vec<_>>(), "{limit}");
        assert_eq!(numbers_of(&lines, Verdict::Dropped(DropReason::Full)).len(), 9 - kept as usize);
    }
}

/// From 1 Mbit/s to these rates in kbit/s at these milliseconds.
fn stepped(steps: &[(u64, u64)]) -> Capacity {
    let step = |(at, kbps): &(u64, u64)| model::Step {
        at: Duration::from_millis(*at),
        rate: Some(Rate::from_bps(1000 * kbps)),
        delay: None,
        loss: None,
    };
    let course = LinkProfile::Steps(steps.iter().map(step).collect());
    Capacity::of(RATE, Some(&course))
}

/// Drops among nine packets at 0, 20, 90 and 200 ms; one of each burst is sent at once.
fn drops_over(steps: &[(u64, u64)], queue: &str) -> [usize; 4] {
    let at = [0, 20, 90, 200];
    let all = at.map(|at| (Duration::from_millis(at), at as u32, 9));
    let lines = bursts_over(stepped(steps), queue, Ecn::NotEct, &all);
    let dropped = Verdict::Dropped(DropReason::Full);
    at.map(|at| lines.iter().filter(|line| line.1 == at as u32 && line.3 == dropped).count())
}

/// A limit of 4 ms is 4 packets at 1 Mbit/s, 2 at 500 kbit/s and 8 at 2 Mbit/s. At 20 ms the queue is empty.
#[test]
fn a_limit_in_time_is_converted_once_or_follows_the_rate() {
    let steps = [(10, 500), (80, 2000)];
    assert_eq!(drops_over(&steps, "kind = 'droptail', time = '4ms'"), [4, 4, 4, 4]);
    let follows = "kind = 'droptail', time = '4ms', follow_rate = true";
    assert_eq!(drops_over(&steps, follows), [4, 6, 0, 0]);
    assert_eq!(drops_over(&[], follows), [4, 4, 4, 4]);
    // The other limits stay, and the lowest counts.
    assert_eq!(drops_over(&steps, &format!("{follows}, packets = 3")), [5, 6, 5, 5]);
    assert_eq!(drops_over(&steps, &format!("{follows}, bytes = '625B'")), [4, 6, 3, 3]);
    // During an outage packets wait, as many as before it.
    assert_eq!(drops_over(&[(10, 500), (15, 0), (40, 1000)], follows), [4, 6, 4, 4]);
    // In a band and behind a policer.
    for (outer, expected) in [
        ("kind = 'priority', bands = [{ queue = { INNER } }]", [4, 6, 0, 0]),
        ("kind = 'policer', rate = '1Gbit/s', burst = '1MB', queue = { INNER }", [4, 6, 0, 0]),
    ] {
        assert_eq!(drops_over(&steps, &outer.replace("INNER", follows)), expected, "{outer}");
    }
}

#[test]
fn a_lower_limit_drops_nothing_that_is_queued() {
    let queue = "kind = 'droptail', time = '8ms', follow_rate = true";
    let all = [
        (Duration::ZERO, 0, 9),
        (Duration::from_millis(2), 1, 1),
        (Duration::from_millis(40), 2, 2),
    ];
    // At 2 ms, seven are queued, and only four would have been taken.
    let lines = bursts_over(stepped(&[(1, 500)]), queue, Ecn::NotEct, &all);
    let of = |flow| lines.iter().filter(move |line| line.1 == flow).map(|line| line.3);
    assert!(of(0).chain(of(2)).all(|verdict| verdict == Verdict::Sent), "{lines:?}");
    assert_eq!(of(1).collect::<Vec<_>>(), [Verdict::Dropped(DropReason::Full)]);
}

/// Floyd et al. 2001 §5.1: the threshold is half of what the link sends in `target_delay`.
#[test]
fn red_computes_absent_thresholds_once_or_at_each_change() {
    let words = "packets = 99, weight = 1, target_delay = '100ms', mean_packet = '125B'";
    for (more, expected) in [("", 0.0), (", follow_rate = true", 0.1)] {
        let (mut bench, mut queue) = (Bench::new(), red(&format!("{words}{more}")));
        bench.free_at = ms(1000);
        for _ in 0..26 {
            assert!(bench.give(&mut queue, ms(0)));
        }
        // The average is 25: below 50, half of 100 packets; at a third of the rate, a quarter of the way from
        // 16 2/3 to three times that.
        assert_eq!(queue.control().drop_probability, Some(0.0));
        queue.set_rate(Rate::from_bps(333_333));
        let p = queue.control().drop_probability.expect("RED has one");
        assert!((p - expected / 4.0).abs() < 1e-5, "{p}{more}");
    }
}

#[test]
fn red_averages_and_lets_the_average_of_an_idle_queue_decay() {
    let (mut bench, mut red) = (
        Bench::new(),
        red(
            "packets = 50, min_threshold = 10, max_threshold = 30, weight = 0.25, mean_packet = '125B'",
        ),
    );
    // Arrivals find 0, 1, 2, 3 waiting: 0; 0.25; 0.25 + (2 − 0.25)/4; and so on.
    let mut averages = Vec::new();
    for _ in 0..4 {
        bench.free_at = ms(1);
        assert!(bench.give(&mut red, ms(0)));
        averages.push(red.average());
    }
    assert_eq!(averages, [0.0, 0.25, 0.6875, 1.265_625]);
    for at in 1..5 {
        bench.take(&mut red, ms(at));
    }
    // The last is sent until 5 ms; then ten and a half packets could have gone.
    bench.free_at = ms(5);
    let now = ms(15) + Duration::from_micros(500);
    assert!(bench.give(&mut red, now));
    let expected = 1.265_625 * talkspurt_proto::math::pow(0.75, 11.0);
    assert!((red.average() / expected - 1.0).abs() < 1e-12, "{} {expected}", red.average());
    // While a transmission goes on, an empty queue is not idle.
    bench.take(&mut red, now);
    bench.free_at = now + Duration::from_millis(9);
    assert!(bench.give(&mut red, now + Duration::from_millis(8)));
    assert!((red.average() / (expected * 0.75) - 1.0).abs() < 1e-12);
    // A long pause: forty packets.
    bench.take(&mut red, ms(25));
    bench.free_at = ms(26);
    assert!(bench.give(&mut red, ms(66)));
    let expected = expected * 0.75 * talkspurt_proto::math::pow(0.75, 41.0);
    assert!((red.average() / expected - 1.0).abs() < 1e-12, "{} {expected}", red.average());
}

#[test]
fn red_spreads_its_drops_evenly() {
    // With weight 1 the average is the queue: p_b = 0.25 · (6 − 4)/(8 − 4) = 1/8.
    let knobs = "packets = 50, min_threshold = 4, max_threshold = 8, weight = 1.0, max_p = 0.25";
    // Floyd and Jacobson 1993, figure 2: 1/8 / (1 − count/8) with count from 1 is 1/7, 1/6, … 1.
    assert_uniform(&Bench::new().gaps(&mut red(knobs), 6, 7000), 1..=7);
    // ns-2 waits: nothing before count = 8, then 1/8, 1/7, … 1.
    assert_uniform(&Bench::new().gaps(&mut red(&format!("{knobs}, ns2 = true")), 6, 8000), 8..=15);
    // In byte mode a packet of twice the mean length counts for two, in the queue as well: with count
    // from 2, 2/8 / (1 − count/8) is 1/3, 1/2, 1.
    let mut bench = Bench { bytes: 250, ..Bench::new() };
    let mut bytes = red(&format!("{knobs}, mode = 'bytes', mean_packet = '125B'"));
    assert_uniform(&bench.gaps(&mut bytes, 3, 3000), 1..=3);
    assert_eq!(bytes.average(), 6.0);
    // Below the lower threshold none is dropped.
    let (mut bench, mut red) = (Bench::new(), red(knobs));
    for _ in 0..1000 {
        (0..4).for_each(|_| assert!(bench.give(&mut red, ms(0))));
        (0..4).for_each(|_| bench.take(&mut red, ms(0)));
    }
}

#[test]
fn red_is_gentle_up_to_twice_its_upper_threshold() {
    let knobs = "packets = 50, min_threshold = 4, max_threshold = 8, weight = 1.0, max_p = 0.0625";
    // A quarter of the way from 8 to 16 the probability is 1/16 + 15/64 = 19/64: 19/45, 19/26, 1.
    let gaps = Bench::new().gaps(&mut red(knobs), 10, 10_000);
    let share = |of: usize| gaps.iter().filter(|gap| **gap == of).count() as f64 / 10_000.0;
    let (first, second) = (19.0 / 45.0, 26.0 / 45.0 * 19.0 / 26.0);
    assert!((share(1) - first).abs() < 0.02, "{}", share(1));
    assert!((share(2) - second).abs() < 0.02, "{}", share(2));
    assert!(gaps.iter().all(|gap| *gap <= 3));
    // At 8 without gentleness, and at 16 with it, all go, whether they understand ECN or not.
    for (more, held) in [("gentle = false", 8), ("gentle = true", 16)] {
        let mut bench = Bench { ecn: Ecn::Ect0, ..Bench::new() };
        let mut red = red(&format!("{knobs}, ecn = true, {more}"));
        while red.packets() < held {
            bench.give(&mut red, ms(0));
        }
        let (marks, drops) = (bench.marks, bench.drops[DropReason::Early as usize]);
        (0..100).for_each(|_| assert!(!bench.give(&mut red, ms(0))));
        assert_eq!(
            (bench.marks - marks, bench.drops[DropReason::Early as usize] - drops),
            (0, 100)
        );
    }
}

#[test]
fn red_marks_those_that_understand_it() {
    let knobs = "packets = 50, min_threshold = 4, max_threshold = 8, weight = 1.0, max_p = 0.25, ecn = true";
    for (ecn, marks) in [(Ecn::NotEct, false), (Ecn::Ect0, true), (Ecn::Ect1, true)] {
        let (mut bench, mut red) = (Bench { ecn, ..Bench::new() }, red(knobs));
        (0..6).for_each(|_| assert!(bench.give(&mut red, ms(0))));
        for _ in 0..700 {
            if bench.give(&mut red, ms(0)) {
                bench.take(&mut red, ms(0));
            }
        }
        let dropped = bench.drops[DropReason::Early as usize];
        // One in four on the average.
        let (some, none) = if marks { (bench.marks, dropped) } else { (dropped, bench.marks) };
        assert!((150..200).contains(&some) && none == 0, "{ecn:?}: {some} and {none}");
    }
}

#[test]
fn adaptive_red_moves_max_p_twice_a_second() {
    let knobs =
        "packets = 50, min_threshold = 5, max_threshold = 15, weight = 1.0, adaptive = true";
    // Between 9 and 11 it rests; above, +min(0.01, max_p/4); below, ·0.9.
    let after = |held: u32, max_p: f64, halves: u64| {
        let (mut bench, mut red) = (Bench::new(), red(&format!("{knobs}, max_p = {max_p:?}")));
        while red.packets() < held {
            bench.give(&mut red, ms(0));
        }
        for at in 0..halves * 50 + 2 {
            if bench.give(&mut red, ms(10 * at)) {
                bench.take(&mut red, ms(10 * at));
            }
        }
        red.max_p()
    };
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
    close(after(10, 0.1, 1), 0.1);
    close(after(12, 0.1, 1), 0.11);
    close(after(12, 0.02, 1), 0.025);
    close(after(12, 0.5, 1), 0.51);
    close(after(12, 0.51, 1), 0.51);
    close(after(8, 0.1, 1), 0.09);
    close(after(8, 0.01, 1), 0.009);
    close(after(8, 0.009, 1), 0.009);
    // A packet each 10 ms, the first later than 500 ms after the last look: 510 and 1020 ms.
    close(after(8, 0.1, 2), 0.09);
    close(after(8, 0.1, 3), 0.081);
}

/// From 105 ms on the wait has been above 5 ms for 100 ms; then at 105 + 100, and 100/√2, 100/√3, …
/// after the one before, each at the first dequeue (one a millisecond) from then on.
const CODEL_TIMES: [u64; 6] = [105, 205, 276, 334, 384, 429];

#[test]
fn codel_drops_from_the_head_at_its_times() {
    let lines = bursts("kind = 'codel'", Ecn::NotEct, &[(Duration::ZERO, 0, 450)]);
    let dropped = Verdict::Dropped(DropReason::Early);
    assert_eq!(times_of(&lines, dropped), CODEL_TIMES);
    // The head at t milliseconds is the t-th packet, and those dropped before make it one later.
    let heads: Vec<u32> = CODEL_TIMES.iter().zip(0..).map(|(at, n)| *at as u32 + n).collect();
    assert_eq!(numbers_of(&lines, dropped), heads);
    // The transmitter never waits: what a drop takes away, the next in line fills.
    assert_eq!(times_of(&lines, Verdict::Sent), (0..444).collect::<Vec<_>>());
}

#[test]
fn codel_marks_at_the_same_times() {
    let lines = bursts("kind = 'codel', ecn = true", Ecn::Ect0, &[(Duration::ZERO, 0, 450)]);
    assert_eq!(times_of(&lines, Verdict::Marked), CODEL_TIMES);
    assert_eq!(times_of(&lines, Verdict::Sent), (0..450).collect::<Vec<_>>());
}

#[test]
fn codel_begins_anew_where_it_left_off_if_that_was_not_long_ago() {
    let dropped = Verdict::Dropped(DropReason::Early);
    let second = |at: u64| {
        let all = [(Duration::ZERO, 0, 450), (Duration::from_millis(at), 1, 250)];
        let lines = bursts("kind = 'codel'", Ecn::NotEct, &all);
        let second: Vec<_> = lines.into_iter().filter(|line| line.1 == 1).collect();
        times_of(&second, dropped).into_iter().map(|time| time - at).collect::<Vec<_>>()
    };
    // Six were dropped, five since the first: the next spell begins with count 5, so that it waits
    // 100/√5 = 44.7 after the first, then 100/√6 = 40.8.
    assert_eq!(second(1000)[..3], [105, 150, 191]);
    // Sixteen intervals after 429 + 40.8 ms that is forgotten.
    assert_eq!(second(3000)[..2], [105, 205]);
    // A wait that falls below the target in between begins anew.
    let short = bursts("kind = 'codel'", Ecn::NotEct, &[(Duration::ZERO, 0, 104)]);
    assert_eq!(times_of(&short, dropped), [0; 0]);
}

#[test]
fn fq_codel_serves_a_new_flow_at_once() {
    let flows = [(Duration::ZERO, 0, 40), (Duration::from_micros(10_500), 1, 3)];
    let lines = bursts("kind = 'fq_codel', quantum = '125B'", Ecn::NotEct, &flows);
    let second: Vec<_> = lines.iter().filter(|line| line.1 == 1).copied().collect();
    // Its first goes as a new flow; then it stands in the list of old ones, behind the first flow,
    // whose credits are spent: that passes it by, and from then on they take turns.
    assert_eq!(times_of(&second, Verdict::Sent), [11, 12, 14]);
    assert_eq!(times_of(&lines, Verdict::Sent), (0..43).collect::<Vec<_>>());
}

#[test]
fn fq_codel_takes_from_the_longest_when_full() {
    let flows = [(Duration::ZERO, 0, 11), (Duration::ZERO, 1, 1)];
    let lines = bursts("kind = 'fq_codel', packets = 10", Ecn::NotEct, &flows);
    // One is in transmission, ten wait; the newcomer stays and five of the ten go, the oldest.
    let dropped = Verdict::Dropped(DropReason::Full);
    let full: Vec<_> = lines.iter().filter(|line| line.3 == dropped).map(|l| (l.1, l.2)).collect();
    assert_eq!(full, [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]);
}

#[test]
fn fq_codel_controls_each_flow_by_itself() {
    let flows = [(Duration::ZERO, 0, 450), (Duration::from_micros(200_500), 1, 30)];
    let lines = bursts("kind = 'fq_codel', quantum = '125B'", Ecn::NotEct, &flows);
    let dropped: Vec<_> =
        lines.iter().filter(|line| line.3 == Verdict::Dropped(DropReason::Early)).collect();
    assert!(dropped.iter().all(|line| line.1 == 0) && dropped.len() > 3, "{dropped:?}");
    assert_eq!(dropped[0].0, ms(105));
}

/// A packet a millisecond comes, and each leaves 35 ms after it came; at every turn the probability.
fn pie(knobs: &str, end: u64) -> (Vec<(u64, f64)>, Vec<u64>, Bench) {
    let model::Queue::Pie(words) = words(&format!("kind = 'pie', {knobs}")) else { panic!() };
    let mut pie = Pie::new(&words, RATE, Size::from_bytes(125));
    let mut bench = Bench { ecn: Ecn::Ect0, ..Bench::new() };
    let (mut turns, mut refused) = (Vec::new(), Vec::new());
    for at in 0..end {
        if at >= 35 && !refused.contains(&(at - 35)) {
            bench.take(&mut pie, ms(at));
        }
        if !bench.give(&mut pie, ms(at)) {
            refused.push(at);
        }
        if at % 15 == 0 {
            turns.push((at, pie.drop_prob()));
        }
    }
    (turns, refused, bench)
}

#[test]
fn pie_climbs_its_ladder() {
    // A burst allowance longer than the run keeps all packets in.
    let (turns, refused, _) = pie("max_burst = '1h'", 5000);
    assert!(refused.is_empty());
    let at = |time: u64| turns.iter().find(|turn| turn.0 == time).unwrap().1;
    assert_eq!([at(15), at(30)], [0.0, 0.0]);
    // The wait jumps from 0 to 35 ms: (0.125 · 0.020 + 1.25 · 0.035)/2048; from then on it is 20 ms
    // above the target and still, steps of 0.125 · 0.020 = 0.0025 through each rung's divisor.
    let mut expected = 0.046_25 / 2048.0;
    let mut steps = Vec::new();
    for turn in turns.iter().filter(|turn| turn.0 > 45) {
        let divisor = match expected {
            p if p < 1e-4 => 128.0,
            p if p < 1e-3 => 32.0,
            p if p < 1e-2 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        expected = f64::min(expected + 0.0025 / divisor, 1.0);
        steps.push(divisor);
        assert!((turn.1 / expected - 1.0).abs() < 1e-9, "{turn:?} {expected}");
    }
    steps.dedup();
    assert_eq!(steps, [128.0, 32.0, 8.0, 2.0, 1.0]);
    assert!((at(45) / (0.046_25 / 2048.0) - 1.0).abs() < 1e-9);
}

#[test]
fn pie_lets_a_burst_pass_and_then_drops() {
    // Weights that bring the probability to 1 within a few turns. At 30 ms the queue was quiet, at
    // 45 ms no longer: ten turns of 15 ms use up 150 ms, at 180 ms.
    let (turns, refused, bench) = pie("alpha = 1000.0, ecn = true", 220);
    assert!(turns.iter().any(|turn| turn.0 < 180 && turn.1 >= 0.1));
    assert_eq!(refused[0], 180);
    // Too much for marks: dropped though ECN-capable.
    assert_eq!(bench.marks, 0);
    let (_, refused, _) = pie("alpha = 1000.0, max_burst = '45ms'", 220);
    assert_eq!(refused[0], 75);
}

/// TCP with ECN through a bottleneck.
fn through(queue: &str) -> talkspurt_scenario::Point {
    let bottleneck = link("l", "b-z", "10Mbit/s", "20ms", &format!("queue = {{ {queue} }}"));
    let access = link("a", "a-b", "100Mbit/s", "1ms", "");
    let tcp = "{ kind = 'tcp', controller = 'newreno', ecn = true }";
    let flows: String =
        (0..4).map(|n| flow(&format!("f{n}"), "a-z", tcp, "{ kind = 'bulk' }", "")).collect();
    support::point(&scenario(
        "20s",
        &[access, bottleneck, flows, "[measure]\nfrom = '5s'\n".to_owned()],
    ))
}

#[test]
fn tcp_is_told_by_marks_and_loses_nothing() {
    for queue in [
        "kind = 'red', packets = 100, min_threshold = 5, max_threshold = 25, ecn = true",
        "kind = 'red', packets = 100, min_threshold = 5, max_threshold = 25, adaptive = true, ecn = true, mode = 'bytes'",
        "kind = 'codel', ecn = true",
        "kind = 'fq_codel'",
        "kind = 'pie', ecn = true",
    ] {
        let point = through(queue);
        // Once slow start has overshot: then averages lag behind, and queues overflow.
        let (mut marked, mut experienced) = (0_u64, 0_u64);
        let run = support::watch(&point, &Look::default(), |now, _, note| match note {
            _ if now < ms(5000) => {}
            Note::Marked { packet } => {
                assert_eq!(packet.ecn, Ecn::Ce);
                marked += 1;
            }
            Note::Received { packet, .. } if packet.ecn == Ecn::Ce => experienced += 1,
            _ => {}
        });
        let link = run.link("l");
        assert!(marked > 20, "{queue}: {marked}");
        assert_eq!(link.marks, Some(marked), "{queue}");
        assert!(marked.abs_diff(experienced) <= 3, "{queue}: {experienced} of {marked} arrived");
        let drops = link.drops.unwrap();
        assert!(drops * 20 < marked, "{queue}: {drops:?}, {marked} marks");
        assert!(link.utilisation.unwrap() > 0.85, "{queue}: {:?}", link.utilisation);
        assert!(link.queue_mean_packets.unwrap() < 25.0, "{queue}: {:?}", link.queue_mean_packets);
        // Looking more often changes nothing, whatever turns a discipline takes by itself.
        let settle_every = Some(Duration::from_micros(1300));
        let settled =
            support::watch(&point, &Look { settle_every, ..Look::default() }, |_, _, _| {});
        assert_eq!(run.digest, settled.digest, "{queue}");
    }
}
