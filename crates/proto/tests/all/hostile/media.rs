//! A session whose receiver lies: reports on packets that were never sent, numbers and clocks that jump,
//! silence.

use bytes::Bytes;
use talkspurt_proto::frame::{self, Frame};
use talkspurt_proto::media::{Config, FeedbackInfo, MediaController, Sent, breaker, nada};
use talkspurt_proto::octets::Hints;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::rtcp::congestion::{CongestionControl, Metric, Stream};
use talkspurt_proto::rtcp::{Message, PacketReport, ReceivedPackets, SentPackets};
use talkspurt_proto::rtp::rtx::{History, OSN_BYTES, original};
use talkspurt_proto::rtp::{Packet, Pictures, Sender};
use talkspurt_proto::{Duration, Ecn, Instant, Rate};

use super::Script;

/// Transport-wide feedback is on the first one.
const SSRCS: [u32; 3] = [0, 2, 0xffff_ffff];
/// NADA over any rates, at one rate, and by its authors; and a fixed rate.
fn controllers() -> [Config; 4] {
    let mbps = |rate: u64| Rate::from_bps(rate * 1_000_000);
    let narrow = nada::Config { min: mbps(1), max: mbps(1), priority: 100.0, ..Default::default() };
    let wide = nada::Config {
        profile: nada::Profile::Ns3Rmcat,
        min: Rate::from_bps(1),
        max: mbps(100_000),
        ..Default::default()
    };
    [
        Config::Nada(nada::Config::default()),
        Config::Nada(wide),
        Config::Nada(narrow),
        Config::Fixed(breaker::Config { rate: mbps(1), circuit_breaker: true }),
    ]
}

/// Plays a script against each controller, and against both ends of repaired video.
pub fn play(bytes: &[u8]) {
    repair(&mut Script::new(bytes), true);
    repair(&mut Script::new(bytes), false);
    for config in controllers() {
        run(&mut Script::new(bytes), &config, config.build());
    }
}

