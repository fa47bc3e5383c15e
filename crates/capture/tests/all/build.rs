//! Frames and files in code.

/// Where the call of all tests goes: addresses and ports.
pub(crate) const PORTS: (u16, u16) = (4000, 4002);

/// Bytes of a media payload.
pub(crate) const VOICE: [u8; 160] = [0x5a; 160];

pub(crate) fn rtp(first: u8, second: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first, second, 0, 9];
    bytes.extend(1440_u32.to_be_bytes());
    bytes.extend(0x5eed_u32.to_be_bytes());
    [&bytes, payload].concat()
}

/// A packet of PCMU.
pub(crate) fn voice() -> Vec<u8> {
    rtp(0x80, 0, &VOICE)
}

pub(crate) fn udp(ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let head: Vec<u8> =
        [ports.0, ports.1, length, 0].iter().flat_map(|it| it.to_be_bytes()).collect();
    [&head, payload].concat()
}

pub(crate) fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x45, 0];
    bytes.extend((20 + payload.len() as u16).to_be_bytes());
    bytes.extend([0, 7, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    [&bytes, payload].concat()
}

pub(crate) fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((payload.len() as u16).to_be_bytes());
    bytes.extend([protocol, 64]);
    bytes.extend([0x20; 32]);
    [&bytes, payload].concat()
}

/// IPv4 with the packet of PCMU.
pub(crate) fn call() -> Vec<u8> {
    ipv4(17, &udp(PORTS, &voice()))
}

pub(crate) fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[2; 12], &kind.to_be_bytes()[..], payload].concat()
}

pub(crate) type Order = fn(u32) -> [u8; 4];

/// A pcap file with a packet every 20 ms, from second 5 on.
pub(crate) fn pcap(magic: u32, order: Order, link: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = order(magic).to_vec();
    for word in [if order(1)[0] == 1 { 0x0004_0002 } else { 0x0002_0004 }, 0, 0, 65_535, link] {
        file.extend(order(word));
    }
    for (at, bytes) in (0..).step_by(20_000).zip(packets) {
        for word in [5, at, bytes.len() as u32, bytes.len() as u32] {
            file.extend(order(word));
        }
        // Kuznetzov's interface, protocol and type.
        file.extend(if magic == 0xa1b2_cd34 { &[0; 8][..] } else { &[] });
        file.extend(bytes);
    }
    file
}

pub(crate) fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = order(padded as u32 + 12);
    let zeros = vec![0; padded - body.len()];
    [&order(kind), &length, body, &zeros, &length].concat()
}

/// The begin of a section.
pub(crate) fn section(order: Order) -> Vec<u8> {
    let version = if order(1)[0] == 1 { [1, 0, 0, 0] } else { [0, 1, 0, 0] };
    block(order, 0x0a0d_0d0a, &[&order(0x1a2b_3c4d)[..], &version, &[255; 8]].concat())
}

/// An interface of Ethernet with microseconds, or the options' clock.
pub(crate) fn interface(order: Order, most: u32, options: &[u8]) -> Vec<u8> {
    let link = if order(1)[0] == 1 { [1, 0, 0, 0] } else { [0, 1, 0, 0] };
    block(order, 1, &[&link[..], &order(most), options].concat())
}

/// An Enhanced Packet Block, or one that is obsolete.
pub(crate) fn stamped(order: Order, kind: u32, micros: u64, bytes: &[u8]) -> Vec<u8> {
    let mut body = order(0).to_vec();
    for word in [(micros >> 32) as u32, micros as u32, bytes.len() as u32, bytes.len() as u32] {
        body.extend(order(word));
    }
    block(order, kind, &[&body, bytes].concat())
}

pub(crate) fn simple(order: Order, whole: u32, bytes: &[u8]) -> Vec<u8> {
    block(order, 3, &[&order(whole)[..], bytes].concat())
}
