//! RFC 9293, clause by clause: what is on the wire, and when.

use talkspurt_proto::endpoint::{Arrival, Endpoint, Event, Input, Output, Transmit};
use talkspurt_proto::packet::{Damage, Ecn, IpVersion, PathId};
use talkspurt_proto::probe::RxError;
use talkspurt_proto::tcp::{Config, Flags, Segment, State, Tcp};
use talkspurt_proto::units::Size;
use talkspurt_testing::tcp::*;

const SYN: Flags = Flags::SYN;
const ACK: Flags = Flags::ACK;
const RST: Flags = Flags::RST;
const SYN_ACK: Flags = Flags(0x12);
const FIN_ACK: Flags = Flags(0x11);

fn wire(pair: &Pair) -> Vec<(Side, Flags, u32, u32)> {
    pair.log.iter().map(|sent| (sent.from, sent.segment.flags, sent.seq, sent.ack)).collect()
}

fn states(pair: &Pair) -> (State, State) {
    (pair.client.endpoint.state(), pair.server.endpoint.state())
}

/// §3.5 figure 6
#[test]
fn three_way_handshake() {
    let pair = Pair::connected(&plain());
    assert_eq!(wire(&pair), [(Client, SYN, 0, 0), (Server, SYN_ACK, 0, 1), (Client, ACK, 1, 1)]);
    assert_eq!(pair.client.events, [(at(100), Event::Connected)]);
    assert_eq!(pair.server.events, [(at(150), Event::Connected)]);
}

/// §3.5 figure 8
#[test]
fn both_open_at_once() {
    let tcp = |name| Tcp::client(&plain(), talkspurt_proto::rng::Rng::new(1, name));
    let mut pair = Pair::between(tcp("a"), tcp("b"));
    pair.input(Client, Input::Open);
    pair.input(Server, Input::Open);
    pair.drive_for(ms(60));
    assert_eq!(pair.client.endpoint.state(), State::SynReceived);
    assert_eq!(
        wire(&pair),
        [
            (Client, SYN, 0, 0),
            (Server, SYN, 0, 0),
            (Server, SYN_ACK, 0, 1),
            (Client, SYN_ACK, 0, 1)
        ]
    );
    pair.drive_for(ms(100));
    for end in [&pair.client, &pair.server] {
        assert_eq!(end.endpoint.state(), State::Established);
        assert_eq!(end.events, [(at(100), Event::Connected)]);
    }
    pair.send(Client, 5000);
    pair.drive_for(ms(200));
    assert_eq!(pair.server.count, 5000);
}

/// §3.4.1: the number moves with a 4 µs clock and differs between connections.
#[test]
fn initial_numbers_follow_a_clock() {
    let isn = |name, now| {
        let mut tcp = Alone::client(&plain());
        tcp.endpoint = Tcp::client(&plain(), talkspurt_proto::rng::Rng::new(1, name));
        tcp.now = now;
        tcp.input(Input::Open)[0].seq
    };
    assert_eq!(isn("a", at(1000)).wrapping_sub(isn("a", at(0))), 250_000);
    assert_ne!(isn("a", at(0)), isn("b", at(0)));
}

/// §3.5.2, §3.10.7.3: an answer to a SYN never sent is refused, and the real one still counts.
#[test]
fn half_open_connections_are_found() {
    let mut alone = Alone::opening(&plain());
    let old = alone.make(ACK, 300, 100, 0);
    let answer = alone.segment(old.clone());
    assert_eq!((answer.len(), answer[0].flags, answer[0].seq), (1, RST, old.ack));
    assert_eq!(alone.notes.rx_error, [RxError::BadAck]);
    // A reset that acknowledges nothing of ours is ignored.
    assert!(alone.arrive(RST, 0, 0, 0).is_empty());
    let late = alone.arrive(Flags(0x14), 0, 77, 0);
    assert!(late.is_empty() && alone.endpoint.state() == State::SynSent);
    let good = alone.syn(SYN_ACK, 1);
    assert_eq!(alone.segment(good)[0].flags, ACK);
    assert_eq!(alone.endpoint.state(), State::Established);
}

/// §3.10.7.3: a reset that acknowledges our SYN refuses the connection.
#[test]
fn refused() {
    let mut alone = Alone::opening(&plain());
    assert!(alone.arrive(Flags(0x14), 0, 1, 0).is_empty());
    assert_eq!(alone.end(), (State::Closed, &[Event::Reset][..]));
}

