//! RFC 5961: an attacker who only guesses numbers can neither end or open a connection nor inject data.

use crate::tcp_pair::in_state;
use talkspurt_proto::endpoint::Event;
use talkspurt_proto::probe::RxError;
use talkspurt_proto::tcp::{Config, Flags, Segment, State};
use talkspurt_testing::tcp::*;

const SYN: Flags = Flags::SYN;
const ACK: Flags = Flags::ACK;
const RST: Flags = Flags::RST;
const SYN_ACK: Flags = Flags(0x12);

/// The states after the handshake, as `in_state` numbers them.
const SYNCHRONISED: std::ops::RangeInclusive<usize> = 4..=10;

/// The peer's next number in these states: after its FIN, if it has sent one.
fn next(alone: &mut Alone) -> u32 {
    let peer_closed = matches!(
        alone.endpoint.state(),
        State::CloseWait | State::Closing | State::LastAck | State::TimeWait
    );
    1 + u32::from(peer_closed)
}

fn is_challenge(answer: &[Segment], next: u32) -> bool {
    answer.len() == 1 && answer[0].flags == ACK && Alone::acked(&answer[0]) == next
}

/// §3.2: a reset outside the window is dropped; inside, it is challenged; exactly at RCV.NXT it ends the
/// connection.
#[test]
fn resets() {
    for state in SYNCHRONISED {
        let mut alone = in_state(state, &plain());
        let (was, next) = (alone.endpoint.state(), next(&mut alone));
        // The window offered ends so much later.
        let edge = next + u32::from(alone.arrive(SYN, next, 0, 0)[0].window);
        for outside in [next.wrapping_sub(1), edge, edge + 1, next.wrapping_add(1 << 31)] {
            assert!(alone.arrive(RST, outside, 0, 0).is_empty(), "{was:?}");
        }
        // It begins outside, though its data does not end there.
        assert!(alone.arrive(RST, next.wrapping_sub(1), 0, 2).is_empty(), "{was:?}");
        for inside in [next + 1, next + 1000, edge - 1] {
            assert!(is_challenge(&alone.arrive(RST, inside, 0, 0), next), "{was:?}");
        }
        assert_eq!(alone.endpoint.state(), was);
        assert!(alone.arrive(RST, next, 0, 0).is_empty());
        assert_eq!(alone.endpoint.state(), State::Closed, "{was:?}");
        let told = alone.events.contains(&Event::Reset);
        let ended = matches!(was, State::Closing | State::LastAck | State::TimeWait);
        assert_eq!(told, !ended, "{was:?}");
    }
}

/// §4.2: a SYN is challenged, whatever its number, with or without the negotiated options; it has no
/// other effect.
#[test]
fn syns() {
    for timestamps in [false, true] {
        for state in SYNCHRONISED {
            let config = Config { timestamps, ..plain() };
            let mut alone = in_state(state, &config);
            let (was, next) = (alone.endpoint.state(), next(&mut alone));
            for (seq, flags) in
                [(next, SYN), (next + 5, SYN), (0, SYN_ACK), (1 << 31, SYN), (1 << 30, SYN_ACK)]
            {
                let syn = Segment { mss: Some(500), ..alone.make(flags, seq, 1, 0) };
                assert!(is_challenge(&alone.segment(syn), next), "{was:?} {seq}");
            }
            assert_eq!((alone.endpoint.state(), alone.count), (was, 0));
            assert_eq!(alone.endpoint.segment_bytes(), 1000);
        }
    }
}

/// §4.2 with negotiated timestamps: a SYN without them is still a SYN.
#[test]
fn a_syn_without_timestamps() {
    let mut alone = Alone::client(&Config { timestamps: true, ..plain() });
    alone.clock = Some(7);
    alone.input(talkspurt_proto::endpoint::Input::Open);
    let answer = alone.syn(SYN_ACK, 1);
    alone.segment(answer);
    alone.clock = None;
    assert!(is_challenge(&alone.arrive(SYN, 900, 0, 0), 1));
    assert!(alone.arrive(ACK, 1, 1, 10).is_empty());
}

/// §3.2 and §4.2 together: a peer that has lost its state opens again, is challenged, resets with the
/// number in the challenge, and then its SYN opens a connection (tested elsewhere).
#[test]
fn a_peer_reborn() {
    let mut pair = Pair::connected(&plain());
    pair.send(Client, 5000);
    pair.drive_for(ms(200));
    let reborn = talkspurt_proto::rng::Rng::new(9, "reborn");
    pair.server.endpoint = talkspurt_proto::tcp::Tcp::client(&plain(), reborn);
    pair.log.clear();
    pair.input(Server, talkspurt_proto::endpoint::Input::Open);
    pair.drive_for(ms(150));
    let flags: Vec<_> = pair.log.iter().map(|sent| (sent.from, sent.segment.flags)).collect();
    assert_eq!(flags, [(Server, SYN), (Client, ACK), (Server, RST)]);
    assert_eq!(pair.client.endpoint.state(), State::Closed);
    assert!(pair.client.saw(Event::Reset));
}

/// §5.2: acknowledgements between SND.UNA − MAX.SND.WND and SND.MAX are taken, others challenged, and the
/// data with them is not.
#[test]
fn acknowledgements() {
    let mut alone = Alone::established(&plain());
    // 20 000 is the largest window the peer has offered; 3000 bytes are sent and acknowledged.
    alone.send(3000);
    alone.arrive(ACK, 1, 3001, 0);
    alone.send(1000);
    let oldest = 3001_u32.wrapping_sub(20_000);
    for (number, valid) in [
        (4002, false),
        (oldest.wrapping_sub(1), false),
        (3001_u32.wrapping_add(1 << 31), false),
        (oldest, true),
        (1, true),
    ] {
        let (before, noted) = (alone.count, alone.notes.rx_error.len());
        let answer = alone.arrive(ACK, 1 + before as u32, number, 10);
        assert_eq!(alone.count - before, if valid { 10 } else { 0 }, "{number}");
        assert_eq!(alone.notes.rx_error[noted..] == [RxError::BadAck], !valid);
        // Data is acknowledged, what is not taken challenged: an ACK either way.
        assert!(is_challenge(&answer, 1 + alone.count as u32), "{number}");
    }
    assert!(alone.wake.is_some(), "4000 is not acknowledged");
    alone.arrive(ACK, 1 + alone.count as u32, 4001, 0);
    assert_eq!(alone.wake, None);
}

/// §7: ten challenges in five seconds, whatever provokes them; acknowledgements of
/// data do not count.
#[test]
fn throttling() {
    let mut alone = Alone::established(&plain());
    let mut challenges = 0;
    for i in 0..20 {
        challenges += alone.arrive(RST, 5, 0, 0).len();
        challenges += alone.arrive(SYN, 7 + i, 0, 0).len();
        challenges += alone.arrive(SYN, 1 << 31, 0, 0).len();
        challenges += alone.arrive(ACK, 1, 40_000, 0).len();
    }
    assert_eq!(challenges, 10);
    assert_eq!(alone.arrive(ACK, 1, 1, 10).len(), 1);
    assert_eq!(alone.arrive(ACK, 1, 1, 10).len(), 1);
    alone.now = at(4999);
    assert!(alone.arrive(RST, 15, 0, 0).is_empty());
    alone.now = at(5000);
    assert_eq!(alone.arrive(RST, 15, 0, 0).len(), 1);
    assert_eq!(alone.endpoint.state(), State::Established);
}
