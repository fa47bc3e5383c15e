//! SCTP congestion control and path MTU (RFC 9260 §7), the timer T3 (§6.3.3), and path supervision
//! (§8.1, §8.3).

use talkspurt_proto::endpoint::{Event, Input};
use talkspurt_proto::packet::{IpVersion, PathId};
use talkspurt_proto::probe::RxError;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::sctp::{Chunk, Config, Sack, Sctp};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;
use talkspurt_testing::sctp::{Client, Pair, Server, Verdict, at, ms, plain};

#[test]
fn section_7_2_1_slow_start_and_the_initial_window() {
    // PMDCS 1016: min(4 · 1016, max(2 · 1016, 4404)) = 4064.
    let mut pair = Pair::connected(&plain());
    assert_eq!(pair.client.endpoint.window(PathId(0)), Some((4064, None)));
    for number in 0..30 {
        pair.send(Client, number, 1000);
    }
    let sent = |pair: &Pair| pair.sent_by(Client).filter(|s| s.has_data()).count();
    assert_eq!(sent(&pair), 4);
    pair.drive_for(ms(100));
    // Each SACK frees a chunk and adds one, but only while the window was full before it.
    let (window, _) = pair.client.endpoint.window(PathId(0)).unwrap();
    assert!((5 * 1016..=8 * 1016).contains(&window), "{window}");
    let mtu = Config { mtu: Size::from_bytes(1500), ..plain() };
    // PMDCS 1468: max(2936, 4404) = 4404.
    assert_eq!(Sctp::client(&mtu, Rng::new(1, "a")).window(PathId(0)), Some((4404, None)));
    // Over IPv6 4344: PMDCS 1448, max(2896, 4344).
    let six = Sctp::client(&mtu, Rng::new(1, "a")).over(IpVersion::V6);
    assert_eq!(six.window(PathId(0)), Some((4344, None)));
}

/// Max.Burst limits what leaves at one opportunity, not what leaves until the next SACK.
#[test]
fn section_6_1_d_max_burst_limits_each_opportunity() {
    let config = Config { initial_window: Some(Size::from_bytes(60_000)), ..plain() };
    let mut pair = Pair::connected(&config);
    pair.delay = ms(150);
    let start = pair.now;
    for number in 0..14 {
        pair.send(Client, number, 1000);
        pair.drive_for(ms(20));
    }
    let data = |pair: &Pair| pair.sent_by(Client).filter(|s| s.has_data()).map(|s| s.at).collect();
    let times: Vec<_> = data(&pair);
    let expected: Vec<_> = (0..14).map(|number| start + ms(20 * number)).collect();
    assert_eq!(times, expected);
    pair.drive_for(Duration::from_secs(2));
    // Of the data passed at one instant four packets leave, the others with the SACKs.
    let now = pair.now;
    for number in 0..20 {
        pair.send(Client, number, 1000);
    }
    pair.drive_for(ms(299));
    assert_eq!(data(&pair).iter().filter(|at| **at == now).count(), 4);
    assert_eq!(pair.sent_by(Client).filter(|s| s.has_data() && s.at > now).count(), 0);
    pair.drive_for(ms(900));
    assert_eq!(pair.server.received.len(), 34);
}

/// An association whose SACKs the test writes: what the server sends is lost.
struct Told {
    pair: Pair,
    tag: u32,
    first: u32,
}

impl Told {
    fn new(config: &Config) -> Self {
        let mut pair = Pair::connected(&Config { max_burst: 100, ..config.clone() });
        pair.on_wire(|sent| if sent.from == Server { Verdict::Drop } else { Verdict::Arrive });
        let ((tag, _), first) = (pair.tags(), pair.first_tsn(Client));
        Self { pair, tag, first }
    }

    /// A SACK of so many chunks cumulatively, and of gaps counted from there.
    fn sack(&mut self, chunks: u32, gaps: &[(u16, u16)], duplicates: &[u32]) {
        let sack = Sack {
            cumulative: self.first.wrapping_add(chunks).wrapping_sub(1),
            a_rwnd: 4_000_000,
            gaps: gaps.to_vec(),
            duplicates: duplicates.iter().map(|chunk| self.first.wrapping_add(*chunk)).collect(),
        };
        self.pair.forge(Client, self.tag, vec![Chunk::Sack(sack)]);
    }

