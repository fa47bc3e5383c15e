//! SCTP under attack: forged tags, stale and foreign cookies, overlapping and unending fragments,
//! SACKs for TSNs that were never sent, chunk lengths that lie.

use talkspurt_proto::body::Body;
use talkspurt_proto::packet::{Ecn, PacketBox};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::sctp::{Chunk, Config, Packet, Scheduler, Sctp, State};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;

use super::{IP, Script, Subject, bytes_of, repair};

impl Subject for Sctp {
    // Max.Burst of new data, what is sent again, and control chunks in packets of their own: a
    // HEARTBEAT of 1500 bytes in four may be answered by one each.
    const BURST: usize = 400;
    // The state of a handshake is in the cookie.
    const UNASKED: usize = 0;
    const MAX_BYTES: usize = 4 << 20;
    const STREAM: bool = false;
    const ONCE: bool = true;

    fn pair(script: &mut Script<'_>) -> (Self, Self) {
        let bits = script.byte();
        let bit = |n: u8| bits >> n & 1 == 1;
        let more = script.byte();
        let config = Config {
            ordered: !bit(0),
            interleaving: bit(1),
            bundling: !bit(2),
            nagle: bit(3),
            ack_clocked: more & 32 != 0,
            sack_frequency: if bit(4) { 1 } else { 2 },
            lifetime: bit(5).then_some(Duration::from_millis(300)),
            max_retransmissions: bit(6).then_some(1),
            potentially_failed: bit(7).then_some(0),
            scheduler: [Scheduler::Fcfs, Scheduler::RoundRobin, Scheduler::Priority]
                [usize::from(more % 3)],
            streams: if more & 4 == 0 { 10 } else { 1 },
            mtu: Size::from_bytes(if more & 8 == 0 { 1500 } else { 300 }),
            receive_buffer: Size::from_bytes(20_000),
            send_buffer: Size::from_bytes(20_000),
            ..Config::default()
        };
        let paths = if more & 16 == 0 { 1 } else { 2 };
        let (client, server) = (Rng::new(1, "client"), Rng::new(2, "server"));
        let (client, server) = (Self::client(&config, client), Self::listener(&config, server));
        (client.on_paths(paths), server.on_paths(paths))
    }

    fn is_open(&self) -> bool {
        self.state() > State::CookieEchoed
    }

    fn footprint(&self) -> usize {
        self.footprint()
    }

