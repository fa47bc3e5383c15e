//! Session descriptions (RFC 8866) of RTP, and where they are in captures: in SIP (RFC 3261), in announcements
//! (RFC 2974), in RTSP, and plain. Beside the attributes of RFC 8866 these are read: `rtcp`, `rtcp-mux`
//! (RFC 5761 §5.1.1), `ssrc` and `ssrc-group` (RFC 5576 §4), `candidate` (RFC 8839 §5.1). What is wrong in a
//! line costs this line.

use std::net::IpAddr;
use std::str::FromStr;

use serde::Serialize;

/// Bytes of a line; longer ones are skipped.
const MAX_LINE: usize = 8192;
/// Descriptions of media in one session.
const MAX_MEDIA: usize = 256;
/// SSRCs, groups of them, or candidates of one description; SSRCs of one group.
const MAX_LIST: usize = 256;

/// A description of media.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Media {
    /// `audio`, `video`, `application` and others.
    pub kind: String,
    /// Where it is received: the address at the level of the media or the session, if it is not a name.
    pub address: Option<IpAddr>,
    /// Port of the media; 0 if it is refused, or not known in advance (RTSP).
    pub port: u16,
    /// `RTP/AVP`, `RTP/SAVPF` and others.
    pub protocol: String,
    /// Payload types in the order of preference; none if the protocol is not one of RTP.
    pub payloads: Vec<Payload>,
    /// Time in a packet.
    pub ptime_ms: Option<f64>,
    /// Most time in a packet.
    pub maxptime_ms: Option<f64>,
    /// Direction, seen from the one who describes.
    pub direction: Direction,
    /// Port of RTCP, if the attribute `rtcp` says so.
    pub rtcp_port: Option<u16>,
    /// Address of RTCP, if the attribute `rtcp` says so.
    pub rtcp_address: Option<IpAddr>,
    /// RTCP may have the port of RTP.
    pub rtcp_mux: bool,
    /// Sources, in the order of their mention.
    pub ssrcs: Vec<u32>,
    /// Groups of sources.
    pub groups: Vec<Group>,
    /// Addresses for connectivity checks.
    pub candidates: Vec<Candidate>,
}

/// A payload type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Payload {
    /// Its number, 0 to 127.
    pub number: u8,
    /// Its format: of `rtpmap`, or of RFC 3551 §6; none if neither says it.
    #[serde(flatten)]
    pub format: Option<Format>,
    /// Parameters as `fmtp` has them.
    pub fmtp: Option<String>,
    /// What its packets are.
    pub role: Role,
    /// The payload type that it repeats (RFC 4588 §8.1), if these are retransmissions.
    pub apt: Option<u8>,
}

/// Format of a payload type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Format {
    /// Name of the encoding, which is case-insensitive.
    pub encoding: String,
    /// Clock rate of timestamps.
    pub clock_hz: u32,
    /// Channels; 1 if this is not said.
    pub channels: u16,
}

/// What packets of a payload type are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Media.
    #[default]
    Media,
    /// Media with redundant blocks (RFC 2198).
    Redundant,
    /// Retransmissions (RFC 4588).
    Retransmission,
    /// Forward error correction (RFC 5109, RFC 8627).
    Repair,
    /// Telephone events (RFC 4733).
    Events,
    /// Comfort noise (RFC 3389).
    ComfortNoise,
}

/// Direction of media.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Both.
    #[default]
    SendRecv,
    /// Only sent.
    SendOnly,
    /// Only received.
    RecvOnly,
    /// None.
    Inactive,
}

/// A group of sources: `FID` has a source and that of its retransmissions, `FEC-FR` a source and that of its
/// repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// What it means.
    pub semantics: String,
    /// Its sources.
    pub ssrcs: Vec<u32>,
}

/// An address for connectivity checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// 1 for RTP, 2 for RTCP.
    pub component: u16,
    /// `UDP` and others.
    pub transport: String,
    /// Address.
    pub address: IpAddr,
    /// Port.
    pub port: u16,
    /// `host`, `srflx`, `prflx` or `relay`.
    pub kind: String,
}