/// §3.10.7.1
#[test]
fn a_closed_port_resets() {
    let mut alone = Alone::client(&plain());
    let answer = alone.arrive(SYN, 10, 0, 5);
    assert_eq!((answer[0].flags, answer[0].seq), (Flags(0x14), 0));
    assert_eq!(Alone::acked(&answer[0]), 16);
    let answer = alone.arrive(ACK, 10, 700, 0);
    assert_eq!((answer[0].flags, alone.place(&answer[0])), (RST, 700));
    assert!(alone.arrive(RST, 10, 0, 0).is_empty());
}

/// §3.10.7.2
#[test]
fn a_listener_wants_a_syn() {
    let mut alone = Alone::listener(&plain());
    assert!(alone.arrive(RST, 0, 0, 0).is_empty());
    assert_eq!(alone.arrive(ACK, 0, 55, 0)[0].flags, RST);
    assert!(alone.arrive(Flags::FIN, 0, 0, 0).is_empty());
    let syn = alone.syn(SYN, 0);
    let answer = alone.segment(syn);
    assert_eq!((answer[0].flags, Alone::acked(&answer[0])), (SYN_ACK, 1));
}

/// §3.10.7.4, second and fourth check in SYN-RECEIVED: back to LISTEN, ready for another.
#[test]
fn a_reset_listener_listens_again() {
    for flags in [RST, SYN] {
        let mut alone = Alone::listener(&plain());
        let syn = alone.syn(SYN, 0);
        alone.segment(syn.clone());
        assert!(alone.arrive(flags, 1, 0, 0).is_empty());
        assert_eq!(alone.endpoint.state(), State::Listen);
        assert_eq!(alone.wake, None);
        assert_eq!(alone.segment(syn)[0].flags, SYN_ACK);
        alone.arrive(ACK, 1, 1, 0);
        assert_eq!(alone.endpoint.state(), State::Established);
    }
}

/// §3.10.7.4, fifth check in SYN-RECEIVED
#[test]
fn a_wrong_ack_of_the_syn_is_reset() {
    let mut alone = Alone::listener(&plain());
    let syn = alone.syn(SYN, 0);
    alone.segment(syn);
    let answer = alone.arrive(ACK, 1, 2, 0);
    assert_eq!((answer[0].flags, alone.place(&answer[0])), (RST, 2));
    assert_eq!(alone.endpoint.state(), State::SynReceived);
}

/// §3.10.7.4, first check: segments outside the window are acknowledged and dropped. Data received
/// before is a retransmission, and no rx_error.
#[test]
fn out_of_window() {
    let mut alone = Alone::established(&plain());
    let window = alone.arrive(ACK, 1, 1, 100)[0].window;
    for (seq, len) in [(1, 100), (101 + u32::from(window), 1), (500_000, 10)] {
        let answer = alone.arrive(ACK, seq, 1, len);
        assert_eq!((answer.len(), Alone::acked(&answer[0])), (1, 101), "{seq}");
    }
    assert_eq!(alone.notes.rx_error, [RxError::OutOfWindow; 2]);
    assert!(alone.arrive(RST, 100, 0, 0).is_empty());
    assert_eq!((alone.count, alone.endpoint.state()), (100, State::Established));
    // A segment that begins before the window brings its new part (§3.4).
    alone.arrive(ACK, 51, 1, 100);
    assert_eq!(alone.count, 150);
}

/// §3.10.7.4, second check: a reset must hit RCV.NXT exactly; inside the window it is challenged.
#[test]
fn resets() {
    let mut alone = Alone::established(&plain());
    let answer = alone.arrive(RST, 5, 0, 0);
    assert_eq!((answer[0].flags, Alone::acked(&answer[0])), (ACK, 1));
    assert_eq!(alone.endpoint.state(), State::Established);
    assert!(alone.arrive(RST, 1, 0, 0).is_empty());
    assert_eq!(alone.end(), (State::Closed, &[Event::Reset][..]));
}

