//! Whether the sources leave capacity unused (libwebrtc: `AlrDetector`).

use super::{Bps, Micros, kbps, scaled};

/// Share of the estimate that they use at least, the time over which that is seen, and the shares of it at
/// which an application-limited region begins and ends: those of `kDefaultProbingScreenshareBweSettings`, which
/// replace the ones of the detector unless a field trial says otherwise.
const USED: f64 = 0.8;
const TIME_MS: i64 = 500;
const BEGINS: f64 = 0.4;
const ENDS: f64 = -0.6;

/// A budget of bytes that grows with time and shrinks with what is sent.
#[derive(Debug, Default)]
pub(super) struct Alr {
    kbps: i64,
    most: i64,
    left: i64,
    sent: Option<Micros>,
    /// When the sources began to leave capacity unused, if they do.
    pub(super) began: Option<Micros>,
}

impl Alr {
    pub(super) fn set_rate(&mut self, estimate: Bps) {
        self.kbps = kbps(scaled(estimate, USED));
        self.most = TIME_MS * self.kbps / 8;
        self.left = self.left.clamp(-self.most, self.most);
    }

    /// A packet was sent `at` this time; it is `now`.
    pub(super) fn on_sent(&mut self, at: Micros, now: Micros, bytes: i64) {
        let Some(last) = self.sent.replace(at) else { return };
        self.left = (self.left - bytes).max(-self.most);
        let time = (at - last) / 1000;
        self.left = (self.left + self.kbps.saturating_mul(time) / 8).min(self.most);
        let share = if self.most == 0 { 0.0 } else { self.left as f64 / self.most as f64 };
        if share > BEGINS {
            self.began = self.began.or(Some(now));
        } else if share < ENDS {
            self.began = None;
        }
    }
}
