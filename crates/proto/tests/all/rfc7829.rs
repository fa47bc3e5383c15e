//! Several paths (RFC 9260 §5.4, §6.4, §8.2, §8.3) and the potentially failed state (RFC 7829): how
//! long a call is silent when its path is lost, under each setting.

use crate::sctp_pair;
use crate::sctp_pair::{Client, Fate, Pair, Server, ms, plain};
use talkspurt_proto::packet::PathId;
use talkspurt_proto::sctp::{Config, Reachable};
use talkspurt_proto::time::Duration;

fn two_paths(config: &Config) -> Pair {
    let mut pair = Pair::on_paths(config, config, 2);
    pair.connect();
    pair.drive_for(ms(200));
    pair
}

/// The primary path is dead both ways from now on.
fn cut(pair: &mut Pair) {
    pair.on_wire(|sent| if sent.path == PathId(0) { Fate::Drop } else { Fate::Arrive });
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
    assert_eq!(pair.server.sctp.reachable(other), Some(Reachable::Unconfirmed));
    pair.drive_for(ms(200));
    assert_eq!(pair.client.sctp.reachable(other), Some(Reachable::Active));
    assert_eq!(pair.server.sctp.reachable(other), Some(Reachable::Active));
    // §5.4: one that never answers is never used.
    let mut pair = Pair::on_paths(&plain(), &plain(), 2);
    pair.on_wire(|sent| if sent.path == PathId(1) { Fate::Drop } else { Fate::Arrive });
    pair.connect();
    pair.drive_for(Duration::from_secs(300));
    assert_eq!(pair.client.sctp.reachable(other), Some(Reachable::Unconfirmed));
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
    let failed = |pair: &Pair| pair.client.sctp.reachable(PathId(0)) == Some(Reachable::Inactive);
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
    assert_eq!(pair.client.sctp.reachable(PathId(0)), Some(Reachable::PotentiallyFailed));
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
    pair.on_wire(|_| Fate::Arrive);
    for _ in 0..500 {
        pair.send(Client, 1, 160);
        pair.drive_for(ms(20));
    }
    assert_eq!(pair.client.sctp.reachable(PathId(0)), Some(Reachable::Active));
    assert!(pair.log.iter().rev().find(|sent| sent.has_data()).unwrap().path == PathId(0));
}

#[test]
fn section_3_2_a_doubtful_path_fails_in_the_end() {
    let config = Config { potentially_failed: Some(0), ..plain() };
    let (_, pair) = gap(&config, 80);
    assert_eq!(pair.client.sctp.reachable(PathId(0)), Some(Reachable::Inactive));
    assert_eq!(pair.client.sctp.state(), talkspurt_proto::sctp::State::Established);
}
