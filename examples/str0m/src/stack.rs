//! str0m as an external stack: one stream of video in RTP, from the side that opens, at the rate that str0m
//! estimates. It has its own feedback and retransmissions; RTCP of the flow is discarded.

#[path = "plain.rs"]
pub(super) mod plain;
#[cfg(test)]
#[path = "session_tests.rs"]
mod session_tests;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use bytes::Bytes;
use talkspurt_proto::external::{Class, Datagram, Kind, Note, Stack};
use talkspurt_proto::rtp;
use talkspurt_proto::wire;
use talkspurt_proto::{
    Ecn, Event, Frame, Input, Instant, Output, PathId, Payload, Rate, Setup, Side, Size, Transmit,
};

use super::str0m;
use super::{NAME, desire, provider};
use str0m::bwe::{Bitrate, BweKind};
use str0m::ice::IceCreds;
use str0m::media::{MediaKind, Mid, Pt};
use str0m::net::{Protocol, Receive};
use str0m::rtp::{RtpWrite, Ssrc};
use str0m::{Candidate, Rtc, RtcConfig};

/// RFC 8867 §4.3: the first rate. What the source can send at most is in the scenario.
const START_BPS: u64 = 150_000;
const DESIRED_BPS: u64 = 1_500_000;
/// str0m's payload type of VP8, and the first dynamic one, which sources of video here have.
const VIDEO: u8 = 96;
/// Bytes of its header extension: transport-wide number, time of sending and MID.
const EXTENSION: u32 = 16;
/// It asks to be called again at once: so often at one instant, and then after this time.
const CALLS: usize = 16;
const PAUSE: StdDuration = StdDuration::from_micros(100);
/// Of a longer run than any.
const FAR: StdDuration = StdDuration::from_secs(1 << 32);

/// What scenarios name `str0m-VERSION`.
pub(crate) fn kind() -> Kind {
    // The only clock that is read, once. str0m begins its time up to an hour ago, or when the machine was
    // started: a day later both are equally far.
    let base = StdInstant::now() + StdDuration::from_secs(86_400);
    Kind {
        // With its version.
        name: NAME,
        version: "",
        header_bytes: 8 + EXTENSION + plain::TAG as u32,
        mtu: Size::from_bytes(1500),
        max_message: 1300,
        has_handshake: true,
        has_window: false,
        build: Box::new(move |setup, _| Box::new(WebRtc::new(base, setup))),
    }
}

pub(crate) struct WebRtc {
    base: StdInstant,
    sends: bool,
    /// State of fastrand's generator.
    random: u64,
    rtc: Option<Box<Rtc>>,
    is_open: bool,
    /// SSRC of what is sent, and the highest sequence number, with what the field has no room for.
    sent: Option<(u32, u64)>,
    /// Media headers and payload of each message in the library, by sequence number.
    inside: BTreeMap<u16, (u32, u32)>,
    discarded: u64,
    estimate: Option<f64>,
    wake: Option<Instant>,
    ready: VecDeque<Output<Datagram>>,
}

impl fmt::Debug for WebRtc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebRtc").field("is_open", &self.is_open).finish_non_exhaustive()
    }
}

fn mid() -> Mid {
    "video".into()
}

/// RFC 4588 §4: retransmissions have an SSRC of their own.
const fn repair(ssrc: u32) -> u32 {
    !ssrc
}

/// Addresses of both sides: any, since a simulation has one route.
fn address(opens: bool) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, if opens { 1 } else { 2 })), 5000)
}

fn credentials(opens: bool) -> IceCreds {
    let letter = if opens { "a" } else { "b" };
    IceCreds { ufrag: letter.repeat(8), pass: letter.repeat(24) }
}

fn config(opens: bool) -> RtcConfig {
    let config = Rtc::builder()
        .set_crypto_provider(Arc::new(provider()))
        .set_local_ice_credentials(credentials(opens))
        .set_rtp_mode(true)
        .clear_codecs()
        .enable_vp8(true);
    config.enable_bwe(opens.then(|| Bitrate::from(START_BPS)))
}

