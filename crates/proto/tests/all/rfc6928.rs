//! RFC 6928: the initial window.

use talkspurt_proto::endpoint::Input;
use talkspurt_proto::tcp::{Config, Flags};
use talkspurt_proto::units::Size;
use talkspurt_testing::tcp::*;

fn first_flight(mss: u64, segments: u32) -> Vec<usize> {
    let config = Config { mss: Size::from_bytes(mss), initial_window: segments, ..plain() };
    let mut pair = Pair::connected(&config);
    pair.send(Client, 200_000);
    pair.data(Client).iter().map(|sent| sent.len()).collect()
}

/// §2: min(10 · MSS, max(2 · MSS, 14600))
#[test]
fn ten_segments_or_14600_bytes() {
    assert_eq!(first_flight(1460, 10), [1460; 10]);
    assert_eq!(first_flight(536, 10), [536; 10]);
    assert_eq!(first_flight(2000, 10), [2000; 7]);
    assert_eq!(first_flight(9000, 10), [9000; 2]);
}

/// Other windows by configuration: RFC 5681's for small segments, RFC 2581's one.
#[test]
fn as_configured() {
    assert_eq!(first_flight(1000, 4), [1000; 4]);
    assert_eq!(first_flight(1000, 1), [1000; 1]);
}

/// §2: one repeated SYN leaves the window, two take it to one segment (RFC 5681 §3.1).
#[test]
fn after_a_lost_syn() {
    for (losses, window) in [(0, 10), (1, 10), (2, 1)] {
        let mut pair = Pair::new(&plain());
        let mut left = losses;
        pair.on_wire(move |sent| {
            if left > 0 && sent.has(Flags::SYN) {
                left -= 1;
                return Verdict::Drop;
            }
            Verdict::Arrive
        });
        pair.input(Client, Input::Open);
        pair.drive_for(ms(8000));
        pair.send(Client, 50_000);
        assert_eq!(pair.data(Client).len(), window, "{losses} lost");
    }
}
