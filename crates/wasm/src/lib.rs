//! The simulator as a WebAssembly module: requests in, answers out, both JSON.
//!
//! `make wasm` builds and tests it. A page writes bytes to memory that `reserve` gives, adds files by
//! absolute path, and sends [`Request`]s. The module imports one function, for progress. `link.sh`
//! links it a second time, with all of libopus: DRED and deep PLC are only in that module.

#[cfg(target_arch = "wasm32")]
pub mod abi;
#[cfg(target_arch = "wasm32")]
mod libc;
mod session;

pub use session::{Request, Session};
