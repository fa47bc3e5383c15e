//! The E-model of ITU-T G.107 (06/2015), clause by clause: parameters in, rating out. Symbols are the
//! Recommendation's; levels in dB, times in milliseconds, loss in per cent.

use talkspurt_proto::math::{exp, log10, pow};

/// Every input of the model (G.107 §7.7).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Send loudness rating, dB.
    pub slr: f64,
    /// Receive loudness rating, dB.
    pub rlr: f64,
    /// Sidetone masking rating, dB. The listener's sidetone rating LSTR is STMR + Dr.
    pub stmr: f64,
    /// D-value of the telephone at the send side.
    pub ds: f64,
    /// D-value of the telephone at the receive side.
    pub dr: f64,
    /// Talker echo loudness rating, dB.
    pub telr: f64,
    /// Weighted echo path loss, dB.
    pub wepl: f64,
    /// Mean one-way delay of the echo path, ms.
    pub t: f64,
    /// Round-trip delay in the four-wire loop, ms.
    pub tr: f64,
    /// Absolute delay in echo-free connections, ms.
    pub ta: f64,
    /// Number of quantisation distortion units.
    pub qdu: f64,
    /// Equipment impairment factor.
    pub ie: f64,
    /// Packet-loss robustness factor.
    pub bpl: f64,
    /// Random packet-loss probability, per cent.
    pub ppl: f64,
    /// Burst ratio.
    pub burst_r: f64,
    /// Circuit noise referred to the 0 dBr point, dBm0p.
    pub nc: f64,
    /// Noise floor at the receive side, dBmp.
    pub nfor: f64,
    /// Room noise at the send side, dB(A).
    pub ps: f64,
    /// Room noise at the receive side, dB(A).
    pub pr: f64,
    /// Advantage factor.
    pub a: f64,
    /// Delay sensitivity.
    pub s_t: f64,
    /// Minimum perceivable delay, ms.
    pub m_t: f64,
}

impl Default for Parameters {
    /// The default values of G.107 §7.7.
    fn default() -> Self {
        Self {
            slr: 8.0,
            rlr: 2.0,
            stmr: 15.0,
            ds: 3.0,
            dr: 3.0,
            telr: 65.0,
            wepl: 110.0,
            t: 0.0,
            tr: 0.0,
            ta: 0.0,
            qdu: 1.0,
            ie: 0.0,
            bpl: 4.3,
            ppl: 0.0,
            burst_r: 1.0,
            nc: -70.0,
            nfor: -64.0,
            ps: 35.0,
            pr: 35.0,
            a: 0.0,
            s_t: 1.0,
            m_t: 100.0,
        }
    }
}

/// The terms of the rating (G.107 §7.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rating {
    /// Basic signal-to-noise ratio.
    pub ro: f64,
    /// Impairments simultaneous with the voice.
    pub is: f64,
    /// Impairments by delay and echo.
    pub id: f64,
    /// Impairment by equipment and loss.
    pub ie_eff: f64,
    /// Advantage factor.
    pub a: f64,
}

impl Rating {
    /// The transmission rating factor R (§7.1).
    #[must_use]
    pub fn r(&self) -> f64 {
        self.ro - self.is - self.id - self.ie_eff + self.a
    }
}

impl Parameters {
    /// Rates the connection.
    #[must_use]
    pub fn rate(&self) -> Rating {
        let no = self.no();
        let ro = 15.0 - 1.5 * (self.slr + no);
        let ist = self.ist();
        Rating {
            ro,
            is: self.iolr(no) + ist + self.iq(ro),
            id: self.idte(no, ist) + self.idle(ro) + self.idd(),
            ie_eff: self.ie_eff(),
            a: self.a,
        }
    }

    /// Overall loudness rating.
    fn olr(&self) -> f64 {
        self.slr + self.rlr
    }

