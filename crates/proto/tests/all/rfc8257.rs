//! RFC 8257: DCTCP, a controller that reduces its window by the fraction of bytes that were marked.

use talkspurt_proto::congestion::{Controller, Dctcp, Machine};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::tcp::{Config, Flags, Tcp};
use talkspurt_testing::tcp::{Client, Pair, Server, Verdict, ms, plain};

fn config() -> Config {
    Config { controller: Controller::Dctcp, ..plain() }
}

fn dctcp(tcp: &Tcp) -> &Dctcp {
    let Machine::Dctcp(dctcp) = tcp.controller() else { panic!("another") };
    dctcp
}

/// The mean α of a transfer in which each data segment is marked with this probability; the receiver counts
/// marks or not. Marks at a fixed distance would fall into step with windows of some segments.
fn alpha(config: &Config, share: f64, counts: bool) -> f64 {
    let server = if counts { config } else { &Config { ecn: Some(true), ..plain() } };
    let mut pair = Pair::of(config, server);
    pair.connect();
    let mut rng = Rng::new(3, "marks");
    pair.on_wire(move |sent| {
        let marked = sent.from == Client && !sent.is_empty() && rng.unit() < share;
        if marked { Verdict::Mark } else { Verdict::Arrive }
    });
    pair.send(Client, 4_000_000);
    pair.drive_for(ms(100) * 100);
    let mut sum = 0.0;
    for _ in 0..500 {
        pair.drive_for(ms(100));
        sum += dctcp(&pair.client.endpoint).alpha();
    }
    sum / 500.0
}

/// §3.3: α is an average of the fraction of bytes marked, over sixteen windows.
#[test]
fn alpha_follows_the_marked_fraction() {
    for share in [0.0, 0.05, 0.25, 0.5, 1.0] {
        let alpha = alpha(&config(), share, true);
        assert!((alpha - share).abs() < 0.05, "{share}: {alpha}");
    }
}

/// §3.2: a receiver of RFC 3168 echoes a mark for a round trip, so that α exceeds the fraction.
#[test]
fn a_receiver_that_does_not_count_marks_overstates_them() {
    assert!(alpha(&config(), 0.05, false) > 0.3);
}

/// §3.2: with delayed acknowledgements, a change of the mark is acknowledged at once, with its ECE.
#[test]
fn a_change_is_acknowledged_at_once() {
    let mut pair = Pair::connected(&Config { delayed_ack: true, ..config() });
    let mut count = 0;
    pair.on_wire(move |sent| {
        count += usize::from(sent.from == Client && !sent.is_empty());
        // Five data segments: the third and the fourth are marked.
        if sent.from == Client && [3, 4].contains(&count) { Verdict::Mark } else { Verdict::Arrive }
    });
    pair.send(Client, 5000);
    pair.drive_for(ms(120));
    let acks = pair.sent(Server);
    let acks = acks.iter().filter(|ack| ack.ack > 1 && !ack.has(Flags::SYN));
    let acks: Vec<_> = acks.map(|ack| ((ack.ack - 1) / 1000, ack.has(Flags::ECE))).collect();
    assert_eq!(acks, [(2, false), (3, true), (5, false)]);
}
