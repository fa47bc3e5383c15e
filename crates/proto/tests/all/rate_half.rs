//! One half of a CCID 3 or 4 connection alone: the packets it would see are handmade.

use talkspurt_proto::dccp::ccid::{
    Acknowledgement, Arrival, Departure, Receiver as _, Sender as _,
};
use talkspurt_proto::dccp::ccid3::{Receiver, Sender};
use talkspurt_proto::dccp::options::Opt;
use talkspurt_proto::dccp::{AckVector, Options, SeqNo};
use talkspurt_proto::packet::Ecn;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::{Config, Kind};
use talkspurt_proto::time::{Duration, Instant};
pub use talkspurt_testing::dccp::with as options;
pub use talkspurt_testing::{Notes, ms};

pub fn at(since: Duration) -> Instant {
    Instant::ZERO + since
}
/// The place of the packet with this number, counted from 0.
pub fn place(number: u64) -> SeqNo {
    SeqNo::first(1_000_000) + number
}

/// The value of the option of this type, if there is one.
pub fn option(options: &Options, kind: u8) -> Option<Vec<u8>> {
    let mut rest = options.as_bytes();
    while let [this, len, ..] = rest {
        if *this < 32 {
            rest = &rest[1..];
            continue;
        }
        if *this == kind {
            return Some(rest[2..usize::from(*len)].to_vec());
        }
        rest = &rest[usize::from(*len)..];
    }
    None
}

/// A receiving half.
pub struct ReceiverBench {
    pub receiver: Receiver,
    pub notes: Notes,
}

impl ReceiverBench {
    pub fn new(profile: Profile, kind: Kind) -> Self {
        Self::with(&Config::default(), profile, kind)
    }
    pub fn with(config: &Config, profile: Profile, kind: Kind) -> Self {
        let parameters = config.resolve(profile, kind);
        let receiver = Receiver::new(&parameters);
        Self { receiver, notes: Notes::default() }
    }
    pub fn set_rtt(&mut self, rtt: Duration) {
        self.receiver.set_rtt(rtt);
    }
    /// A data packet of 100 bytes arrives.
    pub fn data(&mut self, since: Duration, number: u64, ccval: u8) {
        self.data_with(since, number, ccval, |_| {});
    }
    pub fn data_with<'a>(
        &mut self,
        since: Duration,
        number: u64,
        ccval: u8,
        change: impl FnOnce(&mut Arrival<'a>),
    ) {
        static NONE: std::sync::LazyLock<Options> = std::sync::LazyLock::new(Options::default);
        let mut packet = Arrival {
            seq: place(number),
            data_bytes: Some(100),
            ccval,
            ecn: Ecn::NotEct,
            ndp: None,
            options: &NONE,
        };
        change(&mut packet);
        self.receiver.on_packet(at(since), &packet, &mut self.notes);
    }
    /// A packet without data arrives.
    pub fn bare(&mut self, since: Duration, number: u64) {
        self.data_with(since, number, 0, |packet| packet.data_bytes = None);
    }
    /// The options of the acknowledgement that leaves now, if one is wanted.
    pub fn report(&mut self, since: Duration) -> Option<Options> {
        if !self.receiver.wants_ack(at(since)) {
            return None;
        }
        let mut out = Options::default();
        self.receiver.acknowledge(at(since), false, &mut AckVector::default(), &mut out);
        assert!(!self.receiver.wants_ack(at(since)), "wanted once");
        Some(out)
    }
}

/// A sending half.
pub struct SenderBench {
    pub sender: Sender,
    pub notes: Notes,
    /// Elapsed time reported by acknowledgements.
    pub elapsed: Option<Duration>,
    next: u64,
    feedback: u64,
}

impl SenderBench {
    pub fn new(profile: Profile, kind: Kind) -> Self {
        Self::with(&Config::default(), profile, kind)
    }
    pub fn with(config: &Config, profile: Profile, kind: Kind) -> Self {
        let parameters = config.resolve(profile, kind);
        Self {
            sender: Sender::new(Instant::ZERO, &parameters, &[]),
            notes: Notes::default(),
            elapsed: None,
            next: 0,
            feedback: 0,
        }
    }
    /// How many packets were sent: the number of the next.
    pub const fn sent(&self) -> u64 {
        self.next
    }
    /// A data packet leaves; its `CCVal`.
    pub fn send(&mut self, since: Duration, bytes: u32) -> u8 {
        let ccval = self.sender.ccval(at(since));
        self.leave(since, Some(bytes));
        ccval
    }
    /// A packet without data leaves.
    pub fn send_bare(&mut self, since: Duration) {
        self.sender.ccval(at(since));
        self.leave(since, None);
    }
    fn leave(&mut self, since: Duration, data_bytes: Option<u32>) {
        let departure = Departure { seq: place(self.next), data_bytes };
        self.next += 1;
        self.sender.on_sent(at(since), &departure, &mut self.notes);
    }
    /// Sends that many packets, one each millisecond; how many there were.
    pub fn fill(&mut self, count: u64) -> u64 {
        (0..count).for_each(|number| {
            self.send(ms(number), 100);
        });
        count
    }
    /// The options of the next data packet.
    pub fn options(&mut self, since: Duration) -> Options {
        let mut out = Options::default();
        self.sender.options(at(since), &mut out);
        out
    }
    /// Feedback without loss for the packet with this number.
    pub fn feedback(&mut self, since: Duration, number: u64, bytes_per_second: u32) {
        let rate = bytes_per_second.to_be_bytes();
        self.ack(since, number, &[Opt::Ccid { kind: 194, value: &rate }]);
    }
    pub fn ack(&mut self, since: Duration, number: u64, list: &[Opt<'_>]) {
        let seq = self.feedback;
        self.feedback += 1;
        self.ack_numbered(since, seq, number, list);
    }
    /// An acknowledgement which itself has the number `seq`.
    pub fn ack_numbered(&mut self, since: Duration, seq: u64, number: u64, list: &[Opt<'_>]) {
        let acknowledgement = Acknowledgement {
            seq: place(seq),
            ack: place(number),
            options: &options(list),
            ecn: Ecn::NotEct,
            elapsed: self.elapsed,
            echo_rtt: None,
        };
        // As in the connection: every packet is first reported as an arrival.
        let packet = Arrival {
            seq: place(seq),
            data_bytes: None,
            ccval: 0,
            ecn: Ecn::NotEct,
            ndp: None,
            options: &options(list),
        };
        self.sender.on_arrival(at(since), &packet);
        self.sender.on_ack(at(since), &acknowledgement, &mut self.notes);
    }
}
