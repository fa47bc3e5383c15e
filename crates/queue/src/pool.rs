//! Storage for the bodies of packets in the network, so that queues move only labels.

use talkspurt_proto::body::{Bodies, Body};
use talkspurt_proto::packet::BodyId;
use talkspurt_proto::prefetch::prefetch;

/// A slab of bodies with a free list; the slot freed last is reused first (warm in the cache).
#[derive(Debug, Default)]
pub struct Pool {
    slots: Vec<Option<Body>>,
    free: Vec<u32>,
}

impl Bodies for Pool {
    #[inline(always)]
    fn put(&mut self, body: impl FnOnce() -> Body) -> BodyId {
        let slot = self.free.pop().unwrap_or_else(|| self.grow());
        // The check shows that there is nothing to drop, so the body is built in place: copying a value just
        // written field by field stalls.
        match &mut self.slots[slot as usize] {
            place @ None => *place = Some(body()),
            Some(_) => unreachable!("what is free is empty"),
        }
        BodyId(slot)
    }
}

impl Pool {
    #[cold]
    fn grow(&mut self) -> u32 {
        self.slots.push(None);
        (self.slots.len() - 1) as u32
    }

    /// Returns a stored body.
    ///
    /// # Panics
    /// If the slot is empty: a broken internal invariant.
    #[inline]
    #[must_use]
    pub fn peek(&self, id: BodyId) -> &Body {
        self.slots[id.0 as usize].as_ref().expect("a packet's body waits until it is taken")
    }

    /// Requests a body from memory.
    #[inline]
    pub fn prefetch(&self, id: BodyId) {
        prefetch(&self.slots[id.0 as usize], usize::MAX);
    }

    /// Takes a body out and frees its slot.
    ///
    /// # Panics
    /// If the slot is empty: a packet was delivered twice, which breaks an internal invariant.
    #[inline]
    pub fn take(&mut self, id: BodyId) -> Body {
        self.free.push(id.0);
        self.slots[id.0 as usize].take().expect("a body is taken once")
    }

    /// Returns a stored body mutably.
    ///
    /// # Panics
    /// As [`Pool::peek`].
    #[inline]
    #[must_use]
    pub fn open(&mut self, id: BodyId) -> &mut Body {
        self.slots[id.0 as usize].as_mut().expect("a packet's body waits until it is taken")
    }

    /// Drops a body and frees its slot.
    ///
    /// # Panics
    /// In a debug build, if the slot is empty: it would be freed twice, and two packets would share one body,
    /// which breaks an internal invariant.
    #[inline]
    pub fn release(&mut self, id: BodyId) {
        debug_assert!(self.slots[id.0 as usize].is_some(), "a body is released once");
        self.free.push(id.0);
        let slot = &mut self.slots[id.0 as usize];
        match slot {
            // The check is cheaper than a drop call that does nothing; forgetting a body that owns memory would
            // leak it.
            Some(body) if body.owns_nothing() => std::mem::forget(slot.take()),
            _ => *slot = None,
        }
    }

    /// The stored bodies.
    pub fn bodies(&self) -> impl Iterator<Item = &Body> {
        self.slots.iter().flatten()
    }

    /// Number of stored bodies.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
    /// True if no body is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkspurt_proto::frame::Frame;
    use talkspurt_proto::packet::Payload;
    use talkspurt_proto::tcp::{self, Segment};

    fn body(offset: u64) -> Body {
        Body::Udp(Frame::Data(Payload::Virtual { offset, len: 1 }))
    }
    fn offset(body: &Body) -> u64 {
        let Body::Udp(Frame::Data(Payload::Virtual { offset, .. })) = body else {
            panic!("not what was put in: {body:?}")
        };
        *offset
    }

    #[test]
    fn slots_are_used_again_latest_first() {
        let mut pool = Pool::default();
        assert!(pool.is_empty());
        let [a, b, c] = [1, 2, 3].map(|number| pool.put(|| body(number)));
        assert_eq!([a, b, c].map(|id| offset(pool.peek(id))), [1, 2, 3]);
        *pool.open(b) = body(20);
        assert_eq!(offset(&pool.take(b)), 20);
        pool.release(a);
        assert_eq!((pool.len(), pool.bodies().map(offset).collect()), (1, vec![3]));
        let again = [4, 5, 6].map(|number| pool.put(|| body(number)));
        assert_eq!((again[0], again[1]), (a, b));
        assert_eq!([c, a, b, again[2]].map(|id| offset(pool.peek(id))), [3, 4, 5, 6]);
        [a, b, c, again[2]].into_iter().for_each(|id| pool.release(id));
        assert!(pool.is_empty());
    }

    /// Releasing a body drops what it still owns.
    #[test]
    fn what_a_body_owns_goes() {
        let kept = Payload::Real(vec![1; 100].into());
        let real = || kept.clone();
        let Payload::Real(bytes) = &kept else { panic!("it is real") };
        let sack = || tcp::SackBlocks::of([(1, 2)]);
        let segment = |payload, sack| Body::Tcp(Segment { payload, sack, ..Segment::default() });
        assert!(segment(Payload::default(), None).owns_nothing());
        assert!(!segment(Payload::default(), sack()).owns_nothing());
        let owners =
            [segment(real(), None), segment(real(), sack()), Body::Udp(Frame::Data(real()))];
        let mut pool = Pool::default();
        for body in owners {
            assert!(!body.owns_nothing());
            let id = pool.put(|| body);
            assert!(!bytes.is_unique());
            pool.release(id);
            assert!(pool.is_empty());
        }
        assert!(bytes.is_unique());
    }

    #[test]
    #[should_panic(expected = "taken once")]
    fn a_body_is_taken_once() {
        let mut pool = Pool::default();
        let id = pool.put(|| body(1));
        pool.take(id);
        pool.take(id);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "released once")]
    fn a_body_is_released_once() {
        let mut pool = Pool::default();
        let id = pool.put(|| body(1));
        pool.release(id);
        pool.release(id);
    }
}
