//! Ack Vectors, clause by clause of RFC 4340 §11.4 and appendix A, and against a model: a plain map
//! from number to state that forgets only on request.

use std::collections::BTreeMap;

use proptest::prelude::*;
use talkspurt_proto::dccp::ackvec::{AckVector, MAX_CELLS, Noted, State, runs};
use talkspurt_proto::dccp::options::Opt;
use talkspurt_proto::dccp::{Options, SeqNo};
use talkspurt_proto::packet::Ecn;
use talkspurt_testing::dccp::with;

fn seq(number: u64) -> SeqNo {
    SeqNo::first(number)
}

fn fed(packets: &[(u64, Ecn)]) -> AckVector {
    let mut vector = AckVector::new();
    for (number, ecn) in packets {
        vector.on_packet(seq(*number), *ecn);
    }
    vector
}

fn written(vector: &mut AckVector) -> Options {
    let mut options = Options::default();
    vector.write(&mut options);
    options
}

/// The cells on the wire of all vectors among options.
fn cells(options: &Options) -> Vec<u8> {
    options
        .iter()
        .flat_map(|option| match option.expect("well-formed") {
            Opt::AckVector { nonce: false, cells } => cells.to_vec(),
            other => panic!("{other:?} among vectors"),
        })
        .collect()
}

/// State of each packet as options tell it.
fn told(ack: u64, options: &Options) -> BTreeMap<u64, State> {
    let mut map = BTreeMap::new();
    for run in runs(seq(ack), options) {
        for behind in 0..=run.newest.since(run.oldest) {
            map.insert(run.newest.back(behind).since(seq(0)), run.state);
        }
    }
    map
}

const PLAIN: Ecn = Ecn::Ect0;

#[test]
fn section_11_4_the_example_in_decimal_reads_and_writes() {
    // Acknowledgement Number 100 and the cells 0, 192, 3, 64, 5: packet 100 received, 99 not, 98 to
    // 95 received, 94 marked, 93 to 88 received.
    let example = [0, 192, 3, 64, 5];
    let mut arrivals: Vec<_> =
        (88..=100).filter(|number| *number != 99).map(|number| (number, PLAIN)).collect();
    arrivals[6].1 = Ecn::Ce;
    assert_eq!(arrivals[6].0, 94);
    let mut vector = fed(&arrivals);
    let options = written(&mut vector);
    assert_eq!(options.as_bytes(), [38, 7, 0, 192, 3, 64, 5]);

    let read = with(&[Opt::AckVector { nonce: false, cells: &example }]);
    let map = told(100, &read);
    assert_eq!(map.len(), 13);
    for (number, state) in map {
        let expected = match number {
            99 => State::NotYet,
            94 => State::Marked,
            _ => State::Received,
        };
        assert_eq!(state, expected, "packet {number}");
    }
}

#[test]
fn section_11_4_one_option_covers_16192_packets_and_more_go_on_in_the_next() {
    let arrivals: Vec<_> = (1..=16_192 + 65).map(|number| (number, PLAIN)).collect();
    let mut vector = fed(&arrivals);
    let options = written(&mut vector);
    let lengths: Vec<_> = options
        .iter()
        .map(|option| match option {
            Ok(Opt::AckVector { nonce: false, cells }) => cells.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(lengths, [253, 2]);
    let map = told(16_257, &options);
    assert_eq!((map.len(), *map.keys().next().unwrap()), (16_257, 1));
    assert!(map.values().all(|state| *state == State::Received));
}

#[test]
fn rfc_8311_section_6_type_39_is_read_and_never_written() {
    let read = with(&[Opt::AckVector { nonce: true, cells: &[0xc0, 0x01] }]);
    assert_eq!(
        told(9, &read),
        BTreeMap::from([(9, State::NotYet), (8, State::Received), (7, State::Received)])
    );
    let mut vector = fed(&[(1, Ecn::Ect1), (2, PLAIN)]);
    assert_eq!(written(&mut vector).as_bytes()[0], 38);
}

#[test]
fn section_11_4_vectors_end_where_numbers_end() {
    // 64 packets back from number 3 of the whole space: those before the first do not exist.
    let read = with(&[Opt::AckVector { nonce: false, cells: &[63; 253] }]);
    let first = SeqNo::default() + 3;
    let all: Vec<_> = runs(first, &read).collect();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].oldest, SeqNo::default());
}

#[test]
fn section_11_4_1_the_receivers_table() {
    // (stored, arriving) -> new, for the cells of the table; where 0 and 1 both would do, 1.
    for (stored, arriving, new) in [
        (Some(PLAIN), PLAIN, State::Received),
        (Some(PLAIN), Ecn::Ce, State::Marked),
        (Some(Ecn::Ce), PLAIN, State::Marked),
        (Some(Ecn::Ce), Ecn::Ce, State::Marked),
        (None, PLAIN, State::Received),
        (None, Ecn::Ce, State::Marked),
    ] {
        let mut vector = fed(&[(1, PLAIN)]);
        if let Some(ecn) = stored {
            vector.on_packet(seq(2), ecn);
        }
        vector.on_packet(seq(3), PLAIN);
        let noted = vector.on_packet(seq(2), arriving);
        assert_eq!(noted, if stored.is_some() { Noted::Duplicate } else { Noted::Late });
        let options = written(&mut vector);
        assert_eq!(told(3, &options)[&2], new, "{stored:?} then {arriving:?}");
    }
}

