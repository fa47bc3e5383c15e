//! RFC 4828, TFRC for small packets (TFRC-SP), used by CCID 4 (RFC 5622).

use crate::rate_loop::*;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::{
    Arrival, Config, Kind, LossHistory, Parameters, Permit, RateControl, Receiver, equation,
    history,
};
use talkspurt_proto::time::Duration;

const RTT: Duration = ms(100);

fn plain() -> Parameters {
    let config = Config {
        oscillation_prevention: Some(false),
        history_discounting: Some(false),
        ..Config::default()
    };
    config.resolve(Profile::Rfc, Kind::Ccid4)
}

/// §4.1, §4.2: the equation has s = 1460, and of what it gives the headers' share is taken:
/// X · 160/(160 + 36), where RFC 5622 §5 has 36 bytes
/// of headers. Of the initial rate, too.
#[test]
fn section_4_2_nominal_size_less_headers() {
    let mut alone = Alone::started(&plain(), 160, RTT);
    let share = 160.0 / 196.0;
    same(alone.rate(), share * 4380.0 / 0.1);
    alone.send_until(at(400));
    alone.report(at(400), RTT, 10_000_000, 0.2);
    let x = equation::throughput(1460.0, 0.1, 0.2);
    same(alone.rate(), share * x);
    let bits = alone.sender.rate().as_bps() as f64;
    assert!((bits - 8.0 * x * share).abs() < 1.0, "{bits}");
    // A packet of 160 bytes each 160/(share · X).
    let interval = alone.sender.interval().as_secs_f64();
    assert!((interval - 160.0 / (share * x)).abs() < 2e-9, "{interval}");
}

/// §4.2: what was received is data without headers, and twice that is not lessened by them: neither
/// in slow start nor where it bounds the equation's rate. Packets of 20 bytes would lose two thirds
/// of it, and starve.
#[test]
fn section_4_2_what_was_received_is_data() {
    let mut alone = Alone::started(&plain(), 20, RTT).until(at(400));
    alone.report(at(400), RTT, 40_000, 0.0);
    same(alone.rate(), 2.0 * 4380.0 / 0.1 * 20.0 / 56.0);
    alone.send_until(at(600));
    alone.report(at(600), RTT, 1000, 0.0001);
    // X_recv_set still holds 40 000; two round trips later it does not.
    for now in [900, 1200] {
        alone.send_until(at(now));
        alone.report(at(now), RTT, 1000, 0.0001);
    }
    same(alone.rate(), 2000.0);
}

/// The goal of TFRC-SP (RFC 4828, abstract): as many bits per second as a TCP with packets of 1500
/// bytes, where that is more than packets 10 ms apart make. 1 % lost and a round trip of 106 ms
/// leave such a TCP over 100 kB/s, and packets of 14 bytes their hundred a second. So it is in
/// ns-2.35, whose TFRC with `voip_` is by the RFC's author: 100 packets a second of 14, 20 or 33
/// bytes over such a path.
#[test]
fn small_packets_do_not_starve() {
    for bytes in [14, 20, 33, 160] {
        let mut path = Loop::new(&rfc(Kind::Ccid4), ms(53), ms(53));
        path.talk(bytes, ms(10));
        path.queue_limit = 5;
        path.lose = |seq| seq % 100 == 99;
        path.run_until(at(60_000));
        let sent = path.left.iter().filter(|(left, _)| *left >= at(30_000)).count();
        assert!(sent > 2900, "{bytes} bytes: {sent} of 3000");
    }
}

/// §4.3: packets stand 10 ms apart at least, however fast X is and however much credit there is.
#[test]
fn section_4_3_minimum_interval() {
    let parameters = Parameters { credit: RTT, ..plain() };
    let mut alone = Alone::started(&parameters, 160, RTT);
    for now in [200, 300, 400] {
        alone.send_until(at(now));
        alone.report(at(now), RTT, 1_000_000, 0.0);
    }
    assert!(alone.rate() > 160_000.0);
    alone.now = at(1000);
    alone.sender.on_sent(at(1000), 160);
    assert_eq!(alone.sender.permit(at(1000), 160), Permit::At(at(1010)));
    alone.now = at(1010);
    assert_eq!(alone.send_until(at(1999)), 99);
}

fn packet(seq: u64) -> Arrival {
    Arrival {
        seq,
        data_bytes: Some(160),
        non_data_before: 0,
        marked: false,
        rtt: Some(RTT),
        counter: None,
    }
}

