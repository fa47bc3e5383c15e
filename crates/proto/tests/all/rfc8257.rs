//! RFC 8257: DCTCP, a controller that reduces its window by the fraction of bytes that were marked. It is not
//! one of ours: this file shows that a program can write it, and what TCP tells it.

use std::any::Any;

use talkspurt_proto::congestion::{Ack, Congestion, CongestionControl, Machine, NewReno, Start};
use talkspurt_proto::rtt::RttEstimator;
use talkspurt_proto::tcp::{Config, Flags, Tcp};
use talkspurt_proto::time::Instant;
use talkspurt_testing::tcp::{Client, Pair, Server, Verdict, ms, plain};

/// §4.2: g, the estimation gain of some implementations.
const GAIN: f64 = 1.0 / 16.0;

/// §3.3; otherwise (§3.4, §3.5) with the window of NewReno.
#[derive(Clone, Debug)]
struct Dctcp {
    reno: NewReno,
    /// DCTCP.Alpha.
    alpha: f64,
    /// DCTCP.BytesAcked and DCTCP.BytesMarked.
    acked: u64,
    marked: u64,
    /// Bytes of this observation window: those that could be in flight at its beginning.
    observed: u64,
}

impl Dctcp {
    fn new(start: &Start) -> Self {
        Self { reno: NewReno::new(start), alpha: 1.0, acked: 0, marked: 0, observed: start.window }
    }
}

impl CongestionControl for Dctcp {
    fn window(&self) -> u64 {
        self.reno.window()
    }
    fn threshold(&self) -> Option<u64> {
        self.reno.threshold()
    }
    fn on_ack(&mut self, now: Instant, ack: &Ack, rtt: &RttEstimator) {
        self.reno.on_ack(now, ack, rtt);
    }
    fn uses_marks(&self) -> bool {
        true
    }
    fn on_marks(&mut self, _: Instant, marked: u64, acked: u64) {
        self.acked += acked;
        self.marked += marked;
        if self.acked >= self.observed {
            let fraction = self.marked as f64 / self.acked as f64;
            self.alpha = self.alpha * (1.0 - GAIN) + GAIN * fraction;
            (self.acked, self.marked, self.observed) = (0, 0, self.window());
        }
    }
    fn on_congestion(&mut self, now: Instant, event: &Congestion) {
        let event = match event {
            // §3.3 step 9. NewReno halves the flight size, so the argument is twice the new window.
            Congestion::Mark { .. } => {
                let window = self.window() as f64 * (1.0 - self.alpha / 2.0);
                Congestion::Mark { flight: 2 * window as u64 }
            }
            other => *other,
        };
        self.reno.on_congestion(now, &event);
    }
    fn on_recovered(&mut self, now: Instant, flight: u64) {
        self.reno.on_recovered(now, flight);
    }
    fn on_idle(&mut self, now: Instant) {
        self.reno.on_idle(now);
    }
    fn on_quantum(&mut self, quantum: u64) {
        self.reno.on_quantum(quantum);
    }
    fn lower(&mut self, window: u64) {
        self.reno.lower(window);
    }
    fn raise_threshold(&mut self, threshold: u64) {
        self.reno.raise_threshold(threshold);
    }
}

fn config() -> Config {
    Config { ecn: true, ..plain() }
}

fn control(tcp: &mut Tcp) {
    let start = Start { quantum: 1000, window: 10_000, threshold: Some(10_000) };
    tcp.set_controller(Machine::Other(Box::new(Dctcp::new(&start))));
}

fn dctcp(tcp: &Tcp) -> &Dctcp {
    let Machine::Other(other) = tcp.controller() else { panic!("not replaced") };
    let any: &dyn Any = &**other;
    any.downcast_ref().expect("a DCTCP")
}

/// A transfer in which one of `period` data segments is marked, or none; the receiver counts marks or not.
fn alpha(config: &Config, period: Option<u64>, counts: bool) -> f64 {
    let mut pair = Pair::connected(config);
    control(&mut pair.client.endpoint);
    if counts {
        control(&mut pair.server.endpoint);
    }
    let mut count = 0_u64;
    pair.on_wire(move |sent| {
        count += u64::from(sent.from == Client && !sent.is_empty());
        let marked =
            sent.from == Client && period.is_some_and(|period| count.is_multiple_of(period));
        if marked { Verdict::Mark } else { Verdict::Arrive }
    });
    pair.send(Client, 4_000_000);
    pair.drive_for(ms(100) * 600);
    dctcp(&pair.client.endpoint).alpha
}

/// §3.3: α is an average of the fraction of bytes marked, over sixteen windows.
#[test]
fn alpha_follows_the_marked_fraction() {
    for (period, fraction) in
        [(None, 0.0), (Some(20), 0.05), (Some(4), 0.25), (Some(2), 0.5), (Some(1), 1.0)]
    {
        let alpha = alpha(&config(), period, true);
        assert!((alpha - fraction).abs() < 0.05, "{fraction}: {alpha}");
    }
}

/// §3.2: a receiver of RFC 3168 echoes a mark for a round trip, so that α exceeds the fraction.
#[test]
fn a_receiver_that_does_not_count_marks_overstates_them() {
    assert!(alpha(&config(), Some(20), false) > 0.3);
}

/// §3.2: with delayed acknowledgements, a change of the mark is acknowledged at once, with its ECE.
#[test]
fn a_change_is_acknowledged_at_once() {
    let mut pair = Pair::connected(&Config { delayed_ack: true, ..config() });
    control(&mut pair.client.endpoint);
    control(&mut pair.server.endpoint);
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
