//! The speaker's pauses in a stream of received packets.

use std::ops::Range;

use super::Received;

/// The speaker's pauses, in steps of the media clock: where nothing was sent. Packets have consecutive numbers,
/// so a lost one leaves a number out. A talkspurt begins with the marker: what is lost before that was sent
/// before the pause, or is comfort noise in it; without the marker, the beginning of a talkspurt is lost.
/// After the last packet, those that were `sent` are known.
pub(super) fn pauses(
    packets: &[Option<Received>],
    lengths: &[usize],
    sent: Option<u32>,
    steps: usize,
) -> Vec<Range<usize>> {
    let mut pauses = Vec::new();
    let (mut end, mut follows, mut noise, mut length) = (0, 0, false, lengths[0]);
    for (slot, received) in packets.iter().enumerate() {
        let Some(Received { encoding, index, marker, .. }) = received else { continue };
        let before = length;
        length = encoding.map_or(length, |encoding| lengths[encoding]);
        let numbers = index.saturating_sub(follows) as usize;
        let gap = slot.saturating_sub(end);
        let (talks, begins) = (encoding.is_some(), *marker || follows == 0);
        // What is missing may have had either length.
        let lost = numbers * if *marker { before } else { before.max(length) };
        let pause = match lost {
            0 => end..slot,
            _ if noise && (*marker || !talks) => end..slot,
            _ if !talks || begins => end + lost.min(gap)..slot,
            _ => end..end + gap.saturating_sub(lost),
        };
        if !pause.is_empty() {
            pauses.push(pause);
        }
        end = slot + if talks { length } else { 1 };
        (follows, noise) = (index.saturating_add(1), !talks);
    }
    if let Some(sent) = sent {
        let lost = if noise { 0 } else { sent.saturating_sub(follows) as usize * length };
        let pause = end + lost..steps;
        pauses.extend((!pause.is_empty()).then_some(pause));
    }
    pauses
}

#[cfg(test)]
pub(super) mod tests {
    use bytes::Bytes;

    use super::*;

    /// Slots of packets with their numbers; `!` is the marker, and `~` comfort noise. Packets last two steps,
    /// comfort noise one.
    pub(in crate::playout) fn sequence(text: &str) -> Vec<Option<Received>> {
        let mut packets = vec![None; 64];
        for word in text.split_whitespace() {
            let (slot, index) = word.trim_end_matches(['!', '~']).split_once(':').unwrap();
            let encoding = (!word.ends_with('~')).then_some(0);
            let (index, marker) = (index.parse().unwrap(), word.ends_with('!'));
            let payload = Bytes::from_static(&[50]);
            let it = Received { payload, encoding, index, marker, ahead: 0 };
            packets[slot.parse::<usize>().unwrap()] = Some(it);
        }
        packets
    }

    /// RFC 3389 §5.1: silence suppression shows by a timestamp that is not contiguous although the sequence
    /// number is.
    #[test]
    fn pauses_are_told_from_losses_by_packet_numbers() {
        let cases = [
            ("0:0! 2:1 4:2", vec![]),
            ("0:0! 2:1 8:2! 10:3", vec![(4, 8)]),
            // A recording that begins with silence.
            ("6:0! 8:1", vec![(0, 6)]),
            // Number 2 was lost before the pause, or after it if the marker was lost.
            ("0:0! 2:1 12:3! 14:4", vec![(6, 12)]),
            ("0:0! 2:1 12:3 14:4", vec![(4, 10)]),
            ("0:0! 2:1 6:3", vec![]),
            // With comfort noise; then without its first packet, and without one in the middle.
            ("0:0! 2:1 4:2~ 10:3~ 16:4!", vec![(5, 10), (11, 16)]),
            ("0:0! 2:1 10:3~ 16:4!", vec![(6, 10), (11, 16)]),
            ("0:0! 2:1~ 14:3~ 20:4!", vec![(3, 14), (15, 20)]),
            ("0:0! 2:1~ 20:4!", vec![(3, 20)]),
            ("0:0! 2:1~ 20:4", vec![(3, 16)]),
            // Reordered numbers and overlaps, which only a sender with faults has.
            ("0:5! 1:3 7:3 9:2", vec![(3, 7)]),
        ];
        for (text, expected) in cases {
            let found = pauses(&sequence(text), &[2], None, 64);
            let found: Vec<_> = found.iter().map(|pause| (pause.start, pause.end)).collect();
            assert_eq!(found, expected, "{text}");
        }
        // Lost packets of 60 ms in a ladder whose next one has 20 ms; without a pause there is none.
        let ladder = |text: &str| {
            let mut packets = sequence(text);
            packets
                .iter_mut()
                .flatten()
                .filter(|it| it.index >= 2)
                .for_each(|it| it.encoding = Some(1));
            pauses(&packets, &[3, 1], None, 64)
        };
        assert_eq!(ladder("0:0! 6:2"), []);
        assert_eq!(
            ladder("0:0! 20:2!").first().map(|pause| (pause.start, pause.end)),
            Some((6, 20))
        );
        let end = |packets: &[_], sent| {
            let found = pauses(packets, &[2], Some(sent), 9);
            found.last().map(|pause| (pause.start, pause.end))
        };
        // The end: all sent packets have arrived, or the last one is lost.
        assert_eq!(end(&sequence("0:0! 2:1"), 2), Some((4, 9)));
        assert_eq!(end(&sequence("0:0! 2:1"), 3), Some((6, 9)));
        assert_eq!(end(&sequence("0:0! 2:1"), 8), None);
        assert_eq!(end(&sequence("0:0! 2:1~"), 4), Some((3, 9)));
        assert_eq!(end(&[], 0), Some((0, 9)));
        assert_eq!(end(&[], 1), Some((2, 9)));
    }
}
