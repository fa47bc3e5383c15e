//! The control connection: TCP, encrypted and mutually authenticated by a shared secret (Noise, pattern
//! `NNpsk0`: fresh keys per connection, so that a secret that leaks later opens no earlier recording).
//!
//! The client proves the secret in its first message. The server answers anything else with nine bytes at most
//! and closes. All messages have a length of two bytes in front.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use snow::{Builder, TransportState};
use socket2::SockRef;
use talkspurt_live::Clock;
use talkspurt_proto::time::Duration;

use crate::Failure;
use crate::end_report::EndReport;
use crate::invitation::Invitation;
use crate::plan::Plan;
use crate::seal::Key;
use crate::timed::{IntoStd as _, Timed, is_timeout};

/// Version of the protocol between client and server. Increase it with any change of messages, of sealed
/// datagrams, of notes or of the scenario that both ends make of a plan.
pub const VERSION: u8 = 10;
const MAGIC: &[u8; 7] = b"TLKSPRT";
const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
/// Longest Noise message, and what its tag takes of it.
const LONGEST: usize = 65_535;
const TAG: usize = 16;
/// Bytes of notes or of sound in a message: few, so that each passes a slow path before its receiver gives up.
pub(crate) const PIECE: usize = 8 * 1024;
/// Bytes that wait in the socket. Without a limit the system takes megabytes at once, and the sender believes
/// that they have left.
const UNSENT: u32 = 16 * 1024;
/// Time between signs of life.
pub(crate) const BEAT: Duration = Duration::from_millis(500);
/// Silence on the control connection after which it is lost: media stops within three seconds.
pub(crate) const LOST: Duration = Duration::from_millis(2500);
/// Why media stops on such silence.
pub(crate) const SILENT: &str =
    "the control connection was silent for 2.5 s, so that media stopped";
/// Silence while notes or sound come, after which the connection is lost.
pub(crate) const NOTES: Duration = Duration::from_secs(5);
/// Time for the client to begin what the server has accepted.
pub(crate) const BEGIN: Duration = Duration::from_secs(20);
/// How long a server waits for what a client should do next: another request, or the end after the plan's.
pub(crate) const IDLE: Duration = Duration::from_secs(30);
/// Time for a handshake.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(5);

/// The shared secret, as a key.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Fewest bytes of a secret.
    pub const LEAST: usize = 16;

    /// The key of a secret; spaces around it do not count.
    ///
    /// # Errors
    /// It is too short to withstand guessing by whoever records a connection.
    pub fn new(secret: &[u8]) -> Result<Self, Failure> {
        let secret = secret.trim_ascii();
        if secret.len() < Self::LEAST {
            return Err(Failure::Secret(format!(
                "the secret has {} characters: expected {} or more, as `openssl rand -hex 32` prints",
                secret.len(),
                Self::LEAST
            )));
        }
        Ok(Self(
            Sha256::new_with_prefix(b"talkspurt measure\0").chain_update(secret).finalize().into(),
        ))
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// Client: this is wanted.
    Request { release: String, plan: Plan },
    /// Caller: a call is wanted.
    Invite { release: String, invitation: Box<Invitation> },
    /// Server: agreed. Media goes to this port of UDP and TCP, of a call in these codecs unless DCCP's
    /// handshake names them.
    Accept { port: u16, up: Key, down: Key, max_rate: u64, codecs: Vec<String> },
    /// Server: not agreed.
    Refuse { why: String },
    /// Client: time begins at both ends.
    Start,
    /// Either: still there.
    Beat,
    /// Either: stop sending now.
    Stop,
    /// Client: the end is over here; send the notes.
    Finish,
    /// Server: a part of the notes.
    Notes { bytes: Vec<u8> },
    /// Server: that was all.
    Done { ended: EndReport },
    /// Either end of a call: it is over; without a reason, somebody hung up.
    HangUp { why: Option<String> },
    /// Either end of a call: a part of what it said or heard, 16 bits a sample, little endian.
    Sound { heard: bool, bytes: Vec<u8> },
    /// Either end of a call: that was all, with the sound or without.
    Over { complete: bool },
}

/// What the server says before the secret is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Answer {
    Agreed = 0,
    OtherVersion = 1,
    WrongSecret = 2,
}

/// An authenticated connection.
pub(crate) struct Channel {
    stream: TcpStream,
    state: TransportState,
    clock: Clock,
    /// Bytes of messages that have not come completely.
    pending: Vec<u8>,
}

