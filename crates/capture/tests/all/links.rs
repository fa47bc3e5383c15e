//! Link types: each has the same packet.

use talkspurt_capture::container::Packet;
use talkspurt_capture::frame::{Frames, Left};
use talkspurt_capture::table;

use crate::build::*;

fn found(link: u32, bytes: &[u8]) -> Vec<Result<&[u8], Left>> {
    let mut all = Vec::new();
    let packet = Packet { nanos: 0, timed: true, cut: 0, link, bytes };
    Frames::default().each(&packet, &mut |one| all.push(one));
    all
}

/// A frame before the packet, and the packet.
fn framed(head: &[u8]) -> Vec<u8> {
    [head, &call()].concat()
}

fn nflog(number: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let packet = call();
    let head = |length: usize, kind| [number(length as u16), number(kind)].concat();
    // The kind of hardware and hook, a mark, a prefix of one byte with three of padding, the packet.
    let before = [head(8, 1), vec![8, 0, 1, 0], head(5, 10), vec![0; 4], head(4 + packet.len(), 9)];
    [&[2, 0, 0, 7][..], &before.concat(), &packet].concat()
}

const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

fn wireless() -> Vec<u8> {
    [&[8, 1, 0, 0][..], &[2; 18], &[0x20, 0], &SNAP].concat()
}

fn prism(number: fn(u32) -> [u8; 4]) -> Vec<u8> {
    [&number(0x44)[..], &number(144), &[0; 136], &wireless()].concat()
}

/// Link types, and a frame of each.
pub(crate) fn frames() -> Vec<(u32, Vec<u8>)> {
    let avs = [&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64][..], &[0; 56], &wireless()].concat();
    let ppi = [&[0, 0, 8, 0, 105, 0, 0, 0][..], &wireless()].concat();
    vec![
        (0, framed(&[2, 0, 0, 0])),
        (0, framed(&[0, 0, 0, 2])),
        (108, framed(&[0, 0, 0, 2])),
        (1, ethernet(0x0800, &call())),
        (9, framed(&[0, 0x21])),
        (50, framed(&[0xff, 3, 0, 0x21])),
        (51, framed(&[0x11, 0, 0, 1, 0, 202, 0, 0x21])),
        (204, framed(&[1, 0xff, 3, 0, 0x21])),
        (12, call()),
        (14, call()),
        (101, call()),
        (228, call()),
        (100, framed(&SNAP)),
        (104, framed(&[0x0f, 0, 8, 0])),
        // Frame relay with an address of two bytes, and of four.
        (107, framed(&[0x18, 0x41, 3, 0xcc])),
        (107, framed(&[0x18, 0x40, 0x40, 0x41, 3, 0xcc])),
        (107, framed(&[0x18, 0x41, 8, 0])),
        (107, framed(&[0x18, 0x41, 3, 0, 0x80, 0, 0, 0, 8, 0])),
        (105, framed(&wireless())),
        (127, framed(&[&[0, 0, 8, 0, 0, 0, 0, 0][..], &wireless()].concat())),
        (119, framed(&prism(u32::to_le_bytes))),
        (119, framed(&prism(u32::to_be_bytes))),
        (119, framed(&avs)),
        (163, framed(&avs)),
        (192, framed(&ppi)),
        (113, framed(&[&[0; 14][..], &[8, 0]].concat())),
        (276, framed(&[&[8, 0][..], &[0; 18]].concat())),
        (239, nflog(u16::to_le_bytes)),
        (239, nflog(u16::to_be_bytes)),
    ]
}

#[test]
fn the_packet_is_found_in_each_kind_of_frame() {
    for (link, frame) in frames() {
        assert_eq!(found(link, &frame), [Ok(&call()[..])], "{link}");
        // Cut off anywhere, it ends; of the packet, there is never more.
        for end in 0..frame.len() {
            for one in found(link, &frame[..end]).into_iter().flatten() {
                assert!(call().starts_with(one), "{link}, {end}");
            }
        }
    }
}

#[test]
fn what_is_in_no_packet_is_named() {
    let of = |link, bytes: &[u8]| found(link, bytes)[0].expect_err("nothing").to_string();
    assert_eq!(of(0, &[7, 0, 0, 0]), "frames of address family 7");
    assert_eq!(of(239, &[7, 0, 0, 0]), "frames of address family 7");
    assert_eq!(of(107, &[0x18, 0x41, 3, 0x81]), "frames of frame relay without IP");
    assert_eq!(of(192, &[0, 0, 8, 0, 192, 0, 0, 0]), "frames of link type 192");
    let refused = |link| table::read(&pcap(0xa1b2_c3d4, u32::to_le_bytes, link, &[call()]));
    let said = |link| refused(link).expect_err("not read");
    assert_eq!(said(249), "has frames of link type 249 (USBPcap), which are not read");
    assert_eq!(
        said(147),
        "has frames of link type 147 (reserved for private use), which are not read"
    );
    assert_eq!(said(300), "has frames of link type 300, which are not read");
}
