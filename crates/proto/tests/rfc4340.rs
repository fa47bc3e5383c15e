//! RFC 4340, clause by clause: opening, numbers and windows, and data (§7, §8, §9, §12 to §14).
//! Features, options and closing are in `rfc4340_features`, `rfc4340_options`, `rfc4340_close`.

mod dccp_pair;

use dccp_pair::*;
use talkspurt_proto::dccp::State;
use talkspurt_proto::endpoint::{Event, Input};

/// §4.3, §8.1: Request, Response, Ack; then data both ways.
#[test]
fn three_way_handshake() {
    let mut pair = Pair::new(&plain());
    pair.input(Client, Input::Open);
    pair.drive_until(at(100));
    assert_eq!(pair.kinds(), [(Client, REQUEST), (Server, RESPONSE), (Client, ACK)]);
    assert_eq!(pair.client.dccp.state(), State::PartOpen);
    pair.drive_until(at(150));
    assert_eq!(pair.server.dccp.state(), State::Open);
    assert_eq!(pair.client.life(), [Event::Connected]);
    assert_eq!(pair.server.life(), [Event::Connected]);
    for side in [Client, Server] {
        for _ in 0..10 {
            pair.send(side, 160);
        }
    }
    pair.drive_for(ms(500));
    assert_eq!(pair.client.dccp.state(), State::Open);
    assert_eq!((pair.client.received.len(), pair.server.received.len()), (10, 10));
    pair.input(Client, Input::Close);
    pair.drive_for(ms(500));
    assert_eq!(pair.client.dccp.state(), State::TimeWait);
    assert_eq!(pair.server.dccp.state(), State::Closed);
}
