//! What an adaptive buffer has played.

/// A stretch of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// Steps of the media clock, played in `out` nanoseconds; what is missing of them is concealed.
    Media {
        /// First step.
        from: u32,
        /// Number of steps.
        steps: u32,
        /// Length of the output.
        out: u64,
    },
    /// Concealment while the stream pauses, nanoseconds.
    Expansion(u64),
    /// A pause of the speaker, nanoseconds.
    Silence(u64),
}

/// The stretches of a stream in order, if they are to be rendered.
#[derive(Clone, Debug)]
pub(super) struct Timeline(Option<Vec<Stretch>>);

impl Timeline {
    pub(super) fn new(is_kept: bool) -> Self {
        Self(is_kept.then(Vec::new))
    }

    pub(super) fn stretches(&self) -> Option<&[Stretch]> {
        self.0.as_deref()
    }

    /// Adds steps of the media clock that are played in `out` nanoseconds.
    #[inline]
    pub(super) fn media(&mut self, from: i64, steps: u32, out: i64) {
        if self.0.is_some() {
            self.add(Stretch::Media { from: from as u32, steps, out: out as u64 });
        }
    }

    /// Stretches of equal pace are joined.
    #[inline(never)]
    pub(super) fn add(&mut self, stretch: Stretch) {
        let Some(timeline) = &mut self.0 else { return };
        if let (
            Some(Stretch::Media { from, steps, out }),
            Stretch::Media { from: next, steps: more, out: longer },
        ) = (timeline.last_mut(), stretch)
            && *from + *steps == next
            && *out * u64::from(more) == longer * u64::from(*steps)
        {
            *steps += more;
            *out += longer;
            return;
        }
        timeline.push(stretch);
    }

    /// Changes the length of the latest `steps` steps, which were added together.
    pub(super) fn resize_last(&mut self, steps: u32, by: i64) {
        let Some(timeline) = &mut self.0 else { return };
        let Some(Stretch::Media { from, steps: all, out }) = timeline.last_mut() else { return };
        let own = *out / u64::from((*all).max(1)) * u64::from(steps);
        let resized = own.saturating_add_signed(by);
        if *all == steps {
            *out = resized;
        } else {
            let last = Stretch::Media { from: *from + *all - steps, steps, out: resized };
            (*all, *out) = (*all - steps, *out - own);
            timeline.push(last);
        }
    }
}
