//! CCID 2's sender against a model that recomputes everything from the whole history (RFC 4341 §5),
//! for any order of sending, acknowledgements and timeouts, with valid, invalid and corrupt input.

use std::collections::BTreeMap;

use crate::ccid2_half::{Bench, vector};
use proptest::prelude::*;
use talkspurt_proto::dccp::Options;
use talkspurt_proto::dccp::ackvec::State;
use talkspurt_proto::dccp::ccid::Sender as _;
use talkspurt_proto::dccp::ccid2::Parameters;
use talkspurt_proto::dccp::options::Opt;
use talkspurt_proto::profile::Profile;
use talkspurt_testing::dccp::with;

/// An event at a sender.
#[derive(Clone, Debug)]
enum Step {
    /// Data, if the window permits.
    Data,
    /// A packet without data.
    Other,
    /// An acknowledgement of the packet so far behind the newest, with these runs.
    Ack(u64, Vec<(State, u8)>),
    /// Bytes that may be valid options.
    RxError(u64, Vec<u8>),
    /// The timer expires.
    Timeout,
    /// Time passes, in ms.
    Pass(u64),
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![
        6 => Just(State::Received),
        1 => Just(State::Marked),
        1 => Just(State::Reserved),
        3 => Just(State::NotYet),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let runs = prop::collection::vec((state(), 1_u8..6), 0..6);
    prop_oneof![
        10 => Just(Step::Data),
        2 => Just(Step::Other),
        8 => (0_u64..12, runs).prop_map(|(behind, runs)| Step::Ack(behind, runs)),
        1 => (0_u64..12, prop::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(behind, bytes)| Step::RxError(behind, bytes)),
        1 => Just(Step::Timeout),
        2 => (0_u64..300).prop_map(Step::Pass),
    ]
}

/// Every packet sent: whether it has data, was ever acknowledged, or was settled otherwise.
#[derive(Default)]
struct Model(BTreeMap<u64, (bool, bool, bool)>);

impl Model {
    fn hear(&mut self, ack: u64, runs: &[(State, u8)]) {
        let mut number = ack as i64;
        for (state, count) in runs {
            for _ in 0..*count {
                if let Some((_, received, settled)) = self.0.get_mut(&(number.max(0) as u64)) {
                    *received |= state.arrived() && !*settled;
                }
                number -= 1;
            }
        }
        let received: Vec<u64> =
            self.0.iter().filter(|(_, packet)| packet.1).map(|(number, _)| *number).collect();
        if let Some(third) = received.len().checked_sub(3) {
            for (_, packet) in self.0.range_mut(..received[third]) {
                packet.2 |= !packet.1;
            }
        }
    }
    fn pipe(&self) -> u64 {
        self.0.values().filter(|(data, received, settled)| *data && !received && !settled).count()
            as u64
    }
}

proptest! {
    #[test]
    fn the_pipe_is_what_its_definition_says(
        profile in prop_oneof![Just(Profile::Rfc), Just(Profile::Ns2), Just(Profile::Linux)],
        steps in prop::collection::vec(step(), 1..400),
    ) {
        let mut bench = Bench::new(&Parameters::of(profile));
        let mut model = Model::default();
        for step in steps {
            let newest = bench.next - 1;
            match step {
                Step::Data if bench.may() => {
                    prop_assert!(bench.sender.pipe() < bench.sender.window());
                    let number = bench.send(Some(172));
                    model.0.insert(number, (true, false, false));
                }
                Step::Data => prop_assert!(bench.sender.pipe() >= bench.sender.window()),
                Step::Other => {
                    let number = bench.send(None);
                    model.0.insert(number, (false, false, false));
                }
                Step::Ack(behind, runs) if behind < newest => {
                    bench.ack(newest - behind, &runs);
                    model.hear(newest - behind, &runs);
                }
                Step::RxError(behind, bytes) if behind < newest => {
                    let options = Options::from_bytes(&bytes);
                    // Only the vectors among them count.
                    let mut cells = Vec::new();
                    for option in options.iter() {
                        if let Ok(Opt::AckVector { cells: more, .. }) = option {
                            cells.extend(more.iter().map(|cell| {
                                let states = [
                                    State::Received, State::Marked, State::Reserved, State::NotYet,
                                ];
                                (states[usize::from(cell >> 6)], (cell & 63) + 1)
                            }));
                        }
                    }
                    bench.hear(newest - behind, &options);
                    model.hear(newest - behind, &cells);
                }
                Step::Timeout if bench.sender.deadline().is_some() => {
                    bench.timeout();
                    for packet in model.0.values_mut() {
                        packet.2 |= !packet.1;
                    }
                    prop_assert_eq!(bench.sender.window(), 1);
                }
                Step::Pass(ms) => bench.pass(ms),
                _ => {}
            }
            prop_assert_eq!(bench.sender.pipe(), model.pipe());
            prop_assert!(bench.sender.window() >= 1);
            prop_assert!(bench.sender.threshold().is_none_or(|threshold| threshold >= 2));
            // A timer runs exactly while data is in the network.
            prop_assert_eq!(bench.sender.deadline().is_some(), bench.sender.pipe() > 0);
            let ratio = u64::from(bench.sender.ack_ratio().unwrap());
            prop_assert!(ratio >= 1 && ratio <= bench.sender.window().div_ceil(2).max(2));
        }
    }

    /// With every packet received in order the window never falls, and with every one marked it
    /// never grows.
    #[test]
    fn receipts_raise_the_window_and_marks_lower_it(rounds in 1_usize..30, marked in any::<bool>()) {
        let mut bench = Bench::new(&Parameters::of(Profile::Rfc));
        let state = if marked { State::Marked } else { State::Received };
        let mut window = bench.sender.window();
        for _ in 0..rounds {
            bench.fill();
            let last = bench.next - 1;
            let cells = vector(&[(state, 64)]);
            let options = with(&[Opt::AckVector { nonce: false, cells: &cells }]);
            bench.hear(last, &options);
            let now = bench.sender.window();
            let right = if marked { now <= window } else { now >= window };
            prop_assert!(right, "{} then {}", window, now);
            window = now;
        }
    }
}
