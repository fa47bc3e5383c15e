//! The loss history where the sequence space holds more than data and packets carry a window
//! counter: RFC 4342 §8.6 (what a Loss Intervals option tells), §10.2, §10.3, and RFC 4340 §7.7.

use crate::rate_loop::*;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::{Arrival, Config, Kind, LossHistory, Parameters, Receiver};

fn data(seq: u64, counter: u64) -> Arrival {
    Arrival {
        seq,
        data_bytes: Some(160),
        non_data_before: 0,
        marked: false,
        rtt: None,
        counter: Some(counter),
    }
}

fn feed(packets: &[Arrival]) -> LossHistory {
    feed_to(&rfc(Kind::Ccid3), packets)
}

fn feed_to(parameters: &Parameters, packets: &[Arrival]) -> LossHistory {
    let mut history = LossHistory::new(parameters);
    for packet in packets {
        history.on_packet(at(packet.seq), packet);
    }
    history
}

/// 3 is lost, after a packet that counts 20, and 7, after one that counts `counter`.
fn two_losses(counter: u64) -> [Arrival; 8] {
    [(1, 20), (2, 20), (4, 21), (5, 22), (6, counter), (8, counter), (9, counter), (10, counter)]
        .map(|(seq, count)| data(seq, count))
}

/// RFC 4342 §10.2: losses are one event while the window counter of the packet before has grown by
/// four at most since that of the first, however much time has passed.
#[test]
fn events_by_window_counter() {
    for (grown, starts) in [(4, vec![3, 1]), (5, vec![7, 3, 1])] {
        let packets = two_losses(20 + grown);
        let begun: Vec<_> = feed(&packets).intervals().map(|it| it.start).collect();
        assert_eq!(begun, starts, "{grown}");
    }
}

/// ns-2.35 (dccp/dccp_tfrc.cc, `tfrc_recv_updateLI`) compares the four bits: sixteen to twenty counts
/// later is the same event to it, fifteen and twenty-one are another.
#[test]
fn ns_2_compares_window_counters_as_packets_bear_them() {
    let ns2 = Config::default().resolve(Profile::Ns2, Kind::Ccid3);
    for (grown, again) in [(4, false), (5, true), (15, true), (16, false), (20, false), (21, true)]
    {
        let packets = two_losses(20 + grown);
        let events = |parameters| feed_to(parameters, &packets).intervals().count() - 1;
        assert_eq!(events(&ns2), if again { 2 } else { 1 }, "{grown}");
        assert_eq!(events(&rfc(Kind::Ccid3)), if grown > 4 { 2 } else { 1 }, "{grown}");
    }
}

/// Linux (net/dccp/ccids/lib/loss_interval.c, `tfrc_lh_interval_add`) writes the length of the
/// interval that follows the first loss over the one made up for what came before.
#[test]
fn linux_forgets_the_interval_it_made_up() {
    let mean = |profile| {
        let parameters = Config::default().resolve(profile, Kind::Ccid3);
        let mut history = LossHistory::new(&parameters);
        let mut told = Vec::new();
        // Every hundredth packet is lost, a count of ten after the one before.
        for seq in (1..=400).filter(|seq| seq % 100 != 0) {
            let first = told.is_empty();
            if history.on_packet(at(seq), &data(seq, 20 + seq / 10)) {
                if first {
                    history.seed(1000.0);
                }
                told.push(history.mean_interval().unwrap());
            }
        }
        told
    };
    assert_eq!(mean(Profile::Linux), [1000.0, 100.0, 100.0]);
    // Weights of 1 for the newest four: (100 + 1000)/2 and (100 + 100 + 1000)/3.
    assert_eq!(mean(Profile::Rfc), [1000.0, 550.0, 400.0]);
}

/// §10.2: a lost packet counts as the packet before it did, however far the one after has counted: "if
/// all of the packets between X and Y are lost ... the series of consecutive losses is treated by the
/// receiver as a single loss event".
#[test]
fn a_lost_packet_counts_as_the_one_before() {
    let begun =
        |packets: &[Arrival]| -> Vec<_> { feed(packets).intervals().map(|it| it.start).collect() };
    // 3 is lost between counts 20 and 24; 6 after a count of 25, five later.
    let packets = [data(2, 20), data(4, 24), data(5, 25), data(7, 25), data(8, 25), data(9, 25)];
    assert_eq!(begun(&packets), [6, 3, 2]);
    // 3 to 12 are lost between counts 20 and 30.
    let packets = [data(2, 20), data(13, 30), data(14, 30), data(15, 30)];
    assert_eq!(begun(&packets), [3, 2]);
}