/// §3.10.7.4, fourth and fifth check, RFC 5961 §7: challenges, but not for ever.
#[test]
fn challenges_are_throttled() {
    let mut alone = Alone::established(&plain());
    assert_eq!(alone.arrive(SYN, 5, 0, 0)[0].flags, ACK);
    assert_eq!(alone.arrive(ACK, 1, 40_000, 0)[0].flags, ACK);
    assert_eq!(alone.arrive(ACK, 1, 0_u32.wrapping_sub(30_000), 0)[0].flags, ACK);
    assert_eq!(alone.notes.rx_error, [RxError::BadAck; 2]);
    let answers: usize = (0..50).map(|_| alone.arrive(SYN, 5, 0, 0).len()).sum();
    assert_eq!(answers, 7);
    alone.now = at(6000);
    assert_eq!(alone.arrive(SYN, 5, 0, 0).len(), 1);
    assert_eq!(alone.endpoint.state(), State::Established);
}

/// §3.6 figure 12
#[test]
fn normal_close() {
    let mut pair = Pair::connected(&plain());
    pair.log.clear();
    pair.input(Client, Input::Close);
    assert_eq!(pair.client.endpoint.state(), State::FinWait1);
    pair.drive_for(ms(100));
    assert_eq!(states(&pair), (State::FinWait2, State::CloseWait));
    pair.input(Server, Input::Close);
    assert_eq!(pair.server.endpoint.state(), State::LastAck);
    pair.drive_for(ms(100));
    assert_eq!(states(&pair), (State::TimeWait, State::Closed));
    assert_eq!(
        wire(&pair),
        [
            (Client, FIN_ACK, 1, 1),
            (Server, ACK, 1, 2),
            (Server, FIN_ACK, 1, 2),
            (Client, ACK, 2, 2)
        ]
    );
    // §3.6.1: two maximum segment lifetimes, 2 · 30 s, after the peer's FIN came at 300 ms.
    pair.drive();
    assert_eq!((pair.now, pair.client.endpoint.state()), (at(60_300), State::Closed));
}

/// §3.6 figure 13
#[test]
fn both_close_at_once() {
    let mut pair = Pair::connected(&plain());
    pair.log.clear();
    pair.input(Client, Input::Close);
    pair.input(Server, Input::Close);
    pair.drive_for(ms(50));
    assert_eq!(states(&pair), (State::Closing, State::Closing));
    pair.drive_for(ms(50));
    assert_eq!(states(&pair), (State::TimeWait, State::TimeWait));
    assert_eq!(
        wire(&pair),
        [
            (Client, FIN_ACK, 1, 1),
            (Server, FIN_ACK, 1, 1),
            (Server, ACK, 2, 2),
            (Client, ACK, 2, 2)
        ]
    );
    assert!(pair.client.saw(Event::Closed) && pair.server.saw(Event::Closed));
}

/// §3.6, case 2: after the peer's FIN this side may go on sending.
#[test]
fn half_close() {
    let mut pair = Pair::connected(&plain());
    pair.send(Client, 3000);
    pair.input(Client, Input::Close);
    assert_eq!(pair.client.endpoint.send_capacity(), 0);
    pair.drive_for(ms(500));
    assert!(pair.server.saw(Event::PeerClosed) && pair.server.count == 3000);
    pair.send(Server, 50_000);
    pair.drive_for(ms(2000));
    assert_eq!(pair.client.count, 50_000);
    pair.input(Server, Input::Close);
    pair.drive_for(ms(200));
    assert!(pair.server.saw(Event::Closed) && pair.client.saw(Event::Closed));
}

/// §3.10.7.4, eighth check in TIME-WAIT: a FIN again is acknowledged and the wait begins anew.
#[test]
fn time_wait_starts_over() {
    let mut alone = Alone::established(&plain());
    alone.input(Input::Close);
    alone.arrive(FIN_ACK, 1, 2, 0);
    assert_eq!((alone.endpoint.state(), alone.wake), (State::TimeWait, Some(at(60_000))));
    alone.now = at(10_000);
    assert_eq!(alone.arrive(FIN_ACK, 1, 2, 0)[0].flags, ACK);
    assert_eq!(alone.wake, Some(at(70_000)));
    alone.wait();
    assert_eq!(alone.endpoint.state(), State::Closed);
}

