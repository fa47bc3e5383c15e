//! One side of an SCTP conversation over raw IP (protocol 132) or inside UDP (RFC 6951), on one path
//! or several, with a peer that counts as it does: the validations against usrsctp and the Linux
//! kernel run it. Says what came of it as one JSON object a line, and writes what it sent and
//! received as pcapng.

#[cfg(target_os = "linux")]
mod peer;
#[cfg(target_os = "linux")]
#[path = "sctp_peer/mod.rs"]
mod program;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    program::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("sctp-peer: its sockets are spoken on Linux only");
    std::process::ExitCode::FAILURE
}
