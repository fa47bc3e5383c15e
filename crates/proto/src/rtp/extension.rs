//! RTP header extension (RFC 3550 §5.3.1) and its elements (RFC 8285 §4).

use crate::octets::WireError;

/// RFC 8285 §4.2: the profile field of the one-byte form.
const ONE_BYTE: u16 = 0xbede;
/// RFC 8285 §4.3: the profile field of the two-byte form, without its appbits.
const TWO_BYTE: u16 = 0x1000;

/// A header extension: the 16 bits "defined by profile" and whole 32-bit words of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    profile: u16,
    data: Vec<u8>,
}

/// One extension element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// Local identifier: 1 to 14 in the one-byte form, 1 to 255 in the two-byte form.
    pub id: u8,
    /// Data: 1 to 16 bytes in the one-byte form, 0 to 255 in the two-byte form.
    pub data: &'a [u8],
}

impl Extension {
    /// An extension of any profile (RFC 3550 §5.3.1).
    ///
    /// # Errors
    /// Data that is not whole 32-bit words, or more than 65,535 of them.
    pub fn new(profile: u16, data: Vec<u8>) -> Result<Self, WireError> {
        if !data.len().is_multiple_of(4) || data.len() / 4 > usize::from(u16::MAX) {
            return Err(WireError::Malformed("RTP extension length"));
        }
        Ok(Self { profile, data })
    }

    /// Elements in the one-byte form (RFC 8285 §4.2), padded to 32 bits.
    ///
    /// # Errors
    /// An identifier or a length that the form cannot carry.
    pub fn one_byte(elements: &[Element<'_>]) -> Result<Self, WireError> {
        let mut data = Vec::new();
        for element in elements {
            if !(1..=14).contains(&element.id) || !(1..=16).contains(&element.data.len()) {
                return Err(WireError::Malformed("RTP one-byte extension element"));
            }
            data.push(element.id << 4 | (element.data.len() - 1) as u8);
            data.extend_from_slice(element.data);
        }
        data.resize(data.len().next_multiple_of(4), 0);
        Self::new(ONE_BYTE, data)
    }

    /// Elements in the two-byte form (RFC 8285 §4.3), padded to 32 bits.
    ///
    /// # Errors
    /// An identifier, a length or appbits that the form cannot carry.
    pub fn two_byte(appbits: u8, elements: &[Element<'_>]) -> Result<Self, WireError> {
        if appbits > 15 {
            return Err(WireError::Malformed("RTP extension appbits"));
        }
        let mut data = Vec::new();
        for element in elements {
            if element.id == 0 || element.data.len() > 255 {
                return Err(WireError::Malformed("RTP two-byte extension element"));
            }
            data.extend_from_slice(&[element.id, element.data.len() as u8]);
            data.extend_from_slice(element.data);
        }
        data.resize(data.len().next_multiple_of(4), 0);
        Self::new(TWO_BYTE | u16::from(appbits), data)
    }

    /// The 16 bits "defined by profile".
    #[must_use]
    pub const fn profile(&self) -> u16 {
        self.profile
    }

    /// The data after the length field, padding included.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The appbits of the two-byte form.
    #[must_use]
    pub const fn appbits(&self) -> Option<u8> {
        if self.profile & 0xfff0 == TWO_BYTE { Some((self.profile & 15) as u8) } else { None }
    }

    /// The elements. A profile of neither form has none; a truncated element ends the list.
    #[must_use]
    pub fn elements(&self) -> Elements<'_> {
        let known = self.profile == ONE_BYTE || self.appbits().is_some();
        Elements { rest: if known { &self.data } else { &[] }, one_byte: self.profile == ONE_BYTE }
    }

    /// Appends profile, length in 32-bit words, and data (RFC 3550 §5.3.1).
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.profile.to_be_bytes());
        out.extend_from_slice(&((self.data.len() / 4) as u16).to_be_bytes());
        out.extend_from_slice(&self.data);
    }
}

/// Iterator over the elements of an [`Extension`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
    one_byte: bool,
}

