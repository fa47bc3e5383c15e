//! SCTP's Explicit Congestion Notification, by RFC 4960 appendix A (RFC 9260 keeps the numbers of its
//! chunks and its parameter): agreed in INIT and INIT ACK, ECNE repeated until CWR, one reduction for
//! what was in flight.

use talkspurt_proto::endpoint::{Arrival, Endpoint, Input, Output};
use talkspurt_proto::packet::{Damage, Ecn, PacketBox, PathId};
use talkspurt_proto::sctp::{Chunk, Config, Packet, Parameter, Sctp};
use talkspurt_testing::sctp::{Client, Pair, Verdict, answers, at, bytes_of, ms, packet, plain};

fn marking() -> Config {
    Config { ecn: true, ..plain() }
}

/// Which of INIT and INIT ACK announce ECN.
fn said(client: &Config, server: &Config) -> (Pair, Vec<bool>) {
    let mut pair = Pair::on_paths(client, server, 1);
    pair.connect();
    let said = pair.log[..2].iter().map(|sent| match &sent.packet.chunks[0] {
        Chunk::Init(init) | Chunk::InitAck(init) => init.parameters.contains(&Parameter::Ecn),
        other => panic!("{other:?}"),
    });
    let said = said.collect();
    (pair, said)
}

/// The ECN field of the next packet that an end sends when given a message.
fn field(sctp: &mut Sctp, pair_now: talkspurt_proto::time::Instant) -> Ecn {
    sctp.handle(pair_now, Input::Frame(talkspurt_testing::sctp::message(1, 100)), &mut ());
    loop {
        match sctp.poll(pair_now, &mut ()) {
            Output::Transmit(transmit) => return transmit.ecn,
            Output::Idle { .. } => panic!("nothing was sent"),
            Output::Deliver(_) | Output::Event(_) => {}
        }
    }
}

#[test]
fn appendix_a_both_ends_must_want_it() {
    let without = plain();
    for (client, server, expected, used) in [
        (&without, &without, vec![false, false], Ecn::NotEct),
        (&marking(), &without, vec![true, false], Ecn::NotEct),
        (&without, &marking(), vec![false, true], Ecn::NotEct),
        (&marking(), &marking(), vec![true, true], Ecn::Ect0),
    ] {
        let (mut pair, said) = said(client, server);
        assert_eq!(said, expected);
        let now = pair.now;
        assert_eq!(field(&mut pair.client.endpoint, now), used);
        assert_eq!(field(&mut pair.server.endpoint, now), used);
    }
}

/// A packet from the client with data that the network has marked.
fn marked(tag: u32, tsns: &[u32]) -> Input<PacketBox<Packet>> {
    let chunks = tsns.iter().map(|tsn| {
        Chunk::Data(talkspurt_proto::sctp::Data {
            immediate: false,
            unordered: true,
            beginning: true,
            ending: true,
            tsn: *tsn,
            stream: 0,
            number: talkspurt_proto::sctp::Number::Ssn(0),
            ppid: 0,
            payload: talkspurt_testing::sctp::message(1, 100),
        })
    });
    let packet = Packet { tag, chunks: chunks.collect() };
    Input::Packet {
        arrival: Arrival { path: PathId(0), ecn: Ecn::Ce, damage: Damage::None },
        packet: PacketBox::new(packet),
    }
}

fn ecne(packets: &[Packet]) -> Vec<u32> {
    let chunks = packets.iter().flat_map(|packet| &packet.chunks);
    let lowest = |chunk: &Chunk| match chunk {
        Chunk::Ecne { lowest } => Some(*lowest),
        _ => None,
    };
    chunks.filter_map(lowest).collect()
}

