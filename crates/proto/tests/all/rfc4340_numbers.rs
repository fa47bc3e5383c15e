//! RFC 4340, clause by clause: sequence numbers, their windows, and what brings ends together again
//! (§7).

use talkspurt_proto::dccp::options::{Opt, feature as name};
use talkspurt_proto::dccp::{Config, Kind, Location, ResetCode, Service, State, WireSeq};
use talkspurt_proto::endpoint::Input;
use talkspurt_proto::probe::RxError;
use talkspurt_proto::profile::Profile;
use talkspurt_testing::dccp::*;

const SERVICE: u32 = Service::RTP_AUDIO.0;

fn ack(seq: u64) -> WireSeq {
    WireSeq::Extended(seq & ((1 << 48) - 1))
}

/// §7.5.1, §8.5 step 6: W = 100 lets 25 numbers up to GSR in, 75 above it; what lies outside is
/// answered by a Sync that names it.
#[test]
fn the_sequence_window() {
    let open = || {
        let mut alone = Alone::open_client(&plain(), &[]);
        // Away from ISR, which bounds the window below.
        for _ in 0..60 {
            alone.arrive_data(Kind::Data, &[], 1);
        }
        alone.received.clear();
        alone
    };
    for (offset, valid) in [(75, true), (76, false), (-24, true), (-25, false), (1 << 40, false)] {
        let mut alone = open();
        // What lies below was received before: leave a hole there first.
        let gsr = alone.seq;
        let seq = gsr.wrapping_add_signed(offset);
        let kind = Kind::Ack { ack: alone.ack() };
        let answer = alone.packet(Alone::make(seq, kind, &[], 0));
        if valid {
            assert!(alone.notes.rx_error.is_empty(), "{offset}");
            assert!(!kinds(&answer).contains(&SYNC), "{offset}");
        } else {
            assert_eq!(kinds(&answer), [SYNC], "{offset}");
            assert_eq!(answer[0].kind.ack(), Some(ack(seq)), "{offset}");
            assert_eq!(alone.notes.rx_error, [RxError::OutOfWindow], "{offset}");
        }
    }
}

/// §7.5.1: acknowledgements from GSS + 1 − W' to GSS; not of what was never sent, nor of old.
#[test]
fn the_acknowledgement_window() {
    // Fixed, so that the SyncAcks below do not widen it.
    let fixed = Config { sequence_window: Some(100), ..plain() };
    for (back, valid) in [(0, true), (99, true), (100, false)] {
        let mut alone = Alone::open_client(&fixed, &[]);
        // Numbers go by in SyncAcks.
        for _ in 0..150 {
            alone.arrive(Kind::Sync { ack: alone.ack() }, &[]);
        }
        let answer = alone.arrive(Kind::Ack { ack: alone.ack_back(back) }, &[]);
        assert_eq!(kinds(&answer), if valid { vec![] } else { vec![SYNC] }, "{back}");
    }
    let mut alone = Alone::open_client(&plain(), &[]);
    let answer = alone.arrive(Kind::Ack { ack: ack(alone.last + 1) }, &[]);
    assert_eq!(kinds(&answer), [SYNC]);
    assert_eq!(alone.notes.rx_error, [RxError::BadAck]);
}

/// §7.5.1: at the start the windows do not reach below the initial numbers.
#[test]
fn windows_begin_at_the_initial_numbers() {
    let mut alone = Alone::open_client(&plain(), &[]);
    let kind = Kind::Ack { ack: alone.ack() };
    assert_eq!(kinds(&alone.packet(Alone::make(PEER - 1, kind, &[], 0))), [SYNC]);
    let before = Kind::Ack { ack: ack(alone.isn - 1) };
    assert_eq!(kinds(&alone.arrive(before, &[])), [SYNC]);
    let first = Kind::Ack { ack: ack(alone.isn) };
    assert!(alone.arrive(first, &[]).is_empty());
}

/// §8.5 step 6: Close, CloseReq and Reset must be newer than all before; a stale Reset is answered
/// by a Sync that names GSR, so that the real state comes out.
#[test]
fn what_ends_must_be_new() {
    let mut alone = Alone::open_client(&plain(), &[]);
    alone.arrive_data(Kind::Data, &[], 1);
    let (gsr, last) = (alone.seq, alone.ack());
    for (kind, named) in [
        (Kind::CloseReq { ack: last }, gsr),
        (Kind::Close { ack: last }, gsr),
        (Kind::Reset { ack: last, code: ResetCode::ABORTED, data: [0; 3] }, gsr),
    ] {
        let answer = alone.packet(Alone::make(gsr, kind, &[], 0));
        assert_eq!((kinds(&answer), answer[0].kind.ack()), (vec![SYNC], Some(ack(named))));
        let answer = alone.packet(Alone::make(gsr + 500, kind, &[], 0));
        let named = if kind.number() == RESET { gsr } else { gsr + 500 };
        assert_eq!((kinds(&answer), answer[0].kind.ack()), (vec![SYNC], Some(ack(named))));
    }
    assert_eq!(alone.endpoint.state(), State::Open);
}

