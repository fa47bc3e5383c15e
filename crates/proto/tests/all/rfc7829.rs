//! Several paths (RFC 9260 §5.4, §6.4, §8.2, §8.3) and the potentially failed state (RFC 7829): how
//! long a call is silent when its path is lost, under each setting.

use talkspurt_proto::endpoint::{Input, PathNews};
use talkspurt_proto::packet::PathId;
use talkspurt_proto::sctp::{Config, Reachable};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;
use talkspurt_testing::sctp as sctp_pair;
use talkspurt_testing::sctp::{Client, Pair, Server, Verdict, ms, plain};

fn two_paths(config: &Config) -> Pair {
    let mut pair = Pair::on_paths(config, config, 2);
    pair.connect();
    pair.drive_for(ms(200));
    pair
}

/// The primary path is dead both ways from now on.
fn cut(pair: &mut Pair) {
    pair.on_wire(|sent| if sent.path == PathId(0) { Verdict::Drop } else { Verdict::Arrive });
}

/// A message every 20 ms for so long after the cut; the longest time without one at the far end.
fn gap(config: &Config, seconds: u64) -> (Duration, Pair) {
    let mut pair = two_paths(config);
    for _ in 0..50 {
        pair.send(Client, 1, 160);
        pair.drive_for(ms(20));
    }
    cut(&mut pair);
    for _ in 0..seconds * 50 {
        pair.send(Client, 1, 160);
        pair.drive_for(ms(20));
    }
    let times: Vec<_> = pair.server.received.iter().map(|one| one.0).collect();
    let longest = times.windows(2).map(|w| w[1].saturating_since(w[0])).max().unwrap();
    (longest, pair)
}

#[test]
fn rfc_9260_section_5_4_a_path_is_confirmed_by_a_heartbeat() {
    let mut pair = Pair::on_paths(&plain(), &plain(), 2);
    pair.connect();
    let other = PathId(1);
    let asked = pair.log.iter().find(|sent| sent.path == other).unwrap();
    assert!(asked.has(4));
    assert_eq!(pair.server.endpoint.reachable(other), Some(Reachable::Unconfirmed));
    pair.drive_for(ms(200));
    assert_eq!(pair.client.endpoint.reachable(other), Some(Reachable::Active));
    assert_eq!(pair.server.endpoint.reachable(other), Some(Reachable::Active));
    // §5.4: one that never answers is never used.
    let mut pair = Pair::on_paths(&plain(), &plain(), 2);
    pair.on_wire(|sent| if sent.path == PathId(1) { Verdict::Drop } else { Verdict::Arrive });
    pair.connect();
    pair.drive_for(Duration::from_secs(300));
    assert_eq!(pair.client.endpoint.reachable(other), Some(Reachable::Unconfirmed));
    assert!(pair.log.iter().all(|sent| sent.path != other || sent.has(4)));
}

#[test]
fn rfc_9260_section_6_4_1_what_timed_out_leaves_on_the_other_path() {
    let mut pair = two_paths(&plain());
    cut(&mut pair);
    let start = pair.now;
    pair.send(Client, 1, 100);
    pair.drive_for(ms(1100));
    let data: Vec<_> =
        pair.sent_by(Client).filter(|s| s.has_data()).map(|s| (s.at, s.path)).collect();
    assert_eq!(data, [(start, PathId(0)), (start + ms(1000), PathId(1))]);
    // §6.4: the SACK goes where the data came from.
    let sack = pair.sent_by(Server).filter(|sent| sent.has(3)).last().unwrap();
    assert_eq!(sack.path, PathId(1));
}

/// RFC 9260's defaults: five retransmissions beyond the first timeout, 1 + 2 + 4 + 8 + 16 + 32 s.
#[test]
fn rfc_9260_section_8_2_a_path_fails_after_a_minute() {
    let mut pair = two_paths(&plain());
    cut(&mut pair);
    let start = pair.now;
    let failed =
        |pair: &Pair| pair.client.endpoint.reachable(PathId(0)) == Some(Reachable::Inactive);
    while !failed(&pair) {
        pair.send(Client, 1, 100);
        pair.drive_for(ms(20));
        assert!(pair.now.saturating_since(start) < Duration::from_secs(70));
    }
    let after = pair.now.saturating_since(start);
    assert!(after > Duration::from_secs(62) && after < Duration::from_secs(64), "{after}");
}

