//! RFC 5348, TCP Friendly Rate Control: loss events, their intervals (§5) and what the receiver
//! reports (§6) or leaves to the sender (§7), one test per clause claimed, computed by hand.

use crate::rate_loop::*;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::{
    Arrival, Config, Kind, LossHistory, Parameters, ReceiveRate, Receiver, equation, history,
};
use talkspurt_proto::time::Duration;

const RTT: Duration = ms(100);

// §5

fn packet(seq: u64) -> Arrival {
    Arrival {
        seq,
        data_bytes: Some(1000),
        non_data_before: 0,
        marked: false,
        rtt: Some(RTT),
        counter: None,
    }
}

/// Packets 10 ms apart from 0 on, but for those lost.
fn feed(history: &mut LossHistory, seqs: std::ops::Range<u64>, lost: &[u64]) -> usize {
    seqs.filter(|seq| !lost.contains(seq))
        .filter(|seq| history.on_packet(at(10 * seq), &packet(*seq)))
        .count()
}

/// §5.1: a packet is lost once three later ones have arrived; less reordering is not a loss.
#[test]
fn section_5_1_three_later_packets() {
    let mut history = LossHistory::new(&plain());
    let mut arrivals = [0, 1, 3, 4].map(|seq| history.on_packet(at(10 * seq), &packet(seq)));
    assert_eq!(arrivals, [false; 4]);
    assert_eq!((history.loss_event_rate(), history.skip_length()), (0.0, 3));
    assert!(!history.on_packet(at(45), &packet(2)));
    assert_eq!((history.loss_event_rate(), history.skip_length()), (0.0, 0));
    // 5 is missing: the third of 6, 7, 8 shows it, and coming late changes nothing.
    arrivals[..3]
        .copy_from_slice(&[6, 7, 8].map(|seq| history.on_packet(at(10 * seq), &packet(seq))));
    assert_eq!(arrivals[..3], [false, false, true]);
    let p = history.loss_event_rate();
    assert!(p > 0.0 && !history.on_packet(at(95), &packet(5)));
    same(history.loss_event_rate(), p);
}

/// §5.2: losses within a round trip of the first are one event, by interpolated times: packet 20 at
/// 200 ms begins one; 30 at 300 ms = T + R is in it; 31 at 310 ms begins the next.
#[test]
fn section_5_2_one_event_in_a_round_trip() {
    for (second, events) in [(25, 1), (30, 1), (31, 2)] {
        let mut history = LossHistory::new(&plain());
        assert_eq!(feed(&mut history, 0..40, &[20, second]), events, "{second}");
    }
    // A gap of 25 packets, 20 to 44, lasts 250 ms: events begin at 20, 31 and 42.
    let lost: Vec<_> = (20..45).collect();
    let mut history = LossHistory::new(&plain());
    assert_eq!(feed(&mut history, 0..50, &lost), 1);
    let starts: Vec<_> = history.intervals().map(|interval| interval.start).collect();
    assert_eq!(starts, [42, 31, 20, 0]);
}

/// §5.2: a mark counts as a loss at once.
#[test]
fn section_5_2_marks() {
    let mut history = LossHistory::new(&plain());
    feed(&mut history, 0..20, &[]);
    let marked = Arrival { marked: true, ..packet(20) };
    assert!(history.on_packet(at(200), &marked));
    let within = Arrival { marked: true, ..packet(21) };
    assert!(!history.on_packet(at(210), &within));
    feed(&mut history, 22..40, &[]);
    let later = Arrival { marked: true, ..packet(40) };
    assert!(history.on_packet(at(400), &later));
    let lengths: Vec<_> =
        history.intervals().map(|it| (it.start, it.data_length, it.drop_count)).collect();
    assert_eq!(lengths, [(40, 1, 1), (20, 20, 2), (0, 20, 0)]);
}

