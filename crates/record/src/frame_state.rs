//! Where frames of speech are: three bits for each, so that 64 of them are asked or counted at once.

/// Where a frame is; as far as it came, at the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameState {
    Queued = 0b000,
    HandedOver = 0b001,
    Delivered = 0b011,
    Played = 0b111,
    Late = 0b010,
    Discarded = 0b100,
}

impl FrameState {
    pub(crate) const ALL: [Self; 6] = [
        Self::Queued,
        Self::HandedOver,
        Self::Delivered,
        Self::Played,
        Self::Late,
        Self::Discarded,
    ];

    /// Never delivered by the end.
    pub(crate) const fn is_missing(self) -> bool {
        matches!(self, Self::Queued | Self::HandedOver | Self::Discarded)
    }

    /// Missing or late.
    pub(crate) const fn is_unheard(self) -> bool {
        self.is_missing() || matches!(self, Self::Late)
    }
}

/// The fates of 64 frames: their first bits, their second ones and their third ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameStates([u64; 3]);

impl FrameStates {
    /// Moves frame `number` modulo 64 on; false if it is not where it was thought to be.
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

    /// Which frames this is the fate of; those not made yet are as if queued.
    #[inline(always)]
    pub(crate) fn of(&self, fate: FrameState) -> u64 {
        let same = |k: usize| if fate as u8 >> k & 1 == 1 { self.0[k] } else { !self.0[k] };
        same(0) & same(1) & same(2)
    }

    /// The fate of frame `number` modulo 64.
    pub(crate) fn at(&self, number: u32) -> FrameState {
        let is = |fate: &FrameState| self.of(*fate) >> (number % 64) & 1 == 1;
        FrameState::ALL.into_iter().find(is).expect("no frame has another fate")
    }
}

/// What became of a frame, in the words of the `frames` table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameOutcome {
    /// Played in time.
    Played,
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
    /// Delivered, but the receiver said nothing of its playout.
    Delivered,
}

impl FrameOutcome {
    /// Its word in the `frames` table; `None` where the contract has none.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Played => Some("played"),
            Self::Late => Some("late"),
            Self::Lost => Some("lost"),
            Self::Discarded => Some("discarded"),
            Self::Queued => Some("queued"),
            Self::InFlight => Some("in_flight"),
            Self::Delivered => None,
        }
    }
}