    fn send(&mut self, chunks: u8) {
        (0..chunks).for_each(|number| self.pair.send(Client, number, 1000));
    }

    /// How often a chunk left.
    fn copies(&self, chunk: u32) -> usize {
        let tsn = self.first.wrapping_add(chunk);
        self.pair.sent_by(Client).flat_map(|s| s.data()).filter(|data| data.tsn == tsn).count()
    }

    fn window(&self) -> (u64, Option<u64>) {
        self.pair.client.endpoint.window(PathId(0)).unwrap()
    }
}

/// The Note: a SACK that advances the cumulative point lets the window grow before it is halved.
#[test]
fn section_7_2_4_the_window_grows_before_it_is_reduced() {
    let window = Some(Size::from_bytes(20 * 1016));
    let mut told = Told::new(&Config { initial_window: window, ..plain() });
    told.send(60);
    told.sack(1, &[(3, 3)], &[]);
    assert_eq!(told.window(), (21 * 1016, None));
    told.sack(1, &[(3, 4)], &[]);
    // Chunk 1 came, chunk 2 is missed for the third time.
    told.sack(2, &[(2, 4)], &[]);
    assert_eq!(told.window(), (11 * 1016, Some(11 * 1016)));
}

/// Step 3: a packet leaves regardless of the window only at the beginning of a recovery.
#[test]
fn section_7_2_4_nothing_is_forced_out_during_a_recovery() {
    let window = Some(Size::from_bytes(40 * 1016));
    let mut told = Told::new(&Config { initial_window: window, ..plain() });
    told.send(100);
    for last in 2..=4 {
        told.sack(0, &[(2, last)], &[]);
    }
    assert_eq!((told.copies(0), told.window().0), (2, 20 * 1016));
    // Chunk 10 is missed three times too, while 30 chunks and more are in flight.
    for last in 12..=14 {
        told.sack(0, &[(2, 10), (12, last)], &[]);
    }
    assert_eq!(told.copies(10), 1);
    // As soon as the window has room it leaves, before new data.
    let before = told.pair.log.len();
    told.sack(0, &[(2, 10), (12, 40)], &[]);
    assert_eq!(told.copies(10), 2);
    let first = told.pair.log[before..].iter().flat_map(|sent| sent.data()).next().unwrap();
    assert_eq!(first.tsn, told.first.wrapping_add(10));
}

/// Bytes of chunks reported as duplicates count in partial_bytes_acked, once for each copy sent.
#[test]
fn section_7_2_2_reported_duplicates_count() {
    for (duplicates, grown) in [(&[][..], 0), (&[0], 1016), (&[1], 0)] {
        let window = Some(Size::from_bytes(8 * 1016));
        let mut told = Told::new(&Config { initial_window: window, ..plain() });
        told.send(60);
        for last in 2..=4 {
            told.sack(0, &[(2, last)], &[]);
        }
        assert_eq!((told.copies(0), told.window().0), (2, 4 * 1016));
        // The exit point is chunk 9: the recovery is over, and slow start adds a chunk.
        told.sack(10, &[], &[]);
        let (window, threshold) = told.window();
        assert_eq!((window, threshold), (5 * 1016, Some(4 * 1016)));
        // Congestion avoidance: four chunks of five are acknowledged, and a duplicate is reported.
        for chunks in 11..=13 {
            told.sack(chunks, &[], &[]);
        }
        told.sack(14, &[], duplicates);
        assert_eq!(told.window().0 - window, grown, "{duplicates:?}");
    }
}