/// §5.2: a lost packet's time lies between those around it. 20 was due at 200 ms: a mark at 300 ms
/// is R later and in its event, one at 301 ms is not.
#[test]
fn section_5_2_interpolated_time() {
    for (time, events) in [(300, 0), (301, 1)] {
        let mut history = LossHistory::new(&plain());
        feed(&mut history, 0..30, &[20]);
        let marked = Arrival { marked: true, ..packet(30) };
        assert_eq!(usize::from(history.on_packet(at(time), &marked)), events, "{time}");
    }
}

/// §5.3: an interval runs from the first loss of its event to before the first of the next.
#[test]
fn section_5_3_lengths() {
    let mut history = LossHistory::new(&plain());
    feed(&mut history, 0..100, &[20, 22, 50]);
    let intervals: Vec<_> = history
        .intervals()
        .map(|it| (it.start, it.loss_length, it.lossless_length, it.data_length))
        .collect();
    assert_eq!(intervals, [(50, 1, 49, 50), (20, 3, 27, 30), (0, 0, 20, 20)]);
}

/// Packets whose losses stand these distances apart, after `before` without loss; then `open`.
fn intervals(parameters: &Parameters, lengths: &[u64], open: u64) -> LossHistory {
    let mut history = LossHistory::new(parameters);
    let mut lost = vec![100];
    for length in lengths {
        lost.push(lost.last().unwrap() + length);
    }
    let end = lost.last().unwrap() + open;
    feed(&mut history, 0..end, &lost);
    history
}

/// §5.4: the weighted mean, with and without I_0, by hand.
#[test]
fn section_5_4_average() {
    // I_1 … I_8 = 80, 70, …, 10 (the ninth, before the first loss, has dropped out of the eight).
    let lengths = [20, 20, 30, 40, 50, 60, 70, 80];
    let parameters = Parameters { loss_intervals: 8, ..plain() };
    // Σ w_i I_(i+1) = 80 + 70 + 60 + 50 + 0.8·40 + 0.6·30 + 0.4·20 + 0.2·20 = 322; Σ w = 6.
    let short = intervals(&parameters, &lengths, 30);
    assert!((short.mean_interval().unwrap() - 322.0 / 6.0).abs() < 1e-9);
    assert!((short.loss_event_rate() - 6.0 / 322.0).abs() < 1e-12);
    // With I_0 = 100 in place of the oldest: 100 + 80 + 70 + 60 + 0.8·50 + 0.6·40 + 0.4·30 + 0.2·20
    // = 390 > 322.
    let long = intervals(&parameters, &lengths, 100);
    assert!((long.mean_interval().unwrap() - 390.0 / 6.0).abs() < 1e-9);
}

/// §5.4 with fewer than n intervals: one closed interval of 100 (before the first loss), I_0 = 50,
/// then 200.
#[test]
fn section_5_4_few_intervals() {
    let history = intervals(&plain(), &[], 50);
    assert_eq!(history.mean_interval(), Some(100.0));
    let history = intervals(&plain(), &[], 200);
    assert_eq!(history.mean_interval(), Some(200.0));
    // I_1 = 40, I_2 = 100: (40 + 100)/2 = 70 against (90 + 40)/2 = 65.
    let history = intervals(&plain(), &[40], 90);
    assert_eq!(history.mean_interval(), Some(70.0));
}

/// §5.5: an I_0 of more than twice the average takes weight from the older ones.
#[test]
fn section_5_5_discounting() {
    let parameters = Parameters { history_discounting: true, ..plain() };
    // I_1 = 50, I_2 = 100, mean 75. I_0 = 300 > 150: DF = 150/300 = 0.5;
    // (300 + 0.5 · 50)/(1 + 0.5) = 216.67, against (300 + 50)/2 = 175 undiscounted.
    let history = intervals(&parameters, &[50], 300);
    assert!((history.mean_interval().unwrap() - 325.0 / 1.5).abs() < 1e-9);
    let history = intervals(&plain(), &[50], 300);
    assert_eq!(history.mean_interval(), Some(175.0));
    // I_0 = 1000: 150/1000 < THRESHOLD: DF = 0.25; (1000 + 12.5)/1.25 = 810.
    let history = intervals(&parameters, &[50], 1000);
    assert!((history.mean_interval().unwrap() - 810.0).abs() < 1e-9);
    // The 300 close and the discount of 0.5 stays with the others: I_1 = 300, I_2 = 50, I_3 = 100,
    // DF 1, 0.5, 0.5; I_0 = 20: (300 + 25 + 50)/(1 + 0.5 + 0.5) = 187.5.
    let history = intervals(&parameters, &[50, 300], 20);
    assert!((history.mean_interval().unwrap() - 187.5).abs() < 1e-9);
}

