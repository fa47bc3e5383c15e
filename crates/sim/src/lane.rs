//! Wake-ups that arrive in time order without being sorted: a ring.
//!
//! Packets of one size that enter idle links of equal rate and delay arrive in the order in which they were
//! sent. The lane accepts keys that follow its last and refuses the rest, so it is always in order. It is
//! separate from the schedule's tree: adding or removing a key writes two words, while a leaf change would be
//! replayed up to the root.

/// No key: the first key of an empty lane. Earlier keys are greater.
pub(crate) const NEVER: u64 = 0;

/// The ring, whose length is a power of two.
#[derive(Debug)]
pub(crate) struct Lane {
    /// The first key, or [`NEVER`].
    pub(crate) first: u64,
    /// The last key accepted, still present or not.
    last: u64,
    slots: Box<[u64]>,
    /// The first key's slot.
    head: u32,
    count: u32,
}

impl Default for Lane {
    fn default() -> Self {
        Self { first: NEVER, last: u64::MAX, slots: Box::default(), head: 0, count: 0 }
    }
}

impl Lane {
    /// Initial capacity, allocated with the first key.
    const LEAST: usize = 16;

    /// Accepts a key that follows all others; otherwise returns false.
    #[inline(always)]
    pub(crate) fn push(&mut self, key: u64) -> bool {
        if key >= self.last || key == NEVER {
            return false;
        }
        if self.count as usize == self.slots.len() {
            self.grow();
        }
        let at = self.slot(self.count);
        self.slots[at] = key;
        self.count += 1;
        (self.first, self.last) = (self.slots[self.head as usize], key);
        true
    }

    /// Removes the first key; there must be one.
    #[inline(always)]
    pub(crate) fn pop(&mut self) {
        self.head = self.slot(1) as u32;
        self.count -= 1;
        self.first = if self.count > 0 { self.slots[self.head as usize] } else { NEVER };
    }

    /// Whether any key satisfies the predicate.
    pub(crate) fn holds(&self, is: impl Fn(u64) -> bool) -> bool {
        (0..self.count).any(|at| is(self.slots[self.slot(at)]))
    }

    /// Keeps only the keys that satisfy the predicate; new keys must follow only these.
    #[cold]
    pub(crate) fn retain(&mut self, stays: impl Fn(u64) -> bool) {
        let mut all = std::mem::take(self);
        while all.first != NEVER {
            if stays(all.first) {
                self.push(all.first);
            }
            all.pop();
        }
    }

    #[inline(always)]
    fn slot(&self, at: u32) -> usize {
        (self.head + at) as usize & self.slots.len().wrapping_sub(1)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut slots = std::mem::take(&mut self.slots).into_vec();
        slots.rotate_left(self.head as usize);
        slots.resize((2 * slots.len()).max(Self::LEAST), NEVER);
        (self.slots, self.head) = (slots.into_boxed_slice(), 0);
    }
}