#[test]
fn appendix_a_ecne_tells_of_the_lowest_tsn_until_cwr() {
    let (mut pair, _) = said(&marking(), &marking());
    let (tag, first) = (pair.tags().1, pair.first_tsn(Client));
    let input = marked(tag, &[first, first + 1]);
    let server = &mut pair.server.endpoint;
    // At once, in front of the SACK, with the first TSN of the packet.
    let sent = answers(server, at(300), input);
    assert_eq!(sent[0].chunks.iter().map(Chunk::number).collect::<Vec<_>>(), [12, 3]);
    assert_eq!(ecne(&sent), [first]);
    // With the next SACK again, though nothing was marked since.
    let data = |tsn| match marked(tag, &[tsn]) {
        Input::Packet { packet: body, .. } => packet(PathId(0), body.into_inner()),
        other => panic!("{other:?}"),
    };
    let next = data(first + 2);
    assert_eq!(ecne(&answers(&mut pair.server.endpoint, at(400), next)), [first]);
    // A CWR for what lies before does not answer it; one that reaches it does.
    for (lowest, expected) in [(first.wrapping_sub(1), vec![first]), (first + 2, vec![])] {
        let cwr = packet(PathId(0), Packet { tag, chunks: vec![Chunk::Cwr { lowest }] });
        assert!(answers(&mut pair.server.endpoint, at(500), cwr).is_empty());
        let tsn = if expected.is_empty() { first + 4 } else { first + 3 };
        let next = data(tsn);
        assert_eq!(ecne(&answers(&mut pair.server.endpoint, at(600), next)), expected);
    }
}

#[test]
fn without_agreement_marks_and_echoes_are_nothing() {
    let (mut pair, _) = said(&plain(), &marking());
    let input = marked(pair.tags().1, &[pair.first_tsn(Client)]);
    assert_eq!(ecne(&answers(&mut pair.server.endpoint, at(300), input)), [0; 0]);
    let window = pair.client.endpoint.window(PathId(0));
    pair.forge(Client, pair.tags().0, vec![Chunk::Ecne { lowest: pair.first_tsn(Client) }]);
    assert_eq!(pair.client.endpoint.window(PathId(0)), window);
    assert!(pair.sent_by(Client).all(|sent| !sent.has(13)));
}

#[test]
fn appendix_a_the_window_is_halved_once_for_what_was_in_flight() {
    let (mut pair, _) = said(&marking(), &marking());
    for number in 0..40 {
        pair.send(Client, number, 900);
    }
    pair.drive_for(ms(300));
    let first = pair.first_tsn(Client);
    let highest = |pair: &Pair| {
        pair.sent_by(Client).flat_map(|sent| sent.data()).map(|data| data.tsn).max().expect("data")
    };
    let (window, _) = pair.client.endpoint.window(PathId(0)).expect("a path");
    assert!(window > 4 * 1016, "slow start has begun");
    let last = highest(&pair);
    let tag = pair.tags().0;
    // No more data, so that nothing else moves the window.
    pair.on_wire(|_| Verdict::Drop);
    pair.forge(Client, tag, vec![Chunk::Ecne { lowest: last }]);
    let half = (window / 2).max(4 * 1016);
    assert_eq!(pair.client.endpoint.window(PathId(0)), Some((half, Some(half))));
    // Repeated, or of another packet that was in flight then: answered, and nothing more.
    pair.forge(Client, tag, vec![Chunk::Ecne { lowest: last }]);
    pair.forge(Client, tag, vec![Chunk::Ecne { lowest: last - 1 }]);
    assert_eq!(pair.client.endpoint.window(PathId(0)), Some((half, Some(half))));
    let answered: Vec<_> = pair
        .sent_by(Client)
        .flat_map(|sent| &sent.packet.chunks)
        .filter_map(|chunk| match chunk {
            Chunk::Cwr { lowest } => Some(*lowest),
            _ => None,
        })
        .collect();
    assert_eq!(answered, [last, last, last - 1]);
    // One for data never sent is ignored.
    pair.forge(Client, tag, vec![Chunk::Ecne { lowest: last + 100 }]);
    assert_eq!(pair.client.endpoint.window(PathId(0)), Some((half, Some(half))));
    assert_ne!(first, last);
}

#[test]
fn a_cookie_remembers_the_agreement() {
    // The listener keeps no state of the INIT: it learns from the cookie that ECN is used.
    let (mut pair, _) = said(&marking(), &marking());
    pair.send(Client, 3, 200);
    pair.drive_for(ms(400));
    assert_eq!(pair.server.received.iter().map(|(_, f)| bytes_of(f)[0]).collect::<Vec<_>>(), [3]);
    let input = marked(pair.tags().1, &[pair.first_tsn(Client) + 1]);
    assert_eq!(ecne(&answers(&mut pair.server.endpoint, at(900), input)).len(), 1);
}