/// ns-2.35 (Debian package ns2 2.35+dfsg-5), `Agent/TFRCSink` with `printLoss_ 1`, greedy over 2 Mbit/s,
/// 50 ms and a queue of 20 packets: the open interval, the closed ones and p as it prints them. All
/// closed intervals stand beside the open one while there are fewer than eight, and no weight falls
/// by more than half at a time.
#[test]
fn ns_2_averages_the_open_interval_with_all_closed_ones() {
    let ns2 = Config::default().resolve(Profile::Ns2, Kind::Tfrc);
    let printed: [(&[u64], u64, f64); 8] = [
        (&[79], 43, 0.00338),
        (&[79], 420, 0.00297),
        (&[79], 926, 0.00175),
        (&[79], 1593, 0.00106),
        (&[79], 2256, 0.00078),
        (&[79, 2289], 41, 0.00077),
        (&[79, 2289, 79], 42, 0.00113),
        (&[79, 2289, 79], 592, 0.00113),
    ];
    let rate = |parameters: &Parameters, lengths: &[u64], open: u64| {
        let mut history = LossHistory::new(parameters);
        feed(&mut history, 0..104, &[100]);
        // What the first loss leaves of the time before it.
        history.seed(512.0);
        let mut lost = 100;
        for length in lengths {
            feed(&mut history, lost + 4..lost + length + 4, &[lost + length]);
            lost += length;
        }
        feed(&mut history, lost + 4..lost + open, &[]);
        history.loss_event_rate()
    };
    for (lengths, open, p) in printed {
        let ours = rate(&ns2, lengths, open);
        assert!((ours - p).abs() < 0.6e-5, "{lengths:?} {open}: {ours} is not {p}");
    }
    // RFC 5348 §5.4 lets the open one take the oldest's place: (420 + 79)/2 against (79 + 512)/2.
    let rfc = Config::default().resolve(Profile::Rfc, Kind::Tfrc);
    same(rate(&rfc, &[79], 420), 2.0 / 591.0);
}

fn arrive(receiver: &mut Receiver, now: u64, seq: u64) {
    receiver.on_packet(at(now), &packet(seq), &mut ());
}

/// §6.3: the first packet is answered at once, with X_recv = 0 and p = 0.
#[test]
fn section_6_3_first_packet() {
    let mut receiver = Receiver::new(&plain());
    assert_eq!(receiver.feedback(at(0)), None);
    receiver.on_packet(at(5), &Arrival { rtt: None, ..packet(7) }, &mut ());
    assert!(receiver.wants_feedback(at(5)));
    let feedback = receiver.feedback(at(6)).unwrap();
    assert_eq!((feedback.last, feedback.delay), (7, ms(1)));
    assert_eq!((feedback.receive_rate, feedback.loss_event_rate), (0, 0.0));
    assert!(!receiver.wants_feedback(at(6)));
}

