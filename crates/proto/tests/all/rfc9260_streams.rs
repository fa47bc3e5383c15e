//! Several streams in one association: head-of-line blocking (RFC 9260 §6.6), and what distinguishes
//! applications (§3.3.1).

use talkspurt_proto::endpoint::Input;
use talkspurt_proto::sctp::{Config, Delivered, Number, Sending};
use talkspurt_proto::time::Duration;
use talkspurt_testing::sctp::{Client, Pair, bytes_of, message, ms, plain};

/// Six messages, one every 20 ms over 50 ms each way, odd ones on the first of two streams and even ones on
/// the second. The first message is lost. What is delivered, when after that was sent, and how long it had
/// waited, in ms.
fn deliveries(streams: [u16; 2], unordered: bool) -> Vec<(u8, u64, u64)> {
    let mut pair = Pair::connected(&plain());
    let start = pair.now;
    pair.drop_data(Client, &[1]);
    for number in 1..=6_u8 {
        let stream = streams[usize::from(number + 1) % 2];
        let how = Sending { stream, unordered, ..Sending::default() };
        assert!(pair.send_how(Client, number, 100, &how));
        pair.drive_for(ms(20));
    }
    pair.drive_for(Duration::from_secs(3));
    let millis = |span: Duration| span.as_nanos() / 1_000_000;
    let server = &pair.server;
    let seen = server.received.iter().zip(&server.delivered);
    seen.map(|((at, frame), Delivered { waited, .. })| {
        (bytes_of(frame)[0], millis(at.saturating_since(start)), millis(*waited))
    })
    .collect()
}

/// The third SACK that misses the first message is that of the fourth, which arrives after 110 ms and is
/// heard of after 160 (§7.2.4): the repetition arrives after 210.
#[test]
fn section_6_6_a_message_waits_for_earlier_ones_of_its_stream_and_of_no_other() {
    assert_eq!(
        deliveries([0, 0], false),
        [(1, 210, 0), (2, 210, 140), (3, 210, 120), (4, 210, 100), (5, 210, 80), (6, 210, 60)]
    );
    assert_eq!(
        deliveries([0, 1], false),
        [(2, 70, 0), (4, 110, 0), (6, 150, 0), (1, 210, 0), (3, 210, 120), (5, 210, 80)]
    );
    let at_once = [(2, 70, 0), (3, 90, 0), (4, 110, 0), (5, 130, 0), (6, 150, 0), (1, 210, 0)];
    assert_eq!(deliveries([0, 1], true), at_once);
    assert_eq!(deliveries([0, 0], true), at_once);
}

/// RFC 9260 §3.3.1: in every part of a message; RFC 8260 §2.1: an I-DATA chunk has it where the message
/// begins, and the number of the part elsewhere.
#[test]
fn section_3_3_1_the_payload_protocol_identifier_comes_with_the_message() {
    for interleaving in [false, true] {
        let mut pair = Pair::connected(&Config { interleaving, ..plain() });
        let of = |ppid| Sending { stream: 1, ppid, ..Sending::default() };
        assert!(pair.send_how(Client, 1, 2500, &of(0x7473_0001)));
        assert!(pair.send_how(Client, 2, 100, &of(0x7473_0002)));
        pair.drive_for(Duration::from_secs(3));
        let parts = pair.sent_by(Client).flat_map(|sent| sent.data());
        let parts: Vec<_> = parts.map(|data| (data.ppid, data.number)).collect();
        let later = if interleaving { 0 } else { 0x7473_0001 };
        let ppids: Vec<_> = parts.iter().map(|(ppid, _)| *ppid).collect();
        assert_eq!(ppids, [0x7473_0001, later, later, 0x7473_0002]);
        assert_eq!(matches!(parts[2].1, Number::Mid(0, 2)), interleaving);
        let told: Vec<_> = pair.server.delivered.iter().map(|delivered| delivered.ppid).collect();
        assert_eq!(told, [0x7473_0001, 0x7473_0002]);
    }
}

#[test]
fn messages_are_sent_as_was_last_said() {
    let mut pair = Pair::connected(&plain());
    let own = pair.client.endpoint.sending();
    assert_eq!(own, Sending::default());
    pair.client.endpoint.send_as(Sending { stream: 4, ppid: 7, unordered: true, ..own });
    pair.input(Client, Input::Frame(message(1, 100)));
    pair.client.endpoint.send_as(own);
    pair.input(Client, Input::Frame(message(2, 100)));
    pair.drive_for(Duration::from_secs(1));
    let sent: Vec<_> = pair.sent_by(Client).flat_map(|sent| sent.data().cloned()).collect();
    let how: Vec<_> = sent.iter().map(|data| (data.stream, data.ppid, data.unordered)).collect();
    assert_eq!(how, [(4, 7, true), (0, 0, false)]);
}