/// §7.5.4: at most eight Syncs a second for invalid packets.
#[test]
fn syncs_are_rate_limited() {
    let mut alone = Alone::open_client(&plain(), &[]);
    let stray = |alone: &mut Alone| {
        let packet = Alone::make(PEER + 5000, Kind::Data, &[], 1);
        alone.packet(packet).len()
    };
    assert_eq!((0..50).map(|_| stray(&mut alone)).sum::<usize>(), 8);
    alone.now += ms(999);
    assert_eq!(stray(&mut alone), 0);
    alone.now += ms(1);
    assert_eq!(stray(&mut alone), 1);
}

/// §8.5 steps 5 and 15: a Sync with a good Acknowledgement Number moves the window however far
/// ahead it is, and is answered by a SyncAck; one with a bad one is dropped without a word.
#[test]
fn syncs_bring_ends_together() {
    let mut alone = Alone::open_client(&plain(), &[]);
    alone.seq += 10_000;
    assert_eq!(kinds(&alone.arrive_data(Kind::Data, &[], 1)), [SYNC]);
    let bad = Kind::Sync { ack: ack(alone.last + 7) };
    assert!(alone.arrive(bad, &[]).is_empty());
    assert_eq!(alone.notes.rx_error, [RxError::OutOfWindow, RxError::BadAck]);
    let answer = alone.arrive(Kind::Sync { ack: alone.ack() }, &[]);
    assert_eq!((kinds(&answer), answer[0].kind.ack()), (vec![SYNC_ACK], Some(ack(alone.seq))));
    alone.arrive_data(Kind::Data, &[], 1);
    assert_eq!(alone.received.len(), 1);
    // A SyncAck moves it too, and needs no answer.
    alone.seq += 10_000;
    assert!(alone.arrive(Kind::SyncAck { ack: alone.ack() }, &[]).is_empty());
    alone.arrive_data(Kind::Data, &[], 1);
    assert_eq!(alone.received.len(), 2);
}

/// §7.5.2: no more than a Sequence Window of packets is outstanding, however wide the congestion window.
#[test]
fn a_fixed_window_bounds_the_flight() {
    let config = Config { sequence_window: Some(32), ..plain() };
    let mut pair = Pair::connected(&config);
    for _ in 0..3000 {
        pair.send(Client, 100);
    }
    pair.drive_for(ms(20_000));
    let data = pair.log.iter().filter(|sent| sent.from == Client && sent.packet.kind.is_data());
    let times: Vec<_> = data.map(|sent| sent.at).collect();
    let within = |end: usize| end + 1 - times.partition_point(|at| *at + ms(100) <= times[end]);
    let most = (0..times.len()).map(within).max();
    assert!(most.is_some_and(|most| (24..=32).contains(&most)), "{most:?}");
    assert_eq!(pair.server.received.len(), 3000);
    assert!(pair.server.notes.rx_error.is_empty() && pair.client.notes.rx_error.is_empty());
}

/// §7.5.6: after a burst of losses longer than the window, Sync and SyncAck find the way again.
#[test]
fn a_long_burst_of_losses_is_survived() {
    let config = Config { sequence_window: Some(32), ..plain() };
    let mut pair = Pair::connected(&config);
    pair.judge_counted(
        |sent| sent.from == Client && sent.packet.kind.is_data(),
        |count| Verdict::drop_if((200..230).contains(&count)),
    );
    for _ in 0..300 {
        pair.send(Client, 100);
    }
    pair.drive_for(ms(60_000));
    assert_eq!(pair.log.iter().filter(|sent| sent.dropped).count(), 30);
    // What came behind the burst was refused until the Sync was answered, and no more.
    let refused = &pair.server.notes.rx_error;
    assert!((1..=2).contains(&refused.len()), "{refused:?}");
    assert!(refused.iter().all(|rx_error| *rx_error == RxError::OutOfWindow), "{refused:?}");
    assert!(pair.server.received.len() + refused.len() >= 270);
    assert!(pair.log.iter().any(|sent| sent.is(Server, SYNC)));
    assert!(pair.log.iter().any(|sent| sent.is(Client, SYNC_ACK)));
}

/// §8.5 step 7: types that the state or side does not expect are answered by a Sync.
#[test]
fn unexpected_types() {
    let mut client = Alone::open_client(&plain(), &[]);
    let request = Kind::Request { service: SERVICE };
    assert_eq!(kinds(&client.arrive(request, &[])), [SYNC]);
    let response = Kind::Response { ack: client.ack(), service: SERVICE };
    assert_eq!(kinds(&client.arrive(response, &[])), [SYNC]);
    let mut server = Alone::open_server(&plain(), &[]);
    let response = Kind::Response { ack: server.ack(), service: SERVICE };
    assert_eq!(kinds(&server.arrive(response, &[])), [SYNC]);
    assert_eq!(kinds(&server.arrive(request, &[])), [SYNC]);
    assert_eq!(kinds(&server.arrive(Kind::CloseReq { ack: server.ack() }, &[])), [SYNC]);
    assert_eq!(server.endpoint.state(), State::Open);
    // Data that overtook the Ack of the handshake.
    let mut server = Alone::listener(&plain());
    server.arrive(request, &[]);
    assert_eq!(kinds(&server.arrive_data(Kind::Data, &[], 9)), [SYNC]);
    assert_eq!((server.endpoint.state(), server.received.len()), (State::Respond, 0));
}

