//! RFC 5762: RTP over DCCP.

use talkspurt_proto::dccp::{Ccid, Config, Kind, Service};
use talkspurt_proto::endpoint::{Endpoint, Input};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::{rtcp, rtp};
use talkspurt_testing::dccp::*;

fn speech(sequence: u16) -> Frame {
    Frame::Rtp(rtp::Packet {
        payload_type: 0,
        marker: sequence == 0,
        sequence,
        timestamp: u32::from(sequence) * 160,
        ssrc: 7,
        payload: Payload::Virtual { offset: u64::from(sequence) * 160, len: 160 },
        ..rtp::Packet::default()
    })
}

fn report() -> Frame {
    Frame::Rtcp(Box::new(rtcp::Compound { ssrc: 7, cname: "a@b".into(), ..Default::default() }))
}

/// §5.2: the Service Codes of RTP by medium, and of RTCP on a connection of its own; audio is what
/// is asked for here unless told otherwise.
#[test]
fn service_codes() {
    for (service, text) in [
        (Service::RTP_AUDIO, "SC:RTPA"),
        (Service::RTP_VIDEO, "SC:RTPV"),
        (Service::RTP_TEXT, "SC:RTPT"),
        (Service::RTP_OTHER, "SC:RTPO"),
        (Service::RTCP, "SC:RTCP"),
    ] {
        assert_eq!((service.to_string().as_str(), text.parse()), (text, Ok(service)));
    }
    let mut alone = Alone::client(&Config::new(Ccid::Three));
    let request = alone.input(Input::Open).remove(0);
    assert_eq!(request.kind, Kind::Request { service: 0x5254_5041 });
}

/// §4.1: one RTP packet in each datagram; §4.2: RTCP may share the connection (RFC 5761), and each
/// comes out as what it went in as.
#[test]
fn rtp_and_rtcp_share_a_connection() {
    for ccid in [Ccid::Two, Ccid::Three, Ccid::Four] {
        let mut pair = Pair::connected(&Config::new(ccid));
        let mut frames: Vec<Frame> = (0..20).map(speech).collect();
        frames.insert(10, report());
        for frame in &frames {
            pair.send_frame(Client, frame.clone());
            pair.drive_for(ms(20));
        }
        pair.drive_for(ms(3000));
        assert_eq!(pair.server.frames(), frames, "{ccid:?}");
        let data = pair.log.iter().filter(|s| s.from == Client && s.packet.kind.is_data());
        let sent: Vec<Frame> = data.map(|sent| sent.packet.payload.clone()).collect();
        assert_eq!(sent, frames, "{ccid:?}");
    }
}

/// §4.1: what does not fit the path has no room; RTP is not fragmented below.
#[test]
fn packets_fit_the_path() {
    let pair = Pair::connected(&Config::new(Ccid::Two));
    let room = pair.client.endpoint.send_capacity();
    assert!(room > 12 + 160 && room + 20 + 24 <= 1500);
}

/// §4.1: a partial checksum covers at least the DCCP and RTP headers: CsCov 4 covers 12 bytes. Reports are
/// covered whole.
#[test]
fn partial_checksums_cover_the_rtp_header() {
    for (asked, used) in [(0, 0), (1, 4), (3, 4), (4, 4), (6, 6)] {
        let config = Config {
            checksum_coverage: asked,
            minimum_checksum_coverage: u8::from(asked > 0),
            ..Config::new(Ccid::Two)
        };
        let mut pair = Pair::connected(&config);
        pair.send_frame(Client, speech(0));
        pair.send_frame(Client, report());
        pair.drive_for(ms(500));
        let sent = pair.log.iter().filter(|s| s.from == Client && s.packet.kind.is_data());
        let coverage: Vec<u8> = sent.map(|sent| sent.packet.cscov).collect();
        assert_eq!(coverage, [used, 0], "{asked}");
        assert_eq!(pair.server.received.len(), 2);
    }
}
