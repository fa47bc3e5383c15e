//! RFC 7323: window scaling, timestamps, round-trip measurement and PAWS.

use talkspurt_proto::endpoint::Input;
use talkspurt_proto::probe::{Gauge, RxError};
use talkspurt_proto::tcp::{Config, Controller, Flags, Segment, State};
use talkspurt_proto::units::{Rate, Size};
use talkspurt_testing::tcp::*;

const ACK: Flags = Flags::ACK;
const SYN_ACK: Flags = Flags(0x12);

fn scaling() -> Config {
    Config { window_scaling: true, receive_buffer: Size::from_bytes(1_000_000), ..plain() }
}
fn timing() -> Config {
    Config { timestamps: true, min_rto: ms(1), ..plain() }
}

/// §2.2: offered in the SYN, whose own window is not scaled; used if the peer offers it too.
#[test]
fn window_scale() {
    // 1 000 000 >> 4 = 62 500 is the first that fits 16 bits.
    let mut alone = Alone::client(&scaling());
    let syn = alone.input(Input::Open);
    assert_eq!((syn[0].window_scale, syn[0].window), (Some(4), 65_535));
    let answer = Segment { window_scale: Some(7), window: 100, ..alone.syn(SYN_ACK, 1) };
    assert_eq!(alone.segment(answer)[0].window, 62_500);
    // 100 bytes unscaled were offered, then 100 << 7.
    assert!(alone.send(50_000).iter().map(|s| s.payload.len()).sum::<usize>() <= 100);
    let wide = Segment { window: 100, ..alone.make(ACK, 1, 101, 0) };
    let sent: usize = alone.segment(wide).iter().map(|s| s.payload.len()).sum();
    assert!(sent > 9_000 && sent <= 12_800, "{sent}");
}

/// §2.2: not used unless the peer offers it; a listener offers it only if the client did.
#[test]
fn no_window_scale() {
    let mut alone = Alone::opening(&scaling());
    let answer = alone.syn(SYN_ACK, 1);
    assert_eq!(alone.segment(answer)[0].window, 65_535);
    let mut alone = Alone::listener(&Config { timestamps: true, ..scaling() });
    let syn = alone.syn(Flags::SYN, 0);
    let answer = alone.segment(syn);
    assert_eq!((answer[0].window_scale, answer[0].timestamps), (None, None));
}

/// §2.3: a shift above 14 is taken as 14.
#[test]
fn absurd_shift() {
    let mut alone = Alone::opening(&scaling());
    let answer = Segment { window_scale: Some(255), ..alone.syn(SYN_ACK, 1) };
    alone.segment(answer);
    assert_eq!(alone.endpoint.state(), State::Established);
    let wide = Segment { window: 1, ..alone.make(ACK, 1, 1, 0) };
    alone.segment(wide);
    let sent: usize = alone.send(50_000).iter().map(|s| s.payload.len()).sum();
    assert_eq!(sent, 10_000);
}

/// §2: more than 64 kB in flight. 80 Mbit/s over 100 ms take a megabyte.
#[test]
fn long_fat_pipe() {
    for (config, rate) in
        [(Config { initial_window: 1000, ..scaling() }, 72e6..77e6), (plain(), 5e6..5.3e6)]
    {
        let config = Config { receive_buffer: Size::from_bytes(4_000_000), ..config };
        let config = Config { send_buffer: Size::from_bytes(100_000_000), ..config };
        let mut pair = Pair::connected(&config);
        pair.rate = Some(Rate::from_bps(80_000_000));
        pair.send(Client, 50_000_000);
        pair.drive_for(ms(1000));
        let before = pair.server.count;
        pair.drive_for(ms(1000));
        let goodput = (pair.server.count - before) as f64 * 8.0;
        assert!(rate.contains(&goodput), "{goodput}");
    }
}