impl Channel {
    /// Connects and proves the secret.
    pub(crate) fn connect(
        to: SocketAddr,
        secret: &Secret,
        wait: std::time::Duration,
    ) -> Result<Self, Failure> {
        let stream = TcpStream::connect_timeout(&to, wait).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                Failure::Unreachable(format!("{to}: nothing listens there (connection refused)"))
            }
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Failure::Unreachable(format!(
                "{to}: no answer within {} s: is the machine on, or a firewall in between?",
                wait.as_secs()
            )),
            _ => Failure::Unreachable(format!("{to}: {error}")),
        })?;
        let failed =
            |error: io::Error| Failure::Unreachable(format!("{to}: no handshake: {error}"));
        prepare(&stream).map_err(failed)?;
        let mut wire = Timed::new(&stream, HANDSHAKE);
        let mut noise = builder(secret).build_initiator().map_err(snow_failure)?;
        let mut message = [0; 256];
        let length = noise.write_message(&[], &mut message).map_err(snow_failure)?;
        let mut first = preamble().to_vec();
        first.extend((length as u16).to_be_bytes());
        first.extend(&message[..length]);
        wire.write(&first).map_err(failed)?;
        let mut answer = [0; 9];
        wire.read(&mut answer).map_err(|error| {
            Failure::Unreachable(format!("{to}: is not a server of talkspurt ({error})"))
        })?;
        let [magic @ .., version, code] = &answer;
        if magic != MAGIC {
            return Err(Failure::Unreachable(format!("{to}: is not a server of talkspurt")));
        }
        if *version != VERSION {
            return Err(Failure::Version(format!(
                "{to}: speaks version {version} of the protocol, and this is version {VERSION}: install the \
                 same release of talkspurt at both ends"
            )));
        }
        if *code != Answer::Agreed as u8 {
            return Err(Failure::Secret(format!("{to}: the server has another secret")));
        }
        let answer = read_message(&mut wire).map_err(failed)?;
        noise
            .read_message(&answer, &mut message)
            .map_err(|_| Failure::Secret(format!("{to}: the server has another secret")))?;
        let state = noise.into_transport_mode().map_err(snow_failure)?;
        Ok(Self::new(stream, state))
    }

    /// Answers a client that has connected; `None` if it has not proved the secret in time.
    pub(crate) fn accept(stream: TcpStream, secret: &Secret) -> Option<Self> {
        let mut wire = Timed::new(&stream, HANDSHAKE);
        let mut first = [0; 8];
        wire.read(&mut first).ok()?;
        let [magic @ .., version] = &first;
        if magic != MAGIC {
            return None;
        }
        // Bytes that nobody reads would make the system discard our answer.
        let first = read_message(&mut wire).ok()?;
        if *version != VERSION {
            answer(&stream, Answer::OtherVersion);
            return None;
        }
        let mut noise = builder(secret).build_responder().ok()?;
        let mut message = [0; 256];
        if noise.read_message(&first, &mut message).is_err() {
            answer(&stream, Answer::WrongSecret);
            return None;
        }
        let length = noise.write_message(&[], &mut message).ok()?;
        let mut second = preamble().to_vec();
        second.push(Answer::Agreed as u8);
        second.extend((length as u16).to_be_bytes());
        second.extend(&message[..length]);
        wire.write(&second).ok()?;
        prepare(&stream).ok()?;
        Some(Self::new(stream.try_clone().ok()?, noise.into_transport_mode().ok()?))
    }

    fn new(stream: TcpStream, state: TransportState) -> Self {
        Self { stream, state, clock: Clock::start(), pending: Vec::new() }
    }

    pub(crate) fn send(&mut self, message: &Message) -> io::Result<()> {
        let plain = postcard::to_stdvec(message).map_err(io::Error::other)?;
        let mut sealed = vec![0; 2 + plain.len() + TAG];
        let length =
            self.state.write_message(&plain, &mut sealed[2..]).map_err(io::Error::other)?;
        sealed[..2].copy_from_slice(&(length as u16).to_be_bytes());
        Timed::new(&self.stream, HANDSHAKE).write(&sealed[..2 + length])
    }

    /// The next message; `None` if none has come completely within this time. `UnexpectedEof` if the other end
    /// has closed, `InvalidData` if what came is not from it.
    pub(crate) fn receive(&mut self, wait: Duration) -> io::Result<Option<Message>> {
        let until = self.clock.now() + wait;
        loop {
            if let Some(message) = self.complete()? {
                return Ok(Some(message));
            }
            let left = until.saturating_since(self.clock.now());
            if left.is_zero() {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left.into_std()))?;
            let mut bytes = [0; 16 * 1024];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.pending.extend(&bytes[..length]),
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn complete(&mut self) -> io::Result<Option<Message>> {
        let Some((length, rest)) = self.pending.split_first_chunk::<2>() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes(*length));
        if rest.len() < length {
            return Ok(None);
        }
        let mut plain = vec![0; LONGEST];
        let invalid = |what: &'static str| io::Error::new(io::ErrorKind::InvalidData, what);
        let plain_length = self
            .state
            .read_message(&rest[..length], &mut plain)
            .map_err(|_| invalid("a message that is not authentic"))?;
        self.pending.drain(..2 + length);
        let message = postcard::from_bytes(&plain[..plain_length])
            .map_err(|_| invalid("a message that is none"))?;
        Ok(Some(message))
    }

    /// The other end, with the zone of a link-local address.
    pub(crate) fn peer(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr().map(canonical)
    }

    /// Our address on this path.
    pub(crate) fn local(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr().map(canonical)
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_notsent_lowat(UNSENT)
}

/// A mapped address as what it is, one of IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::from((ip, address.port())),
        IpAddr::V6(_) => address,
    }
}