/// Reads a session description: its media, at least one. Lines end with CRLF or LF, the last one also without;
/// blank lines, a byte order mark and bytes that are not lines are skipped.
#[must_use]
pub fn parse(text: &[u8]) -> Option<Vec<Media>> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut lines = lines.filter(|line| !line.is_empty());
    if lines.next() != Some(b"v=0") {
        return None;
    }
    let mut session = Media::default();
    let mut media: Vec<Media> = Vec::new();
    for line in lines.filter(|line| line.len() <= MAX_LINE) {
        let [field, b'=', value @ ..] = line else { continue };
        let value = String::from_utf8_lossy(value);
        match field {
            // Another session.
            b'v' => break,
            b'm' if media.len() == MAX_MEDIA => break,
            b'm' => media.push(described(&value, &session)),
            b'c' | b'a' => {
                let (level, first) = match media.last_mut() {
                    Some(media) => (media, session.address),
                    None => (&mut session, None),
                };
                match field {
                    // RFC 8866 §5.7: further ones are for further layers.
                    b'c' if level.address == first => {
                        level.address = value.split_whitespace().nth(2).and_then(address);
                    }
                    b'a' => level.attribute(&value),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    media.iter_mut().flat_map(|media| &mut media.payloads).for_each(Payload::classify);
    (!media.is_empty()).then_some(media)
}

/// RFC 8866 §5.14: the field `m=`, in a session with an address and a direction.
fn described(value: &str, session: &Media) -> Media {
    let mut fields = value.split_whitespace();
    let mut next = || fields.next().unwrap_or_default();
    let (kind, port, protocol) = (next().to_owned(), next(), next().to_owned());
    // A number of ports may follow.
    let port = port.split('/').next().and_then(number).unwrap_or(0);
    let mut payloads: Vec<Payload> = Vec::new();
    if protocol.split('/').any(|part| part.eq_ignore_ascii_case("RTP")) {
        for number in fields.filter_map(number::<u8>).filter(|number| *number < 128) {
            if payloads.iter().all(|payload| payload.number != number) {
                let (fmtp, role) = (None, Role::Media);
                payloads.push(Payload { number, format: fixed(number), fmtp, role, apt: None });
            }
        }
    }
    let (address, direction) = (session.address, session.direction);
    Media { kind, address, port, protocol, payloads, direction, ..Media::default() }
}

impl Media {
    fn attribute(&mut self, text: &str) {
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        let mut fields = value.split_whitespace();
        match name.trim_end() {
            "sendrecv" => self.direction = Direction::SendRecv,
            "sendonly" => self.direction = Direction::SendOnly,
            "recvonly" => self.direction = Direction::RecvOnly,
            "inactive" => self.direction = Direction::Inactive,
            "ptime" => self.ptime_ms = millis(value),
            "maxptime" => self.maxptime_ms = millis(value),
            "rtcp-mux" => self.rtcp_mux = true,
            "rtcp" => {
                self.rtcp_port = fields.next().and_then(number);
                self.rtcp_address = fields.nth(2).and_then(address);
            }
            "rtpmap" => {
                if let Some((payload, rest)) = self.payload(value)
                    && let Some(format) = format(rest)
                {
                    payload.format = Some(format);
                }
            }
            "fmtp" => {
                if let Some((payload, rest)) = self.payload(value) {
                    payload.fmtp = Some(rest.to_owned());
                }
            }
            "ssrc" => {
                let known =
                    fields.next().and_then(number).filter(|ssrc| !self.ssrcs.contains(ssrc));
                self.ssrcs.extend(known.filter(|_| self.ssrcs.len() < MAX_LIST));
            }
            "ssrc-group" if self.groups.len() < MAX_LIST => {
                let semantics = fields.next().unwrap_or_default().to_owned();
                let ssrcs = fields.filter_map(number).take(MAX_LIST).collect();
                self.groups.push(Group { semantics, ssrcs });
            }
            "candidate" if self.candidates.len() < MAX_LIST => {
                self.candidates.extend(candidate(value));
            }
            _ => {}
        }
    }

    /// The payload type with whose number the value begins, and the rest.
    fn payload<'a>(&mut self, value: &'a str) -> Option<(&mut Payload, &'a str)> {
        let (first, rest) = value.trim_start().split_once(char::is_whitespace)?;
        let wanted = number::<u8>(first)?;
        let payload = self.payloads.iter_mut().find(|payload| payload.number == wanted)?;
        Some((payload, rest.trim()))
    }
}

impl Payload {
    fn classify(&mut self) {
        let Some(format) = &self.format else { return };
        self.role = match format.encoding.to_ascii_lowercase().as_str() {
            "red" => Role::Redundant,
            "rtx" => Role::Retransmission,
            // `flexfec-03` is a draft of RFC 8627 and what libwebrtc says.
            "ulpfec" | "flexfec" | "flexfec-03" | "parityfec" => Role::Repair,
            "telephone-event" => Role::Events,
            "cn" => Role::ComfortNoise,
            _ => Role::Media,
        };
        if self.role == Role::Retransmission {
            let parameters = self.fmtp.as_deref().unwrap_or_default().split(';');
            self.apt = parameters
                .filter_map(|parameter| parameter.split_once('='))
                .find(|(name, _)| name.trim().eq_ignore_ascii_case("apt"))
                .and_then(|(_, value)| number(value.trim()));
        }
    }
}

/// RFC 8866 §6, rtpmap: `encoding/clock`, and possibly channels.
fn format(text: &str) -> Option<Format> {
    let mut parts = text.split('/').map(str::trim);
    let encoding = parts.next().filter(|name| !name.is_empty())?.to_owned();
    let clock_hz = parts.next().and_then(number).filter(|clock| *clock > 0)?;
    let channels = parts.next().and_then(number).filter(|channels| *channels > 0).unwrap_or(1);
    Some(Format { encoding, clock_hz, channels })
}

/// The encoding of a payload type by RFC 3551 §6, tables 4 and 5.
#[must_use]
pub fn fixed(number: u8) -> Option<Format> {
    let (encoding, clock_hz, channels) = match number {
        0 => ("PCMU", 8000, 1),
        3 => ("GSM", 8000, 1),
        4 => ("G723", 8000, 1),
        5 => ("DVI4", 8000, 1),
        6 => ("DVI4", 16_000, 1),
        7 => ("LPC", 8000, 1),
        8 => ("PCMA", 8000, 1),
        9 => ("G722", 8000, 1),
        10 => ("L16", 44_100, 2),
        11 => ("L16", 44_100, 1),
        12 => ("QCELP", 8000, 1),
        13 => ("CN", 8000, 1),
        14 => ("MPA", 90_000, 1),
        15 => ("G728", 8000, 1),
        16 => ("DVI4", 11_025, 1),
        17 => ("DVI4", 22_050, 1),
        18 => ("G729", 8000, 1),
        25 => ("CelB", 90_000, 1),
        26 => ("JPEG", 90_000, 1),
        28 => ("nv", 90_000, 1),
        31 => ("H261", 90_000, 1),
        32 => ("MPV", 90_000, 1),
        33 => ("MP2T", 90_000, 1),
        34 => ("H263", 90_000, 1),
        _ => return None,
    };
    Some(Format { encoding: encoding.to_owned(), clock_hz, channels })
}

/// RFC 8839 §5.1. A candidate with a name instead of an address is ignored, as there.
fn candidate(value: &str) -> Option<Candidate> {
    let fields: Vec<&str> = value.split_whitespace().take(8).collect();
    let [_, component, transport, _, place, port, "typ", kind] = *fields.as_slice() else {
        return None;
    };
    Some(Candidate {
        component: number(component)?,
        transport: transport.to_owned(),
        address: address(place)?,
        port: number(port)?,
        kind: kind.to_owned(),
    })
}

/// An address, behind which a time to live or a number of addresses may be.
fn address(text: &str) -> Option<IpAddr> {
    text.split('/').next()?.parse().ok()
}

/// A number in decimal digits.
fn number<N: FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// RFC 8866 §6, ptime: more than zero, possibly with a fraction. A packet has less than a minute.
fn millis(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|ms| *ms > 0.0 && *ms < 60_000.0)
}

/// In what a description was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// A SIP message.
    Sip,
    /// An RTSP message.
    Rtsp,
    /// A session announcement.
    Sap,
    /// The datagram is the description.
    Plain,
}

