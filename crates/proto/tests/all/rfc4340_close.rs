//! RFC 4340 §8.3 and §5.6: the end of a connection, from either side, in order, aborted or lost.

use talkspurt_proto::dccp::{Config, Kind, ResetCode, Service, State, WireSeq};
use talkspurt_proto::endpoint::{Endpoint, Event, Input};
use talkspurt_testing::dccp::*;

fn ends(pair: &Pair) -> (State, State) {
    (pair.client.endpoint.state(), pair.server.endpoint.state())
}

/// §8.3: the client closes: Close, Reset 1; it holds TIMEWAIT for 2 MSL.
#[test]
fn the_client_closes() {
    let mut pair = Pair::connected(&plain());
    let start = pair.now;
    pair.input(Client, Input::Close);
    assert_eq!(pair.client.endpoint.state(), State::Closing);
    assert_eq!(pair.client.endpoint.send_capacity(), 0);
    pair.drive_for(ms(100));
    assert_eq!(pair.kinds(), [(Client, CLOSE), (Server, RESET)]);
    assert_eq!(reset(&[pair.log[1].packet.clone()]).0, ResetCode::CLOSED);
    assert_eq!(pair.client.life(), [Event::Closed]);
    assert_eq!(pair.server.life(), [Event::PeerClosed, Event::Closed]);
    assert_eq!(ends(&pair), (State::TimeWait, State::Closed));
    assert_eq!(pair.client.wake, Some(start + ms(100) + ms(240_000)));
    pair.drive_for(ms(240_000));
    assert_eq!(ends(&pair), (State::Closed, State::Closed));
    assert_eq!((pair.client.wake, pair.server.wake), (None, None));
}

/// §8.3: the server closes: CloseReq, Close, Reset 1; the client holds TIMEWAIT.
#[test]
fn the_server_closes() {
    let mut pair = Pair::connected(&plain());
    pair.input(Server, Input::Close);
    assert_eq!(pair.server.endpoint.state(), State::CloseReq);
    pair.drive_for(ms(200));
    assert_eq!(pair.kinds(), [(Server, CLOSE_REQ), (Client, CLOSE), (Server, RESET)]);
    assert_eq!(ends(&pair), (State::TimeWait, State::Closed));
    assert_eq!(pair.client.life(), [Event::PeerClosed, Event::Closed]);
    assert_eq!(pair.server.life(), [Event::Closed]);
}

/// §8.3: a server willing to hold TIMEWAIT sends Close itself.
#[test]
fn the_server_closes_and_waits() {
    let mut pair = Pair::connected(&Config { server_timewait: true, ..plain() });
    pair.input(Server, Input::Close);
    pair.drive_for(ms(200));
    assert_eq!(pair.kinds(), [(Server, CLOSE), (Client, RESET)]);
    assert_eq!(ends(&pair), (State::Closed, State::TimeWait));
}

/// Both close at once: each answers the other's Close, and both are done.
#[test]
fn both_close() {
    let mut pair = Pair::connected(&Config { server_timewait: true, ..plain() });
    pair.input(Client, Input::Close);
    pair.input(Server, Input::Close);
    pair.drive_for(ms(1000));
    assert_eq!(pair.kinds()[..2], [(Client, CLOSE), (Server, CLOSE)]);
    assert_eq!(ends(&pair), (State::Closed, State::Closed));
    for side in [Client, Server] {
        assert_eq!(pair.end(side).life(), [Event::Closed]);
    }
}

/// A datagram handed over before the close still leaves before it.
#[test]
fn data_leaves_before_the_close() {
    let mut pair = Pair::connected(&plain());
    let now = pair.now;
    // The driver polls after each input; closing directly after a frame loses nothing.
    pair.client.endpoint.handle(now, Input::Frame(data(50)), &mut ());
    pair.input(Client, Input::Close);
    pair.drive_for(ms(200));
    assert_eq!(pair.kinds()[..2], [(Client, DATA), (Client, CLOSE)]);
    assert_eq!(pair.server.frames(), [data(50)]);
}