fn run(script: &mut Script<'_>, config: &Config, mut controller: Box<dyn MediaController>) {
    let (mut sent, mut received) = (SentPackets::default(), ReceivedPackets::default());
    let mut now = Instant::ZERO;
    let mut sequence = script.u16();
    while !script.is_over() {
        let what = script.byte();
        match what >> 5 {
            0 | 1 => {
                let ssrc = script.pick(&SSRCS);
                sequence = sequence.wrapping_add(u16::from(what & 3));
                let bytes = u32::from(script.u16());
                let number = sent.on_sent(now, ssrc, sequence, bytes, None);
                controller.on_sent(now, &Sent { sequence: number, bytes });
            }
            2 => now += Duration::from_micros(u64::from(script.u16()) << (what & 0x1f).min(16)),
            3 => {
                let ecn = script.pick(&[Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
                let ssrc = if what & 1 == 0 { script.u32() } else { script.pick(&SSRCS) };
                received.on_packet(now, ssrc, script.u16(), ecn);
            }
            4 => {
                let streams = received.report(now, usize::from(script.byte()));
                let report = CongestionControl { streams, timestamp: script.u32() };
                tell(now, sent.on_report(now, &report), controller.as_mut());
                if let Some(mut report) = received.transport_wide(usize::from(script.byte())) {
                    report.reference_time ^= script.u32() >> 8;
                    tell(now, sent.on_transport_wide(now, &report), controller.as_mut());
                }
            }
            5 => {
                let count = usize::from(script.byte());
                let metrics = (0..count).map(|_| Metric::from_bits(script.u16())).collect();
                let begin = sequence.wrapping_sub(script.u16() & 0x3ff);
                let ssrc = script.pick(&SSRCS);
                let streams = vec![Stream { ssrc, begin, metrics }];
                let report = CongestionControl { streams, timestamp: script.u32() };
                tell(now, sent.on_report(now, &report), controller.as_mut());
            }
            6 => {
                let bytes = Bytes::copy_from_slice(script.bytes(usize::from(what & 0x1f) << 3));
                let Ok(Frame::Rtcp(compound)) = frame::parse_media(&bytes, Hints::default()) else {
                    continue;
                };
                for feedback in &compound.feedback {
                    let told = match &feedback.message {
                        Message::CongestionControl(report) => sent.on_report(now, report),
                        Message::TransportWide { report, .. } => {
                            sent.on_transport_wide(now, report)
                        }
                        _ => continue,
                    };
                    tell(now, told, controller.as_mut());
                }
            }
            _ => controller.on_queue(now, u64::from(script.u32())),
        }
        if controller.deadline().is_some_and(|at| at <= now) {
            controller.on_timeout(now);
            assert!(controller.deadline().is_none_or(|at| at > now), "a timer that stays due");
        }
        let decision = controller.decision();
        assert!(decision.target <= config.max(), "{decision:?}");
        assert!(decision.target.as_bps() > 0 && decision.pacing.as_bps() > 0, "{decision:?}");
        assert!(decision.pacing.as_bps() / 5 * 4 <= config.max().as_bps(), "{decision:?}");
    }
}

/// Requests for anything, and packets with any numbers and payload.
fn repair(script: &mut Script<'_>, nack: bool) {
    let mut history = History::new(97, 90_000, &mut Rng::new(1, "hostile"));
    let (mut source, mut pictures) =
        (Sender::starting_at(1, 96, 90_000, 0, 0), Pictures::new(nack));
    let mut now = Instant::ZERO;
    let [mut first, mut again] = [0, 0];
    while !script.is_over() {
        let what = script.byte();
        let rtt = Duration::from_millis(u64::from(script.byte()));
        match what >> 6 {
            0 => now += Duration::from_micros(u64::from(script.u16()) << (what & 0xf)),
            1 => {
                let payload =
                    Payload::Real(Bytes::copy_from_slice(script.bytes(usize::from(what & 0x3f))));
                let packet = source.packet(0, false, payload);
                if what & 1 == 0 {
                    first += packet.payload.len() + OSN_BYTES;
                    history.on_sent(now, &packet, rtt);
                }
            }
            2 => {
                let asked =
                    (source.packets() as u16).wrapping_add(3).wrapping_sub(script.u16() % 64);
                if let Some(packet) = history.again(now, asked, rtt) {
                    again += packet.payload.len();
                    if what & 1 == 0 {
                        history.on_repeated(now, &packet);
                    }
                    assert!((0.0..=0.5).contains(&history.share()));
                    assert!(original(&packet, 96, 1).is_some_and(|it| it.sequence == asked));
                }
            }
            _ => {
                let bytes = Bytes::copy_from_slice(script.bytes(usize::from(what & 3)));
                let marker = what & 4 == 0;
                let sequence = script.u16() >> (what & 0xf);
                let packet = source.packet(0, marker, Payload::Real(bytes));
                let before = pictures.decoded();
                pictures.on_packet(now, &Packet { sequence, ..packet });
                assert!(pictures.decoded() - before <= 2048);
            }
        }
        assert!(again <= first, "{again} of {first} bytes");
        if pictures.due().is_some_and(|at| at <= now) {
            let most = usize::from(what) + 1;
            let mut requests = pictures.take(now, rtt, most);
            assert!(requests.key || !requests.lost.is_empty() || nack);
            let mut total = requests.lost.len();
            while requests.lost.len() == most {
                requests = pictures.take(now, rtt, most);
                total += requests.lost.len();
            }
            assert!(total <= 1000);
            assert!(pictures.due().is_none_or(|at| at > now), "a request that stays due");
        }
    }
}

fn tell(
    now: Instant,
    (reports, rtt): (Vec<PacketReport>, Option<Duration>),
    controller: &mut dyn MediaController,
) {
    assert!(
        reports
            .windows(2)
            .all(|pair| pair[0].sequence <= pair[1].sequence || pair[0].stream == pair[1].stream)
    );
    controller.on_reports(now, &reports, &FeedbackInfo { rtt });
}
