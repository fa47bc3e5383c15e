//! Input and output on a TCP connection within a limit of time.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

use talkspurt_live::Clock;
use talkspurt_proto::time::{Duration, Instant};

/// A stream on which everything together takes no longer than a limit: a peer that sends a byte now and then
/// holds nothing up.
pub(crate) struct Timed<'a> {
    stream: &'a TcpStream,
    clock: Clock,
    until: Instant,
}

impl<'a> Timed<'a> {
    pub(crate) fn new(stream: &'a TcpStream, limit: Duration) -> Self {
        let clock = Clock::start();
        Self { stream, clock, until: clock.now() + limit }
    }

    fn left(&self) -> io::Result<Option<std::time::Duration>> {
        let left = self.until.saturating_since(self.clock.now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left.into_std())) }
    }

    pub(crate) fn read(&mut self, mut bytes: &mut [u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.set_read_timeout(self.left()?)?;
            match self.stream.read(bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => bytes = &mut bytes[length..],
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.set_write_timeout(self.left()?)?;
            match self.stream.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => bytes = &bytes[length..],
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Conversion to std's durations, for sockets.
pub(crate) trait IntoStd {
    fn into_std(self) -> std::time::Duration;
}

impl IntoStd for Duration {
    fn into_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.as_nanos())
    }
}

/// Whether nothing came in time, which is no failure of the connection.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(error.kind(), Kind::WouldBlock | Kind::TimedOut | Kind::Interrupted)
}