/// A packet the network duplicated is not delivered again (§7: "detect network duplicates").
#[test]
fn duplicates() {
    let mut pair = Pair::connected(&plain());
    pair.on_wire(
        |sent| if sent.packet.kind.is_data() { Verdict::Twice(ms(7)) } else { Verdict::Arrive },
    );
    for _ in 0..4 {
        pair.send(Client, 100);
    }
    pair.drive_for(ms(400));
    assert_eq!(pair.server.received.len(), 4);
}

/// §7.6: where Allow Short Seqnos is agreed, Data, Ack and `DataAck` are 24-bit in the open
/// connection and nothing else is; both are understood across the wrap.
#[test]
fn short_sequence_numbers() {
    let config = Config { allow_short_seqnos: true, ..plain() };
    let mut pair = Pair::connected(&config);
    for side in [Client, Server] {
        for _ in 0..200 {
            pair.send(side, 100);
        }
    }
    pair.drive_for(ms(20_000));
    assert_eq!((pair.client.received.len(), pair.server.received.len()), (200, 200));
    pair.input(Client, Input::Close);
    pair.drive_for(ms(500));
    let short = pair.log.iter().filter(|sent| !sent.packet.seq.is_extended());
    assert!(short.clone().count() > 300);
    assert!(short.clone().all(|sent| [DATA, ACK, DATA_ACK].contains(&sent.packet.kind.number())));
    // §5.1: twelve bytes of header.
    assert!(
        short
            .clone()
            .any(|sent| sent.packet.kind == Kind::Data && sent.packet.header_bytes() == 12)
    );
    for kind in [CLOSE, RESET] {
        assert!(
            pair.log
                .iter()
                .filter(|s| s.packet.kind.number() == kind)
                .all(|s| s.packet.seq.is_extended())
        );
    }
    // §8.5 step 6: dropped where not agreed.
    let mut alone = Alone::open_client(&plain(), &[]);
    let mut packet = Alone::make(0, Kind::Data, &[], 5);
    packet.seq = WireSeq::Short(((alone.seq + 1) & 0xff_ffff) as u32);
    assert!(alone.packet(packet.clone()).is_empty() && alone.received.is_empty());
    // §8.5 step 1: and on other types always.
    packet.kind = Kind::Sync { ack: WireSeq::Short(1) };
    assert!(alone.packet(packet).is_empty());
    assert_eq!(alone.notes.rx_error, [RxError::Unexpected, RxError::Malformed]);
}

/// §7.5.2: unless told otherwise, the Sequence Window follows the packets of a round trip.
#[test]
fn the_window_follows_the_flight() {
    let ask = |config: &Config| {
        let mut pair = Pair::connected(config);
        for _ in 0..4000 {
            pair.send(Client, 100);
        }
        pair.drive_for(ms(3000));
        let flight = pair.client.endpoint.feature(name::SEQUENCE_WINDOW, Location::Here);
        assert_eq!(pair.server.endpoint.feature(name::SEQUENCE_WINDOW, Location::There), flight);
        flight
    };
    let window = ask(&plain());
    assert!(window >= 256 && window.is_power_of_two(), "{window}");
    assert_eq!(ask(&Config { sequence_window: Some(500), ..plain() }), 500);
    // Under linux too: the kernel was seen to change it. Either habit is a knob.
    assert!(ask(&Config { profile: Profile::Linux, ..plain() }) >= 256);
    assert_eq!(ask(&Config { sequence_window_follows: Some(false), ..plain() }), 100);
    let both = Config { sequence_window: Some(32), sequence_window_follows: Some(true), ..plain() };
    assert!(ask(&both) >= 256);
}

/// §7.7: NDP Count tells the packets without data directly before, and only then.
#[test]
fn ndp_counts() {
    let config = Config { send_ndp_count: Some(true), ..plain() };
    let mut alone =
        Alone::open_client(&config, &[Opt::ChangeR(feature(name::SEND_NDP_COUNT, &[1]))]);
    assert_eq!(alone.endpoint.feature(name::SEND_NDP_COUNT, Location::Here), 1);
    let count = |packets: &[talkspurt_proto::dccp::Packet]| {
        options(&packets[0]).iter().find_map(|option| match option {
            Opt::NdpCount(count) => Some(*count),
            _ => None,
        })
    };
    alone.send(10);
    assert_eq!(count(&alone.send(10)), None);
    for before in [None, Some(1), Some(2)] {
        let answer = alone.arrive(Kind::Sync { ack: alone.ack() }, &[]);
        assert_eq!((kinds(&answer), count(&answer)), (vec![SYNC_ACK], before));
    }
    assert_eq!(count(&alone.send(10)), Some(3));
    assert_eq!(count(&alone.send(10)), None);
}
