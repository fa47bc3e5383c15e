//! Service Codes (RFC 4340 §8.1.2, RFC 5595), which identify the application of a connection: 32 bits
//! and a text notation.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A Service Code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service(pub u32);

/// Reason why a text is not a Service Code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// None of the three notations.
    #[error("write a Service Code as \"SC:RTPA\", \"SC=1381257281\" or \"SC=x52545041\"")]
    Form,
    /// RFC 4340 §8.1.2 allows letters, digits and `-_+.*/?@` in the text form.
    #[error("a Service Code's text has up to four of letters, digits and -_+.*/?@")]
    Text,
    /// RFC 4340 §8.1.2: all ones is invalid.
    #[error("Service Code 4294967295 is invalid (RFC 4340 §8.1.2)")]
    Invalid,
}

impl Service {
    /// RFC 4340 §8.1.2: no meaningful Service Code.
    pub const NONE: Self = Self(0);
    /// RFC 5762 §5.2: an RTP session of audio.
    pub const RTP_AUDIO: Self = Self::of(*b"RTPA");
    /// RFC 5762 §5.2: an RTP session of video.
    pub const RTP_VIDEO: Self = Self::of(*b"RTPV");
    /// RFC 5762 §5.2: an RTP session of text.
    pub const RTP_TEXT: Self = Self::of(*b"RTPT");
    /// RFC 5762 §5.2: any other RTP session.
    pub const RTP_OTHER: Self = Self::of(*b"RTPO");
    /// RFC 5762 §5.2: RTCP on a connection of its own.
    pub const RTCP: Self = Self::of(*b"RTCP");

    const fn of(text: [u8; 4]) -> Self {
        Self(u32::from_be_bytes(text))
    }

    /// RFC 4340 §8.1.2: all ones is invalid.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.0 != u32::MAX
    }

    fn text(self) -> Option<String> {
        let bytes = self.0.to_be_bytes();
        let end = bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
        let legal = end > 0 && bytes[..end].iter().all(|byte| is_legal(*byte));
        legal.then(|| bytes[..end].iter().map(|byte| char::from(*byte)).collect())
    }
}

const fn is_legal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'_' | b'+' | b'.' | b'*' | b'/' | b'?' | b'@')
}

impl FromStr for Service {
    type Err = ServiceError;

    /// RFC 4340 §8.1.2: "SC:" and text, "SC=" and a decimal number, or "SC=x" and a hexadecimal one.
    /// Up to four characters without prefix are also text.
    fn from_str(written: &str) -> Result<Self, ServiceError> {
        let number = |digits: &str, radix| {
            u32::from_str_radix(digits, radix).map_err(|_| ServiceError::Form)
        };
        let code = if let Some(number_text) = written.strip_prefix("SC=") {
            match number_text.strip_prefix(['x', 'X']) {
                Some(hex) => number(hex, 16)?,
                None => number(number_text, 10)?,
            }
        } else {
            let text = written.strip_prefix("SC:").unwrap_or(written);
            if text.is_empty() || text.len() > 4 || !text.bytes().all(is_legal) {
                return Err(ServiceError::Text);
            }
            // RFC 4340 §8.1.2: padded on the right with spaces.
            let mut bytes = [b' '; 4];
            bytes[..text.len()].copy_from_slice(text.as_bytes());
            u32::from_be_bytes(bytes)
        };
        let service = Self(code);
        if service.is_valid() { Ok(service) } else { Err(ServiceError::Invalid) }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text() {
            Some(text) => write!(f, "SC:{text}"),
            None => write!(f, "SC={}", self.0),
        }
    }
}

impl Serialize for Service {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Service {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl de::Visitor<'_> for Written {
            type Value = Service;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a Service Code such as \"SC:RTPA\" or a number")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Service, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, code: u64) -> Result<Service, E> {
                u32::try_from(code)
                    .ok()
                    .map(Service)
                    .filter(|service| service.is_valid())
                    .ok_or_else(|| E::custom(ServiceError::Invalid))
            }
            fn visit_i64<E: de::Error>(self, code: i64) -> Result<Service, E> {
                self.visit_u64(u64::try_from(code).unwrap_or(u64::MAX))
            }
        }
        deserializer.deserialize_any(Written)
    }
}
impl JsonSchema for Service {
    fn schema_name() -> Cow<'static, str> {
        "Service".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "integer"],
            "format": "service-code",
            "minimum": 0,
            "maximum": 4_294_967_294_u32,
            "description": "A DCCP Service Code: up to four characters (\"RTPA\", \"SC:RTPA\"), \"SC=1381257281\", \"SC=x52545041\" or a number.",
        })
    }
}
