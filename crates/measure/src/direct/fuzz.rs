//! Packets directly over IP from somebody who has the keys or not: nothing panics, only who has the keys is
//! heard, once, and what was sealed is opened as it was.

use std::net::IpAddr;

use talkspurt_proto::packet::Ecn;
use talkspurt_proto::wire::{dccp, ipv4, ipv6, sctp};
use talkspurt_testing::fuzz::Script;

use super::packet::{open, seal};
use crate::protocol::Protocol;
use crate::seal::{Header, Kind, Opener, Sealer};

const HEADER: Header = Header { kind: Kind::Media, flow: 2, number: 9, sent: 1 << 41 };
const KEY: [u8; 32] = [3; 32];

/// What is behind the IP header.
pub(super) fn inside(packet: &[u8]) -> &[u8] {
    &packet[if packet[0] >> 4 == 4 { ipv4::HEADER } else { ipv6::HEADER }..]
}

/// Writes checksums that fit; `None` if there is no room for them.
pub(super) fn sum(protocol: Protocol, inside: &mut [u8], [src, dst]: [IpAddr; 2]) -> Option<()> {
    match protocol {
        Protocol::Dccp => dccp::sum(inside, src, dst).ok(),
        Protocol::Sctp => sctp::sum(inside).ok(),
    }
}

/// An IP packet between two addresses.
fn whole(protocol: Protocol, is_ipv6: bool, inside: &[u8]) -> Option<Vec<u8>> {
    let (dscp, ecn, protocol) = (46, Ecn::Ect0, protocol.number());
    let header = if is_ipv6 { ipv6::HEADER } else { ipv4::HEADER };
    let mut packet = [&vec![0; header], inside].concat();
    if is_ipv6 {
        let (src, dst) = ([1; 16].into(), [2; 16].into());
        let (flow_label, hop_limit, next_header) = (0, 64, protocol);
        ipv6::Header { dscp, ecn, flow_label, hop_limit, next_header, src, dst }.write(&mut packet)
    } else {
        let (identification, ttl) = (0, 64);
        let (src, dst) = ([1; 4].into(), [2; 4].into());
        ipv4::Header { dscp, ecn, identification, ttl, protocol, src, dst }.write(&mut packet)
    }
    .ok()?;
    Some(packet)
}

/// A packet by a script: protocol, IP version and who sends it, then what is behind the IP header. Of a packet
/// that the other end sealed, a bit is changed afterwards, of which the place comes first.
pub fn packet(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let how = script.byte();
    let protocol = Protocol::ALL[usize::from(how & 1)];
    let (is_ipv6, is_sealed, is_summed) = (how & 2 != 0, how & 4 != 0, how & 8 != 0);
    let addresses: [IpAddr; 2] = match is_ipv6 {
        true => [[1; 16].into(), [2; 16].into()],
        false => [[1; 4].into(), [2; 4].into()],
    };
    let (place, bit) = if is_sealed { (script.u16(), script.byte() % 8) } else { (0, 0) };
    let mut bytes = script.bytes(usize::MAX).to_vec();
    if is_summed {
        let _ = sum(protocol, &mut bytes, addresses);
    }
    let mut opener = Opener::new(&KEY);
    let Some(packet) = whole(protocol, is_ipv6, &bytes) else { return };
    if !is_sealed {
        assert_eq!(open(&mut opener, protocol, &packet), None, "a packet that nobody sealed");
        let _ = open(&mut opener, protocol, &bytes);
        return;
    }
    let Ok(sealed) = seal(&mut Sealer::new(&KEY), protocol, &HEADER, &packet) else { return };
    let mut changed = inside(&sealed).to_vec();
    let place = usize::from(place) % changed.len();
    changed[place] ^= 1 << bit;
    let summed = sum(protocol, &mut changed, addresses);
    if let Some(changed) = summed.and_then(|()| whole(protocol, is_ipv6, &changed))
        && let Some(opened) = open(&mut opener, protocol, &changed)
    {
        // Ports and checksums can change on the way.
        let checksum = if protocol == Protocol::Dccp { 6..8 } else { 8..12 };
        assert!(place < 4 || checksum.contains(&place), "a change of byte {place} was not seen");
        assert_eq!(opened.header, HEADER);
        return;
    }
    let opened = open(&mut opener, protocol, &sealed);
    // What we send has the form of its protocol, of which checksums are a part.
    let is_formed = protocol == Protocol::Dccp || bytes.len().is_multiple_of(4);
    if is_summed && is_formed && sum(protocol, &mut bytes, addresses).is_some() {
        let opened = opened.expect("what the other end sealed is opened");
        assert_eq!((opened.header, inside(&opened.packet)), (HEADER, &bytes[..]));
    }
    assert_eq!(open(&mut opener, protocol, &sealed), None, "a replay");
}
