//! The bytes of packets, kept until all that was seen of them is written.

use talkspurt_proto::wire::{Tail, WireError, pattern};

/// Packets that are under way, or of which something waits to be written.
#[derive(Debug, Default)]
pub(super) struct Packets {
    all: Vec<Kept>,
    /// Places of packets that are gone, for others.
    spare: Vec<u32>,
}

/// A packet as it was sent.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// All of it but for a virtual payload of TCP, which is made each time it is written: that takes no
    /// longer than to copy it, and it leaves the processor's cache to others.
    head: Vec<u8>,
    tail: Tail,
    /// How often it was written, until it is gone; then, how often it has yet to be.
    count: u32,
    gone: bool,
}

impl Packets {
    /// Keeps what `emit` makes, and says where; nothing if it makes nothing.
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

    /// For how many there is room.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.all.len()
    }

    /// The packet kept at this place.
    pub(super) fn at(&self, place: u32) -> &Kept {
        &self.all[place as usize]
    }

    /// It is written, once.
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

    /// Nothing more will be seen of it than was, so many times.
    pub(super) fn gone(&mut self, place: u32, seen: u32) {
        let kept = &mut self.all[place as usize];
        (kept.gone, kept.count) = (true, seen - kept.count);
        if kept.count == 0 {
            self.spare.push(place);
        }
    }
}

impl Kept {
    /// How many bytes it has.
    pub(super) const fn bytes(&self) -> usize {
        self.head.len() + self.tail.len as usize
    }

    /// Writes as many of its bytes as there is room for.
    pub(super) fn write(&self, room: &mut [u8]) {
        let (head, tail) = room.split_at_mut(self.head.len().min(room.len()));
        head.copy_from_slice(&self.head[..head.len()]);
        pattern::fill(self.tail.offset, tail);
    }
}