/// §6.2: feedback once in R_m if there was data, with the rate since the last; none in silence.
#[test]
fn section_6_2_timer_and_receive_rate() {
    let mut receiver = Receiver::new(&plain());
    arrive(&mut receiver, 0, 0);
    receiver.feedback(at(0));
    for seq in 1..=5 {
        arrive(&mut receiver, 20 * seq, seq);
    }
    assert_eq!(receiver.deadline(), Some(at(100)));
    assert!(!receiver.wants_feedback(at(99)));
    receiver.on_timeout(at(100));
    assert!(receiver.wants_feedback(at(100)));
    // 5000 B in 100 ms
    assert_eq!(receiver.feedback(at(100)).unwrap().receive_rate, 50_000);
    // Nothing in the next round trips: no feedback. Data at 365 ms is answered at once, since none was
    // sent when the timer last expired (§6.1 step 4); of the last 100 ms it is all: 1000 B/0.1 s.
    receiver.on_timeout(at(200));
    assert!(!receiver.wants_feedback(at(200)));
    assert_eq!(receiver.deadline(), None);
    arrive(&mut receiver, 365, 6);
    assert!(receiver.wants_feedback(at(365)));
    assert_eq!(receiver.feedback(at(365)).unwrap().receive_rate, 10_000);
    // The pause does not count however long it is, unless RFC 4342 §8.3 is asked for.
    arrive(&mut receiver, 60_365, 7);
    assert_eq!(receiver.feedback(at(60_365)).unwrap().receive_rate, 10_000);
    assert_eq!(receiver.deadline(), Some(at(60_465)));
    let config = Config { receive_rate: Some(ReceiveRate::Rfc4342), ..Config::default() };
    let mut receiver = Receiver::new(&config.resolve(Profile::Rfc, Kind::Tfrc));
    arrive(&mut receiver, 0, 0);
    receiver.feedback(at(0));
    receiver.on_timeout(at(100));
    arrive(&mut receiver, 10_000, 1);
    assert_eq!(receiver.feedback(at(10_000)).unwrap().receive_rate, 100);
}

/// §6.1 step 3: a new loss event is reported at once, with the rate over the last round trip.
#[test]
fn section_6_1_loss_is_reported_at_once() {
    let mut receiver = Receiver::new(&plain());
    arrive(&mut receiver, 0, 0);
    receiver.feedback(at(0));
    for seq in 1..=10 {
        arrive(&mut receiver, 10 * seq, seq);
    }
    receiver.on_timeout(at(100));
    receiver.feedback(at(100));
    for seq in 12..=14 {
        assert!(!receiver.wants_feedback(at(10 * seq)));
        arrive(&mut receiver, 10 * seq, seq);
    }
    assert!(receiver.wants_feedback(at(140)));
    let feedback = receiver.feedback(at(140)).unwrap();
    // Of (40, 140 ms]: 5 to 10, 12, 13 and 14 are nine packets.
    assert_eq!(feedback.receive_rate, 90_000);
    assert!(feedback.loss_event_rate > 0.0);
}

/// §6.3.1: the first interval is as long as the equation wants it for the rate received.
#[test]
fn section_6_3_1_first_interval() {
    let mut receiver = Receiver::new(&plain());
    arrive(&mut receiver, 0, 0);
    receiver.feedback(at(0));
    for seq in 1..=100 {
        arrive(&mut receiver, 10 * seq, seq);
        receiver.on_timeout(at(10 * seq));
        if receiver.wants_feedback(at(10 * seq)) {
            receiver.feedback(at(10 * seq));
        }
    }
    for seq in 102..=104 {
        arrive(&mut receiver, 10 * seq, seq);
    }
    // 100 000 B/s came in; the equation with s = 1000 and R = 0.1 gives that at this p.
    let p = receiver.feedback(at(1040)).unwrap().loss_event_rate;
    let x = equation::throughput(1000.0, 0.1, p);
    assert!((x / 100_000.0 - 1.0).abs() < 1e-6, "{x}");
}

/// §6.3.1: the first data packet is marked: half a packet in a round trip is the rate to go by.
#[test]
fn section_6_3_1_least_rate() {
    let mut receiver = Receiver::new(&plain());
    receiver.on_packet(at(0), &Arrival { marked: true, ..packet(0) }, &mut ());
    let feedback = receiver.feedback(at(0)).unwrap();
    assert_eq!(feedback.receive_rate, 0);
    let x = equation::throughput(1000.0, 0.1, feedback.loss_event_rate);
    assert!((x / 5000.0 - 1.0).abs() < 1e-6, "{x}");
}

