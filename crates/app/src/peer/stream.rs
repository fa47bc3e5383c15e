//! What both ends of a flow know of its RTP stream: where it begins, and how its packets are numbered.

use talkspurt_proto::rng::Rng;
use talkspurt_proto::rtp;

/// The RTP sender of one side of a flow, from which the other side gets the first timestamp.
pub(super) fn media_sender(
    seed: u64,
    name: &str,
    (payload_type, clock_hz): (u8, u32),
) -> rtp::Sender {
    let mut rng = Rng::new(seed, &format!("{name}/rtp"));
    rtp::Sender::new(payload_type, clock_hz, &mut rng)
}

/// The number of a packet from 0, by the sequence number nearest to the latest (RFC 3550 A.1); `first` is that
/// of the first packet.
pub(super) fn number(first: u16, latest: &mut u32, sequence: u16) -> u32 {
    let offset = sequence.wrapping_sub(first);
    let ahead = offset.wrapping_sub(*latest as u16) as i16;
    let number = latest.saturating_add_signed(i32::from(ahead));
    *latest = number.max(*latest);
    number
}
