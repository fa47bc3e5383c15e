//! Bytes that nobody would send, as a file and as a frame. Also used by the fuzz target.

use talkspurt_capture::container::{self, Packet};
use talkspurt_capture::frame::Frames;
use talkspurt_capture::headers::{self, Headers, Media};
use talkspurt_capture::table;

/// Reads a file; then, as a frame of the link type and with the cut in the first four bytes, the rest.
pub(crate) fn play(bytes: &[u8]) {
    let mut frames = Frames::default();
    let file = container::packets(bytes);
    for packet in file.iter().flatten() {
        frame(&mut frames, packet);
    }
    if let (Ok(packets), Ok(tables)) = (&file, table::read(bytes)) {
        assert_eq!(tables.frames, packets.len() as u64);
    }
    if let [high, low, cut @ ..] = bytes
        && let Some((cut, bytes)) = cut.split_first_chunk()
    {
        let (cut, link) =
            (u16::from_be_bytes(*cut).into(), u16::from_be_bytes([*high, *low]).into());
        frame(&mut frames, &Packet { nanos: 0, timed: true, cut, link, bytes });
    }
}

fn frame(frames: &mut Frames, packet: &Packet<'_>) {
    frames.each(packet, &mut |found| {
        let Ok(ip) = found else { return };
        if let Ok(read) = headers::parse(ip, packet.cut) {
            check(&read, ip.len());
        }
    });
}

fn check(read: &Headers, captured: usize) {
    let sum = read.network_header_bytes + read.transport_header_bytes + read.payload_bytes;
    assert_eq!(read.ip_bytes, sum);
    if let Some(all) = &read.payload {
        assert!(all.start <= all.end && all.end as usize <= captured, "{read:?}");
    }
    if let Some(Media::Rtp { payload: Some(media), .. }) = &read.media {
        let all = read.payload.as_ref().expect("its datagram was captured");
        assert!(all.start < media.start && media.start <= media.end && media.end <= all.end);
    }
}
