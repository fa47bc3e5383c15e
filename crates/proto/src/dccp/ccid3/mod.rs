//! CCID 3: to be written.

/// The sending half.
#[derive(Debug, Default)]
pub struct Sender {}

/// The receiving half.
#[derive(Debug, Default)]
pub struct Receiver {}