/// §3.2: offered in the SYN, then on every segment; segments without it are dropped, except resets.
#[test]
fn timestamps() {
    let mut alone = Alone::client(&timing());
    alone.clock = Some(5000);
    let syn = alone.input(Input::Open);
    assert_eq!(syn[0].timestamps.map(|(_, echo)| echo), Some(0));
    let answer = alone.syn(SYN_ACK, 1);
    assert_eq!(alone.segment(answer)[0].timestamps.map(|(_, echo)| echo), Some(5000));
    assert!(alone.send(5000).iter().all(|s| s.timestamps.is_some()));
    // RFC 9293 §3.7.1: options reduce the segment's data.
    assert_eq!(alone.sent.last().map(|s| s.payload.len()), Some(5000 - 5 * 988));
    assert_eq!(alone.sent[2].payload.len(), 988);
    alone.clock = None;
    assert!(alone.arrive(ACK, 1, 1, 100).is_empty());
    assert_eq!((alone.count, alone.notes.rx_error.as_slice()), (0, &[RxError::Unexpected][..]));
    alone.arrive(Flags::RST, 1, 0, 0);
    assert_eq!(alone.endpoint.state(), State::Closed);
}

fn timed() -> Alone {
    let mut alone = Alone::client(&Config { delayed_ack: true, ..timing() });
    alone.clock = Some(5000);
    alone.input(Input::Open);
    let answer = alone.syn(SYN_ACK, 1);
    alone.segment(answer);
    alone.sent.clear();
    alone
}

fn echo(segments: &[Segment]) -> Option<u32> {
    segments.last().and_then(|s| s.timestamps).map(|(_, echo)| echo)
}

/// §4.3: with delayed acknowledgements the earliest timestamp is echoed; with a gap the one of the
/// last segment in order; when it is filled, that of the segment that filled it.
#[test]
fn which_timestamp_is_echoed() {
    let mut alone = timed();
    alone.clock = Some(5001);
    alone.arrive(ACK, 1, 1, 1000);
    alone.clock = Some(5002);
    assert_eq!(echo(&alone.arrive(ACK, 1001, 1, 1000)), Some(5001));
    alone.clock = Some(5003);
    assert_eq!(echo(&alone.arrive(ACK, 3001, 1, 1000)), Some(5001));
    alone.clock = Some(5004);
    assert_eq!(echo(&alone.arrive(ACK, 2001, 1, 1000)), Some(5004));
}

/// §5.3 R3, before R2 (an exception): a retransmission of what was acknowledged last changes the echo; one
/// of older data does not (§4.3: SEG.SEQ and SEG.LEN decide), nor does a segment beyond a gap.
#[test]
fn a_retransmission_at_the_edge_is_echoed() {
    let mut alone = timed();
    for (clock, seq) in [(5001, 1), (5002, 1001)] {
        alone.clock = Some(clock);
        alone.arrive(ACK, seq, 1, 1000);
    }
    alone.clock = Some(6000);
    assert_eq!(echo(&alone.arrive(ACK, 1, 1, 1000)), Some(5001));
    assert_eq!(echo(&alone.arrive(ACK, 1001, 1, 1000)), Some(6000));
    alone.clock = Some(7000);
    assert_eq!(echo(&alone.arrive(ACK, 3001, 1, 1000)), Some(6000));
    // Both in one segment, as a sender repacketises them.
    assert_eq!(echo(&alone.arrive(ACK, 1, 1, 2000)), Some(7000));
    // An acknowledgement is not a segment with data, and the timestamps of a reset change nothing (§5.2).
    alone.clock = Some(8000);
    alone.arrive(ACK, 2000, 1, 0);
    alone.arrive(Flags::RST, 1001, 1, 1000);
    assert_eq!(echo(&alone.arrive(ACK, 4001, 1, 1000)), Some(7000));
}

/// The same at both ends: the only segment arrives, its acknowledgement is lost, and the sample is that of
/// the retransmission.
#[test]
fn a_lost_acknowledgement_does_not_stretch_the_sample() {
    for controller in [Controller::Newreno, Controller::Sack, Controller::Cubic] {
        let mut pair = Pair::connected(&Config { controller, ..timing() });
        let mut acks = 0;
        pair.on_wire(move |sent| {
            acks += usize::from(sent.from == Server);
            if sent.from == Server && acks == 1 { Verdict::Drop } else { Verdict::Arrive }
        });
        pair.send(Client, 500);
        pair.drive_for(ms(2000));
        assert_eq!(pair.client.notes.last(Gauge::Srtt), Some(0.1), "{controller:?}");
    }
}

