//! Consecutive packets or frames.

/// The numbers of the packets (or frames) in the window; they are consecutive, because numbers grow with
/// time.
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