/// A FIN that overtakes the data before it counts when the data has come.
#[test]
fn fin_out_of_order() {
    let mut alone = Alone::established(&plain());
    assert_eq!(Alone::acked(&alone.arrive(FIN_ACK, 101, 1, 0)[0]), 1);
    assert_eq!(alone.endpoint.state(), State::Established);
    assert_eq!(Alone::acked(&alone.arrive(ACK, 1, 1, 100)[0]), 102);
    assert_eq!((alone.count, alone.endpoint.state()), (100, State::CloseWait));
}

/// §3.10.5
#[test]
fn abort() {
    let mut alone = Alone::established(&plain());
    alone.send(1500);
    let answer = alone.input(Input::Abort);
    assert_eq!((answer[0].flags, alone.place(&answer[0])), (RST, 1501));
    assert_eq!(alone.end(), (State::Closed, &[Event::Reset][..]));
    let mut alone = Alone::opening(&plain());
    assert!(alone.input(Input::Abort).is_empty());
    assert_eq!(alone.wake, None);
}

/// §3.10.4: Close before anything was sent or answered ends at once.
#[test]
fn close_before_open() {
    let mut alone = Alone::opening(&plain());
    assert!(alone.input(Input::Close).is_empty());
    assert_eq!(alone.end(), (State::Closed, &[Event::Closed][..]));
}

/// §3.8.3: beyond R2 the connection is given up.
#[test]
fn gives_up() {
    let config = Config { max_retransmissions: 3, ..plain() };
    let mut pair = Pair::connected(&config);
    pair.on_wire(|_| Verdict::Drop);
    pair.send(Client, 1000);
    pair.drive();
    assert_eq!(pair.data(Client).len(), 4);
    // Timeouts of 1, 2, 4 and 8 s after 150 ms.
    assert_eq!(pair.client.events.last(), Some(&(at(15_150), Event::TimedOut)));
}

/// §3.8.3, R2 of a SYN: a SYN-ACK is repeated for three minutes, seven times, and the listener
/// listens again: a forged SYN neither closes it nor makes it send for ever.
#[test]
fn a_syn_ack_is_given_up() {
    let mut alone = Alone::listener(&plain());
    let syn = alone.syn(SYN, 0);
    alone.segment(syn.clone());
    let mut sent = vec![(alone.now, SYN_ACK)];
    while alone.wake.is_some() {
        let again = alone.wait();
        sent.extend(again.iter().map(|segment| (alone.now, segment.flags)));
    }
    let times = [0, 1, 3, 7, 15, 31, 63, 123].map(|second| (at(second * 1000), SYN_ACK));
    assert_eq!(sent, times);
    assert_eq!((alone.now, alone.endpoint.state()), (at(183_000), State::Listen));
    assert!(alone.events.is_empty(), "{:?}", alone.events);
    // A repeated SYN is answered again, equally often.
    assert_eq!(alone.segment(syn)[0].flags, SYN_ACK);
    alone.arrive(ACK, 1, 1, 0);
    assert_eq!(alone.endpoint.state(), State::Established);
}

/// The same with fewer repetitions, by either parameter.
#[test]
fn a_syn_ack_is_given_up_as_the_knobs_say() {
    for (synack, any, most) in [(5, 15, 5), (0, 15, 0), (7, 3, 3)] {
        let (max_synack_retransmissions, max_retransmissions) = (synack, any);
        let config = Config { max_synack_retransmissions, max_retransmissions, ..plain() };
        let mut alone = Alone::listener(&config);
        alone.segment(alone.syn(SYN, 0));
        while alone.wake.is_some() {
            alone.wait();
        }
        assert_eq!((alone.sent.len(), alone.endpoint.state()), (1 + most, State::Listen));
    }
}

/// §3.7.1: the lesser of both MSS; 536 if the peer names none.
#[test]
fn segment_size() {
    for (offer, full) in [(Some(700), 700), (Some(9000), 1000), (None, 536)] {
        let mut alone = Alone::client(&plain());
        let syn = alone.input(Input::Open);
        assert_eq!(syn[0].mss, Some(1000));
        let answer = Segment { mss: offer, ..alone.syn(SYN_ACK, 1) };
        alone.segment(answer);
        assert_eq!(alone.send(5000)[0].payload.len(), full);
    }
}