    /// §7.2: the power sum of all noises.
    fn no(&self) -> f64 {
        let olr = self.olr();
        let lstr = self.stmr + self.dr;
        let nos =
            self.ps - self.slr - self.ds - 100.0 + 0.004 * square(self.ps - olr - self.ds - 14.0);
        let pre = self.pr + db(1.0 + undb(10.0 - lstr));
        let nor = self.rlr - 121.0 + pre + 0.008 * square(pre - 35.0);
        let nfo = self.nfor + self.rlr;
        db(undb(self.nc) + undb(nos) + undb(nor) + undb(nfo))
    }

    /// §7.3.1: too low an overall loudness rating.
    fn iolr(&self, no: f64) -> f64 {
        let x = (self.olr() + 0.2 * (64.0 + no - self.rlr)) / 8.0;
        20.0 * (pow(1.0 + pow(x, 8.0), 1.0 / 8.0) - x)
    }

    /// §7.3.2: non-optimum sidetone.
    fn ist(&self) -> f64 {
        let stmr_o = -db(undb(-self.stmr) + exp(-self.t / 4.0) * undb(-self.telr));
        let term = |offset: f64, width: f64, power: f64| {
            pow(1.0 + pow((stmr_o + offset) / width, power), 1.0 / power)
        };
        12.0 * term(-13.0, 6.0, 8.0) - 28.0 * term(1.0, 19.4, 35.0) - 13.0 * term(-3.0, 33.0, 13.0)
            + 29.0
    }

    /// §7.3.3: quantisation.
    fn iq(&self, ro: f64) -> f64 {
        let q = 37.0 - 15.0 * log10(self.qdu);
        let g = 1.07 + 0.258 * q + 0.0602 * q * q;
        let y = (ro - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
        let z = 46.0 / 30.0 - g / 40.0;
        15.0 * log10(1.0 + pow(10.0, y) + pow(10.0, z))
    }

    /// §7.4.1: talker echo, none below 1 ms.
    fn idte(&self, no: f64, ist: f64) -> f64 {
        let t = self.t;
        if t < 1.0 {
            return 0.0;
        }
        let roe = -1.5 * (no - self.rlr);
        let mut terv = self.telr - 40.0 * log10((1.0 + t / 10.0) / (1.0 + t / 150.0))
            + 6.0 * exp(-0.3 * t * t);
        if self.stmr < 9.0 {
            terv += ist / 2.0; // TERVs
        }
        let re = 80.0 + 2.5 * (terv - 14.0);
        let half = (roe - re) / 2.0;
        let idte = (half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - exp(-t));
        // Masking by weak sidetone ends above 20 dB: Idtes.
        if self.stmr > 20.0 { (square(idte) + square(ist)).sqrt() } else { idte }
    }

    /// §7.4.2: listener echo.
    fn idle(&self, ro: f64) -> f64 {
        let rle = 10.5 * (self.wepl + 7.0) * pow(self.tr + 1.0, -0.25);
        let half = (ro - rle) / 2.0;
        half + (half * half + 169.0).sqrt()
    }

    /// §7.4.3: absolute delay, no impairment up to mT.
    fn idd(&self) -> f64 {
        if self.ta <= self.m_t {
            return 0.0;
        }
        let x = log10(self.ta / self.m_t) / log10(2.0);
        let power = 6.0 * self.s_t;
        let norm = |x: f64| pow(1.0 + pow(x, power), 1.0 / power);
        25.0 * (norm(x) - 3.0 * norm(x / 3.0) + 2.0)
    }

    /// §7.5: equipment and loss.
    fn ie_eff(&self) -> f64 {
        if self.ppl <= 0.0 {
            return self.ie;
        }
        self.ie + (95.0 - self.ie) * self.ppl / (self.ppl / self.burst_r + self.bpl)
    }
}

/// Mean opinion score for a rating (G.107 Annex B). The cubic dips to 0.99 just above R = 0; the score is
/// limited to 1.
#[must_use]
pub fn mos(r: f64) -> f64 {
    if r >= 100.0 {
        4.5
    } else if r > 0.0 {
        (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
    } else {
        1.0
    }
}

fn square(x: f64) -> f64 {
    x * x
}
fn db(ratio: f64) -> f64 {
    10.0 * log10(ratio)
}
fn undb(level: f64) -> f64 {
    pow(10.0, level / 10.0)
}