#[test]
fn appendix_a_1_1_packets_skipped_are_not_yet_received() {
    // A plain packet lengthens the run; a packet after a gap of two begins a new one behind a run
    // of two not yet received.
    let mut vector = fed(&[(0, PLAIN), (1, PLAIN)]);
    assert_eq!(cells(&written(&mut vector)), [0b0000_0001]);
    vector.on_packet(seq(4), PLAIN);
    assert_eq!(cells(&written(&mut vector)), [0b0000_0000, 0b1100_0001, 0b0000_0001]);
    vector.on_packet(seq(5), Ecn::Ce);
    assert_eq!(cells(&written(&mut vector)), [0b0100_0000, 0b0000_0000, 0b1100_0001, 0b0000_0001]);
}

#[test]
fn appendix_a_1_2_a_late_packet_splits_its_run() {
    let mut vector = fed(&[(0, PLAIN), (6, PLAIN)]);
    assert_eq!(cells(&written(&mut vector)), [0, 0b1100_0100, 0]);
    assert_eq!(vector.on_packet(seq(3), PLAIN), Noted::Late);
    assert_eq!(cells(&written(&mut vector)), [0, 0b1100_0001, 0, 0b1100_0001, 0]);
    // At an edge of its run it joins the neighbour.
    assert_eq!(vector.on_packet(seq(5), PLAIN), Noted::Late);
    assert_eq!(cells(&written(&mut vector)), [1, 0b1100_0000, 0, 0b1100_0001, 0]);
    // The last of its run joins both.
    assert_eq!(vector.on_packet(seq(4), PLAIN), Noted::Late);
    assert_eq!(cells(&written(&mut vector)), [3, 0b1100_0001, 0]);
}

#[test]
fn appendix_a_3_what_an_acknowledged_acknowledgement_told_is_forgotten() {
    // Packets 0 to 3 are acknowledged by our packet 59, 0 to 10 by our packet 60; 3, 4 and 9 are
    // missing throughout but for 3, which came.
    let mut vector = fed(&[(0, PLAIN), (1, Ecn::Ce), (2, PLAIN), (3, PLAIN)]);
    written(&mut vector);
    vector.on_sent(seq(59));
    for number in [5, 6, 7, 8, 10] {
        vector.on_packet(seq(number), PLAIN);
    }
    let all = cells(&written(&mut vector));
    assert_eq!(all, [0, 0b1100_0000, 3, 0b1100_0000, 1, 0b0100_0000, 0]);
    vector.on_sent(seq(60));
    // Packet 61 goes without a vector.
    vector.on_sent(seq(61));

    // Packet 59 is acknowledged: 0 to 3 go, and 4 is the oldest told of, missing as it is.
    vector.on_ack_of_ack(seq(59), &Options::default());
    assert_eq!(cells(&written(&mut vector)), [0, 0b1100_0000, 3, 0b1100_0000]);
    assert_eq!(vector.oldest(), Some(seq(4)));
    // A number that is not ours with a vector has no effect.
    vector.on_ack_of_ack(seq(58), &Options::default());
    vector.on_ack_of_ack(seq(61), &Options::default());
    assert_eq!(vector.oldest(), Some(seq(4)));
    // Packet 60: all of it was reported, and the newest stays so that a vector is never empty.
    vector.on_ack_of_ack(seq(60), &Options::default());
    assert_eq!(cells(&written(&mut vector)), [0]);
    // Forgotten packets are no longer distinguished.
    assert_eq!(vector.on_packet(seq(4), PLAIN), Noted::Forgotten);
    assert_eq!(vector.on_packet(seq(5), PLAIN), Noted::Forgotten);
    assert_eq!(vector.on_packet(seq(10), PLAIN), Noted::Duplicate);
}

#[test]
fn appendix_a_3_the_other_sides_vector_acknowledges_acknowledgements_too() {
    let mut vector = fed(&[(1, PLAIN), (2, PLAIN)]);
    written(&mut vector);
    vector.on_sent(seq(7));
    for number in [3, 4] {
        vector.on_packet(seq(number), PLAIN);
        written(&mut vector);
        vector.on_sent(seq(7 + number));
    }
    // Our packets 7, 10 and 11 had vectors; the other side has 12, 10 and 7, not 11.
    let options =
        with(&[Opt::AckVector { nonce: false, cells: &[0, 0b1100_0000, 0, 0b1100_0001, 0] }]);
    vector.on_ack_of_ack(seq(12), &options);
    assert_eq!(vector.oldest(), Some(seq(4)), "packet 10 told of 3");
    // The same again: nothing newer was told to be known.
    vector.on_ack_of_ack(seq(12), &options);
    assert_eq!(vector.oldest(), Some(seq(4)));
}

