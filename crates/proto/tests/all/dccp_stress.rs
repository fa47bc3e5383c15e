//! DCCP under random path conditions (seeded): every profile and CCID, losses from none to 30 % in
//! either direction, round trips from 1 ms to 1 s, reordering, duplicates, marks, short sequence numbers,
//! and pauses of the application. In each case the connection does not stall, Syncs stay rare, and a
//! packet that the other end sent in its window is not rejected.

use talkspurt_proto::dccp::{Ccid, Config, State};
use talkspurt_proto::probe::RxError;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::Duration;
use talkspurt_testing::dccp::*;

struct Case {
    config: Config,
    rtt_ms: u64,
    /// In thousands, from the client and from the server.
    loss: [u64; 2],
    marks: u64,
    jitter: bool,
    both: bool,
}

fn case(seed: u64) -> Case {
    let mut rng = Rng::new(seed, "case");
    let ccid = [Ccid::Two, Ccid::Two, Ccid::Three, Ccid::Four][rng.below(4) as usize];
    let profile = [Profile::Rfc, Profile::Ns2, Profile::Linux][rng.below(3) as usize];
    let config = Config {
        profile,
        allow_short_seqnos: rng.below(3) == 0,
        ack_vector: rng.below(4) == 0,
        data_checksum: rng.below(4) == 0,
        send_ndp_count: (rng.below(4) == 0).then_some(true),
        ecn: (rng.below(2) == 0).then_some(true),
        ..Config::new(ccid)
    };
    let mut loss = || [0, 0, 10, 30, 100, 300][rng.below(6) as usize];
    let loss = [loss(), loss()];
    Case {
        config,
        rtt_ms: [2, 10, 50, 200, 600, 1000][rng.below(6) as usize],
        loss,
        marks: [0, 0, 50][rng.below(3) as usize],
        jitter: rng.below(2) == 0,
        both: rng.below(3) == 0,
    }
}

fn run(seed: u64) {
    let Case { config, rtt_ms, loss, marks, jitter, both } = case(seed);
    let what = format!(
        "seed {seed}: CCID {:?} {:?}, {rtt_ms} ms, loss {loss:?}, marks {marks}, jitter {jitter}, both \
         {both}, short {}",
        config.ccid, config.profile, config.allow_short_seqnos
    );
    let mut pair = Pair::new(&config);
    pair.delay = Duration::from_micros(rtt_ms * 500);
    let mut rng = Rng::new(seed, "wire");
    pair.on_wire(move |sent| {
        let loss = loss[usize::from(sent.from == Server)];
        if rng.below(1000) < loss {
            return Verdict::Drop;
        }
        if marks > 0 && sent.ecn == talkspurt_proto::packet::Ecn::Ect0 && rng.below(1000) < marks {
            return Verdict::Mark;
        }
        match rng.below(100) {
            0..3 if jitter => Verdict::Late(Duration::from_micros(1 + rng.below(rtt_ms * 400))),
            3..5 if jitter => Verdict::Twice(Duration::from_micros(1 + rng.below(rtt_ms * 400))),
            _ => Verdict::Arrive,
        }
    });
    pair.input(Client, talkspurt_proto::endpoint::Input::Open);
    pair.drive_for(ms(30_000));
    if pair.client.endpoint.state() != State::Open {
        // 30 % both ways: the handshake may take longer.
        pair.drive_for(ms(120_000));
    }
    let mut last = 0;
    for burst in 0..4_u64 {
        for _ in 0..800 {
            pair.send(Client, 200);
            if both {
                pair.send(Server, 200);
            }
        }
        // Long enough for what is sent at one packet a round trip or in four backed-off timeouts.
        let span = ms(20_000.max(rtt_ms * 40));
        pair.drive_for(span);
        let got = pair.server.received.len();
        // With worse losses a timeout that backed off six times, or a rate of a packet in 64 s, are as the
        // RFCs want them.
        let mild = loss.iter().all(|loss| *loss <= 100) && config.ccid == Ccid::Two;
        assert!(
            got > last || !mild,
            "{what}: nothing arrived in burst {burst}, {:?}",
            pair.client.endpoint.state()
        );
        last = got;
        pair.client.waiting.clear();
        pair.server.waiting.clear();
        pair.drive_for(ms(rtt_ms * 3 + 3_000));
    }
    for side in [Client, Server] {
        assert_eq!(pair.end(side).endpoint.state(), State::Open, "{what}");
        let sent = pair.log.iter().filter(|sent| sent.from == side).count();
        let syncs = pair.of_kind(side, SYNC).len();
        let refused = &pair.end(side.other()).notes.rx_error;
        let refused = refused.iter().filter(|it| **it != RxError::Unexpected).count();
        // Packets so late that the window has moved a quarter past them are rejected correctly.
        let most = sent / 500 + 1;
        assert!(syncs <= most, "{what}: {side:?} sent {syncs} Syncs in {sent} packets");
        assert!(refused <= most, "{what}: {refused} of {sent} packets of {side:?} refused");
    }
}

#[test]
fn whatever_the_path_does_the_connection_goes_on() {
    let count = std::env::var("DCCP_STRESS").ok().and_then(|it| it.parse().ok()).unwrap_or(60_u64);
    let failed = |seed: &u64| std::panic::catch_unwind(|| run(*seed)).is_err();
    let failed: Vec<u64> = (0..count).filter(failed).collect();
    assert!(failed.is_empty(), "seeds {failed:?}");
}