fn feed(parameters: &Parameters, end: u64, lost: &[u64]) -> LossHistory {
    let mut history = LossHistory::new(parameters);
    for seq in (0..end).filter(|seq| !lost.contains(seq)) {
        history.on_packet(at(10 * seq), &packet(seq));
    }
    history
}

/// §4.4: an interval of at most two round trips counts as N/K. Events at 20 (with 22 and 24) and at
/// 40, 200 ms later: I_1 = 20/3. With 41 it lasts longer than 2R and counts 21.
#[test]
fn section_4_4_short_intervals() {
    let history = feed(&plain(), 46, &[20, 22, 24, 40]);
    // I_0 = 6 is short with one loss: 6; I_2 = 20 came before the first loss.
    // Without I_0: (20/3 + 20)/2; with it: (6 + 20/3)/2.
    assert!((history.mean_interval().unwrap() - (20.0 / 3.0 + 20.0) / 2.0).abs() < 1e-9);
    let history = feed(&plain(), 47, &[20, 22, 24, 41]);
    assert!((history.mean_interval().unwrap() - 41.0 / 2.0).abs() < 1e-9);
    // TFRC proper counts 20 in both cases.
    let tfrc = Parameters { short_intervals: false, ..plain() };
    let history = feed(&tfrc, 46, &[20, 22, 24, 40]);
    assert!((history.mean_interval().unwrap() - 20.0).abs() < 1e-9);
}

/// §4.4 at a sender that computes p from reported intervals and drop counts (RFC 5622 §5).
#[test]
fn section_4_4_at_the_sender() {
    let parameters = plain();
    let lost = [20, 22, 24, 40, 100, 101, 130, 200];
    let told = feed(&parameters, 230, &lost);
    let lengths: Vec<_> = told
        .intervals()
        .map(|it| history::counted_length(it.data_length, it.drop_count, it.short, &parameters))
        .collect();
    let p = history::loss_event_rate(lengths[0], &lengths[1..], &parameters);
    assert!((p - told.loss_event_rate()).abs() < 1e-15, "{p}");
}

/// The interval may be judged by window counters: eight counts are two round trips.
#[test]
fn section_4_4_by_window_counter() {
    for (counts, short) in [(8, true), (9, false)] {
        let mut history = LossHistory::new(&plain());
        let arrive = |history: &mut LossHistory, seq, counter| {
            history.on_packet(at(seq), &Arrival { counter: Some(counter), ..packet(seq) });
        };
        arrive(&mut history, 0, 100);
        for (seq, counter) in
            [(2, 100), (3, 100 + counts), (5, 100 + counts), (6, 100 + counts), (7, 100 + counts)]
        {
            arrive(&mut history, seq, counter);
        }
        let shorts: Vec<_> = history.intervals().map(|it| it.short).collect();
        assert_eq!(shorts, [true, short, false], "{counts}");
    }
}

/// §4.2 and RFC 5348 §6.3.1: the first interval is derived from the equation's rate including the
/// share of headers: 16 000 B/s of 160-byte packets are 19 600 B/s.
#[test]
fn section_4_2_first_interval() {
    let mut receiver = Receiver::new(&plain());
    for seq in (0..105).filter(|seq| *seq != 101) {
        receiver.on_packet(at(10 * seq), &packet(seq), &mut ());
        if seq % 10 == 0 || seq == 104 {
            receiver.feedback(at(10 * seq));
        }
    }
    let x = equation::throughput(1460.0, 0.1, receiver.history().loss_event_rate());
    assert!((x / 19_600.0 - 1.0).abs() < 1e-6, "{x}");
}

/// §3: the current interval counts only once it is longer than two round trips. I_2 = 20 came before
/// the first loss; I_1 = 20 is longer than 2R. I_0 has 20 packets at 600 ms, 200 ms after it began,
/// and nothing of it counts; one more and it does. RFC 5348's average has it at once.
#[test]
fn section_3_a_short_current_interval_is_left_out() {
    let lost = [20, 41];
    let mean = |parameters: &Parameters, end| feed(parameters, end, &lost).mean_interval().unwrap();
    let tfrc = Parameters { short_intervals: false, ..plain() };
    // (21 + 20)/2 without I_0.
    assert!((mean(&plain(), 62) - 20.5).abs() < 1e-9);
    assert!((mean(&tfrc, 62) - 21.0).abs() < 1e-9);
    assert!((mean(&plain(), 63) - 21.5).abs() < 1e-9);
    // The sender receives the same data, and looks up when the packets left.
    let told = feed(&plain(), 62, &lost);
    assert_eq!(told.intervals().next().map(|it| (it.data_length, it.short)), Some((21, true)));
}
