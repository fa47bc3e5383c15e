//! Init Cookies (RFC 4340 §8.1.4): the state a listener keeps of a Request, sealed and handed to the
//! client, so that a flood of Requests uses no memory. A client only echoes cookies.
//!
//! The seal is HMAC-SHA-256, truncated to 128 bits, with a key unique to the endpoint. It covers both
//! initial sequence numbers, the time and the addresses and ports of both ends, so that old or foreign
//! cookies are rejected. In a simulation a listener has one possible peer and needs no addresses.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::options::{Opt, Options};
use super::seqno::{SeqNo, WireSeq};
use crate::octets::number;
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// Bytes of the seal.
const SEAL: usize = 16;
/// Bytes of both sequence numbers and the time.
const FIXED: usize = 6 + 6 + 8;
/// Maximum bytes of cookies a client echoes: an Ack Vector of two options must fit too.
const MAX_ECHOED: usize = 400;
/// Longest cookie an option holds (§5.8).
pub(super) const LONGEST: usize = 253;

/// The key of a listener, and the cookies a client must echo.
#[derive(Debug)]
pub(super) struct Cookies {
    key: [u8; 32],
    /// Addresses and ports of both ends.
    ends: Vec<u8>,
    /// Received on a Response; echoed until the server shows that it is open. Limited to the options
    /// of one packet.
    echoed: Options,
}

/// Content of a cookie.
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

    /// Binds cookies to these ends from now on.
    pub(super) fn between(&mut self, ends: &[u8]) {
        self.ends = ends.to_vec();
    }

    /// Keeps the cookies of a Response, which may carry several, as far as they fit in one packet.
    pub(super) fn keep(&mut self, options: &Options) {
        self.echoed = Options::default();
        for option in options.iter().filter_map(Result::ok) {
            let Opt::InitCookie(cookie) = option else { continue };
            if self.echoed.as_bytes().len() + 2 + cookie.len() <= MAX_ECHOED {
                self.echoed.push(option);
            }
        }
    }
    /// The options that echo the kept cookies, in bytes.
    pub(super) fn echoed(&self) -> &[u8] {
        self.echoed.as_bytes()
    }
    /// Discards the cookies: the server is open.
    pub(super) fn forget(&mut self) {
        self.echoed = Options::default();
    }

    fn mac(&self, sealed: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a key of any length");
        // The length comes first, so that different ends and contents never give the same bytes.
        mac.update(&(self.ends.len() as u64).to_be_bytes());
        mac.update(&self.ends);
        mac.update(sealed);
        mac
    }

    /// Seals a memory; `None` if it does not fit in an option.
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
