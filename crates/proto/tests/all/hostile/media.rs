//! A session whose receiver lies: reports on packets that were never sent, numbers and clocks that jump,
//! silence.

use bytes::Bytes;
use talkspurt_proto::frame::{self, Frame};
use talkspurt_proto::media::{
    Clusters, Config, FeedbackInfo, MediaController, ReceiverReport, Sent, breaker, gcc, nada,
};
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
/// GCC and NADA over any rates, at one rate, and as they are; NADA by its authors; and a fixed rate.
fn controllers() -> [Config; 8] {
    let mbps = |rate: u64| Rate::from_bps(rate * 1_000_000);
    let narrow = nada::Config { min: mbps(1), max: mbps(1), priority: 100.0, ..Default::default() };
    let wide = nada::Config {
        profile: nada::Profile::Ns3Rmcat,
        min: Rate::from_bps(1),
        max: mbps(100_000),
        ..Default::default()
    };
    [
        Config::Gcc(gcc::Config::default()),
        Config::Gcc(gcc::Config {
            min: Some(Rate::from_bps(5000)),
            start: mbps(1000),
            max: mbps(1000),
            alr_probing: true,
            ..Default::default()
        }),
        Config::Gcc(gcc::Config {
            min: Some(Rate::from_bps(5000)),
            start: Rate::from_bps(5000),
            max: Rate::from_bps(5000),
            alr_probing: true,
            ..Default::default()
        }),
        Config::Gcc(gcc::Config {
            min: Some(mbps(1000)),
            start: mbps(1000),
            max: mbps(1000),
            alr_probing: true,
            ..Default::default()
        }),
        Config::Nada(nada::Config::default()),
        Config::Nada(wide),
        Config::Nada(narrow),
        Config::Fixed(breaker::Config { rate: mbps(1), pacing: None, circuit_breaker: true }),
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
    let mut clusters = Clusters::default();
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
                for _ in 0..(what & 0x1c) {
                    sequence = sequence.wrapping_add(1);
                    let number = sent.on_sent(now, 0, sequence, bytes % 1500, None);
                    controller.on_sent(now, &Sent { sequence: number, bytes: bytes % 1500 });
                    now += Duration::from_micros(u64::from(bytes) / 8);
                    if script.byte() & 3 != 0 {
                        received.on_packet(now, 0, sequence, Ecn::NotEct);
                    }
                }
                if let Some(report) = received.transport_wide(1100) {
                    tell(now, sent.on_transport_wide(now, &report), controller.as_mut());
                }
            }
            2 => {
                now += if what & 0x1c != 0 {
                    Duration::from_micros(u64::from(script.u16()))
                } else {
                    Duration::from_micros(u64::from(script.u16()) << script.byte().min(16))
                }
            }
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
            _ => match what & 3 {
                0 => controller.on_queue(now, u64::from(script.u32())),
                1 => {
                    let limit = u64::from(script.u32()) << (script.byte() & 63);
                    controller.on_receiver_limit(now, Rate::from_bps(limit));
                }
                2 => {
                    let rtt = Some(Duration::from_micros(script.u32().into()));
                    let [lost, received] =
                        [script.u32(), script.u32()].map(|it| i64::from(it as i32));
                    let report = ReceiverReport { rtt, lost, received };
                    controller.on_receiver_report(now, &report);
                }
                _ => controller.on_contact(now),
            },
        }
        while let Some(cluster) = controller.take_cluster() {
            clusters.add(now, cluster);
            assert!(cluster.rate.as_bps() > 0, "{cluster:?}");
        }
        // A sender with enough to send.
        let bytes = 6 * u32::from(what);
        clusters.on_packet(bytes.into());
        for _ in 0..2000 {
            let is_due = clusters.due().is_some_and(|at| at <= now);
            if !is_due || clusters.missing(now) == 0 || bytes == 0 {
                break;
            }
            let Some(id) = clusters.current(now) else { continue };
            sequence = sequence.wrapping_add(1);
            let number = sent.on_sent(now, 0, sequence, bytes, Some(id));
            controller.on_sent(now, &Sent { sequence: number, bytes });
            clusters.on_sent(now, bytes.into());
        }
        if what & 8 == 0 {
            clusters.end_burst(now);
        }
        if controller.deadline().is_some_and(|at| at <= now) {
            controller.on_timeout(now);
            assert!(controller.deadline().is_none_or(|at| at > now), "a timer that stays due");
        }
        let decision = controller.decision();
        assert!(decision.target <= config.max(), "{decision:?}");
        assert!(decision.target.as_bps() > 0 && decision.pacing.as_bps() > 0, "{decision:?}");
        // GCC paces what its estimate permits, not its sources.
        if !matches!(config, Config::Gcc(_)) {
            assert!(decision.pacing.as_bps() / 5 * 4 <= config.max().as_bps(), "{decision:?}");
        }
        assert!(decision.skip.is_finite() && (0.0..1.0).contains(&decision.skip), "{decision:?}");
        assert!(decision.padding.as_bps() <= 1_000_000_000, "{decision:?}");
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
