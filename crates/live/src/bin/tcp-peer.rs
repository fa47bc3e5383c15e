//! One side of a TCP connection on a TUN device, with any TCP as peer; used for validation against the Linux
//! kernel. The device is its standard input. Sends a file, saves what it receives, prints results as one JSON
//! object per line, and writes the packets as pcapng.

#[cfg(target_os = "linux")]
mod peer;
#[cfg(target_os = "linux")]
#[path = "tcp_peer/mod.rs"]
mod program;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    program::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("tcp-peer: TUN devices are spoken on Linux only");
    std::process::ExitCode::FAILURE
}
