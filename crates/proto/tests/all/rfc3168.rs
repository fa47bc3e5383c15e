//! RFC 3168 §6.1: ECN in TCP.

use talkspurt_proto::endpoint::Input;
use talkspurt_proto::packet::Ecn;
use talkspurt_proto::probe::Gauge;
use talkspurt_proto::tcp::{Config, Controller, Flags, Segment};
use talkspurt_testing::tcp::*;

const ACK: Flags = Flags::ACK;
const ECE: Flags = Flags::ECE;
const CWR: Flags = Flags::CWR;

fn capable() -> Config {
    Config { ecn: Some(true), ..plain() }
}

/// Opened from this side, with a peer that agrees.
fn agreed(config: &Config) -> Alone {
    let mut alone = Alone::opening(config);
    let answer = alone.syn(Flags::SYN | ACK | ECE, 1);
    alone.segment(answer);
    alone.sent.clear();
    alone.marks.clear();
    alone
}

fn bits(segment: &Segment) -> (bool, bool) {
    (segment.flags.contains(ECE), segment.flags.contains(CWR))
}

/// §6.1.1: a SYN asks with both bits, its answer agrees with ECE alone; no SYN is ECN-capable, and
/// without agreement no data is.
#[test]
fn negotiation() {
    let mut asks = Alone::client(&capable());
    asks.input(Input::Open);
    assert_eq!((bits(&asks.sent[0]), asks.marks[0]), ((true, true), Ecn::NotEct));
    // Both bits in the answer are a reflection, not an agreement.
    for (answer, agrees) in [(ECE, true), (ECE | CWR, false), (Flags(0), false)] {
        let mut alone = Alone::opening(&capable());
        let answer = alone.syn(Flags::SYN | ACK | answer, 1);
        alone.segment(answer);
        alone.send(1000);
        let capable = if agrees { Ecn::Ect0 } else { Ecn::NotEct };
        assert_eq!(alone.marks.last(), Some(&capable));
    }
    for (asked, able, agrees) in [
        (ECE | CWR, true, true),
        (ECE, true, false),
        (Flags(0), true, false),
        (ECE | CWR, false, false),
    ] {
        let mut alone = Alone::listener(&Config { ecn: Some(able), ..plain() });
        let syn = alone.syn(Flags::SYN | asked, 0);
        let answer = alone.segment(syn);
        assert_eq!((bits(&answer[0]), alone.marks[0]), ((agrees, false), Ecn::NotEct));
    }
}

/// §6.1.4 to §6.1.6: new data is ECN-capable; pure acknowledgements, retransmissions and probes of a
/// closed window are not.
#[test]
fn what_is_capable() {
    let mut alone = agreed(&capable());
    alone.arrive(ACK, 1, 1, 1000);
    assert_eq!(alone.marks, [Ecn::NotEct]);
    alone.send(1000);
    assert_eq!(alone.marks[1], Ecn::Ect0);
    alone.wait();
    assert_eq!(alone.marks[2], Ecn::NotEct);
    let shut = Segment { window: 0, ..alone.make(ACK, 1001, 1001, 0) };
    alone.segment(shut);
    alone.send(1000);
    alone.wait();
    assert_eq!((alone.sent[3].payload.len(), alone.marks[3]), (1, Ecn::NotEct));
}

/// §6.1.3: after a mark every acknowledgement echoes it, until CWR comes; a mark on the segment with
/// CWR begins anew.
#[test]
fn echoes() {
    let mut alone = agreed(&capable());
    let mut echo = |mark: Ecn, flags: Flags, place: u32| {
        alone.ecn = mark;
        let answer = alone.arrive(ACK | flags, 1 + 1000 * place, 1, 1000);
        answer[0].flags.contains(ECE)
    };
    let none = Flags(0);
    assert!(!echo(Ecn::Ect0, none, 0));
    assert!(echo(Ecn::Ce, none, 1));
    assert!(echo(Ecn::Ect0, none, 2) && echo(Ecn::Ect0, none, 3));
    assert!(!echo(Ecn::Ect0, CWR, 4) && !echo(Ecn::Ect0, none, 5));
    assert!(echo(Ecn::Ce, CWR, 6) && echo(Ecn::Ect0, none, 7));
    // Without agreement a mark says nothing.
    let mut alone = Alone::established(&plain());
    alone.ecn = Ecn::Ce;
    assert!(!alone.arrive(ACK, 1, 1, 1000)[0].flags.contains(ECE));
}

/// §6.1.2: an echo halves the window, once for a window of data, and nothing is sent again; the next
/// new data says CWR. The same for a controller with selective acknowledgements, and 0.7 for CUBIC.
#[test]
fn answers() {
    for (controller, left) in
        [(Controller::Newreno, 5000.0), (Controller::Sack, 5000.0), (Controller::Cubic, 7000.0)]
    {
        let mut alone = agreed(&Config { controller, ..capable() });
        alone.send(100_000);
        alone.arrive(ACK | ECE, 1, 1001, 0);
        assert_eq!(alone.notes.last(Gauge::Cwnd), Some(left));
        // Nine in flight; more echoes of the same window change nothing.
        (2..=10).for_each(|i| drop(alone.arrive(ACK | ECE, 1, 1 + 1000 * i, 0)));
        assert_eq!(alone.notes.last(Gauge::Ssthresh), Some(left));
        let said: Vec<bool> = alone.sent[10..].iter().map(|s| s.flags.contains(CWR)).collect();
        assert_eq!(said.iter().filter(|said| **said).count(), 1);
        assert!(said[0]);
        let places = alone.sent.iter().map(|segment| alone.place(segment));
        assert!(places.is_sorted_by(|a, b| a < b), "nothing is sent again");
        // An echo in the next window is congestion again.
        alone.arrive(ACK | ECE, 1, 11_001, 0);
        assert!(alone.notes.last(Gauge::Ssthresh) < Some(left));
    }
}

/// §6.1.2: a reduction after a loss is told, too, and an echo within its window is not another one.
#[test]
fn a_loss_and_a_mark_are_one() {
    let mut alone = agreed(&capable());
    alone.send(100_000);
    (0..3).for_each(|_| drop(alone.arrive(ACK | ECE, 1, 1, 0)));
    let threshold = alone.notes.last(Gauge::Ssthresh);
    assert_eq!(threshold, Some(5000.0));
    alone.arrive(ACK | ECE, 1, 10_001, 0);
    assert_eq!(alone.notes.last(Gauge::Ssthresh), threshold);
    let new = alone.sent.iter().filter(|segment| alone.place(segment) >= 10_001);
    assert_eq!(new.filter(|segment| segment.flags.contains(CWR)).count(), 1);
}

/// §6.1.6: a probe of a closed window says no CWR; the next new data does.
#[test]
fn a_probe_says_nothing_of_a_reduction() {
    let mut alone = agreed(&capable());
    alone.send(1000);
    let shut = Segment { window: 0, ..alone.make(ACK | ECE, 1, 1001, 0) };
    alone.segment(shut);
    alone.send(1000);
    let probe = alone.wait();
    assert_eq!((probe[0].payload.len(), bits(&probe[0])), (1, (false, false)));
    alone.arrive(ACK, 1, 1002, 0);
    alone.send(1000);
    let said: Vec<_> = alone.sent.iter().map(|segment| bits(segment).1).collect();
    assert_eq!(said.iter().filter(|said| **said).count(), 1);
    assert_eq!(alone.marks[said.iter().position(|said| *said).expect("said")], Ecn::Ect0);
}
