//! What SCTP does about loss: congestion control and path MTU (RFC 9260 §7), the timer T3 (§6.3.3), and
//! what watches over paths (§8.1, §8.3).

use crate::sctp_pair::{Client, Fate, Pair, Server, at, ms, plain};
use talkspurt_proto::dice::Dice;
use talkspurt_proto::endpoint::{Event, Input};
use talkspurt_proto::packet::{Body, Damage, Ecn, IpVersion, PathId, Quote, Quoted};
use talkspurt_proto::probe::Garbage;
use talkspurt_proto::sctp::{Config, Sctp};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;

#[test]
fn section_7_2_1_slow_start_and_the_initial_window() {
    // PMDCS 1016: min(4 · 1016, max(2 · 1016, 4404)) = 4064.
    let mut pair = Pair::connected(&plain());
    assert_eq!(pair.client.sctp.window(PathId(0)), Some((4064, None)));
    for number in 0..30 {
        pair.send(Client, number, 1000);
    }
    let sent = |pair: &Pair| pair.sent_by(Client).filter(|s| s.has_data()).count();
    assert_eq!(sent(&pair), 4);
    pair.drive_for(ms(100));
    // Each SACK frees a chunk and adds one, but only while the window was full before it.
    let (window, _) = pair.client.sctp.window(PathId(0)).unwrap();
    assert!((5 * 1016..=8 * 1016).contains(&window), "{window}");
    let mtu = Config { mtu: Size::from_bytes(1500), ..plain() };
    // PMDCS 1468: max(2936, 4404) = 4404.
    assert_eq!(Sctp::client(&mtu, Dice::new(1, "a")).window(PathId(0)), Some((4404, None)));
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
        windows.push(pair.client.sctp.window(PathId(0)).unwrap().0);
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
    assert_eq!(pair.client.sctp.window(PathId(0)).unwrap().1, Some(20_320 / 2));
    assert_eq!(pair.server.numbers(), (0..20).collect::<Vec<u8>>());
}

#[test]
fn section_7_2_4_two_missing_reports_are_not_enough() {
    let mut pair = Pair::connected(&plain());
    let tsn = pair.first_tsn(Client);
    let start = pair.now;
    let mut count = 0;
    pair.on_wire(move |sent| {
        count += usize::from(sent.has_data());
        if sent.has_data() && count == 1 { Fate::Late(ms(30)) } else { Fate::Arrive }
    });
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
    let mut count = 0;
    pair.on_wire(move |sent| {
        count += usize::from(sent.has_data());
        if sent.has_data() && count <= 6 { Fate::Drop } else { Fate::Arrive }
    });
    for number in 0..4 {
        pair.send(Client, number, 1000);
    }
    pair.drive_for(ms(999));
    pair.drive_for(ms(2));
    // §7.2.3: cwnd is one chunk, ssthresh four at least.
    assert_eq!(pair.client.sctp.window(PathId(0)), Some((1016, Some(4064))));
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
    pair.on_wire(|_| Fate::Drop);
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
        let quote = Quote {
            version: IpVersion::V4,
            ip_bytes: 1500,
            mark: 0,
            ttl: 60,
            dscp: 0,
            ecn: Ecn::NotEct,
            transport: Quoted::Sctp { tag },
        };
        let body = Body::TooBig { mtu: 1048, quote };
        Input::Packet { path: PathId(0), ecn: Ecn::NotEct, damage: Damage::None, body }
    };
    pair.send(Client, 1, 10);
    pair.input(Client, too_big(tag ^ 1));
    assert_eq!(pair.client.notes.0, [Garbage::OutOfWindow]);
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
