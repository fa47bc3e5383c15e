//! CCID 3 (RFC 4342) and CCID 4 (RFC 5622): the two halves of a DCCP connection around the machine
//! of `rate`. The two CCIDs differ in parameters and one option.
//!
//! `counter` is the window counter of §8.1, `ceiling` the limit requested by a slow receiver (§5.2),
//! `options` encodes and decodes options, `sender` and `receiver` are the halves,
//! `reported` is the loss event rate a sender computes itself.

mod ceiling;
mod counter;
pub mod options;
mod receiver;
mod reported;
mod sender;

pub use receiver::Receiver;
pub use sender::Sender;
