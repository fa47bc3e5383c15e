//! The sequence number variables of a connection (RFC 4340 §7.1), their windows (§7.5.1), and which
//! recent packets were already received.

use super::seqno::{DEFAULT_WINDOW, SeqNo, WireSeq};

/// How many packets below the greatest are distinguished from duplicates. Older numbers inside the
/// window count as duplicates.
const REMEMBERED: u64 = 4096;
const WORDS: usize = (REMEMBERED / 64) as usize;

/// GSS, GSR, GAR and related variables.
#[derive(Debug)]
pub(super) struct Windows {
    /// First number sent (ISS).
    pub(super) iss: SeqNo,
    /// First number received (ISR).
    pub(super) isr: SeqNo,
    /// Greatest number sent (GSS); before the first packet, ISS − 1.
    pub(super) gss: SeqNo,
    /// Greatest valid number received (GSR).
    pub(super) gsr: SeqNo,
    /// Greatest acknowledgement received (GAR).
    pub(super) gar: SeqNo,
    /// First number received in OPEN (OSR, §8.5 steps 11 and 12).
    pub(super) osr: Option<SeqNo>,
    /// Sequence Window of the other side, which limits its sequence numbers.
    pub(super) theirs: u64,
    /// Our own Sequence Window, which limits acknowledgements of our packets.
    pub(super) ours: u64,
    seen: [u64; WORDS],
}

impl Windows {
    pub(super) fn new(iss: u64) -> Self {
        let iss = SeqNo::first(iss);
        Self {
            iss,
            isr: SeqNo::default(),
            gss: iss.back(1),
            gsr: SeqNo::default(),
            gar: iss,
            osr: None,
            theirs: DEFAULT_WINDOW,
            ours: DEFAULT_WINDOW,
            seen: [0; WORDS],
        }
    }

    /// Sets the other side's initial sequence number.
    pub(super) fn begin(&mut self, isr: SeqNo) {
        (self.isr, self.gsr) = (isr, isr.back(1));
    }

    /// The next number to send.
    pub(super) fn next(&mut self) -> SeqNo {
        self.gss = self.gss + 1;
        self.gss
    }

    /// §7.5.1: SWL
    pub(super) fn swl(&self) -> SeqNo {
        (self.gsr + 1).back(self.theirs / 4).max(self.isr)
    }
    /// §7.5.1: SWH
    pub(super) fn swh(&self) -> SeqNo {
        self.gsr + (3 * self.theirs).div_ceil(4)
    }
    /// §7.5.1: AWL
    pub(super) fn awl(&self) -> SeqNo {
        (self.gss + 1).back(self.ours).max(self.iss)
    }
    /// §7.5.1: AWH is GSS.
    pub(super) fn acks(&self, ack: SeqNo) -> bool {
        self.awl() <= ack && ack <= self.gss
    }

    /// §7.6: extends a sequence number of the other side.
    pub(super) fn theirs_at(&self, wire: WireSeq) -> SeqNo {
        self.gsr.near(wire)
    }
    /// §7.6: extends an acknowledgement number of our packets.
    pub(super) fn ours_at(&self, wire: WireSeq) -> SeqNo {
        self.gss.near(wire)
    }

    /// A valid packet with this number arrived: updates GSR, and returns true if the number was not
    /// received before.
    pub(super) fn receive(&mut self, seq: SeqNo) -> bool {
        let ahead = seq.since(self.gsr);
        if ahead > 0 {
            for step in 1..=ahead.min(REMEMBERED) {
                self.mark(self.gsr + step, false);
            }
            self.gsr = seq;
        } else if self.gsr.since(seq) >= REMEMBERED || self.is_marked(seq) {
            return false;
        }
        self.mark(seq, true);
        true
    }

    fn place(seq: SeqNo) -> (usize, u64) {
        let at = seq.since(SeqNo::default()) % REMEMBERED;
        ((at / 64) as usize, 1 << (at % 64))
    }
    fn mark(&mut self, seq: SeqNo, seen: bool) {
        let (word, bit) = Self::place(seq);
        if seen { self.seen[word] |= bit } else { self.seen[word] &= !bit }
    }
    fn is_marked(&self, seq: SeqNo) -> bool {
        let (word, bit) = Self::place(seq);
        self.seen[word] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_by_hand() {
        // §7.5.1 with W = 100: 25 numbers up to GSR, 75 above it, none below the first.
        let mut windows = Windows::new(1000);
        windows.begin(SeqNo::first(5000));
        assert!(windows.receive(SeqNo::first(5000)));
        assert_eq!((windows.swl(), windows.swh()), (SeqNo::first(5000), SeqNo::first(5075)));
        assert!(windows.receive(SeqNo::first(5040)));
        assert_eq!((windows.swl(), windows.swh()), (SeqNo::first(5016), SeqNo::first(5115)));
        for _ in 0..150 {
            windows.next();
        }
        // GSS = 1149; W' = 100: acknowledgements from 1050 to 1149.
        assert_eq!(windows.awl(), SeqNo::first(1050));
        assert!(windows.acks(SeqNo::first(1149)) && !windows.acks(SeqNo::first(1150)));
        assert!(!windows.acks(SeqNo::first(1049)));
    }

    #[test]
    fn duplicates_are_known() {
        let mut windows = Windows::new(0);
        windows.begin(SeqNo::first(0));
        assert!(windows.receive(SeqNo::first(0)));
        assert!(windows.receive(SeqNo::first(9)));
        assert!(windows.receive(SeqNo::first(3)));
        for seq in [0, 3, 9] {
            assert!(!windows.receive(SeqNo::first(seq)));
        }
        assert!(windows.receive(SeqNo::first(9 + 2 * REMEMBERED)));
        assert!(windows.receive(SeqNo::first(10 + REMEMBERED)));
        assert!(!windows.receive(SeqNo::first(9 + REMEMBERED)));
    }
}