/// §3.7.4 Nagle: a small segment waits while something is unacknowledged.
#[test]
fn nagle() {
    let mut config = plain();
    for (nagle, at_once) in [(true, vec![10]), (false, vec![10, 10, 10])] {
        config.nagle = nagle;
        let mut alone = Alone::established(&config);
        (0..3).for_each(|_| drop(alone.send(10)));
        let sizes: Vec<_> = alone.sent.iter().map(|segment| segment.payload.len()).collect();
        assert_eq!(sizes, at_once);
    }
    config.nagle = true;
    let mut alone = Alone::established(&config);
    alone.send(10);
    assert!(alone.send(500).is_empty());
    assert_eq!(alone.arrive(ACK, 1, 11, 0)[0].payload.len(), 500);
    // A full segment does not wait.
    assert_eq!(alone.send(1000).len(), 1);
}

/// §3.8.6.1: probes of a closed window begin after RTO, back off, and go on while answered.
#[test]
fn zero_window_probes() {
    let config = Config { max_retransmissions: 3, ..plain() };
    let mut alone = Alone::established(&config);
    let shut = Segment { window: 0, ..alone.make(ACK, 1, 1, 0) };
    alone.segment(shut.clone());
    assert!(alone.send(3000).is_empty());
    let mut waits = Vec::new();
    for _ in 0..10 {
        let before = alone.now;
        let probe = alone.wait();
        assert_eq!((probe.len(), probe[0].payload.len(), alone.place(&probe[0])), (1, 1, 1));
        waits.push((alone.now - before).as_nanos() / 1_000_000_000);
        assert!(alone.segment(shut.clone()).is_empty());
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
    assert_eq!(alone.endpoint.state(), State::Established);
    // The peer took the probed byte, and its window is open.
    let flow = alone.arrive(ACK, 1, 2, 0);
    assert_eq!((alone.place(&flow[0]), flow.len()), (2, 3));
}

/// §3.8.6.1 and §3.8.3: unanswered probes end like unanswered data.
#[test]
fn unanswered_probes_end() {
    let config = Config { max_retransmissions: 3, ..plain() };
    let mut alone = Alone::established(&config);
    let shut = Segment { window: 0, ..alone.make(ACK, 1, 1, 0) };
    alone.segment(shut);
    alone.send(10);
    (0..4).for_each(|_| drop(alone.wait()));
    assert_eq!((alone.events.as_slice(), alone.wake), (&[Event::TimedOut][..], None));
}

/// §3.8.6.2.1: less than a segment and less than half the largest window is not worth sending,
/// until the override timeout.
#[test]
fn sender_avoids_silly_windows() {
    let mut alone = Alone::established(&plain());
    let narrow = Segment { window: 400, ..alone.make(ACK, 1, 1, 0) };
    alone.segment(narrow);
    assert!(alone.send(3000).is_empty());
    let forced = alone.wait();
    assert_eq!((forced.len(), forced[0].payload.len(), alone.now), (1, 400, at(1000)));
    // Half the largest window ever offered is worth it.
    let mut alone = Alone::opening(&plain());
    let small = Segment { window: 800, ..alone.syn(SYN_ACK, 1) };
    alone.segment(small);
    assert_eq!(alone.send(3000)[0].payload.len(), 800);
    let half = Segment { window: 400, ..alone.make(ACK, 1, 801, 0) };
    assert_eq!(alone.segment(half)[0].payload.len(), 400);
}

/// §3.8.6.2.2: the right edge moves by a segment or half the buffer, not byte by byte.
#[test]
fn receiver_avoids_silly_windows() {
    let config = Config { receive_buffer: Size::from_bytes(10_000), ..plain() };
    let mut alone = Alone::established(&config);
    let mut edges: Vec<u32> = (0..30)
        .map(|i| {
            let ack = alone.arrive(ACK, 1 + i * 100, 1, 100);
            Alone::acked(&ack[0]) + u32::from(ack[0].window)
        })
        .collect();
    edges.dedup();
    assert_eq!(edges, [10_001, 11_001, 12_001, 13_001]);
}

/// RFC 1191 §3 and §6: data that a router dropped is sent again in smaller segments, and the window
/// shrinks with them (RFC 5681 §3.1), not more.
#[test]
fn packet_too_big() {
    let mut pair = Pair::connected(&plain());
    pair.mtu = 540;
    pair.send(Client, 10_000);
    pair.drive_for(ms(5000));
    assert_eq!(pair.server.count, 10_000);
    let fits: Vec<_> = pair.data(Client).into_iter().filter(|sent| !sent.dropped).collect();
    assert!(fits.iter().all(|sent| sent.len() <= 500));
    assert_eq!(fits.iter().filter(|sent| sent.at == fits[0].at).count(), 10);
    assert_eq!(fits.len(), 20);
}

/// RFC 1191 §3: never below 68; RFC 8201 §4: never below 1280.
#[test]
fn packet_too_big_has_a_floor() {
    for (version, mtu, mss) in
        [(IpVersion::V4, 0, 28), (IpVersion::V6, 600, 1220), (IpVersion::V6, 1400, 1340)]
    {
        let config = Config { timestamps: false, ..big() };
        let mut tcp =
            Tcp::client(&config, talkspurt_proto::rng::Rng::new(1, "floor")).over(version);
        tcp.handle(at(0), Input::Open, &mut ());
        let Output::Transmit(Transmit { packet: syn, .. }) = tcp.poll(at(0), &mut ()) else {
            panic!("a SYN")
        };
        tcp.handle(at(0), refusal(mtu, syn.seq), &mut ());
        assert_eq!(tcp.segment_bytes(), mss);
    }
}

/// RFC 5927 §4.1: the quoted sequence number must be in flight; otherwise anyone who guesses the
/// addresses and ports could shrink the segments.
#[test]
fn packet_too_big_must_quote_what_is_in_flight() {
    let mut alone = Alone::established(&big());
    let flight = alone.send(2000);
    let (first, after) = (flight[0].seq, flight[0].seq.wrapping_add(2000));
    let before = alone.endpoint.segment_bytes();
    for stray in [first.wrapping_sub(1), after, first.wrapping_add(1 << 31)] {
        alone.input(refusal(576, stray));
        assert_eq!(alone.endpoint.segment_bytes(), before);
    }
    assert_eq!(alone.notes.rx_error, [RxError::OutOfWindow; 3]);
    alone.input(refusal(576, after.wrapping_sub(1)));
    assert!(alone.endpoint.segment_bytes() < before);
}

/// §3.8.6.2.1: the override waits 0.1 to 1 s, though the RTO is longer (here 1 s, backed off to
/// 4 s by a window that was closed).
#[test]
fn silly_window_override_waits_a_second_at_most() {
    let mut alone = Alone::established(&plain());
    let window = |alone: &Alone, window| Segment { window, ..alone.make(ACK, 1, 1, 0) };
    let shut = window(&alone, 0);
    alone.segment(shut.clone());
    assert!(alone.send(3000).is_empty());
    for _ in 0..2 {
        assert_eq!(alone.wait().len(), 1);
        alone.segment(shut.clone());
    }
    // 4 s to the next probe; then a window opens that is worth no segment.
    let (opened, narrow) = (alone.now, window(&alone, 10));
    assert!(alone.segment(narrow).is_empty());
    let sent = alone.wait();
    assert_eq!(alone.now - opened, ms(1000));
    assert_eq!(sent.iter().map(|segment| segment.payload.len()).collect::<Vec<_>>(), [10]);
}

fn big() -> Config {
    Config { mss: Size::from_bytes(1440), ..plain() }
}

/// §3.1: a damaged segment fails its checksum.
#[test]
fn checksum() {
    let mut alone = Alone::established(&plain());
    let packet = alone.make(ACK, 1, 1, 100);
    alone.input(Input::Packet {
        arrival: Arrival { path: PathId(0), ecn: Ecn::NotEct, damage: Damage::Payload },
        packet,
    });
    assert_eq!((alone.count, alone.notes.rx_error.as_slice()), (0, &[RxError::Checksum][..]));
}

/// §3.8.6.1: if the probe was the last data and was accepted, no timer remains.
#[test]
fn a_probe_that_ends_the_data() {
    let mut alone = Alone::established(&plain());
    let shut = Segment { window: 0, ..alone.make(ACK, 1, 1, 0) };
    alone.segment(shut);
    alone.send(1);
    assert_eq!(alone.wait().len(), 1);
    let taken = Segment { window: 0, ..alone.make(ACK, 1, 2, 0) };
    alone.segment(taken);
    assert_eq!(alone.wake, None);
}
