//! Sealed datagrams: what is measured is authenticated and encrypted with ChaCha20-Poly1305 (RFC 8439), under
//! one key per direction. A datagram is a counter of eight bytes, which is the nonce, and the ciphertext of a
//! header and the payload. The header has the packet's number and its time of departure, so that the receiver
//! knows both without the sender's log. A datagram with a counter that was seen before, or is far behind the
//! latest, is refused.

use chacha20poly1305::aead::{AeadInPlace as _, KeyInit as _};
use chacha20poly1305::{ChaCha20Poly1305, Nonce, Tag};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// A key of one direction.
pub(crate) type Key = [u8; 32];

/// Another key of the same direction for one purpose: nothing is sealed under the same key for two.
pub(crate) fn derived(key: &Key, purpose: &[u8]) -> Key {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key).expect("any key has a length that HMAC takes");
    mac.update(purpose);
    mac.finalize().into_bytes().into()
}

const COUNTER: usize = 8;
const HEADER: usize = 14;
/// Bytes in front of the encrypted payload.
pub(crate) const HEAD: usize = COUNTER + HEADER;
const TAG: usize = 16;
/// Bytes that sealing adds to a payload.
pub(crate) const OVERHEAD: usize = HEAD + TAG;

/// What a datagram carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Client: this is my address. Long enough for the answer.
    Hello = 0,
    /// Server: heard you.
    Welcome = 1,
    /// A question for the other clock.
    Probe = 2,
    /// Its answer: when the question left, and when it came.
    Answer = 3,
    /// A packet of a flow, without its IP and UDP headers.
    Media = 4,
    /// What was received of each flow (RFC 3550 §6.4.2 has the same for RTP).
    Report = 5,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] =
        [Self::Hello, Self::Welcome, Self::Probe, Self::Answer, Self::Media, Self::Report];
}

/// The header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    /// The flow, of media.
    pub(crate) flow: u8,
    /// The packet's number among those of its flow and direction.
    pub(crate) number: u32,
    /// Departure, in nanoseconds of the sender's clock.
    pub(crate) sent: u64,
}

/// Seals the datagrams of one direction.
pub(crate) struct Sealer {
    cipher: ChaCha20Poly1305,
    counter: u64,
}

impl Sealer {
    pub(crate) fn new(key: &Key) -> Self {
        Self { cipher: ChaCha20Poly1305::new(key.into()), counter: 0 }
    }

    /// The datagram of a payload.
    pub(crate) fn seal(&mut self, header: &Header, payload: &[u8]) -> Vec<u8> {
        self.seal_with(header, payload, &[])
    }

    /// The same, which is authentic only together with bytes in clear.
    pub(crate) fn seal_with(&mut self, header: &Header, payload: &[u8], clear: &[u8]) -> Vec<u8> {
        let mut out = self.begin(payload.len());
        out.extend([header.kind as u8, header.flow]);
        out.extend(header.number.to_be_bytes());
        out.extend(header.sent.to_be_bytes());
        out.extend(payload);
        self.finish(out, clear)
    }

    /// The datagram of bytes that may be no header and payload, for tests.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn seal_any(&mut self, plain: &[u8]) -> Vec<u8> {
        let mut out = self.begin(plain.len());
        out.extend(plain);
        self.finish(out, &[])
    }

    /// The counter, and room for so much payload.
    fn begin(&self, payload: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(OVERHEAD + payload);
        out.extend(self.counter.to_be_bytes());
        out
    }

    /// Encrypts what follows the counter.
    fn finish(&mut self, mut out: Vec<u8>, clear: &[u8]) -> Vec<u8> {
        let counter = self.counter;
        self.counter += 1;
        let tag = self
            .cipher
            .encrypt_in_place_detached(&nonce(counter), clear, &mut out[COUNTER..])
            .expect("a datagram is shorter than the cipher's limit");
        out.extend(tag);
        out
    }
}

/// Opens the datagrams of one direction.
pub(crate) struct Opener {
    cipher: ChaCha20Poly1305,
    window: Window,
    /// Whether the last datagram that was opened is newer than all before. Only such a one tells where the
    /// other end is: an attacker on the path can hold back an older one and send it from elsewhere (RFC 9000
    /// §9.3).
    pub(crate) newest: bool,
}

impl Opener {
    pub(crate) fn new(key: &Key) -> Self {
        Self { cipher: ChaCha20Poly1305::new(key.into()), window: Window::default(), newest: false }
    }

    /// Header and payload of a datagram; `None` if it is not from the other end, or not new.
    pub(crate) fn open(&mut self, datagram: &[u8]) -> Option<(Header, Vec<u8>)> {
        self.open_with(datagram, &[])
    }