    fn forge(script: &mut Script<'_>, seen: &[Body]) -> Option<Vec<u8>> {
        let last = seen.iter().rev().find_map(|body| match body {
            Body::Sctp(packet) => Some(&**packet),
            _ => None,
        });
        let tag = match script.byte() {
            0..=199 => last.map_or(0, |packet| packet.tag),
            200..=219 => 0,
            220..=239 => tags(seen).next().unwrap_or(0),
            _ => script.u32(),
        };
        let (tsn, ack) = (last_tsn(seen), last_ack(seen));
        // Bytes and not chunks, so that lengths may lie.
        let empty = Packet { tag, chunks: vec![Chunk::CookieAck] };
        let mut bytes = bytes_of(&Body::Sctp(PacketBox::new(empty)), Ecn::NotEct)?;
        bytes.truncate(IP + 12);
        for _ in 0..=script.byte() % 3 {
            let start = bytes.len();
            let kinds = [0, 0, 0, 64, 64, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 192, 194, 77];
            let kind = match script.byte() {
                any @ 240.. => any.wrapping_mul(37),
                usual => kinds[usize::from(usual) % kinds.len()],
            };
            bytes.extend_from_slice(&[kind, script.byte(), 0, 0]);
            match kind {
                0 | 64 => {
                    bytes.extend_from_slice(&tsn.wrapping_add_signed(script.step()).to_be_bytes());
                    let (stream, number) = (u16::from(script.byte() % 12), script.byte());
                    bytes.extend_from_slice(&stream.to_be_bytes());
                    bytes.extend_from_slice(&u16::from(number % 8).to_be_bytes());
                    bytes.extend_from_slice(&[0, 0, 0, number / 8]);
                    if kind == 64 {
                        bytes.extend_from_slice(&[0, 0, 0, script.byte() % 8]);
                    }
                    let length = usize::from(script.byte());
                    bytes.resize(bytes.len() + length, number);
                }
                3 => {
                    bytes.extend_from_slice(&ack.wrapping_add_signed(script.step()).to_be_bytes());
                    bytes.extend_from_slice(&script.u32().to_be_bytes());
                    let (gaps, twins) = (script.byte() % 5, script.byte() % 3);
                    bytes.extend_from_slice(&[0, gaps, 0, twins]);
                    for _ in 0..gaps {
                        let (first, length) = (script.byte(), script.byte());
                        let last = u16::from(first) + u16::from(length);
                        bytes.extend_from_slice(&u16::from(first).to_be_bytes());
                        bytes.extend_from_slice(&last.to_be_bytes());
                    }
                    bytes.extend_from_slice(script.bytes(4 * usize::from(twins)));
                }
                7 => bytes.extend_from_slice(&ack.wrapping_add_signed(script.step()).to_be_bytes()),
                192 | 194 => {
                    bytes.extend_from_slice(&tsn.wrapping_add_signed(script.step()).to_be_bytes());
                    let length = usize::from(script.byte() % 32);
                    bytes.extend_from_slice(script.bytes(length));
                }
                10 => {
                    // A cookie that was seen, as it was or in part.
                    let cookie = seen.iter().find_map(cookie).unwrap_or_default();
                    let keep = cookie.len() - usize::from(script.byte() / 16).min(cookie.len());
                    bytes.extend_from_slice(&cookie[..keep]);
                }
                _ => {
                    let length = usize::from(script.byte() % 64);
                    bytes.extend_from_slice(script.bytes(length));
                }
            }
            let length = (bytes.len() - start) as u16;
            let said = if script.byte() < 240 { length } else { script.u16() % 64 };
            bytes[start + 2..start + 4].copy_from_slice(&said.to_be_bytes());
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        repair(&mut bytes);
        Some(bytes)
    }

    fn fits(forged: &Body, seen: &[Body]) -> bool {
        let Body::Sctp(packet) = forged else { return false };
        packet.tag == 0 || tags(seen).any(|tag| tag == packet.tag)
    }
}

fn packets(seen: &[Body]) -> impl DoubleEndedIterator<Item = &Packet> {
    seen.iter().filter_map(|body| match body {
        Body::Sctp(packet) => Some(&**packet),
        _ => None,
    })
}
fn tags(seen: &[Body]) -> impl Iterator<Item = u32> {
    packets(seen).map(|packet| packet.tag).filter(|tag| *tag != 0)
}
fn last_tsn(seen: &[Body]) -> u32 {
    let tsn = |chunk: &Chunk| match chunk {
        Chunk::Data(data) => Some(data.tsn.wrapping_add(1)),
        Chunk::Init(init) | Chunk::InitAck(init) => Some(init.tsn),
        _ => None,
    };
    packets(seen).rev().flat_map(|packet| packet.chunks.iter().rev()).find_map(tsn).unwrap_or(0)
}
fn last_ack(seen: &[Body]) -> u32 {
    let ack = |chunk: &Chunk| match chunk {
        Chunk::Sack(sack) => Some(sack.cumulative),
        Chunk::Shutdown { cumulative } => Some(*cumulative),
        _ => None,
    };
    packets(seen).rev().flat_map(|packet| packet.chunks.iter().rev()).find_map(ack).unwrap_or(0)
}
fn cookie(body: &Body) -> Option<bytes::Bytes> {
    let Body::Sctp(packet) = body else { return None };
    packet.chunks.iter().find_map(|chunk| match chunk {
        Chunk::CookieEcho(cookie) => Some(cookie.clone()),
        _ => None,
    })
}
