//! Elements of an RTP header extension (RFC 8285 §4).

/// RFC 8285 §4.2: the profile field of the one-byte form.
pub(super) const ONE_BYTE: u16 = 0xbede;
/// RFC 8285 §4.3: the profile field of the two-byte form, without its appbits.
const TWO_BYTE: u16 = 0x1000;

/// Identifiers and data of the elements. A profile of neither form has none; a truncated element ends the list.
pub(super) fn elements(profile: u16, data: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let one_byte = profile == ONE_BYTE;
    let known = one_byte || profile & 0xfff0 == TWO_BYTE;
    let mut rest = if known { data } else { &[] };
    std::iter::from_fn(move || {
        let (element, behind) = element(rest, one_byte)?;
        rest = behind;
        Some(element)
    })
    .fuse()
}

type Element<'a> = (u8, &'a [u8]);

fn element(mut bytes: &[u8], one_byte: bool) -> Option<(Element<'_>, &[u8])> {
    // RFC 8285 §4.1.2: a padding byte is 0 and has no length field.
    while let [0, rest @ ..] = bytes {
        bytes = rest;
    }
    let (id, length, rest) = if one_byte {
        let (&first, rest) = bytes.split_first()?;
        // RFC 8285 §4.1.2 and §4.2: ID 0 with a length, and ID 15, end the extension.
        if matches!(first >> 4, 0 | 15) {
            return None;
        }
        (first >> 4, usize::from(first & 15) + 1, rest)
    } else {
        let [id, length, rest @ ..] = bytes else { return None };
        (*id, usize::from(*length), rest)
    };
    let (data, rest) = rest.split_at_checked(length)?;
    Some(((id, data), rest))
}

#[cfg(test)]
mod tests {
    use super::elements;
    use crate::octets::Hints;
    use crate::packet::Payload;
    use crate::rtp::{Packet, wire};

    fn ids(profile: u16, data: &[u8]) -> Vec<(u8, Vec<u8>)> {
        elements(profile, data).map(|(id, data)| (id, data.to_vec())).collect()
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

    /// RFC 3550 §5.1 and §5.3.1: around the payload, not part of it.
    #[test]
    fn a_packet_carries_a_transport_wide_number_and_padding() {
        let packet = Packet {
            payload_type: 96,
            sequence: 1,
            timestamp: 2,
            ssrc: 3,
            transport: Some(0x1234),
            padding: 3,
            payload: Payload::Real(bytes::Bytes::from_static(&[7, 8])),
            ..Packet::default()
        };
        let mut out = Vec::new();
        wire::emit(&packet, &mut out);
        let head = [0xb0, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3];
        let behind = [0xbe, 0xde, 0, 1, 0x31, 0x12, 0x34, 0, 7, 8, 0, 0, 3];
        assert_eq!(out, [&head[..], &behind].concat());
        assert_eq!(out.len(), packet.wire_bytes());
        assert_eq!(wire::parse(&out.clone().into(), Hints::default()), Ok(packet.clone()));
        for end in 0..out.len() - 3 {
            let cut = bytes::Bytes::copy_from_slice(&out[..end]);
            assert!(wire::parse(&cut, Hints::default()).is_err());
        }
        // Beside another element; with another identifier, and with another length.
        let read = |element: [u8; 4]| {
            out[16..20].copy_from_slice(&element);
            wire::parse(&out.clone().into(), Hints::default()).unwrap().transport
        };
        let elements = [[0x10, 9, 0x31, 5], [0, 0x31, 5, 6], [0x41, 5, 6, 0], [0x32, 5, 6, 7]];
        assert_eq!(elements.map(read), [None, Some(0x0506), None, None]);
    }
}
