//! Further policies of partial reliability (RFC 7496): a limit of retransmissions, and priorities.

use talkspurt_proto::sctp::{Config, Sending};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;
use talkspurt_testing::sctp::{Client, Pair, Verdict, ms, plain};

#[test]
fn section_3_1_a_message_is_sent_so_often_and_no_more() {
    for most in [0, 1, 3] {
        let config =
            Config { max_retransmissions: Some(most), rto_max: Duration::from_secs(1), ..plain() };
        let mut pair = Pair::connected(&config);
        let first = pair.first_tsn(Client);
        pair.on_wire(move |sent| {
            if sent.data().any(|data| data.tsn == first) { Verdict::Drop } else { Verdict::Arrive }
        });
        pair.send(Client, 1, 100);
        pair.drive_for(ms(10));
        pair.send(Client, 2, 100);
        pair.drive_for(Duration::from_secs(10));
        let copies = pair.sent_by(Client).flat_map(|s| s.data()).filter(|d| d.tsn == first).count();
        assert_eq!(copies, 1 + most as usize);
        assert_eq!(pair.server.numbers(), [2]);
    }
}

#[test]
fn section_3_2_a_full_buffer_drops_what_matters_less() {
    let config = Config { send_buffer: Size::from_bytes(10_000), ..plain() };
    let mut pair = Pair::connected(&config);
    let how = |priority| Sending { priority, ..Sending::default() };
    // Four leave at once; six of 1000 bytes wait, with priorities 5 and 6 in turn.
    for number in 0..10 {
        assert!(pair.send_how(Client, number, 1000, &how(Some(5 + u32::from(number % 2)))));
    }
    // No room if the rest has the same or higher priority, or another policy.
    assert!(!pair.send_how(Client, 20, 1000, &how(Some(6))));
    assert!(!pair.send_how(Client, 20, 1000, &how(None)));
    // A lower value matters more: the least important and youngest go, 9 and then 7.
    assert!(pair.send_how(Client, 21, 1000, &how(Some(5))));
    assert!(pair.send_how(Client, 22, 1000, &how(Some(1))));
    pair.drive_for(Duration::from_secs(5));
    assert_eq!(pair.server.numbers(), [0, 1, 2, 3, 4, 5, 6, 8, 21, 22]);
}