/// One end, with what signalling would have told it of the other.
fn start(config: RtcConfig, now: StdInstant, opens: bool) -> Box<Rtc> {
    let mut rtc = Box::new(config.build(now));
    let candidate = |opens| Candidate::host(address(opens), "udp").expect("an address");
    rtc.add_local_candidate(candidate(opens));
    rtc.add_remote_candidate(candidate(!opens));
    let mut direct = rtc.direct_api();
    direct.set_ice_controlling(opens);
    direct.set_remote_ice_credentials(credentials(!opens));
    // Both have the same certificate.
    let fingerprint = direct.local_dtls_fingerprint().clone();
    direct.set_remote_fingerprint(fingerprint);
    direct.start_dtls(opens).expect("it was not started before");
    direct.declare_media(mid(), MediaKind::Video);
    if !opens {
        direct.enable_twcc_feedback();
    }
    if opens {
        desire(rtc.bwe(), Bitrate::from(DESIRED_BPS));
    }
    rtc
}

impl WebRtc {
    fn new(base: StdInstant, mut setup: Setup<'_>) -> Self {
        Self {
            base,
            sends: setup.side == Side::Opens,
            random: setup.rng.bits(),
            rtc: None,
            is_open: false,
            sent: None,
            inside: BTreeMap::new(),
            discarded: 0,
            estimate: None,
            wake: None,
            ready: VecDeque::new(),
        }
    }

    fn ask(&mut self, rate: u64) {
        self.estimate = Some(rate as f64);
        self.ready.push_back(Output::Event(Event::TargetRate(Rate::from_bps(rate))));
    }

    /// Queues a message, if it is one of the video.
    fn push(&mut self, at: StdInstant, frame: Frame) {
        let (media, payload) = frame.lengths();
        let (Frame::Rtp(packet), Some(rtc), true) = (frame, &mut self.rtc, self.sends) else {
            self.discarded += 1;
            return;
        };
        if packet.payload_type != VIDEO {
            self.discarded += 1;
            return;
        }
        let ssrc = Ssrc::from(packet.ssrc);
        let (_, last) = *self.sent.get_or_insert_with(|| {
            let again = Some(Ssrc::from(repair(packet.ssrc)));
            rtc.direct_api().declare_stream_tx(ssrc, again, mid(), None);
            (packet.ssrc, packet.sequence.into())
        });
        let since = packet.sequence.wrapping_sub(last as u16);
        let number = last + u64::from(since);
        self.sent = Some((packet.ssrc, number));
        self.inside.insert(packet.sequence, (media as u32, payload as u32));
        let mut bytes = Vec::new();
        wire::emit_frame(&Frame::Data(packet.payload), &mut bytes);
        let write = RtpWrite::new(Pt::from(VIDEO), number.into(), packet.timestamp, at, bytes)
            .marker(packet.marker)
            .nackable(true);
        let mut direct = rtc.direct_api();
        direct.stream_tx(&ssrc).expect("it was declared").write_rtp(write);
    }

    /// A datagram of the library, with what it carries.
    fn datagram(&mut self, bytes: &[u8]) -> Datagram {
        let content = Frame::Data(Payload::Real(Bytes::copy_from_slice(bytes)));
        let control = Datagram { content, class: Class::Control, ..Datagram::default() };
        // RFC 7983 §7, RFC 5761 §4: RTP and not RTCP.
        let is_rtp = (128..192).contains(&bytes[0]) && !(192..224).contains(&bytes[1]);
        let Some((own, _)) = self.sent.filter(|_| is_rtp) else { return control };
        let ssrc = u32::from_be_bytes(bytes[8..12].try_into().expect("four bytes"));
        if ssrc == own
            && let Some(lengths) = self.inside.remove(&u16::from_be_bytes([bytes[2], bytes[3]]))
        {
            let (media, payload) = lengths;
            return Datagram { class: Class::Data, media, payload, ..control };
        }
        // Padding alone has the bit that says so (RFC 3550 §5.1).
        let repeats = ssrc == repair(own) && bytes[0] & 0x20 == 0;
        Datagram { class: if repeats { Class::Retransmission } else { Class::Control }, ..control }
    }

