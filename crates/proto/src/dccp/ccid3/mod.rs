//! CCID 3 (RFC 4342) and CCID 4 (RFC 5622): the halves of a DCCP connection around the machine of
//! `rate`. The difference between the two is parameters, and one option.
//!
//! `counter` is the window counter of §8.1, `ceiling` what a slow receiver asks for (§5.2),
//! `options` turns what is reported into bytes and back, `sender` and `receiver` are the halves,
//! `reported` the loss event rate a sender computes itself.

use crate::time::Duration;

mod ceiling;
mod counter;
pub mod options;
mod receiver;
mod reported;
mod sender;

pub use receiver::Receiver;
pub use sender::Sender;

/// RFC 4340 §3.4: the round-trip time of who has not measured any.
const DEFAULT_RTT: Duration = Duration::from_millis(200);