/// Tells a client why it is not served, in nine bytes.
fn answer(mut stream: &TcpStream, code: Answer) {
    let mut bytes = preamble().to_vec();
    bytes.push(code as u8);
    // Whoever does not take nine bytes has left.
    let _ = stream.write_all(&bytes);
    let _ = stream.shutdown(Shutdown::Write);
}

fn preamble() -> [u8; 8] {
    let mut bytes = [VERSION; 8];
    bytes[..7].copy_from_slice(MAGIC);
    bytes
}

fn builder(secret: &Secret) -> Builder<'_> {
    let params = PATTERN.parse().expect("the pattern is one of Noise's");
    // The prologue binds the version: nobody in between can change it.
    let builder = Builder::new(params).prologue(&[VERSION]).and_then(|it| it.psk(0, &secret.0));
    builder.expect("prologue and secret are given once")
}

/// A message of the handshake, which is short.
fn read_message(wire: &mut Timed<'_>) -> io::Result<Vec<u8>> {
    let mut length = [0; 2];
    wire.read(&mut length)?;
    let length = usize::from(u16::from_be_bytes(length));
    if length > 128 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut message = vec![0; length];
    wire.read(&mut message)?;
    Ok(message)
}

fn snow_failure(error: snow::Error) -> Failure {
    Failure::Unreachable(format!("no handshake: {error}"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn pair(
        ours: &'static [u8],
        theirs: &'static [u8],
    ) -> (Result<Channel, Failure>, Option<Channel>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let at = listener.local_addr().expect("it is bound");
        let server = thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a client comes");
            Channel::accept(stream, &Secret::new(theirs).expect("long"))
        });
        let wait = std::time::Duration::from_secs(5);
        let client = Channel::connect(at, &Secret::new(ours).expect("long"), wait);
        (client, server.join().expect("no panic"))
    }

    const SECRET: &[u8] = b"0123456789abcdef";

    #[test]
    fn messages_pass_between_ends_with_the_same_secret() {
        let (client, server) = pair(SECRET, b" 0123456789abcdef\n");
        let (mut client, mut server) = (client.expect("the same"), server.expect("the same"));
        let long = Message::Notes { bytes: vec![7; PIECE] };
        for message in [Message::Beat, long, Message::Refuse { why: "no".to_owned() }] {
            client.send(&message).expect("it is there");
            let got = server.receive(Duration::from_secs(5)).expect("it is there");
            assert_eq!(got, Some(message));
        }
        assert_eq!(server.receive(Duration::from_millis(10)).expect("it is there"), None);
        drop(client);
        let gone = server.receive(Duration::from_secs(5)).expect_err("it is closed");
        assert_eq!(gone.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn another_secret_is_told_at_once() {
        let (client, server) = pair(SECRET, b"0123456789abcdeX");
        let Err(Failure::Secret(words)) = client else { panic!("it has another secret") };
        assert!(words.contains("another secret"), "{words}");
        assert!(server.is_none());
        assert!(Secret::new(b"short").is_err());
    }

    /// Everything that a stranger can send: at most nine bytes come back.
    #[test]
    fn strangers_get_nine_bytes_at_most() {
        let mut other = preamble().to_vec();
        other[7] = VERSION + 1;
        other.extend([0, 2, 1, 2]);
        let mut oversized = preamble().to_vec();
        oversized.extend([0xff, 0xff]);
        oversized.extend([0; 300]);
        let mut replayed = preamble().to_vec();
        replayed.extend([0, 48]);
        replayed.extend([9; 48]);
        let attacks: [(&[u8], usize); 5] = [
            (b"GET / HTTP/1.1\r\n\r\n", 0),
            (&other, 9),
            (&oversized, 0),
            (&replayed, 9),
            (&[], 0),
        ];
        for (attack, most) in attacks {
            let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
            let at = listener.local_addr().expect("it is bound");
            let server = thread::spawn(move || {
                let (stream, _) = listener.accept().expect("a client comes");
                Channel::accept(stream, &Secret::new(SECRET).expect("long")).is_none()
            });
            let mut stream = TcpStream::connect(at).expect("it listens");
            // The server may have closed already.
            let _ = stream.write_all(attack);
            let _ = stream.shutdown(Shutdown::Write);
            let mut got = Vec::new();
            let _ = stream.read_to_end(&mut got);
            assert!(got.len() <= most, "{} bytes", got.len());
            assert!(server.join().expect("no panic"));
        }
    }

    #[test]
    fn a_slow_client_is_dropped_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let at = listener.local_addr().expect("it is bound");
        let mut slow = TcpStream::connect(at).expect("it listens");
        let (stream, _) = listener.accept().expect("a client came");
        let writer = thread::spawn(move || {
            for byte in preamble() {
                if slow.write_all(&[byte]).is_err() {
                    break;
                }
                thread::sleep(std::time::Duration::from_millis(30));
            }
        });
        let mut wire = Timed::new(&stream, Duration::from_millis(100));
        let error = wire.read(&mut [0; 8]).expect_err("it takes 240 ms");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(stream);
        writer.join().expect("no panic");
    }
}