    /// Passes what the library has to say on, until it waits.
    fn drain(&mut self, at: StdInstant) {
        let mut calls = 0;
        while let Some(rtc) = &mut self.rtc {
            let output = rtc.poll_output().expect("the other end is str0m");
            match output {
                str0m::Output::Transmit(sent) => {
                    let (path, ecn, packet) =
                        (PathId(0), Ecn::NotEct, self.datagram(&sent.contents));
                    self.ready.push_back(Output::Transmit(Transmit { path, ecn, packet }));
                }
                str0m::Output::Event(event) => self.on_event(event),
                str0m::Output::Timeout(next) if next <= at && calls < CALLS => {
                    calls += 1;
                    rtc.handle_input(str0m::Input::Timeout(at)).expect("it is alive");
                }
                str0m::Output::Timeout(next) => {
                    let next = next.max(at + PAUSE).saturating_duration_since(self.base);
                    let nanos = next.min(FAR).as_nanos() as u64;
                    self.wake = Some(Instant::from_nanos(nanos));
                    return;
                }
            }
        }
    }

    fn on_event(&mut self, event: str0m::Event) {
        match event {
            str0m::Event::Connected => {
                self.is_open = true;
                self.ready.push_back(Output::Event(Event::Connected));
                self.ready.push_back(Output::Event(Event::Writable));
            }
            str0m::Event::EgressBitrateEstimate(BweKind::Twcc { estimate, .. }) => {
                self.ask(estimate.as_u64());
            }
            str0m::Event::RtpPacket(packet) => {
                let header = &packet.header;
                self.ready.push_back(Output::Deliver(Frame::Rtp(rtp::Packet {
                    payload_type: *header.payload_type,
                    marker: header.marker,
                    sequence: header.sequence_number,
                    timestamp: header.timestamp,
                    ssrc: *header.ssrc,
                    payload: Payload::Real(Bytes::copy_from_slice(&packet.payload)),
                    ..rtp::Packet::default()
                })));
            }
            _ => {}
        }
    }

    fn take_in(&mut self, at: StdInstant, input: Input<Datagram>) {
        let sends = self.sends;
        match input {
            Input::Open => {
                self.ask(START_BPS);
            }
            Input::Frame(frame) => return self.push(at, frame),
            Input::Packet { packet, .. } => {
                let rtc = self.rtc.get_or_insert_with(|| start(config(sends), at, sends));
                if let Frame::Data(Payload::Real(bytes)) = &packet.content
                    && let Ok(received) =
                        Receive::new(Protocol::Udp, address(!sends), address(sends), bytes)
                {
                    let input = str0m::Input::Receive(at, received);
                    rtc.handle_input(input).expect("the other end is str0m");
                }
                return;
            }
            Input::Timeout => {}
            Input::Close | Input::Abort => {
                self.ready.push_back(Output::Event(Event::Closed));
                return;
            }
            Input::TooBig { .. } | Input::Path(..) => return,
        }
        let rtc = self.rtc.get_or_insert_with(|| start(config(sends), at, sends));
        rtc.handle_input(str0m::Input::Timeout(at)).expect("it is alive");
    }
}

impl Stack for WebRtc {
    fn handle(&mut self, now: Instant, input: Input<Datagram>) {
        let at = self.base + StdDuration::from_nanos(now.as_nanos());
        // The generator belongs to the thread, on which other stacks run too.
        let others = fastrand::get_seed();
        fastrand::seed(self.random);
        self.take_in(at, input);
        self.drain(at);
        self.random = fastrand::get_seed();
        fastrand::seed(others);
    }

    fn poll(&mut self, _: Instant, note: &mut dyn FnMut(Note)) -> Output<Datagram> {
        if let Some(output) = self.ready.pop_front() {
            return output;
        }
        if self.discarded > 0 {
            note(Note::Discarded(std::mem::take(&mut self.discarded)));
        }
        if let Some(estimate) = self.estimate.take() {
            note(Note::Gauge("str0m_estimate_bps", estimate));
        }
        Output::Idle { until: self.wake }
    }

    fn send_capacity(&self) -> usize {
        if self.is_open { usize::MAX } else { 0 }
    }
}