#[test]
fn section_3_the_gap_of_a_call_under_each_setting() {
    // Path.Max.Retrans 5 and RTO.Min 1 s: new data goes to the dead path for a minute; what times
    // out there arrives by the other, so that gaps grow with the timeout, to 32 s.
    let (long, _) = gap(&plain(), 70);
    assert!(long > Duration::from_secs(16) && long < Duration::from_secs(34), "{long}");
    // Path.Max.Retrans 0: the first timeout ends it.
    let (short, _) = gap(&Config { path_max_retrans: 0, ..plain() }, 10);
    assert!(short >= ms(1000) && short < ms(1200), "{short}");
    // RFC 7829: the first timeout makes it doubtful, and data goes elsewhere at once.
    let doubtful = Config { potentially_failed: Some(0), ..plain() };
    let (short, pair) = gap(&doubtful, 10);
    assert!(short >= ms(1000) && short < ms(1200), "{short}");
    assert_eq!(pair.client.endpoint.reachable(PathId(0)), Some(Reachable::PotentiallyFailed));
    // And with RTO.Min at 200 ms.
    let quick = Config { rto_min: ms(200), rto_initial: ms(200), ..doubtful };
    let (short, _) = gap(&quick, 10);
    assert!(short < ms(450), "{short}");
}

#[test]
fn section_3_2_a_doubtful_path_is_asked_each_timeout_and_comes_back() {
    let config = Config { potentially_failed: Some(0), ..plain() };
    let (_, mut pair) = gap(&config, 2);
    let before = pair.sent_by(Client).filter(|s| s.has(4) && s.path == PathId(0)).count();
    assert!(before >= 1);
    // No data goes there while it is doubtful.
    let log = pair.log.len();
    for _ in 0..100 {
        pair.send(Client, 1, 160);
        pair.drive_for(ms(20));
    }
    let on_first = |sent: &&sctp_pair::Sent| sent.path == PathId(0) && sent.has_data();
    assert_eq!(pair.log[log..].iter().filter(on_first).count(), 0);
    // It answers again: data goes back to the primary path (§3.2 step 6).
    pair.on_wire(|_| Verdict::Arrive);
    for _ in 0..500 {
        pair.send(Client, 1, 160);
        pair.drive_for(ms(20));
    }
    assert_eq!(pair.client.endpoint.reachable(PathId(0)), Some(Reachable::Active));
    assert!(pair.log.iter().rev().find(|sent| sent.has_data()).unwrap().path == PathId(0));
}

#[test]
fn section_3_2_a_doubtful_path_fails_in_the_end() {
    let config = Config { potentially_failed: Some(0), ..plain() };
    let (_, pair) = gap(&config, 80);
    assert_eq!(pair.client.endpoint.reachable(PathId(0)), Some(Reachable::Inactive));
    assert_eq!(pair.client.endpoint.state(), talkspurt_proto::sctp::State::Established);
}

/// Rule 5: a doubtful path is not asked where HEARTBEATs are turned off.
#[test]
fn section_3_2_rule_5_no_heartbeats_where_they_are_turned_off() {
    let config =
        Config { potentially_failed: Some(0), heartbeat_interval: Duration::ZERO, ..plain() };
    let (_, pair) = gap(&config, 5);
    assert_eq!(pair.client.endpoint.reachable(PathId(0)), Some(Reachable::PotentiallyFailed));
    assert_eq!(pair.sent_by(Client).filter(|s| s.has(4) && s.path == PathId(0)).count(), 0);
}

/// Rule 4: without a sound path, data goes on a potentially failed one and not on an inactive one.
#[test]
fn section_3_2_rule_4_doubtful_before_inactive() {
    let config = Config { potentially_failed: Some(0), ..plain() };
    let mut pair = two_paths(&config);
    pair.on_wire(|_| Verdict::Drop);
    // The interface of the primary path goes: inactive, without a timeout.
    pair.input(Client, Input::Path(PathId(0), PathNews::Down));
    assert_eq!(pair.client.endpoint.reachable(PathId(0)), Some(Reachable::Inactive));
    let start = pair.now;
    pair.send(Client, 1, 100);
    pair.drive_for(Duration::from_secs(8));
    assert_eq!(pair.client.endpoint.reachable(PathId(1)), Some(Reachable::PotentiallyFailed));
    let data = pair.sent_by(Client).filter(|sent| sent.has_data() && sent.at >= start);
    let paths: Vec<_> = data.map(|sent| sent.path).collect();
    assert!(paths.len() > 2 && paths.iter().all(|path| *path == PathId(1)), "{paths:?}");
}