/// Finds the description in the payload of a UDP datagram, or of a TCP segment that begins with a message. If
/// `cut`, bytes at the end are missing, and the last line counts only with its end.
#[must_use]
pub fn find(payload: &[u8], cut: bool) -> Option<(Carrier, Vec<Media>)> {
    let (carrier, text, cut) = match payload {
        [b'v', b'=', b'0', ..] => (Carrier::Plain, payload, cut),
        // RFC 2974 §6: version 1.
        [0x20..=0x3f, ..] => (Carrier::Sap, announced(payload)?, cut),
        // RFC 3261 §7.5: empty lines may precede the message.
        [b'A'..=b'Z' | b'\r' | b'\n', ..] => message(payload.trim_ascii_start(), cut)?,
        _ => return None,
    };
    Some((carrier, parse(whole_lines(text, cut))?))
}

fn whole_lines(text: &[u8], cut: bool) -> &[u8] {
    let end = if cut { text.iter().rposition(|byte| *byte == b'\n') } else { None };
    if cut { &text[..end.unwrap_or(0)] } else { text }
}

/// RFC 2974 §6: an announcement that is neither encrypted nor compressed, behind the originating source and the
/// authentication data. Without a type the payload is a session description.
fn announced(bytes: &[u8]) -> Option<&[u8]> {
    let &[flags, authentication, _, _, ..] = bytes else { return None };
    if flags & 0x07 != 0 {
        return None;
    }
    let source = if flags & 0x10 == 0 { 4 } else { 16 };
    let payload = bytes.get(4 + source + 4 * usize::from(authentication)..)?;
    if payload.starts_with(b"v=0") {
        return Some(payload);
    }
    let end = payload.iter().take(MAX_LINE).position(|byte| *byte == 0)?;
    describes(&payload[..end]).then(|| &payload[end + 1..])
}

