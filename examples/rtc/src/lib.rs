//! Tests of our RTP and RTCP packets against those of rtc-interceptor.

#![cfg(test)]

mod random;
mod tests;
