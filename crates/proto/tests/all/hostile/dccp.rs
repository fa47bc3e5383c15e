//! DCCP under attack: numbers inside and outside the windows, options at random, every type in every
//! state, Init Cookies that are old or nobody's.

use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::{Ccid, Config, Dccp, Kind, Options, Packet, ResetCode, State, WireSeq};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Ecn, PacketBox, Payload};
use talkspurt_proto::rng::Rng;

use super::{Script, Subject, bytes_of};

impl Subject for Dccp {
    const BURST: usize = 8;
    // A server never repeats a Response by itself (RFC 4340 §8.1.3).
    const UNASKED: usize = 0;
    const MAX_BYTES: usize = 4 << 20;
    const STREAM: bool = false;
    // A duplicate inside the window may be taken for new before the Ack Vector begins.
    const ONCE: bool = false;

    fn pair(script: &mut Script<'_>) -> (Self, Self) {
        let mut config = Config::new(script.pick(&[Ccid::Two, Ccid::Three, Ccid::Four]));
        config.ccid_back =
            script.pick(&[None, Some(Ccid::Two), Some(Ccid::Three), Some(Ccid::Four)]);
        let bits = script.byte();
        let bit = |n: u8| bits >> n & 1 == 1;
        (config.ack_vector, config.init_cookie) = (bit(0), bit(1));
        (config.data_checksum, config.allow_short_seqnos) = (bit(2), bit(3));
        (config.send_rtt_estimate, config.ecn) = (bit(4), bit(5).then_some(false));
        config.checksum_coverage = if bit(6) { 2 } else { 0 };
        config.minimum_checksum_coverage = config.checksum_coverage;
        let (client, server) = (Rng::new(1, "client"), Rng::new(2, "server"));
        (Self::client(&config, client), Self::listener(&config, server))
    }

    fn is_open(&self) -> bool {
        self.state() >= State::PartOpen
    }

    fn footprint(&self) -> usize {
        self.footprint()
    }

    fn forge(script: &mut Script<'_>, seen: &[Body]) -> Option<Vec<u8>> {
        let last = seen.iter().rev().find_map(|body| match body {
            Body::Dccp(packet) => Some((**packet).clone()),
            _ => None,
        })?;
        let ack = seen.iter().rev().find_map(|body| match body {
            Body::Dccp(packet) => packet.kind.ack(),
            _ => None,
        });
        let ack = near(ack.unwrap_or(WireSeq::Extended(0)), script.step());
        let what = script.byte();
        let has = |n: u8| what >> n & 1 == 1;
        let service = if has(0) { 0x5254_5041 } else { script.u32() };
        let kind = match script.byte() % 11 {
            0 => Kind::Request { service },
            1 => Kind::Response { ack, service },
            2 => Kind::Data,
            3 => Kind::Ack { ack },
            4 => Kind::DataAck { ack },
            5 => Kind::CloseReq { ack },
            6 => Kind::Close { ack },
            7 => Kind::Reset { ack, code: ResetCode(script.byte() % 14), data: [what; 3] },
            8 => Kind::Sync { ack },
            9 => Kind::SyncAck { ack },
            _ => Kind::Listen { service },
        };
        let mut options = if has(1) {
            let length = usize::from(script.byte() % 64);
            Options::from_bytes(script.bytes(length))
        } else {
            last.options.clone()
        };
        options.pad();
        let payload = match script.u16() % 1400 {
            _ if !has(2) => Payload::default(),
            0 => Payload::default(),
            length => Payload::Real(vec![what; usize::from(length)].into()),
        };
        let seq = near(last.seq, script.step().saturating_add(i32::from(has(3))));
        let (ccval, cscov) = (if has(4) { script.byte() & 15 } else { last.ccval }, last.cscov);
        let payload = Frame::Data(payload);
        let packet = Packet { seq, ccval, cscov, kind, options, payload };
        bytes_of(&Body::Dccp(PacketBox::new(packet)), Ecn::NotEct)
    }

    fn fits(forged: &Body, _: &[Body]) -> bool {
        let Body::Dccp(packet) = forged else { return false };
        packet.payload.wire_bytes() > 0
    }
}

fn near(seq: WireSeq, by: i32) -> WireSeq {
    match seq {
        WireSeq::Extended(seq) => {
            WireSeq::Extended(seq.wrapping_add_signed(by.into()) & ((1 << 48) - 1))
        }
        WireSeq::Short(seq) => WireSeq::Short(seq.wrapping_add_signed(by) & 0xff_ffff),
    }
}
