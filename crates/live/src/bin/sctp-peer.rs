//! One side of an SCTP echo test over raw IP (protocol 132) or UDP (RFC 6951), on one or several paths, with a
//! peer that counts the same way; used for validation against usrsctp and the Linux kernel. Prints results as
//! one JSON object per line, and writes the packets sent and received as pcapng.

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