/// §6.3.1, a MUST: "the maximum value of X_recv so far", however slow the time before the loss was.
/// A packet each 10 ms for a second, a pause of a minute, and the fourth packet after it is lost.
#[test]
fn section_6_3_1_maximum_so_far() {
    let mut receiver = Receiver::new(&plain());
    let mut seq = 0;
    for start in [0, 60_000] {
        for step in
            (0..100).filter(|step| start == 0 || *step != 3).take(if start == 0 { 100 } else { 6 })
        {
            let now = start + 10 * step;
            receiver.on_timeout(at(now));
            arrive(&mut receiver, now, seq + step);
            if receiver.wants_feedback(at(now)) {
                receiver.feedback(at(now));
            }
        }
        seq += 100;
    }
    let p = receiver.history().loss_event_rate();
    let x = equation::throughput(1000.0, 0.1, p);
    assert!((x / 100_000.0 - 1.0).abs() < 1e-6, "{x}");
}

/// §5.1: a mark is an event as soon as it arrives, and the event begins with a packet that is missing
/// before it: n − 1, n + 1 and n + 2 marked is an event that began at n.
#[test]
fn section_5_1_a_mark_behind_a_gap() {
    let mut history = LossHistory::new(&plain());
    feed(&mut history, 0..22, &[20]);
    assert_eq!(history.loss_event_rate(), 0.0);
    assert!(history.on_packet(at(220), &Arrival { marked: true, ..packet(22) }));
    let told: Vec<_> =
        history.intervals().map(|it| (it.start, it.loss_length, it.drop_count)).collect();
    assert_eq!(told, [(20, 3, 2), (0, 0, 0)]);
}

/// §6.3: without an estimate of the round-trip time every packet is answered.
#[test]
fn section_6_3_every_packet_until_the_round_trip_time_is_known() {
    let mut receiver = Receiver::new(&plain());
    for seq in 0..5 {
        receiver.on_packet(at(10 * seq), &Arrival { rtt: None, ..packet(seq) }, &mut ());
        assert!(receiver.feedback(at(10 * seq)).is_some() && seq < 5);
    }
    arrive(&mut receiver, 50, 5);
    assert!(!receiver.wants_feedback(at(50)));
}

/// §6: a new loss event is reported at once even where p does not rise: after eight intervals, the
/// ninth was already in the average while it lasted.
#[test]
fn section_6_event_without_a_higher_rate() {
    let mut receiver = Receiver::new(&plain());
    let mut lost: Vec<_> = (0..9).map(|event| 100 + 20 * event).collect();
    lost.push(760);
    let mut rates = Vec::new();
    for seq in (0..764).filter(|seq| !lost.contains(seq)) {
        let before = receiver.history().loss_event_rate();
        arrive(&mut receiver, 10 * seq, seq);
        if seq == 763 {
            rates = vec![before, receiver.history().loss_event_rate()];
            break;
        }
        receiver.feedback(at(10 * seq));
    }
    assert!(rates[1] <= rates[0], "{rates:?}");
    assert!(receiver.wants_feedback(at(7630)));
}

/// §7: a sender computes the same p from reported intervals.
#[test]
fn section_7_sender_computes() {
    let parameters = plain();
    let told = intervals(&parameters, &[20, 20, 30, 40, 50, 60, 70, 80], 100);
    let lengths: Vec<_> = told.intervals().map(|it| it.data_length as f64).collect();
    let p = history::loss_event_rate(lengths[0], &lengths[1..], &parameters);
    assert!((p - told.loss_event_rate()).abs() < 1e-15);
    assert_eq!(history::loss_event_rate(50.0, &[], &parameters), 0.0);
}
