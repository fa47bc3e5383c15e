//! RFC 4340 §5.8: the bytes of every option laid out by hand, invalid lengths, and the
//! round trip of any list of options.

use proptest::prelude::*;
use talkspurt_proto::dccp::Options;
use talkspurt_proto::dccp::options::{Feature, Malformed, Opt, ccid_option, feature};
use talkspurt_testing::dccp::with;

fn pushed(option: Opt<'_>) -> Vec<u8> {
    let options = with(&[option]);
    options.as_bytes().to_vec()
}
fn read(bytes: &[u8]) -> Vec<Result<Opt<'_>, Malformed>> {
    // The reader borrows the options; a leaked copy keeps the tests short.
    Box::leak(Box::new(Options::from_bytes(bytes))).iter().collect()
}

/// Table 3 of §5.8, and the sections it names.
#[test]
fn section_5_8_every_option_is_laid_out_so() {
    let ccids = Feature { number: feature::CCID, value: &[2, 3] };
    let cells = &[0x00, 0x43];
    let laid_out: [(Opt<'_>, &[u8]); 22] = [
        (Opt::Padding, &[0]),
        (Opt::Mandatory, &[1]),
        (Opt::SlowReceiver, &[2]),
        (Opt::ChangeL(ccids), &[32, 5, 1, 2, 3]),
        (Opt::ConfirmL(ccids), &[33, 5, 1, 2, 3]),
        (Opt::ChangeR(ccids), &[34, 5, 1, 2, 3]),
        (Opt::ConfirmR(Feature { number: 200, value: &[] }), &[35, 3, 200]),
        (Opt::InitCookie(b"oats"), &[36, 6, b'o', b'a', b't', b's']),
        (Opt::AckVector { nonce: false, cells }, &[38, 4, 0, 0x43]),
        (Opt::AckVector { nonce: true, cells }, &[39, 4, 0, 0x43]),
        (Opt::DataDropped(&[0x80]), &[40, 3, 0x80]),
        (Opt::Timestamp(0x0102_0304), &[41, 6, 1, 2, 3, 4]),
        (Opt::TimestampEcho { timestamp: 0x0102_0304, elapsed: 0 }, &[42, 6, 1, 2, 3, 4]),
        (Opt::TimestampEcho { timestamp: 1, elapsed: 0xfff }, &[42, 8, 0, 0, 0, 1, 0x0f, 0xff]),
        (Opt::TimestampEcho { timestamp: 1, elapsed: 0x1_0000 }, &[42, 10, 0, 0, 0, 1, 0, 1, 0, 0]),
        (Opt::ElapsedTime(0), &[43, 4, 0, 0]),
        (Opt::ElapsedTime(0xffff), &[43, 4, 0xff, 0xff]),
        (Opt::ElapsedTime(0x1_0000), &[43, 6, 0, 1, 0, 0]),
        (Opt::DataChecksum(0x0102_0304), &[44, 6, 1, 2, 3, 4]),
        (Opt::Unknown { kind: 31, value: &[] }, &[31]),
        (Opt::Unknown { kind: 45, value: &[9] }, &[45, 3, 9]),
        // RFC 4342 §8.3: X_recv in bytes per second.
        (
            Opt::Ccid { kind: ccid_option::RECEIVE_RATE, value: &[0, 0, 3, 232] },
            &[194, 6, 0, 0, 3, 232],
        ),
    ];
    for (option, bytes) in laid_out {
        assert_eq!(pushed(option), bytes, "{option:?}");
        assert_eq!(read(bytes), [Ok(option)]);
    }
}

#[test]
fn section_7_7_the_ndp_count_takes_one_to_six_bytes() {
    for (count, bytes) in [
        (0, &[37, 3, 0][..]),
        (255, &[37, 3, 255]),
        (256, &[37, 4, 1, 0]),
        (0x01_0000, &[37, 5, 1, 0, 0]),
        ((1 << 48) - 1, &[37, 8, 255, 255, 255, 255, 255, 255]),
    ] {
        assert_eq!(pushed(Opt::NdpCount(count)), bytes);
        assert_eq!(read(bytes), [Ok(Opt::NdpCount(count))]);
    }
    // More bytes than needed say the same; more than fit stop at the largest.
    assert_eq!(read(&[37, 5, 0, 0, 7]), [Ok(Opt::NdpCount(7))]);
    assert_eq!(pushed(Opt::NdpCount(u64::MAX)), pushed(Opt::NdpCount((1 << 48) - 1)));
}

/// §5.8: an option whose length is impossible is ignored, with all option space behind it.
#[test]
fn section_5_8_an_impossible_length_ends_the_reading() {
    for bytes in [&[2, 45, 0, 2, 2][..], &[2, 45, 1, 2, 2], &[2, 45, 5, 0, 0], &[2, 45]] {
        assert_eq!(read(bytes), [Ok(Opt::SlowReceiver), Err(Malformed { kind: 45 })]);
    }
}

#[test]
fn section_5_8_a_length_that_is_not_the_types_is_told_and_reading_goes_on() {
    let lengths: [(u8, &[u8]); 9] = [
        (32, &[]),
        (33, &[]),
        (34, &[]),
        (35, &[]),
        (37, &[0]),
        (41, &[4]),
        (42, &[4, 6, 8]),
        (43, &[2, 4]),
        (44, &[4]),
    ];
    for (kind, allowed) in lengths {
        for length in 0..=12_u8 {
            let mut bytes = vec![kind, length + 2];
            bytes.resize(2 + usize::from(length), 0);
            bytes.push(2);
            let sound = match kind {
                32..=35 => length >= 1,
                37 => (1..=6).contains(&length),
                _ => allowed.contains(&length),
            };
            let options = read(&bytes);
            assert_eq!(options.len(), 2, "{kind} of {length}");
            assert_eq!(options[0].is_ok(), sound, "{kind} of {length}");
            assert_eq!(options[1], Ok(Opt::SlowReceiver), "{kind} of {length}");
        }
    }
}

#[test]
fn section_5_8_types_below_32_are_single_bytes() {
    let bytes: Vec<u8> = (0..32).collect();
    let options = read(&bytes);
    assert_eq!(options.len(), 32);
    assert_eq!(options[3], Ok(Opt::Unknown { kind: 3, value: &[] }));
}

#[test]
fn the_first_sound_data_checksum_counts() {
    let checksum = |bytes: &[u8]| Options::from_bytes(bytes).data_checksum();
    assert_eq!(checksum(&[2, 44, 5, 1, 2, 3, 44, 6, 0, 0, 0, 9, 44, 6, 0, 0, 0, 8]), Some(9));
    assert_eq!(checksum(&[2, 0, 0, 0]), None);
}

/// An option with bytes of its own.
#[derive(Clone, Debug)]
enum Owned {
    Plain(Opt<'static>),
    Feature(u8, u8, Vec<u8>),
    Bytes(u8, Vec<u8>),
}

impl Owned {
    fn option(&self) -> Opt<'_> {
        match self {
            Self::Plain(option) => *option,
            Self::Feature(kind, number, value) => {
                let feature = Feature { number: *number, value };
                match kind {
                    0 => Opt::ChangeL(feature),
                    1 => Opt::ConfirmL(feature),
                    2 => Opt::ChangeR(feature),
                    _ => Opt::ConfirmR(feature),
                }
            }
            Self::Bytes(kind, value) => match *kind {
                36 => Opt::InitCookie(value),
                38 | 39 => Opt::AckVector { nonce: *kind == 39, cells: value },
                40 => Opt::DataDropped(value),
                kind @ 128.. => Opt::Ccid { kind, value },
                kind => Opt::Unknown { kind, value },
            },
        }
    }
}

fn owned() -> impl Strategy<Value = Owned> {
    let value = |most| prop::collection::vec(any::<u8>(), 0..=most);
    let kind = prop_oneof![Just(36), 38_u8..=40, 45_u8..=255];
    let plain = prop_oneof![
        Just(Opt::Padding),
        Just(Opt::Mandatory),
        Just(Opt::SlowReceiver),
        (3_u8..32).prop_map(|kind| Opt::Unknown { kind, value: &[] }),
        (0_u64..1 << 48).prop_map(Opt::NdpCount),
        any::<u32>().prop_map(Opt::Timestamp),
        any::<u32>().prop_map(Opt::ElapsedTime),
        any::<u32>().prop_map(Opt::DataChecksum),
        any::<(u32, u32)>()
            .prop_map(|(timestamp, elapsed)| Opt::TimestampEcho { timestamp, elapsed }),
    ];
    prop_oneof![
        plain.prop_map(Owned::Plain),
        (0_u8..4, any::<u8>(), value(252)).prop_map(|(kind, n, v)| Owned::Feature(kind, n, v)),
        (kind, value(253)).prop_map(|(kind, value)| Owned::Bytes(kind, value)),
    ]
}

proptest! {
    #[test]
    fn what_was_pushed_is_read_again(list in prop::collection::vec(owned(), 0..12)) {
        let mut options = Options::default();
        list.iter().for_each(|owned| options.push(owned.option()));
        let read: Vec<_> = options.iter().collect();
        let pushed: Vec<_> = list.iter().map(|owned| Ok(owned.option())).collect();
        prop_assert_eq!(&read, &pushed);
        options.pad();
        prop_assert_eq!(options.as_bytes().len() % 4, 0);
        prop_assert!(options.iter().skip(pushed.len()).all(|option| option == Ok(Opt::Padding)));
    }

    /// For any bytes, reading ends after at most one option per byte; and what was read
    /// is written so that it reads the same.
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..1012)) {
        let options = Options::from_bytes(&bytes);
        prop_assert!(options.iter().count() <= bytes.len());
        let mut again = Options::default();
        options.iter().flatten().for_each(|option| again.push(option));
        prop_assert_eq!(again.iter().collect::<Vec<_>>(), options.iter().filter(Result::is_ok).collect::<Vec<_>>());
    }
}
