//! CCID 2 in a whole connection, two endpoints and a wire: packets and timing.
//! Round-trip time 100 ms, no other delay.

use talkspurt_proto::dccp::ccid2;
use talkspurt_proto::dccp::options::{Opt, feature as number};
use talkspurt_proto::dccp::{Ccid, Config, Dccp};
use talkspurt_proto::probe::Gauge;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rng::Rng;
use talkspurt_testing::dccp::{
    ACK, Client, DATA, DATA_ACK, Pair, SYNC, Sent, Server, Verdict, at, feature, ms, options, wire,
};
use talkspurt_testing::kbps;
use talkspurt_testing::road::{Road, Source};

fn config(profile: Profile) -> Config {
    Config { profile, ..Config::new(Ccid::Two) }
}

/// A client with unlimited 1000-byte datagrams to send, after its handshake.
fn bulk(config: &Config, datagrams: u32) -> Pair {
    let mut pair = Pair::new(config);
    for _ in 0..datagrams {
        pair.send(Client, 1000);
    }
    pair
}

fn data(pair: &Pair) -> Vec<Sent> {
    let is_data = |sent: &&Sent| sent.is(Client, DATA) || sent.is(Client, DATA_ACK);
    pair.log.iter().filter(is_data).cloned().collect()
}

/// Loses every n-th data packet of the client.
fn lossy(pair: &mut Pair, period: usize, verdict: Verdict) {
    pair.judge_counted(
        |sent| sent.is(Client, DATA) || sent.is(Client, DATA_ACK),
        move |count| if count.is_multiple_of(period) { verdict } else { Verdict::Arrive },
    );
}

/// Data packets in each round trip of 100 ms from the first on.
fn per_rtt(pair: &Pair) -> Vec<u64> {
    let data = data(pair);
    let first = data[0].at;
    let mut counts = vec![0; 64];
    for sent in &data {
        counts[(sent.at.saturating_since(first).as_nanos() / 100_000_000) as usize] += 1;
    }
    counts
}

fn nobody_is_confused(pair: &Pair) {
    assert!(pair.of_kind(Client, SYNC).is_empty() && pair.of_kind(Server, SYNC).is_empty());
    assert!(pair.client.notes.rx_error.is_empty() && pair.server.notes.rx_error.is_empty());
}

#[test]
fn slow_start_grows_by_half_a_round_trip_or_doubles() {
    let mut pair = bulk(&config(Profile::Rfc), 1000);
    pair.connect();
    pair.drive_until(at(1000));
    let rfc = per_rtt(&pair);
    // RFC 4341 §5: one for two acknowledged. Odd packets wait for a later acknowledgement.
    assert_eq!(rfc[..3], [4, 6, 9]);
    let mut exact = 9.0;
    for round in 3..9 {
        exact *= 1.5;
        let part = rfc[round] as f64 / exact;
        assert!((0.88..=1.0).contains(&part), "round {round}: {rfc:?}");
    }
    nobody_is_confused(&pair);

    // ns-2: one for each.
    let window = ccid2::Config { initial_window: Some(4), ..ccid2::Config::default() };
    let mut pair = bulk(&Config { window, ..config(Profile::Ns2) }, 1000);
    pair.connect();
    pair.drive_until(at(800));
    assert_eq!(per_rtt(&pair)[..6], [4, 8, 16, 32, 64, 128]);
}

