//! The bytes of packets, kept until all their records are written.

use talkspurt_proto::wire::{Tail, WireError, pattern};

/// Packets in flight or with unwritten records.
#[derive(Debug, Default)]
pub(super) struct Packets {
    all: Vec<Kept>,
    /// Free slots.
    spare: Vec<u32>,
}

/// A packet as it was sent.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// All bytes except a virtual TCP payload, which is generated at each write: that takes no longer than
    /// a copy and uses no processor cache.
    head: Vec<u8>,
    tail: Tail,
    /// Records written so far while in flight; afterwards, records still to write.
    count: u32,
    gone: bool,
}

impl Packets {
    /// Stores the output of `emit` and returns its slot; `None` if `emit` fails.
    pub(super) fn keep(
        &mut self,
        emit: impl FnOnce(&mut Vec<u8>) -> Result<Tail, WireError>,
    ) -> Option<u32> {
        let place = self.spare.pop().unwrap_or_else(|| {
            self.all.push(Kept::default());
            self.all.len() as u32 - 1
        });
        let kept = &mut self.all[place as usize];
        kept.head.clear();
        (kept.gone, kept.count) = (false, 0);
        match emit(&mut kept.head) {
            Ok(tail) => {
                kept.tail = tail;
                Some(place)
            }
            Err(_) => {
                self.spare.push(place);
                None
            }
        }
    }

    /// The number of slots.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.all.len()
    }

    /// The packet in this slot.
    pub(super) fn at(&self, place: u32) -> &Kept {
        &self.all[place as usize]
    }

    /// One of its records is written.
    pub(super) fn written(&mut self, place: u32) {
        let kept = &mut self.all[place as usize];
        if !kept.gone {
            kept.count += 1;
            return;
        }
        kept.count -= 1;
        if kept.count == 0 {
            self.spare.push(place);
        }
    }

    /// The packet left the network after `seen` records.
    pub(super) fn gone(&mut self, place: u32, seen: u32) {
        let kept = &mut self.all[place as usize];
        (kept.gone, kept.count) = (true, seen - kept.count);
        if kept.count == 0 {
            self.spare.push(place);
        }
    }
}

impl Kept {
    /// Its length in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.head.len() + self.tail.len as usize
    }

    /// Writes as many of its bytes as fit.
    pub(super) fn write(&self, room: &mut [u8]) {
        let (head, tail) = room.split_at_mut(self.head.len().min(room.len()));
        head.copy_from_slice(&self.head[..head.len()]);
        pattern::fill(self.tail.offset, tail);
    }
}
