//! One side of a DCCP echo test over raw IP (protocol 33, RFC 4340 §19.1), with a peer that counts the same
//! way; used for validation against the Linux kernel. Prints results as one JSON object per line, and writes
//! the packets sent and received as pcapng.

#[cfg(target_os = "linux")]
mod peer;
#[cfg(target_os = "linux")]
#[path = "dccp_peer/mod.rs"]
mod program;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    program::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("dccp-peer: raw IP sockets are spoken on Linux only");
    std::process::ExitCode::FAILURE
}