/// RFC 4342 §8.6.1: Loss Length runs from the first loss to the last of the event, Lossless Length
/// to the next event or the end, Data Length counts data packets of both.
#[test]
fn lengths_of_an_option() {
    let ack = |seq| Arrival { data_bytes: None, ..data(seq, 20) };
    let packets = [
        data(1, 20),
        data(2, 20),
        data(4, 20),
        ack(5),
        data(7, 20),
        data(8, 20),
        ack(9),
        data(10, 30),
        data(11, 30),
        // 12 is missing still.
        data(13, 30),
        data(14, 30),
    ];
    let history = feed(&packets);
    let told: Vec<_> = history
        .intervals()
        .map(|it| (it.start, it.loss_length, it.lossless_length, it.data_length, it.drop_count))
        .collect();
    // 3 and 6 are lost: 3 to 6 is lossy, with 4 received and 5 no data; 7 to 11 is not.
    assert_eq!(told, [(3, 4, 5, 7, 2), (1, 0, 2, 2, 0)]);
    assert_eq!((history.skip_length(), history.newest()), (3, Some(14)));
}

/// RFC 4340 §7.7: a hole without data is no loss; of a partly filled hole, only the rest is.
#[test]
fn lost_packets_without_data_are_no_loss() {
    let after = |seq, non_data_before| Arrival { non_data_before, ..data(seq, 20) };
    // 2 and 3 are missing and carried no data.
    let history = feed(&[data(1, 20), after(4, 2), data(5, 20), data(6, 20)]);
    assert_eq!(history.loss_event_rate(), 0.0);
    let open = history.intervals().next().unwrap();
    assert_eq!((open.lossless_length, open.data_length), (6, 4));
    // Of 2, 3 and 4 the last two carried none.
    let history = feed(&[data(1, 20), after(5, 2), data(6, 20), data(7, 20)]);
    let told: Vec<_> = history
        .intervals()
        .map(|it| (it.start, it.loss_length, it.lossless_length, it.data_length, it.drop_count))
        .collect();
    assert_eq!(told, [(2, 1, 5, 4, 1), (1, 0, 1, 1, 0)]);
}

/// RFC 4342 §10.3: feedback is due when the window counter has grown by four since the last, or on
/// a loss, and at no other time.
#[test]
fn feedback_by_window_counter() {
    let mut receiver = Receiver::new(&rfc(Kind::Ccid3));
    let mut arrive = |seq, counter| {
        receiver.on_packet(at(10 * seq), &data(seq, counter), &mut ());
        assert_eq!(receiver.deadline(), None);
        let due = receiver.wants_feedback(at(10 * seq));
        if due {
            receiver.feedback(at(10 * seq));
        }
        due
    };
    assert!(arrive(0, 0));
    assert!(!arrive(1, 1));
    assert!(!arrive(2, 3));
    assert!(arrive(3, 4));
    assert!(!arrive(4, 7));
    assert!(arrive(5, 9));
    assert!(!arrive(6, 12));
    assert!(arrive(7, 13));
}

/// Packets every 40 ms, a round trip of 100: RFC 5348 §6.2 reports by a timer of a round trip; ns-2's
/// TFRC with the first packet a round trip or more after the last report, and in silence by a timer of one
/// and a half.
#[test]
fn feedback_by_timer_and_by_arrival() {
    let reports = |profile| {
        let mut receiver = Receiver::new(&Config::default().resolve(profile, Kind::Tfrc));
        let mut told = Vec::new();
        for now in 0..700 {
            let (time, seq) = (at(now), now / 40);
            if now % 40 == 0 && seq <= 10 {
                let packet = Arrival { counter: None, rtt: Some(ms(100)), ..data(seq, 0) };
                receiver.on_packet(time, &packet, &mut ());
            }
            receiver.on_timeout(time);
            if receiver.wants_feedback(time) {
                receiver.feedback(time);
                told.push(now);
            }
        }
        told
    };
    assert_eq!(reports(Profile::Rfc), [0, 100, 200, 300, 400]);
    assert_eq!(reports(Profile::Ns2), [0, 120, 240, 360, 510]);
}

/// A gap of any length is processed cheaply and keeps the newest intervals.
#[test]
fn an_endless_gap() {
    let time = |seq, rtt| Arrival { counter: None, rtt: Some(ms(rtt)), ..data(seq, 0) };
    let mut history = LossHistory::new(&rfc(Kind::Tfrc));
    history.on_packet(at(0), &time(0, 1));
    for seq in 0..3 {
        history.on_packet(at(1_000_000 + seq), &time(1 << 60 | seq, 1));
    }
    assert_eq!(history.intervals().count(), 29);
    assert!(history.loss_event_rate() > 0.0);
}
