//! One side of a TCP connection on a TUN device, with any other TCP at the other side: the validation
//! against the Linux kernel runs it. The device is its standard input. Sends a file, keeps what it
//! receives, says what came of it as one JSON object a line, and writes the packets as pcapng.

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
