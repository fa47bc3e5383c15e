//! Whole DCCP connections over a wire that loses, reorders and duplicates packets at random (seeded):
//! nothing is delivered twice or changed, the connection stays alive, and it closes in order.

use talkspurt_proto::dccp::{Ccid, Config, State};
use talkspurt_proto::endpoint::{Event, Input};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::rng::Rng;
use talkspurt_testing::dccp::*;

fn story(config: &Config, seed: u64) -> (usize, usize) {
    let mut pair = Pair::new(config);
    let mut rng = Rng::new(seed, "wire");
    pair.on_wire(move |_| match rng.below(100) {
        0..3 => Verdict::Drop,
        3..6 => Verdict::Late(ms(1 + rng.below(60))),
        6..8 => Verdict::Twice(ms(1 + rng.below(60))),
        _ => Verdict::Arrive,
    });
    pair.input(Client, Input::Open);
    for index in 0..150_u64 {
        for side in [Client, Server] {
            pair.send_frame(side, Frame::Data(Payload::Virtual { offset: index * 100, len: 100 }));
        }
        pair.drive_for(ms(20));
    }
    pair.drive_for(ms(30_000));
    let name = format!("{:?} {seed}", config.ccid);
    let [back, there] = [Client, Server].map(|side| {
        let end = pair.end(side);
        assert_eq!(end.endpoint.state(), State::Open, "{name} {side:?}");
        assert_eq!(end.life(), [Event::Connected], "{name}");
        assert!(end.waiting.is_empty(), "{name}: {} wait", end.waiting.len());
        let mut seen: Vec<u64> = end
            .received
            .iter()
            .map(|(_, frame)| match frame {
                Frame::Data(Payload::Virtual { offset, len: 100 }) => *offset,
                other => panic!("{other:?} was never sent"),
            })
            .collect();
        let got = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), got, "{name}: delivered twice");
        got
    });
    let closer = if seed.is_multiple_of(2) { Client } else { Server };
    pair.input(closer, Input::Close);
    pair.drive_for(ms(300_000));
    for side in [Client, Server] {
        assert_eq!(pair.end(side).endpoint.state(), State::Closed, "{name}");
        assert!(pair.end(side).saw(Event::Closed), "{name} {:?}", pair.end(side).life());
        assert_eq!(pair.end(side).wake, None, "{name}");
    }
    (there, back)
}

#[test]
fn every_ccid_survives() {
    for ccid in [Ccid::Two, Ccid::Three, Ccid::Four] {
        for seed in 0..12 {
            let config = Config {
                allow_short_seqnos: seed % 3 == 0,
                init_cookie: seed % 4 == 0,
                ack_vector: seed % 5 == 0,
                send_rtt_estimate: seed % 2 == 0,
                ..Config::new(ccid)
            };
            let (there, back) = story(&config, seed);
            // 3 % are lost; ten times as many would need an accident in each dozen.
            assert!(there >= 130 && back >= 130, "{ccid:?} {seed}: {there} and {back} of 150");
        }
    }
}