/// The description in a message of SIP or RTSP, and whether its end is missing.
fn message(bytes: &[u8], cut: bool) -> Option<(Carrier, &[u8], bool)> {
    let (start, rest) = line(bytes)?;
    let named = |name: &[u8]| start.starts_with(name) || start.windows(5).any(|word| word == name);
    let carrier = if start.starts_with(b"SIP/2.0 ") || start.ends_with(b" SIP/2.0") {
        Carrier::Sip
    } else if named(b"RTSP/") {
        Carrier::Rtsp
    } else {
        return None;
    };
    let Head { content_type, length, body } = head(rest)?;
    // RFC 3261 §18.3: without a length the body extends to the end of the datagram.
    let (body, cut) = match length.and_then(|length| body.get(..length)) {
        Some(body) => (body, false),
        None => (body, cut || length.is_some()),
    };
    let media_type = content_type.split(|byte| *byte == b';').next()?.trim_ascii();
    if content_type.is_empty() || describes(media_type) {
        return Some((carrier, body, cut));
    }
    if !media_type.get(..10)?.eq_ignore_ascii_case(b"multipart/") {
        return None;
    }
    let (part, cut) = part(&content_type, body, cut)?;
    Some((carrier, part, cut))
}

fn describes(media_type: &[u8]) -> bool {
    let media_type = media_type.split(|byte| *byte == b';').next().unwrap_or_default();
    media_type.trim_ascii().eq_ignore_ascii_case(b"application/sdp")
}

/// The first description among the parts of a multipart body, and whether its end is missing.
fn part<'a>(content_type: &[u8], body: &'a [u8], cut: bool) -> Option<(&'a [u8], bool)> {
    let mut parameters = content_type.split(|byte| *byte == b';');
    let boundary = parameters.find_map(|parameter| {
        let at = parameter.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (parameter[..at].trim_ascii(), parameter[at + 1..].trim_ascii());
        let value = value.strip_prefix(b"\"").unwrap_or(value);
        name.eq_ignore_ascii_case(b"boundary").then(|| value.strip_suffix(b"\"").unwrap_or(value))
    })?;
    // MIME permits 70 characters.
    if boundary.is_empty() || boundary.len() > 70 {
        return None;
    }
    let delimiter = [b"--", boundary].concat();
    let mut rest = body;
    loop {
        let start = position(rest, &delimiter)? + delimiter.len();
        let (_, inside) = line(&rest[start..])?;
        let end = position(inside, &delimiter);
        let one = &inside[..end.unwrap_or(inside.len())];
        if let Some(head) = head(one)
            && describes(&head.content_type)
        {
            return Some((head.body, cut && end.is_none()));
        }
        rest = &inside[end?..];
    }
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// The header fields of a message, or of a part of one, that concern its body.
struct Head<'a> {
    content_type: Vec<u8>,
    length: Option<usize>,
    body: &'a [u8],
}

/// Reads the header fields up to the empty line; none without it. RFC 3261 §7.3.1: a line that begins with a
/// space continues the one before.
fn head(mut bytes: &[u8]) -> Option<Head<'_>> {
    let (mut content_type, mut length, mut continued) = (Vec::new(), None, false);
    loop {
        let (field, rest) = line(bytes)?;
        bytes = rest;
        if field.is_empty() {
            return Some(Head { content_type, length, body: bytes });
        }
        if field[0].is_ascii_whitespace() {
            if continued {
                content_type.extend_from_slice(field);
            }
            continue;
        }
        let Some(colon) = field.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (field[..colon].trim_ascii(), field[colon + 1..].trim_ascii());
        // RFC 3261 §7.3.3 and §20: the compact forms are one letter.
        let is = |long: &[u8], compact: &[u8]| {
            name.eq_ignore_ascii_case(long) || name.eq_ignore_ascii_case(compact)
        };
        continued = is(b"Content-Type", b"c");
        if continued {
            content_type = value.to_vec();
        } else if is(b"Content-Length", b"l") {
            length = std::str::from_utf8(value).ok().and_then(number);
        }
    }
}

/// The first line without its end, if that is there, and what follows it.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().take(MAX_LINE).position(|byte| *byte == b'\n')?;
    let line = &bytes[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), &bytes[end + 1..]))
}
