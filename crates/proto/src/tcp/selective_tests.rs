//! Compares the fast path for acknowledgements with the full one: two ends repeat an exchange with
//! the fast path disabled, and every segment, note and field must be the same.

use std::cell::Cell;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Config, Controller, LossRecovery, Segment, Tcp};
use crate::endpoint::{Arrival, Endpoint, Input, Output};
use crate::frame::Frame;
use crate::gauge::{EndpointNote, EndpointProbe, Topic};
use crate::packet::Payload;
use crate::rng::Rng;
use crate::time::{Duration, Instant};

thread_local! {
    /// Whether the fast path is disabled; how often it was taken otherwise.
    static SHUT: Cell<bool> = const { Cell::new(false) };
    static TAKEN: Cell<u32> = const { Cell::new(0) };
}

/// Checked at the start of the fast path.
pub(super) fn is_shut() -> bool {
    SHUT.get()
}
/// Called at its end.
pub(super) fn note_taken() {
    TAKEN.set(TAKEN.get() + 1);
}

const DELAY: Duration = Duration::from_millis(20);
const END: Instant = Instant::from_nanos(100_000_000_000);

#[derive(Default)]
struct Log(Vec<String>);

impl EndpointProbe for Log {
    fn observes(&self, _: Topic) -> bool {
        true
    }
    fn note(&mut self, now: Instant, note: EndpointNote) {
        self.0.push(format!("{now:?} {note:?}"));
    }
}

/// Actions of both ends, and the fate of each packet in turn: its delay in milliseconds, or a loss.
#[derive(Clone, Debug)]
struct Script {
    config: Config,
    /// At this millisecond, this end writes this many bytes.
    writes: Vec<(u64, usize, u64)>,
    fates: Vec<Option<u64>>,
}

struct Exchange {
    ends: [Tcp; 2],
    wakes: [Option<Instant>; 2],
    agenda: BTreeMap<(Instant, usize), (usize, Input<Segment>)>,
    planned: usize,
    sent: usize,
    fates: Vec<Option<u64>>,
    log: Log,
}

impl Exchange {
    fn plan(&mut self, at: Instant, side: usize, input: Input<Segment>) {
        self.planned += 1;
        self.agenda.insert((at, self.planned), (side, input));
    }

    fn input(&mut self, now: Instant, side: usize, input: Input<Segment>) {
        self.ends[side].handle(now, input, &mut self.log);
        self.wakes[side] = loop {
            match self.ends[side].poll(now, &mut self.log) {
                Output::Idle { until } => break until,
                Output::Transmit(transmit) => {
                    self.log.0.push(format!("{now:?} {side} {transmit:?}"));
                    let fate = self.fates[self.sent % self.fates.len()];
                    self.sent += 1;
                    if let Some(late) = fate {
                        let (arrival, packet) = (Arrival::default(), transmit.packet);
                        let packet = Input::Packet { arrival, packet };
                        let at = now + DELAY + Duration::from_millis(late);
                        self.plan(at, 1 - side, packet);
                    }
                }
                told => self.log.0.push(format!("{now:?} {side} {told:?}")),
            }
        };
    }
}

/// All observations, and the final state of both ends.
fn exchange(script: &Script, shut: bool) -> Vec<String> {
    SHUT.set(shut);
    let Script { config, writes, fates } = script;
    let mut exchange = Exchange {
        ends: [
            Tcp::client(config, Rng::new(1, "client")),
            Tcp::listener(config, Rng::new(1, "server")),
        ],
        wakes: [None; 2],
        agenda: BTreeMap::new(),
        planned: 0,
        sent: 0,
        fates: fates.clone(),
        log: Log::default(),
    };
    let ms = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    exchange.plan(ms(0), 0, Input::Open);
    for (at, side, len) in writes {
        let data = Frame::Data(Payload::Virtual { offset: 0, len: *len });
        exchange.plan(ms(*at), *side, Input::Frame(data));
    }
    [0, 1].into_iter().for_each(|side| exchange.plan(ms(20_000), side, Input::Close));
    loop {
        let first = exchange.agenda.keys().next().map(|(at, _)| *at);
        let wake = exchange.wakes.iter().flatten().min().copied();
        let Some(now) = first.into_iter().chain(wake).min().filter(|now| *now < END) else { break };
        if first == Some(now)
            && let Some((_, (side, input))) = exchange.agenda.pop_first()
        {
            exchange.input(now, side, input);
        } else if let Some(side) = exchange.wakes.iter().position(|wake| *wake == Some(now)) {
            exchange.input(now, side, Input::Timeout);
        }
    }
    SHUT.set(false);
    exchange.log.0.push(format!("{:#?}", exchange.ends));
    exchange.log.0
}

fn scripts() -> impl Strategy<Value = Script> {
    let controller =
        prop_oneof![Just(Controller::Sack), Just(Controller::Newreno), Just(Controller::Cubic)];
    let fate = prop_oneof![20 => Just(Some(0)), 1 => Just(None), 1 => (1..100_u64).prop_map(Some)];
    (
        (controller, any::<bool>(), any::<bool>(), any::<bool>(), prop::option::of(any::<bool>())),
        prop::collection::vec((0..3000_u64, 0..2_usize, 1..30_000_u64), 1..12),
        prop::collection::vec(fate, 1..120),
    )
        .prop_map(|((controller, delayed_ack, timestamps, nagle, f_rto), writes, fates)| {
            let config = Config {
                recovery: Some(LossRecovery::Sack),
                delayed_ack,
                timestamps,
                nagle,
                f_rto,
                ..Config::new(controller)
            };
            Script { config, writes, fates }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_short_way_leads_where_the_long_one_does(script in scripts()) {
        let (long, short) = (exchange(&script, true), exchange(&script, false));
        for (long, short) in long.iter().zip(&short) {
            prop_assert_eq!(long, short);
        }
        prop_assert_eq!(long.len(), short.len());
    }
}

/// The comparison is only meaningful if the fast path is taken: in an exchange without losses by all
/// acknowledgements of data.
#[test]
fn the_short_way_is_the_usual_one() {
    let config = Config { delayed_ack: false, ..Config::new(Controller::Sack) };
    let fates = vec![Some(0)];
    let script = Script { config, writes: vec![(100, 0, 146_000)], fates };
    let taken = |shut| {
        TAKEN.set(0);
        exchange(&script, shut);
        TAKEN.get()
    };
    assert_eq!(taken(true), 0);
    assert!(taken(false) >= 100);
}
