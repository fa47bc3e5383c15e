//! RFC 5596: DCCP-Listen, which opens a middlebox towards a client.

use talkspurt_proto::dccp::{Config, Kind, Service, State, WireSeq};
use talkspurt_proto::endpoint::{Event, Input};
use talkspurt_testing::dccp::*;

fn listening() -> Config {
    Config { listen_packets: true, ..plain() }
}

/// §2.2.1: a Listen has Sequence Number zero, no Acknowledgement Number, no data, and the Service
/// Code. §2.2.2: it is sent at once and twice more at intervals of 200 ms.
#[test]
fn three_listens() {
    let mut alone = Alone::listener(&listening());
    let mut times = vec![alone.now];
    alone.input(Input::Open);
    while alone.wake.is_some() {
        assert_eq!(kinds(&alone.wait()), [LISTEN]);
        times.push(alone.now);
    }
    assert_eq!(times, [at(0), at(200), at(400)]);
    assert_eq!(alone.sent.len(), 3);
    for listen in &alone.sent {
        assert_eq!(listen.seq, WireSeq::Extended(0));
        assert_eq!(listen.kind, Kind::Listen { service: Service::RTP_AUDIO.0 });
        assert_eq!(listen.header_bytes(), 20);
        assert_eq!(listen.payload.wire_bytes(), 0);
    }
    assert_eq!(alone.endpoint.state(), State::Listen);
}

/// §2.2.2: a Request ends it, and is answered normally.
#[test]
fn a_request_ends_listening() {
    let mut pair = Pair::new(&listening());
    pair.input(Server, Input::Timeout);
    pair.drive_for(ms(210));
    pair.input(Client, Input::Open);
    pair.send(Client, 9);
    pair.send(Server, 9);
    pair.drive_for(ms(600));
    assert_eq!(pair.of_kind(Server, LISTEN).len(), 2);
    assert_eq!((pair.client.received.len(), pair.server.received.len()), (1, 1));
    assert_eq!(pair.client.life(), [Event::Connected]);
}

/// §2.2.1: the receiver of a Listen neither answers nor changes state, in any state.
#[test]
fn listens_are_ignored() {
    let service = Service::RTP_AUDIO.0;
    let mut requesting = Alone::client(&plain());
    requesting.input(Input::Open);
    let ends = [
        Alone::client(&plain()),
        requesting,
        Alone::listener(&plain()),
        Alone::open_client(&plain(), &[]),
        Alone::open_server(&plain(), &[]),
    ];
    for mut alone in ends {
        let (state, wake) = (alone.endpoint.state(), alone.wake);
        for seq in [0, alone.seq + 1] {
            assert!(alone.packet(Alone::make(seq, Kind::Listen { service }, &[], 0)).is_empty());
        }
        assert_eq!((alone.endpoint.state(), alone.wake), (state, wake));
        assert!(alone.notes.rx_error.is_empty());
    }
}
