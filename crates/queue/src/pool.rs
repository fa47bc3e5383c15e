//! Where the bodies of travelling packets wait, so that queues move only labels.

use talkspurt_proto::packet::{Body, BodyId};

/// A slab of bodies with a free list; slots are used again, latest first (warm in the cache).
#[derive(Debug, Default)]
pub struct Pool {
    slots: Vec<Option<Body>>,
    free: Vec<u32>,
}

impl Pool {
    /// Keeps a body.
    #[inline(always)]
    pub fn put(&mut self, body: Body) -> BodyId {
        let slot = self.free.pop().unwrap_or_else(|| self.grow());
        self.slots[slot as usize] = Some(body);
        BodyId(slot)
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        self.slots.push(None);
        (self.slots.len() - 1) as u32
    }

    /// Looks at a body that waits.
    ///
    /// # Panics
    /// If the slot is empty: our own broken invariant.
    #[inline]
    #[must_use]
    pub fn peek(&self, id: BodyId) -> &Body {
        self.slots[id.0 as usize].as_ref().expect("a packet's body waits until it is taken")
    }

    /// Gives a body back and frees its slot.
    ///
    /// # Panics
    /// If the slot is empty: then a packet was delivered twice, which is our own broken invariant.
    #[inline]
    pub fn take(&mut self, id: BodyId) -> Body {
        self.free.push(id.0);
        self.slots[id.0 as usize].take().expect("a body is taken once")
    }

    /// The same, to take from.
    ///
    /// # Panics
    /// As [`Pool::peek`].
    #[inline]
    #[must_use]
    pub fn open(&mut self, id: BodyId) -> &mut Body {
        self.slots[id.0 as usize].as_mut().expect("a packet's body waits until it is taken")
    }

    /// Drops what is left of a body and frees its slot.
    #[inline]
    pub fn release(&mut self, id: BodyId) {
        self.free.push(id.0);
        self.slots[id.0 as usize] = None;
    }

    /// How many bodies wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
    /// True if none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
