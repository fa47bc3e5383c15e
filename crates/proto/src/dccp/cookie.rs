//! Init Cookies (RFC 4340 §8.1.4): all a listener would have to remember of a Request, handed to the
//! client under a seal, so that a flood of Requests costs no memory. A client only echoes.
//!
//! The seal is HMAC-SHA-256, cut to 128 bits, under a key that no other endpoint has. It holds both
//! initial sequence numbers and the time, and covers what names both ends, so that an old or foreign
//! cookie opens nothing. In a simulation a listener has one possible peer and needs no names.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::options::{Opt, Options};
use super::seqno::{SeqNo, WireSeq};
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// Bytes of the seal.
const SEAL: usize = 16;
/// Bytes of both numbers and of the time.
const FIXED: usize = 6 + 6 + 8;
/// Most bytes of cookies a client echoes: beside them an Ack Vector of two options must fit.
const MAX_ECHOED: usize = 400;
/// Longest cookie an option holds (§5.8).
pub(super) const LONGEST: usize = 253;

/// The key of a listener, and the cookies a client must echo.
#[derive(Debug)]
pub(super) struct Cookies {
    key: [u8; 32],
    /// What names both ends: their addresses and ports.
    ends: Vec<u8>,
    /// Received on a Response; sent back until the server shows it is open. The options of one
    /// packet, so no more than it can hold.
    echoed: Options,
}

/// What a cookie remembers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) iss: SeqNo,
    pub(super) isr: SeqNo,
    pub(super) features: Vec<u8>,
}

impl Cookies {
    /// Bytes held.
    pub(super) fn footprint(&self) -> usize {
        self.ends.capacity() + self.echoed.footprint()
    }

    pub(super) fn new(rng: &mut Rng) -> Self {
        let mut key = [0; 32];
        for part in key.chunks_exact_mut(8) {
            part.copy_from_slice(&rng.bits().to_be_bytes());
        }
        Self { key, ends: Vec::new(), echoed: Options::default() }
    }

    /// From now on cookies hold between these ends only.
    pub(super) fn between(&mut self, ends: &[u8]) {
        self.ends = ends.to_vec();
    }

    /// Keeps the cookies of a Response, which may bear several, as far as a packet has room to
    /// echo them.
    pub(super) fn keep(&mut self, options: &Options) {
        self.echoed = Options::default();
        for option in options.iter().filter_map(Result::ok) {
            let Opt::InitCookie(cookie) = option else { continue };
            if self.echoed.as_bytes().len() + 2 + cookie.len() <= MAX_ECHOED {
                self.echoed.push(option);
            }
        }
    }
    /// The options that echo what was kept, in bytes.
    pub(super) fn echoed(&self) -> &[u8] {
        self.echoed.as_bytes()
    }
    /// The server is open.
    pub(super) fn forget(&mut self) {
        self.echoed = Options::default();
    }

    fn mac(&self, sealed: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a key of any length");
        // The length first, so that no two of ends and contents run together into the same bytes.
        mac.update(&(self.ends.len() as u64).to_be_bytes());
        mac.update(&self.ends);
        mac.update(sealed);
        mac
    }

    /// Seals a memory; `None` if it does not fit an option.
    pub(super) fn seal(&self, now: Instant, memory: &Memory) -> Option<Vec<u8>> {
        let mut cookie = Vec::with_capacity(FIXED + memory.features.len() + SEAL);
        for seq in [memory.iss, memory.isr] {
            let WireSeq::Extended(wire) = seq.extended() else {
                unreachable!("48 bits were asked")
            };
            cookie.extend_from_slice(&wire.to_be_bytes()[2..]);
        }
        cookie.extend_from_slice(&now.as_nanos().to_be_bytes());
        cookie.extend_from_slice(&memory.features);
        let seal = self.mac(&cookie).finalize().into_bytes();
        cookie.extend_from_slice(&seal[..SEAL]);
        (cookie.len() <= LONGEST).then_some(cookie)
    }

    /// Opens a cookie sealed here not longer than `life` ago.
    pub(super) fn open(&self, now: Instant, life: Duration, cookie: &[u8]) -> Option<Memory> {
        let (sealed, seal) = cookie.split_at_checked(cookie.len().checked_sub(SEAL)?)?;
        self.mac(sealed).verify_truncated_left(seal).ok()?;
        let (fixed, features) = sealed.split_at_checked(FIXED)?;
        let number = |bytes: &[u8]| bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
        let sealed_at = Instant::from_nanos(number(&fixed[12..]));
        (now.saturating_since(sealed_at) <= life).then(|| Memory {
            iss: SeqNo::first(number(&fixed[..6])),
            isr: SeqNo::first(number(&fixed[6..12])),
            features: features.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_opens_whole_in_time_and_at_home_only() {
        let cookies = Cookies::new(&mut Rng::new(1, "a"));
        let memory = Memory { iss: SeqNo::first(5), isr: SeqNo::first(7), features: vec![0, 3] };
        let (at, life) = (Instant::from_nanos(1_000), Duration::from_nanos(100));
        let cookie = cookies.seal(at, &memory).unwrap();
        assert_eq!(cookies.open(at + life, life, &cookie), Some(memory));
        assert_eq!(cookies.open(at + life * 2, life, &cookie), None);
        assert_eq!(Cookies::new(&mut Rng::new(1, "b")).open(at, life, &cookie), None);
        for bit in 0..cookie.len() * 8 {
            let mut forged = cookie.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(cookies.open(at, life, &forged), None);
        }
        assert_eq!(cookies.open(at, life, &cookie[..10]), None);
    }
}