/// §8.3: Close and CloseReq are repeated after two round trips, then ever more slowly up to 64 s.
#[test]
fn closes_are_repeated() {
    for (side, kind) in [(Client, CLOSE), (Server, CLOSE_REQ)] {
        let mut pair = Pair::new(&plain());
        pair.input(Client, Input::Open);
        pair.drive_for(ms(130));
        pair.send(Server, 1);
        pair.drive_for(ms(70));
        pair.log.clear();
        let start = pair.now;
        pair.on_wire(|_| Verdict::Drop);
        pair.input(side, Input::Close);
        pair.drive_for(ms(600_000));
        let repeated = pair.of_kind(side, kind);
        let times: Vec<u64> =
            repeated.iter().map(|sent| (sent.at - start).as_nanos() / 1_000_000).collect();
        let expected = [0, 200, 600, 1400, 3000, 6200, 12_600, 25_400, 51_000, 102_200, 166_200];
        assert_eq!(times, expected);
        let numbers: Vec<u64> = repeated.iter().map(|sent| wire(sent.packet.seq)).collect();
        assert!(numbers.windows(2).all(|two| two[1] == two[0] + 1));
        // Given up with a Reset after three minutes, as a Request is.
        let last = pair.log.last().unwrap();
        assert_eq!((last.at - start, last.packet.kind.number()), (ms(180_000), RESET));
        assert_eq!(pair.end(side).life().last(), Some(&Event::TimedOut));
        assert_eq!(pair.end(side).wake, None);
    }
}

/// A lost Reset: the repeated Close finds no connection, and that ends it too.
#[test]
fn a_lost_reset() {
    let mut pair = Pair::connected(&plain());
    let mut lost = false;
    pair.on_wire(move |sent| {
        let first = sent.packet.kind.number() == RESET && !lost;
        lost |= first;
        if first { Verdict::Drop } else { Verdict::Arrive }
    });
    pair.input(Client, Input::Close);
    pair.drive_for(ms(5000));
    assert_eq!(pair.kinds(), [(Client, CLOSE), (Server, RESET), (Client, CLOSE), (Server, RESET)]);
    assert_eq!(reset(&[pair.log[3].packet.clone()]).0, ResetCode::NO_CONNECTION);
    assert_eq!(pair.client.life(), [Event::Closed]);
    assert_eq!(ends(&pair), (State::TimeWait, State::Closed));
}

/// §8.3, §5.6: an abort sends only Reset 2.
#[test]
fn aborts() {
    for side in [Client, Server] {
        let mut pair = Pair::connected(&plain());
        pair.input(side, Input::Abort);
        pair.drive_for(ms(500));
        assert_eq!(pair.kinds(), [(side, RESET)]);
        assert_eq!(reset(&[pair.log[0].packet.clone()]).0, ResetCode::ABORTED);
        assert_eq!(pair.end(side).life(), [Event::Reset]);
        assert_eq!(pair.end(side).endpoint.state(), State::Closed);
        assert_eq!(pair.end(side.other()).life(), [Event::Reset]);
        assert_eq!(pair.end(side.other()).endpoint.state(), State::TimeWait);
    }
}

/// Closing without a connection: in REQUEST the server is informed, in LISTEN nothing is sent.
#[test]
fn closed_before_open() {
    let mut alone = Alone::opening(&plain());
    assert_eq!(reset(&alone.input(Input::Close)).0, ResetCode::ABORTED);
    assert_eq!((alone.events.as_slice(), alone.wake), (&[Event::Closed][..], None));
    let mut alone = Alone::client(&plain());
    assert!(alone.input(Input::Close).is_empty());
    assert_eq!(alone.events, [Event::Closed]);
    assert!(alone.input(Input::Open).is_empty());
    let mut alone = Alone::listener(&plain());
    assert!(alone.input(Input::Close).is_empty());
    assert_eq!(
        (alone.events.as_slice(), alone.endpoint.state()),
        (&[Event::Closed][..], State::Closed)
    );
    // A server closed in RESPOND waits until it may send CloseReq.
    let mut alone = Alone::listener(&plain());
    alone.arrive(Kind::Request { service: Service::RTP_AUDIO.0 }, &[]);
    assert!(alone.input(Input::Close).is_empty());
    let answer = alone.arrive(Kind::Ack { ack: alone.ack() }, &[]);
    assert!(kinds(&answer).contains(&CLOSE_REQ));
    assert_eq!(alone.endpoint.state(), State::CloseReq);
}

