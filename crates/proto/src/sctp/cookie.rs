//! State Cookies (RFC 9260 §5.1.3): a listener's state for an INIT, sealed and kept by the peer, so
//! that a flood of INITs costs no memory.
//!
//! The seal is HMAC-SHA-256, truncated to 128 bits, with a key unique to this endpoint.

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::octets::{number, u32_at};
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// Bytes of the seal.
const SEAL: usize = 16;
/// Bytes under the seal, without Tie-Tags.
const SEALED: usize = 8 + 8 + 5 * 4 + 2 * 2 + 1;
/// Bytes of Tie-Tags.
const TIES: usize = 8;

/// Contents of a cookie: the relevant fields of both INITs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// Tag of packets to this end.
    pub(super) my_tag: u32,
    /// Tag of packets to the peer.
    pub(super) peer_tag: u32,
    pub(super) my_tsn: u32,
    pub(super) peer_tsn: u32,
    /// The peer's a_rwnd.
    pub(super) a_rwnd: u32,
    /// Streams this end may send on, and the peer.
    pub(super) outbound: u16,
    pub(super) inbound: u16,
    /// Both support FORWARD TSN.
    pub(super) forward_tsn: bool,
    /// Both support I-DATA.
    pub(super) interleaving: bool,
    /// Both use ECN.
    pub(super) ecn: bool,
    /// Tie-Tags of the association there was when the INIT came (§5.2.2).
    pub(super) ties: Option<u64>,
}

/// Result of opening a cookie.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opened {
    Fresh(Memory),
    /// Sealed here, but expired by this time.
    Stale(Memory, Duration),
}

/// The key of a listener.
#[derive(Debug)]
pub(super) struct Cookies {
    key: [u8; 32],
}

impl Cookies {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let mut key = [0; 32];
        for part in key.chunks_exact_mut(8) {
            part.copy_from_slice(&rng.bits().to_be_bytes());
        }
        Self { key }
    }

    fn mac(&self, sealed: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a key of any length");
        mac.update(sealed);
        mac
    }

    /// Seals a memory that expires `life` from now.
    pub(super) fn seal(&self, now: Instant, life: Duration, memory: &Memory) -> Bytes {
        let mut cookie = Vec::with_capacity(SEALED + TIES + SEAL);
        cookie.extend_from_slice(&now.as_nanos().to_be_bytes());
        cookie.extend_from_slice(&life.as_nanos().to_be_bytes());
        let Memory { my_tag, peer_tag, my_tsn, peer_tsn, a_rwnd, .. } = *memory;
        for word in [my_tag, peer_tag, my_tsn, peer_tsn, a_rwnd] {
            cookie.extend_from_slice(&word.to_be_bytes());
        }
        cookie.extend_from_slice(&memory.outbound.to_be_bytes());
        cookie.extend_from_slice(&memory.inbound.to_be_bytes());
        let flags = [memory.forward_tsn, memory.interleaving, memory.ecn];
        cookie.push(flags.into_iter().rev().fold(0, |byte, flag| byte << 1 | u8::from(flag)));
        cookie.extend(memory.ties.iter().flat_map(|ties| ties.to_be_bytes()));
        let seal = self.mac(&cookie).finalize().into_bytes();
        cookie.extend_from_slice(&seal[..SEAL]);
        cookie.into()
    }

    /// Opens a cookie that was sealed here.
    pub(super) fn open(&self, now: Instant, cookie: &[u8]) -> Option<Opened> {
        let tied = cookie.len() == SEALED + TIES + SEAL;
        if cookie.len() != SEALED + SEAL && !tied {
            return None;
        }
        let (sealed, seal) = cookie.split_at(cookie.len() - SEAL);
        self.mac(sealed).verify_truncated_left(seal).ok()?;
        let long = |at: usize| number(&sealed[at..at + 8]);
        let word = |at: usize| u32_at(sealed, at);
        let memory = Memory {
            my_tag: word(16),
            peer_tag: word(20),
            my_tsn: word(24),
            peer_tsn: word(28),
            a_rwnd: word(32),
            outbound: (word(36) >> 16) as u16,
            inbound: word(36) as u16,
            forward_tsn: sealed[40] & 1 == 1,
            interleaving: sealed[40] & 2 == 2,
            ecn: sealed[40] & 4 == 4,
            ties: tied.then(|| long(SEALED)),
        };
        let age = now.saturating_since(Instant::from_nanos(long(0)));
        let life = Duration::from_nanos(long(8));
        Some(if age <= life { Opened::Fresh(memory) } else { Opened::Stale(memory, age - life) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_opens_whole_in_time_and_at_home_only() {
        let cookies = Cookies::new(&mut Rng::new(1, "a"));
        let memory = Memory {
            my_tag: 1,
            peer_tag: 2,
            my_tsn: 3,
            peer_tsn: 4,
            a_rwnd: 5,
            outbound: 6,
            inbound: 7,
            forward_tsn: true,
            interleaving: true,
            ecn: true,
            ties: Some(8),
        };
        let (at, life) = (Instant::from_nanos(1_000), Duration::from_nanos(100));
        let cookie = cookies.seal(at, life, &memory);
        assert_eq!(cookies.open(at + life, &cookie), Some(Opened::Fresh(memory)));
        let first = Memory { ties: None, ecn: false, ..memory };
        let untied = cookies.seal(at, life, &first);
        assert_eq!(cookies.open(at, &untied), Some(Opened::Fresh(first)));
        let stale = Opened::Stale(memory, life);
        assert_eq!(cookies.open(at + life * 2, &cookie), Some(stale));
        assert_eq!(Cookies::new(&mut Rng::new(1, "b")).open(at, &cookie), None);
        for bit in 0..cookie.len() * 8 {
            let mut forged = cookie.to_vec();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(cookies.open(at, &forged), None);
        }
        assert_eq!(cookies.open(at, &cookie[..10]), None);
    }
}
