//! Wake-ups that come in order of time without being sorted: a ring.
//!
//! Packets of one size that enter idle links of one rate and delay arrive in the order in which they set
//! out. The lane takes what comes behind the last it took and refuses the rest, so it is in order whatever
//! it is offered. It stands beside the schedule's tree and not in it: what enters and leaves writes two
//! words, where a leaf's change would be replayed up to the root.

/// No key: what the lane begins with when it is empty. Keys are greater the earlier they are.
pub(crate) const NEVER: u64 = 0;

/// The ring, whose length is a power of two.
#[derive(Debug)]
pub(crate) struct Lane {
    /// The first key, or [`NEVER`].
    first: u64,
    /// The key it took last, there or gone.
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
    /// Room for so many is made when the first one comes.
    const LEAST: usize = 16;

    /// The first key, or [`NEVER`].
    #[inline(always)]
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Takes a key that comes behind all others; false if it does not.
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

    /// The first leaves; there is one.
    #[inline(always)]
    pub(crate) fn pop(&mut self) {
        self.head = self.slot(1) as u32;
        self.count -= 1;
        self.first = if self.count > 0 { self.slots[self.head as usize] } else { NEVER };
    }

    /// Whether there is one like this.
    pub(crate) fn holds(&self, is: impl Fn(u64) -> bool) -> bool {
        (0..self.count).any(|at| is(self.slots[self.slot(at)]))
    }

    /// Keeps those only that are to stay; what comes next need come behind these alone.
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