#[test]
fn bulk_follows_the_square_root_law_under_losses_and_marks() {
    for verdict in [Verdict::Drop, Verdict::Mark] {
        let (datagrams, period) = (30_000, 333);
        let mut pair = bulk(&config(Profile::Rfc), datagrams);
        lossy(&mut pair, period, verdict);
        pair.connect();
        pair.drive_until(at(120_000));
        let from = at(20_000);
        let data = data(&pair);
        let bytes: usize = data
            .iter()
            .filter(|sent| sent.at >= from)
            .map(|sent| sent.packet.payload.wire_bytes())
            .sum();
        // X = 1.2 · s / (R · √p), of which small windows lose some: they are halved rounded down, and
        // do not grow in the round trip after a loss.
        let law = 1.2 * 1000.0 / 0.1 * (period as f64).sqrt();
        let part = bytes as f64 / 100.0 / law;
        assert!((0.88..=1.0).contains(&part), "{verdict:?}: {part:.3} of the law");
        nobody_is_confused(&pair);
        let delivered = pair.server.received.len() as u64;
        let sent = data.len() as u64;
        match verdict {
            Verdict::Mark => assert!(sent - delivered < 60, "marks lose nothing"),
            _ => assert!((sent - delivered).abs_diff(sent / period as u64) < 60),
        }
        // RFC 4341 §6: one acknowledgement for two data packets, and one more for each hole or mark.
        let acks = pair.of_kind(Server, ACK);
        let ratio = acks.len() as f64 / sent as f64;
        assert!((0.49..0.51).contains(&ratio), "{ratio}");
        // §6.2: since the client acknowledges them once a window, the vectors stay short: a hole
        // and the runs around it, of 64 packets each at most.
        let vector = |sent: &Sent| -> usize {
            let options = options(&sent.packet);
            let lengths = options.iter().filter_map(|option| match option {
                Opt::AckVector { cells, .. } => Some(2 + cells.len()),
                _ => None,
            });
            lengths.sum()
        };
        let longest = acks.iter().map(vector).max();
        assert!(longest.is_some_and(|bytes| bytes <= 12), "{longest:?}");
    }
}

#[test]
fn a_data_ack_leaves_once_a_window() {
    let mut pair = bulk(&config(Profile::Rfc), 1000);
    pair.connect();
    pair.drive_until(at(1000));
    let (rounds, sent) = (per_rtt(&pair), data(&pair));
    // Past PARTOPEN, in which all of them acknowledge (RFC 4340 §8.1.5): one among the packets of each round.
    let mut after = rounds[0] as usize;
    for packets in &rounds[1..8] {
        let round = &sent[after..after + *packets as usize];
        let acks = round.iter().filter(|sent| sent.is(Client, DATA_ACK)).count();
        assert!((1..=2).contains(&acks), "{acks} of {packets}");
        after += *packets as usize;
    }
}

/// Data packets that arrive in 300 s, the mean of 24 runs, from and to links of 2 Mbit/s and 50 ms with queues
/// of 50 packets, which lose packets at random. ns-2.35: `Agent/DCCP/TCPlike` without ECN, `packetSize_` 1000,
/// an FTP source and `ErrorModel` in each direction, 24 seeds; packets sent times the share that arrives.
#[test]
fn the_ns2_profile_carries_through_random_losses_what_ns_2_carries() {
    for (loss, back, packets) in
        [(0.05, 0.0, 13_977), (0.05, 0.05, 11_884), (0.1, 0.0, 7418), (0.1, 0.1, 4805)]
    {
        let arrived: usize = (1..=24).map(|seed| through_losses(seed, [loss, back])).sum();
        let ratio = arrived as f64 / 24.0 / f64::from(packets);
        println!("{loss}, {back}: {ratio:.3}");
        // Three standard errors of the ratio where the runs differ most.
        assert!((0.95..=1.05).contains(&ratio), "{loss}, {back}: {ratio:.3}");
    }
}

fn through_losses(seed: u64, losses: [f64; 2]) -> usize {
    let config = Config { ecn: Some(false), ..config(Profile::Ns2) };
    let ends = ["client", "server"].map(|name| Rng::new(seed, name));
    let [client, server] = ends;
    let mut road =
        Road::new(Dccp::client(&config, client), Dccp::listener(&config, server), ms(50));
    for (way, loss) in losses.into_iter().enumerate() {
        (road.ways[way].rate, road.ways[way].limit) = (Some(kbps(2000)), 50);
        let mut rng = Rng::new(seed, ["there", "back"][way]);
        road.judge(way, move |now, _| {
            // Not in the handshake: ns-2's does not survive the loss of its Ack.
            let lost = now > at(500) && rng.chance(loss);
            if lost { Verdict::Drop } else { Verdict::Arrive }
        });
    }
    (road.keep, road.ends[0].source) = (false, Source::Greedy(1000));
    road.open();
    road.drive_until(at(300_000));
    road.ends[1].received.len()
}

