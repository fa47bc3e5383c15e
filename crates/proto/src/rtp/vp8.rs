//! What of VP8's RTP payload a receiver needs in order to know which pictures it can decode (RFC 7741 §4.2
//! and §4.3), and payload of that form without content ([`Blank`]).

use bytes::Bytes;

use crate::packet::Payload;

/// What begins with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// A key frame, which is decodable alone.
    Key,
    /// A frame predicted from those before it.
    Inter,
    /// None: the packet continues a frame.
    Nothing,
}

// RFC 7741 §4.2: bits of the descriptor's first and second octet.
const EXTENDED: u8 = 0x80;
const START: u8 = 0x10;
const PARTITION: u8 = 0x07;
const PICTURE_ID: u8 = 0x80;
const LAYER: u8 = 0x40;
const TEMPORAL_OR_KEY: u8 = 0x30;
/// Of the picture identifier: it has two octets.
const LONG: u8 = 0x80;
/// RFC 7741 §4.3: bit P of the payload header, 0 in a key frame.
const INTER: u8 = 0x01;

/// What begins with this payload; `None` if the descriptor is truncated, or nothing follows it.
#[must_use]
pub fn begins(payload: &Payload) -> Option<Begins> {
    let Payload::Real(bytes) = payload else { return None };
    let (&first, mut rest) = bytes.split_first()?;
    if first & EXTENDED != 0 {
        let (&extension, after) = rest.split_first()?;
        let picture = match extension & PICTURE_ID {
            0 => 0,
            _ if after.first()? & LONG == 0 => 1,
            _ => 2,
        };
        let layer = usize::from(extension & LAYER != 0);
        let temporal = usize::from(extension & TEMPORAL_OR_KEY != 0);
        rest = after.get(picture + layer + temporal..)?;
    }
    let header = rest.first()?;
    Some(match first & (START | PARTITION) {
        START if header & INTER == 0 => Begins::Key,
        START => Begins::Inter,
        _ => Begins::Nothing,
    })
}

/// Payload without content. All packets share its bytes.
#[derive(Clone, Debug)]
pub struct Blank([Bytes; 3]);

impl Blank {
    /// Bytes of the shortest payload: the descriptor, and the first octet of the payload header.
    pub const LEAST: u64 = 2;

    /// Payload of at most this many bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self([[START, 0], [START, INTER], [0, 0]].map(|head| {
            let mut bytes = head.to_vec();
            bytes.resize(most.max(head.len()), 0);
            bytes.into()
        }))
    }

    /// The payload of a packet.
    ///
    /// # Panics
    /// If it is longer than was announced.
    #[must_use]
    pub fn payload(&self, begins: Begins, bytes: usize) -> Payload {
        Payload::Real(self.0[begins as usize].slice(..bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<Begins> {
        begins(&Payload::Real(Bytes::copy_from_slice(bytes)))
    }

    /// RFC 7741 §4.5: its examples of descriptors.
    #[test]
    fn descriptors_of_every_length() {
        for head in [
            &[0x10][..],
            &[0x90, 0x80, 0x11],
            &[0x90, 0x80, 0x91, 0x11],
            &[0x90, 0xe0, 0x91, 0x11, 7, 0x20],
            &[0x90, 0x20, 0x20],
            &[0x90, 0x00],
        ] {
            let with = |octet: u8| [head, &[octet]].concat();
            assert_eq!(read(&with(0x10)), Some(Begins::Key), "{head:?}");
            assert_eq!(read(&with(0x11)), Some(Begins::Inter), "{head:?}");
            let mut continued = with(0x10);
            continued[0] &= !START;
            assert_eq!(read(&continued), Some(Begins::Nothing), "{head:?}");
            continued[0] |= START | 1;
            assert_eq!(read(&continued), Some(Begins::Nothing), "another partition");
            for end in 0..=head.len() {
                assert_eq!(read(&with(0)[..end]), None, "{head:?} cut at {end}");
            }
        }
        assert_eq!(begins(&Payload::Virtual { offset: 0, len: 9 }), None);
    }

    #[test]
    fn payload_without_content_reads_as_it_was_meant() {
        let blank = Blank::new(1200);
        for what in [Begins::Key, Begins::Inter, Begins::Nothing] {
            for bytes in [Blank::LEAST as usize, 700, 1200] {
                let payload = blank.payload(what, bytes);
                assert_eq!((payload.len(), begins(&payload)), (bytes, Some(what)));
            }
        }
    }
}