impl<'a> Elements<'a> {
    fn read(&mut self) -> Option<Element<'a>> {
        // RFC 8285 §4.1.2: a padding byte is 0 and has no length field.
        while let [0, rest @ ..] = self.rest {
            self.rest = rest;
        }
        let (id, length, rest) = if self.one_byte {
            let (&first, rest) = self.rest.split_first()?;
            // RFC 8285 §4.1.2 and §4.2: ID 0 with a length, and ID 15, end the extension.
            if matches!(first >> 4, 0 | 15) {
                return None;
            }
            (first >> 4, usize::from(first & 15) + 1, rest)
        } else {
            let [id, length, rest @ ..] = self.rest else { return None };
            (*id, usize::from(*length), rest)
        };
        let (data, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some(Element { id, data })
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let element = self.read();
        if element.is_none() {
            self.rest = &[];
        }
        element
    }
}

#[cfg(test)]
mod tests {
    use super::{Element, Extension};
    use crate::octets::Hints;
    use crate::rtp::wire;

    fn ids(profile: u16, data: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let extension = Extension::new(profile, data.to_vec()).unwrap();
        extension.elements().map(|e| (e.id, e.data.to_vec())).collect()
    }

    #[test]
    fn figure_of_section_4_2_with_padding_between_elements() {
        let data = [0x10, 1, 0x21, 2, 3, 0, 0, 0x33, 4, 5, 6, 7];
        let expected = vec![(1, vec![1]), (2, vec![2, 3]), (3, vec![4, 5, 6, 7])];
        assert_eq!(ids(0xbede, &data), expected);
    }

    #[test]
    fn reserved_identifiers_end_the_one_byte_form() {
        assert_eq!(ids(0xbede, &[0x10, 9, 0xf0, 1, 0x20, 1, 0, 0]), [(1, vec![9])]);
        assert_eq!(ids(0xbede, &[0x10, 9, 0x01, 1, 0x20, 1, 0, 0]), [(1, vec![9])]);
        assert_eq!(ids(0xbede, &[0x10, 9, 0x2f, 1]), [(1, vec![9])]);
    }

    #[test]
    fn two_byte_form_has_empty_elements_and_any_identifier() {
        assert_eq!(
            ids(0x1005, &[1, 0, 15, 1, 7, 0, 255, 1, 8, 0, 0, 0]),
            [(1, vec![]), (15, vec![7]), (255, vec![8])]
        );
        assert_eq!(ids(0x1234, &[1, 0, 0, 0]), []);
    }

    /// RFC 3550 §5.3.1: after the fixed header, not part of the payload.
    #[test]
    fn a_packet_carries_it() {
        let packet = crate::rtp::Packet {
            payload_type: 96,
            marker: false,
            sequence: 1,
            timestamp: 2,
            ssrc: 3,
            csrc: None,
            payload: crate::packet::Payload::Real(bytes::Bytes::from_static(&[7, 8])),
        };
        let extension = Extension::one_byte(&[Element { id: 1, data: &[0x55] }]).unwrap();
        let mut out = Vec::new();
        wire::emit_extended(&packet, Some(&extension), &mut out);
        let head = [0x90, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3];
        assert_eq!(out, [&head[..], &[0xbe, 0xde, 0, 1, 0x10, 0x55, 0, 0, 7, 8]].concat());
        let out = bytes::Bytes::from(out);
        let read = wire::parse_extended(&out, Hints::default()).unwrap();
        assert_eq!(read, (packet.clone(), Some(extension)));
        assert_eq!(wire::parse(&out, Hints::default()), Ok(packet));
        for end in 0..20 {
            assert!(wire::parse_extended(&out.slice(..end), Hints::default()).is_err());
        }
    }

    #[test]
    fn writes_both_forms_and_refuses_what_they_cannot_carry() {
        let element = Element { id: 5, data: &[1, 2] };
        let mut out = Vec::new();
        Extension::one_byte(&[element]).unwrap().emit(&mut out);
        assert_eq!(out, [0xbe, 0xde, 0, 1, 0x51, 1, 2, 0]);
        out.clear();
        Extension::two_byte(3, &[element]).unwrap().emit(&mut out);
        assert_eq!(out, [0x10, 3, 0, 1, 5, 2, 1, 2]);
        assert!(Extension::one_byte(&[Element { id: 15, data: &[1] }]).is_err());
        assert!(Extension::one_byte(&[Element { id: 1, data: &[] }]).is_err());
        assert!(Extension::two_byte(16, &[]).is_err());
        assert!(Extension::new(0, vec![0; 3]).is_err());
    }
}
