//! Per-packet state of packets in flight, indexed by the slot of their bodies in the driver's pool.
//!
//! A link's notes carry only a packet's label. Its body has a slot in the pool ([`Packet::body`]) that is
//! exclusive until the packet is gone, so data missing from the label is stored under that slot and needs
//! no search. Flow, route and number are stored with it and compared, so packets are never confused. Memory
//! is bounded by the largest number of packets in flight at once.

use talkspurt_proto::packet::Packet;

/// The state of each packet in flight.
#[derive(Debug)]
pub(crate) struct InFlight<T> {
    places: Vec<Option<(Identity, T)>>,
    /// The number of packets with state.
    pub(crate) count: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    flow: u32,
    route: u32,
    number: u32,
}

impl Identity {
    const fn of(packet: &Packet) -> Self {
        Self { flow: packet.flow, route: packet.route, number: packet.number }
    }
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self { places: Vec::new(), count: 0 }
    }
}

impl<T> InFlight<T> {
    /// Stores the state of a packet, and returns the state of the slot's previous packet.
    pub(crate) fn keep(&mut self, packet: &Packet, known: T) -> Option<T> {
        let place = packet.body.0 as usize;
        if place >= self.places.len() {
            self.places.resize_with(place + 1, || None);
        }
        let before = self.places[place].replace((Identity::of(packet), known));
        self.count += usize::from(before.is_none());
        before.map(|(_, known)| known)
    }

    /// The state of a packet, mutable.
    pub(crate) fn get_mut(&mut self, packet: &Packet) -> Option<&mut T> {
        let (identity, known) = self.places.get_mut(packet.body.0 as usize)?.as_mut()?;
        (*identity == Identity::of(packet)).then_some(known)
    }

    /// Removes a packet and returns its state.
    pub(crate) fn take(&mut self, packet: &Packet) -> Option<T> {
        let place = self.places.get_mut(packet.body.0 as usize)?;
        let (_, known) = place.take_if(|(identity, _)| *identity == Identity::of(packet))?;
        self.count -= 1;
        Some(known)
    }

    /// All states.
    pub(crate) fn into_all(self) -> impl Iterator<Item = T> {
        self.places.into_iter().flatten().map(|(_, known)| known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkspurt_proto::packet::BodyId;

    fn label(place: u32, number: u32) -> Packet {
        Packet { body: BodyId(place), ip_bytes: 100, number, ..Packet::default() }
    }

    #[test]
    fn a_place_is_one_packets_at_a_time() {
        let mut known = InFlight::default();
        known.keep(&label(3, 1), "first");
        assert_eq!(known.get_mut(&label(3, 2)), None, "another's");
        known.keep(&label(3, 2), "second");
        assert_eq!(known.get_mut(&label(3, 1)), None);
        assert_eq!(known.take(&label(3, 1)), None);
        assert_eq!(known.get_mut(&label(3, 2)), Some(&mut "second"));
        assert_eq!(known.count, 1);
        known.keep(&label(0, 9), "third");
        assert_eq!(known.take(&label(3, 2)), Some("second"));
        assert_eq!(known.count, 1);
        assert_eq!(known.take(&label(3, 2)), None);
        assert_eq!(known.into_all().collect::<Vec<_>>(), ["third"]);
    }
}