#[test]
fn lost_acknowledgements_double_ack_ratio_by_negotiation() {
    // With windows that stay, so that no other negotiation takes numbers in between.
    let fixed = Config { sequence_window: Some(10_000), ..config(Profile::Rfc) };
    let mut pair = bulk(&fixed, 6000);
    let lost = |count: usize| Verdict::drop_if(count.is_multiple_of(40));
    pair.judge_counted(|sent| sent.is(Server, ACK), lost);
    pair.connect();
    pair.drive_until(at(1500));
    let asked = |sent: &Sent, value: u8| {
        let value = [0, value];
        let change = Opt::ChangeL(feature(number::ACK_RATIO, &value));
        sent.from == Client && options(&sent.packet).contains(&change)
    };
    let change = pair.log.iter().position(|sent| asked(sent, 4)).expect("R becomes 4");
    let confirm = pair.log[change..]
        .iter()
        .position(|sent| {
            let confirm = Opt::ConfirmR(feature(number::ACK_RATIO, &[0, 4]));
            sent.from == Server && options(&sent.packet).contains(&confirm)
        })
        .expect("and the server agrees");
    // From then on until the next change four data packets make an acknowledgement.
    let behind = &pair.log[change + confirm + 1..];
    let next = behind.iter().position(|sent| {
        options(&sent.packet).iter().any(
            |option| matches!(option, Opt::ChangeL(change) if change.number == number::ACK_RATIO),
        )
    });
    let span = &behind[..next.unwrap_or(behind.len())];
    let acked: Vec<u64> = span
        .iter()
        .filter(|sent| sent.is(Server, ACK))
        .map(|sent| wire(sent.packet.kind.ack().unwrap()))
        .collect();
    assert!(acked.len() > 5);
    assert!(acked.windows(2).all(|pair| pair[1] - pair[0] == 4), "{acked:?}");
}

/// A datagram every 20 ms, of which one is late by so much.
fn voice_with_one_late(late: u64) -> Pair {
    let mut pair = Pair::connected(&config(Profile::Rfc));
    let mut count = 0;
    pair.on_wire(move |sent| {
        count += u64::from(sent.from == Client && sent.packet.kind.is_data());
        if sent.from == Client && count == 50 { Verdict::Late(ms(late)) } else { Verdict::Arrive }
    });
    for _ in 0..100 {
        pair.send(Client, 172);
        pair.drive_for(ms(20));
    }
    pair
}

#[test]
fn a_packet_overtaken_by_two_is_late_and_by_three_is_lost() {
    let halved = |pair: &Pair| {
        let gauges = &pair.client.notes.gauges;
        gauges.iter().any(|(_, gauge, _)| *gauge == Gauge::SsthreshPackets)
    };
    // 50 ms are two packets: when the third arrives, so has the late one.
    assert!(!halved(&voice_with_one_late(50)));
    assert!(halved(&voice_with_one_late(150)));
}

#[test]
fn silence_of_the_network_backs_off_as_tcp_does() {
    let mut pair = bulk(&config(Profile::Rfc), 1000);
    pair.connect();
    pair.drive_until(at(700));
    let until = pair.now;
    pair.on_wire(move |sent| if sent.from == Server { Verdict::Drop } else { Verdict::Arrive });
    pair.drive_until(at(16_000));
    let after = data(&pair).into_iter().filter(|sent| sent.at > until + ms(200));
    let alone: Vec<u64> = after.map(|sent| sent.at.as_nanos() / 1_000_000).collect();
    // One packet for each timeout (§5: cwnd is one), 2, 4 and 8 s after the one before it.
    assert!(alone.len() >= 3, "{alone:?}");
    let gaps: Vec<_> = alone.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, [2000, 4000, 8000][..gaps.len()], "{alone:?}");
}

/// A call both ways, one side 15 ms behind the other: the acknowledgements that ride on data come that
/// late, and say so under the profile of the RFC.
#[test]
fn acknowledgements_that_ride_on_data_tell_their_wait() {
    for profile in [Profile::Rfc, Profile::Ns2, Profile::Linux] {
        let mut pair = Pair::connected(&config(profile));
        for _ in 0..500 {
            pair.send(Server, 160);
            pair.drive_for(ms(15));
            pair.send(Client, 160);
            pair.drive_for(ms(5));
        }
        let acks = pair.of_kind(Client, DATA_ACK);
        let waited = acks.iter().filter(|sent| {
            options(&sent.packet).iter().any(|option| matches!(option, Opt::ElapsedTime(1..)))
        });
        assert_eq!(waited.count() > 10, profile == Profile::Rfc, "{profile:?}");
    }
}
