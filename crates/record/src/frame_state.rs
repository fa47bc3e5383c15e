//! States of speech frames: three bits each, so that 64 of them are tested or counted at once.

/// The state of a frame; at the end of the run, the last one it reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameState {
    Queued = 0b000,
    HandedOver = 0b001,
    Delivered = 0b011,
    Played = 0b111,
    Late = 0b010,
    Discarded = 0b100,
    /// Lost, but its sound was in a later packet.
    Recovered = 0b101,
    /// The same of a frame dropped from the send queue.
    DiscardedRecovered = 0b110,
}

impl FrameState {
    pub(crate) const ALL: [Self; 8] = [
        Self::Queued,
        Self::HandedOver,
        Self::Delivered,
        Self::Played,
        Self::Late,
        Self::Discarded,
        Self::Recovered,
        Self::DiscardedRecovered,
    ];

    /// Its sound was in a later packet.
    pub(crate) const fn is_recovered(self) -> bool {
        matches!(self, Self::Recovered | Self::DiscardedRecovered)
    }

    /// Never delivered by the end, nor recovered.
    pub(crate) const fn is_missing(self) -> bool {
        matches!(self, Self::Queued | Self::HandedOver | Self::Discarded)
    }

    /// Missing or late.
    pub(crate) const fn is_unheard(self) -> bool {
        self.is_missing() || matches!(self, Self::Late)
    }
}

/// The states of 64 frames: all first bits, all second bits, all third bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameStates([u64; 3]);

impl FrameStates {
    /// Advances frame `number` modulo 64; false if it is not in state `from`.
    #[inline(always)]
    pub(crate) fn advance(&mut self, number: u32, from: FrameState, to: FrameState) -> bool {
        let bit = 1_u64 << (number % 64);
        let found = self.of(from) & bit != 0;
        if found {
            let changed = from as u8 ^ to as u8;
            (0..3).filter(|k| changed >> k & 1 == 1).for_each(|k| self.0[k] ^= bit);
        }
        found
    }

    /// The set of frames in this state; frames not yet generated count as queued.
    #[inline(always)]
    pub(crate) fn of(&self, fate: FrameState) -> u64 {
        let same = |k: usize| if fate as u8 >> k & 1 == 1 { self.0[k] } else { !self.0[k] };
        same(0) & same(1) & same(2)
    }

    /// The state of frame `number` modulo 64.
    pub(crate) fn at(&self, number: u32) -> FrameState {
        let is = |fate: &FrameState| self.of(*fate) >> (number % 64) & 1 == 1;
        FrameState::ALL.into_iter().find(is).expect("no frame has another fate")
    }
}

/// The outcome of a frame, as named in the `frames` table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameOutcome {
    /// Played in time.
    Played,
    /// Played in time from a later packet that had its sound.
    Recovered,
    /// Delivered after its playout.
    Late,
    /// Handed to the transport and never to be delivered.
    Lost,
    /// Dropped from the send queue.
    Discarded,
    /// In the send queue at the end.
    Queued,
    /// Handed to the transport, neither delivered nor lost at the end.
    InFlight,
    /// Delivered, but the receiver reported no playout.
    Delivered,
}

impl FrameOutcome {
    /// Its name in the `frames` table; `None` where that defines none.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Played => Some("played"),
            Self::Recovered => Some("recovered"),
            Self::Late => Some("late"),
            Self::Lost => Some("lost"),
            Self::Discarded => Some("discarded"),
            Self::Queued => Some("queued"),
            Self::InFlight => Some("in_flight"),
            Self::Delivered => None,
        }
    }
}

/// The numbers of the packets (or frames) in the window; they are consecutive, because numbers grow with time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cohort {
    pub(crate) first: u32,
    pub(crate) end: u32,
}

impl Cohort {
    #[inline(always)]
    pub(crate) fn admit(&mut self, number: u32) {
        if self.first == self.end {
            self.first = number;
        }
        self.end = number + 1;
    }
    /// Admits the numbers from `first` to before `end`, at least one.
    #[inline(always)]
    pub(crate) fn admit_all(&mut self, first: u32, end: u32) {
        self.admit(first);
        self.end = end;
    }
    #[inline(always)]
    pub(crate) fn holds(&self, number: u32) -> bool {
        number.wrapping_sub(self.first) < self.end - self.first
    }
}