/// Rules 9 and 10: an acknowledgement of what was sent on two paths tells nothing of the doubtful one.
#[test]
fn section_3_2_rule_9_ambiguous_acknowledgements_clear_nothing() {
    for moved in [true, false] {
        let config =
            Config { potentially_failed: Some(0), heartbeat_interval: Duration::ZERO, ..plain() };
        let mut pair = two_paths(&config);
        // Data is lost on the primary path, then all on the other, whose retransmission comes back.
        pair.on_wire(|_| Verdict::Drop);
        pair.send(Client, 1, 100);
        pair.drive_for(ms(1500));
        assert_eq!(pair.client.endpoint.reachable(PathId(0)), Some(Reachable::PotentiallyFailed));
        pair.drive_for(ms(600));
        assert_eq!(pair.client.endpoint.reachable(PathId(1)), Some(Reachable::PotentiallyFailed));
        pair.on_wire(|_| Verdict::Arrive);
        if moved {
            pair.drive_for(Duration::from_secs(4));
            assert_eq!(pair.server.numbers(), [1]);
            assert_ne!(pair.client.endpoint.reachable(PathId(0)), Some(Reachable::Active));
            assert_ne!(pair.client.endpoint.reachable(PathId(1)), Some(Reachable::Active));
        }
        // New data, sent on one path only, does.
        pair.drive_for(Duration::from_secs(10));
        pair.send(Client, 2, 100);
        pair.drive_for(Duration::from_secs(4));
        let active = |path| pair.client.endpoint.reachable(PathId(path)) == Some(Reachable::Active);
        assert!(active(0) || active(1));
    }
}

/// HEARTBEATs lost on paths that carry no data do not end the association.
#[test]
fn rfc_9260_section_8_1_other_paths_do_not_count() {
    let config = Config {
        association_max_retrans: 2,
        heartbeat_interval: Duration::from_secs(5),
        ..plain()
    };
    let mut pair = Pair::on_paths(&config, &config, 5);
    pair.connect();
    pair.drive_for(ms(500));
    pair.on_wire(|sent| if sent.path == PathId(0) { Verdict::Arrive } else { Verdict::Drop });
    pair.drive_for(Duration::from_secs(300));
    assert_eq!(pair.client.endpoint.state(), talkspurt_proto::sctp::State::Established);
    assert_eq!(pair.client.endpoint.reachable(PathId(4)), Some(Reachable::Inactive));
}

/// RFC 9260 §6.9, §7.3: parts are cut so that they fit all paths (AMDCS).
#[test]
fn rfc_9260_section_7_3_parts_fit_every_path() {
    use talkspurt_proto::packet::{Ecn, IpVersion, Quote};
    let mut pair = Pair::on_paths(&Config { mtu: Size::from_bytes(1500), ..plain() }, &plain(), 2);
    pair.connect();
    pair.drive_for(ms(300));
    pair.send(Client, 1, 100);
    let (_, tag) = pair.tags();
    let transport = talkspurt_proto::wire::sctp::quoted(tag);
    let (version, ecn) = (IpVersion::V4, Ecn::NotEct);
    let quote = Quote { version, ip_bytes: 1500, mark: 0, ttl: 60, dscp: 0, ecn, transport };
    pair.input(Client, Input::TooBig { path: PathId(1), mtu: 600, quote });
    pair.drive_for(ms(300));
    // The primary path dies with all parts in flight: they arrive by the narrower one.
    cut(&mut pair);
    pair.send(Client, 2, 3000);
    pair.drive_for(Duration::from_secs(20));
    assert_eq!(pair.server.numbers(), [1, 2]);
    let parts = pair.sent_by(Client).flat_map(|sent| sent.data());
    let longest = parts.map(|data| 16 + data.payload.wire_bytes()).max();
    assert_eq!(longest, Some(600 - 20 - 12));
    let narrow = pair.sent_by(Client).filter(|sent| sent.path == PathId(1));
    assert!(narrow.map(|sent| sent.packet.wire_bytes() + 20).max() <= Some(600));
}

/// §5.4: an address that never answers is asked once each timeout at first, and then as an idle one is.
#[test]
fn rfc_9260_section_5_4_probes_become_rare() {
    let config = Config { rto_max: Duration::from_secs(1), ..plain() };
    let mut pair = Pair::on_paths(&config, &config, 2);
    pair.on_wire(|sent| if sent.path == PathId(1) { Verdict::Drop } else { Verdict::Arrive });
    pair.connect();
    pair.drive_for(Duration::from_secs(310));
    let asked = pair.sent_by(Client).filter(|s| s.has(4) && s.path == PathId(1)).count();
    // Six each second, then one in HB.interval and a timeout, give or take half of it.
    assert!((6 + 9..=6 + 11).contains(&asked), "{asked}");
}
