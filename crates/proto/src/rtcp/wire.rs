//! The compound RTCP packet (RFC 3550 §6.1 to §6.6).

use crate::octets::{WireError, at_least, u16_at, u32_at};
use crate::rtcp::{Compound, Feedback, PSFB, RTPFB, ReportBlock, SenderInfo};

const VERSION: u8 = 2;
// RFC 3550 §12.1: packet types.
const SR: u8 = 200;
const RR: u8 = 201;
const SDES: u8 = 202;
const BYE: u8 = 203;
/// RFC 3550 §12.2: SDES item type.
const CNAME: u8 = 1;

/// Appends the compound packet: SR or RR, SDES, feedback, and BYE if set; or feedback alone.
pub fn emit(compound: &Compound, out: &mut Vec<u8>) {
    if !compound.reduced {
        emit_report(compound, out);
        emit_sdes(compound, out);
    }
    compound.feedback.iter().for_each(|feedback| feedback.emit(out));
    if compound.bye {
        emit_header(1, BYE, 8, out);
        out.extend_from_slice(&compound.ssrc.to_be_bytes());
    }
}

/// RFC 3550 §6.4.1: the length counts 32-bit words less one.
pub(super) fn emit_header(count: usize, packet_type: u8, bytes: usize, out: &mut Vec<u8>) {
    let [high, low] = ((bytes / 4 - 1) as u16).to_be_bytes();
    out.extend_from_slice(&[VERSION << 6 | count as u8, packet_type, high, low]);
}

fn emit_report(compound: &Compound, out: &mut Vec<u8>) {
    let reports = compound.reports_written();
    let packet_type = if compound.sender.is_some() { SR } else { RR };
    emit_header(reports.len(), packet_type, compound.report_bytes(), out);
    out.extend_from_slice(&compound.ssrc.to_be_bytes());
    if let Some(info) = &compound.sender {
        out.extend_from_slice(&info.ntp.0.to_be_bytes());
        for field in [info.rtp_timestamp, info.packets, info.octets] {
            out.extend_from_slice(&field.to_be_bytes());
        }
    }
    for block in reports {
        out.extend_from_slice(&block.ssrc.to_be_bytes());
        out.push(block.fraction_lost);
        out.extend_from_slice(&block.cumulative_lost.to_be_bytes()[1..]);
        for field in
            [block.highest_sequence, block.jitter, block.last_sr, block.delay_since_last_sr]
        {
            out.extend_from_slice(&field.to_be_bytes());
        }
    }
}

fn emit_sdes(compound: &Compound, out: &mut Vec<u8>) {
    let start = out.len();
    let cname = compound.cname_written();
    emit_header(1, SDES, compound.sdes_bytes(), out);
    out.extend_from_slice(&compound.ssrc.to_be_bytes());
    out.extend_from_slice(&[CNAME, cname.len() as u8]);
    out.extend_from_slice(cname.as_bytes());
    // RFC 3550 §6.5: one or more null octets end the list, up to the next word.
    out.resize(start + compound.sdes_bytes(), 0);
}

/// One packet of a compound: its count field, type and what follows the header.
struct Part<'a> {
    count: usize,
    packet_type: u8,
    content: &'a [u8],
}

/// Reads a compound packet. Skips packets of other types (APP, XR) and items about sources other
/// than the reporter.
///
/// # Errors
/// Truncated or malformed bytes (the checks of RFC 3550 A.2).
pub fn parse(bytes: &[u8]) -> Result<Compound, WireError> {
    let (first, mut rest) = next_part(bytes, true)?;
    at_least(first.content, 4, "RTCP report")?;
    let mut compound = Compound { ssrc: u32_at(first.content, 0), ..Compound::default() };
    // RFC 3550 A.2: the first packet is a report, or in reduced-size RTCP feedback (RFC 5506 §3.4.2 advises to
    // permit specific types only).
    match first.packet_type {
        SR | RR => parse_report(&first, &mut compound)?,
        RTPFB | PSFB => {
            compound.reduced = true;
            rest = bytes;
        }
        _ => return Err(WireError::Malformed("RTCP does not begin with a report")),
    }
    while !rest.is_empty() {
        let (part, behind) = next_part(rest, false)?;
        match part.packet_type {
            SR | RR => {
                compound.reduced = false;
                parse_report(&part, &mut compound)?;
            }
            // Feedback alone has no CNAME.
            SDES if compound.reduced => {}
            SDES => parse_sdes(&part, &mut compound)?,
            BYE => parse_bye(&part, &mut compound)?,
            RTPFB | PSFB => {
                let (format, content) = (part.count as u8, part.content);
                let feedback = Feedback::parse(part.packet_type, format, content)?;
                if compound.reduced && compound.feedback.is_empty() {
                    compound.ssrc = feedback.sender;
                }
                // What says nothing is not written either.
                compound.feedback.extend(Some(feedback).filter(|it| it.wire_bytes() > 0));
            }
            _ => {}
        }
        rest = behind;
    }
    if compound.reduced && compound.feedback.is_empty() {
        return Err(WireError::Malformed("RTCP feedback without content"));
    }
    Ok(compound)
}

