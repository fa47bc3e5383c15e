//! RFC 4340 §7.5.5: a client whose peer still holds an older connection between the same ports (it
//! crashed, or its close was lost). A Linux kernel in that state answers a Request with Sync, and a
//! Reset out of its window with a Sync that acknowledges the greatest number it knows.

use talkspurt_proto::dccp::{Ccid, Config, Dccp, Kind, Options, Packet, ResetCode, WireSeq};
use talkspurt_proto::endpoint::{Arrival, Endpoint, Input, Output};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Damage, Ecn, PacketBox, PathId, Payload};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::time::{Duration, Instant};

fn sent(endpoint: &mut Dccp, now: Instant) -> Vec<Packet> {
    let mut packets = Vec::new();
    loop {
        match endpoint.poll(now, &mut ()) {
            Output::Transmit(transmit) => packets.push(transmit.packet.into_inner()),
            Output::Idle { .. } => return packets,
            Output::Deliver(_) | Output::Event(_) => {}
        }
    }
}

fn sync(seq: u64, ack: WireSeq) -> Input<PacketBox<Packet>> {
    let packet = Packet {
        seq: WireSeq::Extended(seq),
        ccval: 0,
        cscov: 0,
        kind: Kind::Sync { ack },
        options: Options::default(),
        payload: Frame::Data(Payload::default()),
    };
    Input::Packet {
        arrival: Arrival { path: PathId(0), ecn: Ecn::NotEct, damage: Damage::None },
        packet: PacketBox::new(packet),
    }
}

#[test]
fn a_reset_to_a_sync_of_an_older_connection_is_in_its_window() {
    let mut client = Dccp::client(&Config::new(Ccid::Two), Rng::new(1, "client"));
    let mut now = Instant::ZERO;
    client.handle(now, Input::Open, &mut ());
    let request = sent(&mut client, now).remove(0);
    let WireSeq::Extended(number) = request.seq else { panic!("a Request is never short") };

    // The Sync acknowledges the Request: the Reset has the next number, as any packet.
    now += Duration::from_millis(1);
    client.handle(now, sync(30, request.seq), &mut ());
    let reset = sent(&mut client, now).remove(0);
    assert_eq!(reset.seq, WireSeq::Extended((number + 1) % (1 << 48)));

    // The next Sync acknowledges the last packet of the older connection: so must the Reset follow.
    let old = (number + 5_000_000) % (1 << 48);
    now += Duration::from_millis(1);
    client.handle(now, sync(31, WireSeq::Extended(old)), &mut ());
    let reset = sent(&mut client, now).remove(0);
    assert_eq!(reset.seq, WireSeq::Extended((old + 1) % (1 << 48)));
    let ack = WireSeq::Extended(31);
    let (code, data) = (ResetCode::PACKET_ERROR, [8, 0, 0]);
    assert_eq!(reset.kind, Kind::Reset { ack, code, data });

    // The Request is repeated, in the new connection's own numbers.
    now += Duration::from_secs(1);
    client.handle(now, Input::Timeout, &mut ());
    let again = sent(&mut client, now).remove(0);
    assert!(matches!(again.kind, Kind::Request { .. }));
    assert_eq!(again.seq, WireSeq::Extended((number + 2) % (1 << 48)));
}