    /// The same of a datagram together with bytes in clear.
    pub(crate) fn open_with(&mut self, datagram: &[u8], clear: &[u8]) -> Option<(Header, Vec<u8>)> {
        if datagram.len() < OVERHEAD {
            return None;
        }
        let (counter, rest) = datagram.split_first_chunk::<COUNTER>()?;
        let counter = u64::from_be_bytes(*counter);
        if !self.window.is_new(counter) {
            return None;
        }
        let (sealed, tag) = rest.split_last_chunk::<TAG>()?;
        let mut plain = sealed.to_vec();
        let tag = Tag::from_slice(tag);
        self.cipher.decrypt_in_place_detached(&nonce(counter), clear, &mut plain, tag).ok()?;
        // Only an authentic datagram moves the window.
        self.newest = self.window.take(counter);
        let (header, _) = plain.split_first_chunk::<HEADER>()?;
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == header[0])?;
        let number = u32::from_be_bytes(*header[2..].first_chunk()?);
        let sent = u64::from_be_bytes(*header[6..].first_chunk()?);
        let header = Header { kind, flow: header[1], number, sent };
        plain.drain(..HEADER);
        Some((header, plain))
    }
}

fn nonce(counter: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&counter.to_be_bytes());
    nonce.into()
}

/// Words of the replay window.
const WORDS: usize = 64;
const BITS: u64 = 64 * WORDS as u64;

/// The counters seen among the latest 4096 (RFC 4303 Appendix A2).
struct Window {
    /// One more than the highest counter seen.
    next: u64,
    seen: [u64; WORDS],
}

impl Default for Window {
    fn default() -> Self {
        Self { next: 0, seen: [0; WORDS] }
    }
}

impl Window {
    const fn place(counter: u64) -> (usize, u64) {
        ((counter / 64) as usize % WORDS, 1 << (counter % 64))
    }

    fn is_new(&self, counter: u64) -> bool {
        let (word, bit) = Self::place(counter);
        // A word is reused as a whole: the last words of the window may have been cleared already.
        counter >= self.next || (counter + BITS - 64 >= self.next && self.seen[word] & bit == 0)
    }

    /// Whether it is higher than all before.
    fn take(&mut self, counter: u64) -> bool {
        let newest = counter >= self.next;
        if newest {
            let first = self.next.div_ceil(64);
            let last = counter / 64;
            for word in first.max(last.saturating_sub(WORDS as u64 - 1))..=last {
                self.seen[word as usize % WORDS] = 0;
            }
            self.next = counter.saturating_add(1);
        }
        let (word, bit) = Self::place(counter);
        self.seen[word] |= bit;
        newest
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const HEADER_OF_MEDIA: Header =
        Header { kind: Kind::Media, flow: 3, number: 77, sent: 1 << 40 };

    #[test]
    fn a_datagram_is_opened_once_and_only_by_the_key() {
        let mut sealer = Sealer::new(&[1; 32]);
        let datagram = sealer.seal(&HEADER_OF_MEDIA, b"speech");
        assert_eq!(datagram.len(), OVERHEAD + 6);
        assert_eq!(Opener::new(&[2; 32]).open(&datagram), None);
        let mut opener = Opener::new(&[1; 32]);
        assert_eq!(opener.open(&datagram), Some((HEADER_OF_MEDIA, b"speech".to_vec())));
        assert_eq!(opener.open(&datagram), None, "a replay");
    }

    /// RFC 8439 §2.8.2's cipher, seen from outside: no two datagrams of a direction have the same bytes, and
    /// the payload is not visible.
    #[test]
    fn equal_payloads_look_different() {
        let mut sealer = Sealer::new(&[1; 32]);
        let [a, b] = [0, 1].map(|_| sealer.seal(&HEADER_OF_MEDIA, &[0; 32]));
        assert_ne!(a[8..], b[8..]);
        assert!(!a.windows(8).any(|part| part == [0; 8]) || a[..8] == [0; 8]);
    }

    proptest! {
        #[test]
        fn noise_and_damage_are_refused(noise: Vec<u8>, at in 0_usize..60, bit in 0_u8..8) {
            let mut opener = Opener::new(&[1; 32]);
            prop_assert_eq!(opener.open(&noise), None);
            let mut datagram = Sealer::new(&[1; 32]).seal(&HEADER_OF_MEDIA, &[9; 22]);
            datagram[at] ^= 1 << bit;
            prop_assert_eq!(opener.open(&datagram), None);
            prop_assert_eq!(opener.open(&datagram[..at]), None);
        }

        /// Against a set of all counters: nothing is accepted twice, and what is recent is accepted once.
        #[test]
        fn the_window_is_a_set_of_recent_counters(steps in prop::collection::vec((0_u64..6000, any::<bool>()), 1..300)) {
            let (mut window, mut seen, mut highest) = (Window::default(), BTreeSet::new(), 0_u64);
            for (step, forward) in steps {
                let counter = if forward { highest + step } else { highest.saturating_sub(step) };
                if window.is_new(counter) {
                    prop_assert!(seen.insert(counter), "{counter} twice");
                    window.take(counter);
                } else {
                    prop_assert!(seen.contains(&counter) || highest - counter >= BITS - 128);
                }
                highest = highest.max(counter);
            }
        }
    }
}