/// §7.2.1, §7.2.3: after T3 one packet is in flight, however short, until it is acknowledged.
#[test]
fn section_7_2_3_after_t3_there_is_one_packet() {
    let mut pair = Pair::connected(&plain());
    pair.drop_data(Client, &[1, 2, 3]);
    let start = pair.now;
    for number in 0..3 {
        pair.send(Client, number, 100);
    }
    pair.drive_for(ms(1010));
    for number in 3..6 {
        pair.send(Client, number, 100);
    }
    pair.drive_for(Duration::from_secs(2));
    let sent: Vec<_> = pair
        .sent_by(Client)
        .filter(|sent| sent.has_data())
        .map(|sent| (sent.at.saturating_since(start), sent.data().count()))
        .collect();
    assert_eq!(sent[..3], [(ms(0), 1); 3]);
    assert_eq!(sent[3..], [(ms(1000), 3), (ms(1100), 3)]);
    assert_eq!(pair.server.numbers(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn section_7_2_2_congestion_avoidance_adds_a_chunk_a_window() {
    let config = Config { initial_ssthresh: Some(Size::from_bytes(1016)), ..plain() };
    let mut pair = Pair::connected(&config);
    for number in 0..200 {
        pair.send(Client, number, 1000);
    }
    let mut windows = Vec::new();
    for _ in 0..6 {
        windows.push(pair.client.endpoint.window(PathId(0)).unwrap().0);
        pair.drive_for(ms(100));
    }
    let steps: Vec<_> = windows.windows(2).map(|w| w[1] - w[0]).collect();
    assert_eq!(windows[0], 4064);
    assert!(steps.iter().all(|step| *step == 1016 || *step == 0), "{windows:?}");
    assert!(windows[5] >= 4064 + 4 * 1016, "{windows:?}");
}

#[test]
fn section_7_2_4_three_missing_reports_retransmit_and_halve() {
    let config = Config { initial_window: Some(Size::from_bytes(20_320)), ..plain() };
    let config = Config { max_burst: 100, ..config };
    let mut pair = Pair::connected(&config);
    let tsn = pair.first_tsn(Client);
    pair.drop_data(Client, &[1]);
    let start = pair.now;
    for number in 0..20 {
        pair.send(Client, number, 1000);
    }
    pair.drive_for(ms(450));
    let again: Vec<_> = pair
        .sent_by(Client)
        .filter(|sent| sent.data().any(|data| data.tsn == tsn))
        .map(|sent| sent.at)
        .collect();
    // The SACKs of packets 2, 3 and 4 come back together after 100 ms: long before T3.
    assert_eq!(again, [start, start + ms(100)]);
    assert_eq!(pair.client.endpoint.window(PathId(0)).unwrap().1, Some(20_320 / 2));
    assert_eq!(pair.server.numbers(), (0..20).collect::<Vec<u8>>());
}

#[test]
fn section_7_2_4_two_missing_reports_are_not_enough() {
    let mut pair = Pair::connected(&plain());
    let tsn = pair.first_tsn(Client);
    let start = pair.now;
    let late = |count| if count == 1 { Verdict::Late(ms(30)) } else { Verdict::Arrive };
    pair.judge_counted(|sent| sent.has_data(), late);
    for number in 0..3 {
        pair.send(Client, number, 1000);
    }
    pair.drive_for(ms(900));
    let copies = pair.sent_by(Client).flat_map(|s| s.data()).filter(|d| d.tsn == tsn).count();
    assert_eq!(copies, 1);
    assert_eq!(pair.server.received.last().unwrap().0, start + ms(80));
}

#[test]
fn section_6_3_3_t3_backs_off_and_leaves_one_chunk() {
    let mut pair = Pair::connected(&plain());
    let start = pair.now;
    pair.judge_counted(|sent| sent.has_data(), |count| Verdict::drop_if(count <= 6));
    for number in 0..4 {
        pair.send(Client, number, 1000);
    }
    pair.drive_for(ms(999));
    pair.drive_for(ms(2));
    // §7.2.3: cwnd is one chunk, ssthresh four at least.
    assert_eq!(pair.client.endpoint.window(PathId(0)), Some((1016, Some(4064))));
    pair.drive_for(Duration::from_secs(20));
    let times: Vec<_> = pair.sent_by(Client).filter(|s| s.has_data()).map(|s| s.at).collect();
    assert_eq!(times[..4], [start; 4]);
    let seconds = |s: u64| start + Duration::from_secs(s);
    assert_eq!(times[4..7], [seconds(1), seconds(3), seconds(7)]);
    assert_eq!(pair.server.numbers(), [0, 1, 2, 3]);
}

#[test]
fn section_8_1_the_association_is_given_up() {
    let config = Config { rto_max: Duration::from_secs(1), ..plain() };
    let mut pair = Pair::connected(&config);
    let start = pair.now;
    pair.on_wire(|_| Verdict::Drop);
    pair.send(Client, 1, 100);
    pair.drive_for(Duration::from_secs(30));
    // Association.Max.Retrans 10: ten retransmissions, and at the next timeout the end.
    let sent = pair.sent_by(Client).filter(|sent| sent.has_data()).count();
    assert_eq!(sent, 11);
    let end = start + Duration::from_secs(11);
    assert_eq!(pair.client.events.last(), Some(&(end, Event::TimedOut)));
}

#[test]
fn section_7_3_packet_too_big_is_believed_of_ones_own_packets_only() {
    let mut pair = Pair::connected(&Config { mtu: Size::from_bytes(1500), ..plain() });
    let (_, tag) = pair.tags();
    let too_big = |tag| {
        let quote = talkspurt_testing::quote(talkspurt_proto::wire::sctp::quoted(tag));
        Input::TooBig { path: PathId(0), mtu: 1048, quote }
    };
    pair.send(Client, 1, 10);
    pair.input(Client, too_big(tag ^ 1));
    assert_eq!(pair.client.notes.rx_error, [RxError::OutOfWindow]);
    pair.send(Client, 2, 5000);
    pair.input(Client, too_big(tag));
    pair.drive_for(ms(500));
    pair.send(Client, 3, 5000);
    pair.drive_for(ms(500));
    let longest =
        pair.sent_by(Client).filter(|s| s.at > at(500)).map(|s| s.packet.wire_bytes() + 20).max();
    assert_eq!(longest, Some(1048));
}

#[test]
fn section_8_3_idle_paths_are_asked() {
    let config = Config { heartbeat_interval: Duration::from_secs(5), ..plain() };
    let mut pair = Pair::connected(&config);
    pair.drive_for(Duration::from_secs(60));
    let asked = pair.sent_by(Client).filter(|sent| sent.has(4)).count();
    let answered = pair.sent_by(Server).filter(|sent| sent.has(5)).count();
    // HB.interval, RTO 1 s, give or take half of it.
    assert!((9..=11).contains(&asked), "{asked}");
    assert_eq!(asked, answered);
}

/// §6.1 A: SACKs that keep a window closed neither end the association nor lower the window.
#[test]
fn section_6_1_zero_window_probes_are_no_errors() {
    let config = Config { rto_max: Duration::from_secs(1), ..plain() };
    let mut told = Told::new(&config);
    let (tag, first) = (told.tag, told.first);
    told.pair.on_wire(|_| Verdict::Drop);
    let window = told.window();
    told.send(2);
    let closed = |told: &mut Told| {
        let sack = Sack { cumulative: first.wrapping_sub(1), a_rwnd: 0, ..Sack::default() };
        told.pair.forge(Client, tag, vec![Chunk::Sack(sack)]);
    };
    for _ in 0..40 {
        closed(&mut told);
        told.pair.drive_for(Duration::from_secs(1));
    }
    assert_eq!(told.pair.client.endpoint.state(), talkspurt_proto::sctp::State::Established);
    assert_eq!(told.window(), window);
    // SACKs with a window that acknowledge nothing do not show that the data arrives.
    for _ in 0..40 {
        told.sack(0, &[], &[]);
        told.pair.drive_for(Duration::from_secs(1));
    }
    assert_eq!(told.pair.client.endpoint.state(), talkspurt_proto::sctp::State::Closed);
}

/// §6.3.1 C5: a chunk gives no round-trip time when an earlier one was sent again behind it: its
/// acknowledgement may be that of the earlier one's copy.
#[test]
fn section_6_3_1_c5_nothing_is_timed_across_a_retransmission() {
    let window = Some(Size::from_bytes(20 * 1016));
    let mut told = Told::new(&Config { initial_window: window, ..plain() });
    let round = |told: &mut Told, chunks: u32| {
        told.pair.drive_for(ms(100));
        told.sack(chunks, &[], &[]);
    };
    for chunks in 1..=5 {
        told.send(1);
        round(&mut told, chunks);
    }
    told.send(5);
    round(&mut told, 6);
    // Chunk 10 is timed, and then chunk 6 is sent again.
    told.send(1);
    for last in 2..=4 {
        told.sack(6, &[(2, last)], &[]);
    }
    assert_eq!(told.copies(6), 2);
    told.pair.drive_for(ms(900));
    told.sack(11, &[], &[]);
    // After round trips of 100 ms RTO is RTO.Min, and still is.
    let now = told.pair.now;
    told.send(1);
    told.pair.drive_for(ms(1500));
    let tsn = told.first.wrapping_add(11);
    let copies = told.pair.sent_by(Client).filter(|s| s.data().any(|data| data.tsn == tsn));
    assert_eq!(copies.map(|s| s.at).collect::<Vec<_>>(), [now, now + ms(1000)]);
}