fn next_part(bytes: &[u8], first: bool) -> Result<(Part<'_>, &[u8]), WireError> {
    at_least(bytes, 4, "RTCP header")?;
    if bytes[0] >> 6 != VERSION {
        return Err(WireError::Malformed("RTCP version is not 2"));
    }
    let length = (usize::from(u16_at(bytes, 2)) + 1) * 4;
    at_least(bytes, length, "RTCP packet")?;
    let (packet, rest) = bytes.split_at(length);
    let mut content = &packet[4..];
    // RFC 3550 A.2: a first report that others follow is not padded. §6.4.1 permits padding on the last packet
    // alone, but libwebrtc, str0m and rtc pad transport-wide feedback wherever it is.
    if packet[0] & 0x20 != 0 {
        let padding = usize::from(packet[length - 1]);
        let precedes = first && matches!(packet[1], SR | RR) && !rest.is_empty();
        if precedes || padding == 0 || padding > content.len() {
            return Err(WireError::Malformed("RTCP padding"));
        }
        content = &content[..content.len() - padding];
    }
    Ok((Part { count: usize::from(bytes[0] & 0x1f), packet_type: bytes[1], content }, rest))
}

fn parse_report(part: &Part<'_>, compound: &mut Compound) -> Result<(), WireError> {
    let content = part.content;
    let info = if part.packet_type == SR { 20 } else { 0 };
    at_least(content, 4 + info + part.count * 24, "RTCP report")?;
    if u32_at(content, 0) != compound.ssrc {
        return Ok(());
    }
    let rest = &content[4..];
    if let Some(bytes) = rest.first_chunk().filter(|_| info > 0) {
        compound.sender = Some(SenderInfo::read(bytes));
    }
    let (blocks, _) = rest[info..].as_chunks();
    compound.reports.extend(blocks.iter().take(part.count).map(ReportBlock::read));
    Ok(())
}

fn parse_sdes(part: &Part<'_>, compound: &mut Compound) -> Result<(), WireError> {
    let mut ours = None;
    each_cname(part.count, part.content, |ssrc, name| {
        if ssrc == compound.ssrc {
            ours = Some(name);
        }
    })?;
    if let Some(name) = ours {
        compound.cname = std::str::from_utf8(name)
            .map_err(|_| WireError::Malformed("RTCP CNAME is not UTF-8"))?
            .to_owned();
    }
    Ok(())
}

/// Hands over each source in an SDES packet that has a CNAME, and the CNAME: `count` chunks follow the header.
///
/// # Errors
/// Truncated chunks, after those before them have been handed over.
pub fn each_cname<'a>(
    count: usize,
    mut chunks: &'a [u8],
    mut found: impl FnMut(u32, &'a [u8]),
) -> Result<(), WireError> {
    for _ in 0..count {
        at_least(chunks, 4, "RTCP SDES chunk")?;
        let mut at = 4;
        // RFC 3550 §6.5: a null octet ends the list of items.
        while *chunks.get(at).ok_or(WireError::Truncated("RTCP SDES item"))? != 0 {
            at_least(chunks, at + 2, "RTCP SDES item")?;
            let end = at + 2 + usize::from(chunks[at + 1]);
            at_least(chunks, end, "RTCP SDES item")?;
            if chunks[at] == CNAME {
                found(u32_at(chunks, 0), &chunks[at + 2..end]);
            }
            at = end;
        }
        let end = (at + 1).next_multiple_of(4);
        at_least(chunks, end, "RTCP SDES chunk")?;
        chunks = &chunks[end..];
    }
    Ok(())
}

fn parse_bye(part: &Part<'_>, compound: &mut Compound) -> Result<(), WireError> {
    at_least(part.content, part.count * 4, "RTCP BYE")?;
    let mut sources = part.content.chunks_exact(4).take(part.count);
    compound.bye |= sources.any(|source| u32_at(source, 0) == compound.ssrc);
    Ok(())
}