/// §8.5 step 9: every Reset ends a connection, cleanly only with code Closed; §8.5 step 2: in
/// TIMEWAIT packets are answered by Reset 3, except Resets.
#[test]
fn resets_end() {
    for (code, event) in
        (0..=12).map(|code| (ResetCode(code), if code == 1 { Event::Closed } else { Event::Reset }))
    {
        let mut alone = Alone::open_client(&plain(), &[]);
        let kind = Kind::Reset { ack: alone.ack(), code, data: [0; 3] };
        assert!(alone.arrive(kind, &[]).is_empty());
        assert_eq!(alone.events.last(), Some(&event), "{code:?}");
        assert_eq!(alone.endpoint.state(), State::TimeWait);
        let answer = alone.arrive_data(Kind::Data, &[], 4);
        assert_eq!(reset(&answer).0, ResetCode::NO_CONNECTION);
        assert!(alone.arrive(kind, &[]).is_empty());
        assert_eq!(alone.wake, Some(at(240_000)));
        alone.wait();
        assert_eq!(alone.endpoint.state(), State::Closed);
    }
}

/// §8.5 step 13: in CLOSING another CloseReq has no effect.
#[test]
fn one_close_for_many_requests() {
    let mut alone = Alone::open_client(&plain(), &[]);
    let ask = |alone: &mut Alone| {
        let kind = Kind::CloseReq { ack: alone.ack() };
        kinds(&alone.arrive(kind, &[]))
    };
    assert_eq!(ask(&mut alone), [CLOSE]);
    assert!(ask(&mut alone).is_empty());
    assert_eq!(alone.endpoint.state(), State::Closing);
    // Data that was on its way is still delivered.
    alone.arrive_data(Kind::Data, &[], 4);
    assert_eq!(alone.received.len(), 1);
}

/// A listener whose handshake was reset listens again.
#[test]
fn a_reset_listener_listens_again() {
    let mut alone = Alone::listener(&plain());
    let service = Service::RTP_AUDIO.0;
    alone.arrive(Kind::Request { service }, &[]);
    let kind = Kind::Reset { ack: alone.ack(), code: ResetCode::ABORTED, data: [0; 3] };
    assert!(alone.arrive(kind, &[]).is_empty());
    assert_eq!((alone.endpoint.state(), alone.wake), (State::Listen, None));
    assert!(alone.events.is_empty());
    // A forged one is answered by a Sync, and changes nothing.
    alone.arrive(Kind::Request { service }, &[]);
    let forged = Kind::Reset {
        ack: WireSeq::Extended(alone.last + 9),
        code: ResetCode::ABORTED,
        data: [0; 3],
    };
    assert_eq!(kinds(&alone.arrive(forged, &[])), [SYNC]);
    assert_eq!(alone.endpoint.state(), State::Respond);
}

/// §8.5 step 6: "LAWL := S.GAR" for packets that end a connection. Of a peer that died long ago and
/// came back, a Reset may acknowledge the last packet it ever acknowledged, though that is no longer
/// in the window of acknowledgements (100); nothing older.
#[test]
fn a_reset_may_acknowledge_the_greatest_number_acknowledged_before() {
    let mut alone = Alone::open_client(&plain(), &[]);
    let gar = alone.last;
    // Data that acknowledges nothing: every second packet is acknowledged (Ack Ratio 2).
    while alone.last.wrapping_sub(gar) < 150 {
        alone.arrive_data(Kind::Data, &[], 4);
    }
    assert_eq!(alone.endpoint.state(), State::Open);
    let (code, data) = (ResetCode::ABORTED, [0; 3]);
    let older = Kind::Reset { ack: WireSeq::Extended(gar - 1), code, data };
    assert_eq!(kinds(&alone.arrive(older, &[])), [SYNC]);
    assert_eq!(alone.endpoint.state(), State::Open);
    let reset = Kind::Reset { ack: WireSeq::Extended(gar), code, data };
    assert!(alone.arrive(reset, &[]).is_empty());
    assert_eq!(alone.endpoint.state(), State::TimeWait);
    assert_eq!(alone.events.last(), Some(&Event::Reset));
}
