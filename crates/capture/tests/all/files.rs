//! The container: magics, blocks, times, and files that contradict themselves.

use talkspurt_capture::container::packets;

use crate::build::*;

const LITTLE: Order = u32::to_le_bytes;
const BIG: Order = u32::to_be_bytes;

fn fault(file: &[u8]) -> String {
    packets(file).expect_err("a fault")
}

#[test]
fn every_magic_of_pcap_gives_the_same_packets() {
    for order in [LITTLE, BIG] {
        for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1), (0xa1b2_cd34, 1000)] {
            let file = pcap(magic, order, 1, &[call(), vec![1, 2, 3]]);
            let read = packets(&file).expect("a file");
            let seen: Vec<_> =
                read.iter().map(|it| (it.nanos, it.timed, it.link, it.bytes)).collect();
            let (first, second) = (5_000_000_000, 5_000_000_000 + 20_000 * unit);
            let expected = [(first, true, 1, &call()[..]), (second, true, 1, &[1, 2, 3])];
            assert_eq!(seen, expected, "{magic:x}");
            for cut in 24..file.len() {
                let whole =
                    [24, 24 + file.len() - 24 - 3 - if magic == 0xa1b2_cd34 { 24 } else { 16 }];
                assert_eq!(packets(&file[..cut]).is_ok(), whole.contains(&cut), "{cut}");
            }
        }
    }
}

#[test]
fn packets_without_a_time_get_that_of_their_neighbour() {
    for order in [LITTLE, BIG] {
        let file = [
            section(order),
            interface(order, 100, &[]),
            simple(order, 300, &[1; 100]),
            // What is obsolete has an interface of 16 bits, then a count of losses.
            stamped(order, 2, 5_000_000, &[2; 7]),
            simple(order, 5, &[3; 5]),
            // Decryption secrets, and a custom block.
            block(order, 10, &[9; 20]),
            block(order, 0xbad, &[9; 20]),
            stamped(order, 6, 6_000_000, &[4; 3]),
        ];
        let file = file.concat();
        let read = packets(&file).expect("a file");
        let seen: Vec<_> = read.iter().map(|it| (it.nanos, it.timed, it.cut, it.bytes)).collect();
        let expected = [
            (5_000_000_000, false, 200, &[1; 100][..]),
            (5_000_000_000, true, 0, &[2; 7]),
            (5_000_000_000, false, 0, &[3; 5]),
            (6_000_000_000, true, 0, &[4; 3]),
        ];
        assert_eq!(seen, expected);
    }
    let alone = [section(LITTLE), interface(LITTLE, 0, &[]), simple(LITTLE, 5, &[1; 5])].concat();
    let said = fault(&alone);
    assert!(said.starts_with("has no times"), "{said}");
}

#[test]
fn what_a_file_says_of_itself_is_checked() {
    let begin = [section(BIG), interface(BIG, 0, &[])].concat();
    let with = |block: Vec<u8>| fault(&[begin.clone(), block].concat());
    let mut long = stamped(BIG, 6, 0, &[1; 8]);
    long[20..24].copy_from_slice(&BIG(9));
    assert_eq!(with(long.clone()), "has a block of 40 bytes, which is too short for its contents");
    long[20..24].copy_from_slice(&BIG(u32::MAX));
    assert_eq!(with(long), "has a block of 40 bytes, which is too short for its contents");
    assert_eq!(
        with(simple(BIG, 9, &[1; 8])),
        "has a block of 24 bytes, which is too short for its contents"
    );
    let mut other = stamped(BIG, 6, 0, &[]);
    other[8..12].copy_from_slice(&BIG(7));
    assert_eq!(with(other), "has a packet of interface 7, which is not there");
    assert_eq!(with([BIG(6), BIG(11), BIG(11)].concat()), "has a block of 11 bytes");
    let huge = [BIG(6), BIG(u32::MAX - 3), BIG(0)].concat();
    assert_eq!(with(huge), "ends in the middle of a packet");
    // 2^64 - 1 microseconds; and 2^62 seconds to be added.
    let late = "has a packet with a time outside 1970 to 2262";
    assert_eq!(with(stamped(BIG, 6, u64::MAX, &[])), late);
    let offset = [&[0, 14, 0, 8, 0x40][..], &[0; 7], &[0; 4]].concat();
    let clock = |options: &[u8]| {
        fault(&[section(BIG), interface(BIG, 0, options), stamped(BIG, 6, 0, &[])].concat())
    };
    assert_eq!(clock(&offset), late);
    let unit =
        |base, exponent| format!("has times in units of {base}^-{exponent} s, which are not read");
    assert_eq!(clock(&[0, 9, 0, 1, 20, 0, 0, 0]), unit(10, 20));
    assert_eq!(clock(&[0, 9, 0, 1, 0x80 | 64, 0, 0, 0]), unit(2, 64));
    let mut magic = section(BIG);
    magic[8] = 0;
    assert_eq!(fault(&magic), "has a section without the magic number of pcapng");
    let mut version = section(BIG);
    version[13] = 2;
    let said = "has a section of version 2 of pcapng, which is not read";
    assert_eq!(fault(&[section(BIG), version].concat()), said);
}
