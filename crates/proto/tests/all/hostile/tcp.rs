//! TCP under attack: forged numbers, flags and options, overlapping segments, blind resets and SYNs
//! (RFC 5961), acknowledgements of what was never sent.

use talkspurt_proto::body::Body;
use talkspurt_proto::packet::{Ecn, Payload};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::tcp::{
    Config, Controller, Flags, LossRecovery, SackBlocks, Segment, State, Tcp,
};
use talkspurt_proto::units::Size;

use super::{Script, Subject, bytes_of};

/// Bytes either end's application and network may hold.
const BUFFER: u64 = 20_000;

impl Subject for Tcp {
    // All of a window at once, in segments of the least MSS less timestamps; twice, for what is
    // sent again.
    const BURST: usize = 2 * BUFFER as usize / 36;
    const UNASKED: usize = 7;
    const MAX_BYTES: usize = 600_000;
    const STREAM: bool = true;
    const ONCE: bool = true;

    fn pair(script: &mut Script<'_>) -> (Self, Self) {
        let controllers = [
            Controller::Tahoe,
            Controller::Reno,
            Controller::Newreno,
            Controller::Sack,
            Controller::Cubic,
            Controller::Dctcp,
            Controller::Prague,
        ];
        let mut config = Config::new(script.pick(&controllers));
        let bits = script.byte();
        let bit = |n: u8| bits >> n & 1 == 1;
        config.mss = Size::from_bytes(if bit(0) { 1000 } else { 200 });
        (config.timestamps, config.window_scaling) = (bit(1), bit(2));
        (config.delayed_ack, config.nagle) = (bit(3), bit(4));
        config.ecn = bit(5).then_some(true);
        config.recovery = (bit(6) && bit(7)).then_some(LossRecovery::Rack);
        config.send_buffer = Size::from_bytes(BUFFER);
        config.receive_buffer = Size::from_bytes(BUFFER);
        let (client, server) = (Rng::new(1, "client"), Rng::new(2, "server"));
        (Self::client(&config, client), Self::listener(&config, server))
    }

    fn is_open(&self) -> bool {
        self.state() >= State::Established
    }

    fn footprint(&self) -> usize {
        self.footprint()
    }

    fn forge(script: &mut Script<'_>, seen: &[Body]) -> Option<Vec<u8>> {
        let last = seen.iter().rev().find_map(|body| match body {
            Body::Tcp(segment) => Some(segment.clone()),
            _ => None,
        });
        let last = last.unwrap_or_default();
        let near = |script: &mut Script<'_>, number: u32| number.wrapping_add_signed(script.step());
        let flags = [
            Flags::ACK,
            Flags::RST,
            Flags::RST | Flags::ACK,
            Flags::SYN,
            Flags::SYN | Flags::ACK,
            Flags::FIN | Flags::ACK,
            Flags::ACK | Flags::ECE,
            Flags::ACK | Flags::CWR,
        ];
        let flags = match script.byte() {
            odd @ 128.. => Flags(odd.wrapping_mul(31)),
            usual => flags[usize::from(usual) % flags.len()],
        };
        let what = script.byte();
        let has = |n: u8| what >> n & 1 == 1;
        let next = last.seq.wrapping_add(last.payload.len() as u32);
        let mut segment = Segment {
            seq: near(script, if has(0) { next } else { last.seq }),
            ack: near(script, last.ack),
            window: script.u16(),
            flags,
            sack_permitted: has(1),
            timestamps: last.timestamps,
            ..Segment::default()
        };
        if has(2) {
            segment.mss = Some(script.u16());
            segment.window_scale = Some(script.byte());
        }
        if has(3) {
            let (value, echo) = last.timestamps.unwrap_or_default();
            segment.timestamps = Some((near(script, value), near(script, echo)));
        }
        if has(4) {
            let blocks: Vec<_> = (0..1 + script.byte() % 4)
                .map(|_| (near(script, last.ack), near(script, last.ack)))
                .collect();
            segment.sack = SackBlocks::of(blocks);
        }
        if has(5) {
            let len = usize::from(script.u16() % 1500);
            let bytes = if has(6) { vec![what; len] } else { script.bytes(len).to_vec() };
            if !bytes.is_empty() {
                segment.payload = Payload::Real(bytes.into());
            }
        }
        bytes_of(&Body::Tcp(segment), Ecn::NotEct)
    }

    fn fits(forged: &Body, seen: &[Body]) -> bool {
        let Body::Tcp(forged) = forged else { return false };
        // Neither window nor flight are longer than this. A reset's number may be the attacker's own.
        let near = |body: &Body| {
            matches!(body, Body::Tcp(sent)
                if (forged.seq.wrapping_sub(sent.seq) as i32).unsigned_abs() < 1 << 17)
        };
        forged.flags.contains(Flags::SYN)
            || !forged.payload.is_empty() && (seen.is_empty() || seen.iter().any(near))
    }
}