/// §5.3 R1: older than TS.Recent is acknowledged and dropped; resets are exempt (§5.2).
#[test]
fn paws() {
    let mut alone = timed();
    alone.clock = Some(4999);
    let answer = alone.arrive(ACK, 1, 1, 100);
    assert_eq!((answer.len(), Alone::acked(&answer[0]), alone.count), (1, 1, 0));
    assert_eq!(alone.notes.rx_error, [RxError::OldTimestamp]);
    // The clock wraps: half the space ahead is new.
    alone.clock = Some(5000_u32.wrapping_add(1 << 30));
    alone.arrive(ACK, 1, 1, 100);
    assert_eq!(alone.count, 100);
    alone.clock = Some(1);
    alone.arrive(Flags::RST, 101, 0, 0);
    assert_eq!(alone.endpoint.state(), State::Closed);
}

/// §5.5: after 24 days of silence TS.Recent is invalid.
#[test]
fn paws_forgets() {
    let mut alone = timed();
    alone.now = at(25 * 24 * 3_600_000);
    alone.clock = Some(4000);
    alone.arrive(ACK, 1, 1, 100);
    assert_eq!(alone.count, 100);
}

/// §4.1: retransmissions are measured too, so the back-off ends with their acknowledgement.
#[test]
fn round_trips_of_retransmissions_are_measured() {
    let mut pair = Pair::connected(&timing());
    pair.drop_data(Client, &[1]);
    pair.send(Client, 500);
    pair.drive_for(ms(1000));
    assert_eq!(pair.client.notes.last(Gauge::Srtt), Some(0.1));
    assert_eq!(pair.client.notes.last(Gauge::Rto), Some(0.25));
}

/// Appendix G: many samples in a round trip weigh as much together as one.
#[test]
fn many_samples() {
    let mut pair = Pair::connected(&Config { mss: Size::from_bytes(1012), ..timing() });
    pair.delay = ms(90);
    pair.send(Client, 10_000);
    pair.drive_for(ms(180));
    // Ten samples of 180 ms with weights 1/40 (flight 10, 9), 1/32 (8, 7) … 1/8 (2, 1).
    let srtt: f64 = [5.0, 5.0, 4.0, 4.0, 3.0, 3.0, 2.0, 2.0, 1.0, 1.0]
        .iter()
        .fold(100.0, |srtt, samples| srtt + (180.0 - srtt) / (8.0 * samples));
    let measured = pair.client.notes.last(Gauge::Srtt).unwrap_or(0.0) * 1e3;
    assert!((measured - srtt).abs() < 0.001, "{measured} {srtt}");
}

/// §2.2: the window of a repeated SYN in a simultaneous open is not scaled either.
#[test]
fn window_of_a_crossing_syn() {
    let mut alone = Alone::opening(&scaling());
    let syn = Segment { window_scale: Some(7), ..alone.syn(Flags::SYN, 0) };
    alone.segment(syn);
    let again = Segment { window_scale: Some(7), window: 2_000, ..alone.syn(SYN_ACK, 1) };
    alone.segment(again);
    assert_eq!(alone.endpoint.state(), State::Established);
    let sent: usize = alone.send(50_000).iter().map(|s| s.payload.len()).sum();
    // One full segment; the rest of the window is less than half of it.
    assert_eq!(sent, 1_000);
}

/// §5.2: a reset answers the timestamp of the segment that caused it, with a TSval of zero; one that the
/// application requested carries the usual timestamps.
#[test]
fn resets_carry_timestamps() {
    let mut alone = Alone::client(&timing());
    alone.clock = Some(7000);
    let answer = alone.arrive(ACK, 1, 5, 10);
    assert_eq!((answer[0].flags, answer[0].timestamps), (Flags::RST, Some((0, 7000))));
    alone.clock = None;
    assert_eq!(alone.arrive(ACK, 1, 5, 10)[0].timestamps, None);

    let mut alone = timed();
    let reset = alone.input(Input::Abort);
    assert_eq!(reset[0].flags, Flags::RST);
    assert_eq!(reset[0].timestamps.map(|(_, echo)| echo), Some(5000));
}