#[test]
fn the_buffer_is_bounded_and_the_oldest_goes_first() {
    let mut vector = AckVector::new();
    // Every other packet is missing: two cells for each that arrives.
    for number in 0..10_000 {
        vector.on_packet(seq(2 * number), PLAIN);
    }
    assert_eq!(cells(&written(&mut vector)).len(), MAX_CELLS);
    assert_eq!(vector.newest(), Some(seq(19_998)));
    assert_eq!(vector.oldest(), Some(seq(19_998 - MAX_CELLS as u64 + 1)));
    // A jump over half the space costs no more.
    vector.on_packet(seq(1 << 46), PLAIN);
    let all = cells(&written(&mut vector));
    assert_eq!((all.len(), all[0], all[1]), (MAX_CELLS, 0, 0xff));
}

/// What happens to a buffer: (what, how far, ECN field at CE).
fn history() -> impl Strategy<Value = Vec<(u8, u64, bool)>> {
    prop::collection::vec((0_u8..8, 0_u64..40, any::<bool>()), 1..300)
}

proptest! {
    /// The buffer reports the state of every packet like a map fed with the same packets and the same
    /// acknowledged acknowledgements; and reading returns what was written.
    #[test]
    fn the_buffer_equals_its_model(history in history()) {
        let mut vector = AckVector::new();
        let mut model: BTreeMap<u64, State> = BTreeMap::new();
        let mut sent: Vec<(u64, u64)> = Vec::new();
        let (mut newest, mut floor, mut own) = (1_000_u64, 0_u64, 5_000_u64);
        vector.on_packet(seq(newest), PLAIN);
        model.insert(newest, State::Received);
        for (what, far, marked) in history {
            let ecn = if marked { Ecn::Ce } else { PLAIN };
            let state = if marked { State::Marked } else { State::Received };
            match what {
                0..=3 => {
                    newest += 1 + if what == 3 { far } else { 0 };
                    prop_assert_eq!(vector.on_packet(seq(newest), ecn), Noted::New);
                    model.insert(newest, state);
                }
                4 => {
                    let number = newest - far;
                    let noted = vector.on_packet(seq(number), ecn);
                    let first = *model.keys().next().unwrap();
                    let expected = match model.get(&number) {
                        _ if number < floor.max(first) => Noted::Forgotten,
                        Some(_) => Noted::Duplicate,
                        None => Noted::Late,
                    };
                    prop_assert_eq!(noted, expected);
                    if noted != Noted::Forgotten {
                        let entry = model.entry(number).or_insert(state);
                        *entry = (*entry).max(state);
                    }
                }
                5 | 6 => {
                    own += 1 + far % 3;
                    written(&mut vector);
                    vector.on_sent(seq(own));
                    sent.push((own, newest));
                }
                _ => {
                    let Some((number, told)) = sent.iter().rev().nth(far as usize).copied() else {
                        continue;
                    };
                    vector.on_ack_of_ack(seq(number), &Options::default());
                    floor = floor.max((told + 1).min(newest));
                    sent.retain(|(other, _)| *other > number);
                }
            }
            let options = written(&mut vector);
            let map = told(newest, &options);
            let first = *map.keys().next().unwrap();
            let lowest = floor.max(*model.keys().next().unwrap());
            prop_assert_eq!(first, lowest);
            for (number, state) in map {
                let expected = model.get(&number).copied().unwrap_or(State::NotYet);
                prop_assert_eq!(state, expected, "packet {} of {}", number, newest);
                prop_assert_eq!(vector.state(seq(number)), Some(state));
            }
        }
    }
}

/// §11.4: an option is at most 255 bytes long, two of them type and length; of those two are written.
#[test]
fn the_buffer_fills_two_whole_options() {
    let mut vector = AckVector::new();
    for number in (0..2000).step_by(2) {
        vector.on_packet(seq(number), PLAIN);
    }
    let written = written(&mut vector);
    let lengths: Vec<usize> = written
        .iter()
        .filter_map(|option| match option {
            Ok(Opt::AckVector { cells, .. }) => Some(cells.len()),
            _ => None,
        })
        .collect();
    assert_eq!(lengths, [253, 253]);
    assert_eq!(MAX_CELLS, 506);
}

/// §11.4, table 6: state 2 is reserved, and is not read as "not yet received".
#[test]
fn each_state_is_read_as_what_it_is() {
    let options = with(&[Opt::AckVector { nonce: false, cells: &[0x00, 0x41, 0x80, 0xc2] }]);
    let states: Vec<_> = runs(seq(100), &options).map(|run| run.state).collect();
    assert_eq!(states, [State::Received, State::Marked, State::Reserved, State::NotYet]);
}
