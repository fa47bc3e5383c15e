//! The E-model score of a part of a call.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use talkspurt_experiment::Heard;
use talkspurt_record::Quality;
use talkspurt_scenario::model::Flow;

/// R and MOS of a flow (JSON as in a resolved scenario), or of its answering side, from frames played
/// by rung of the ladder (none for a source that never changed rung), mouth-to-ear delay, share of
/// frames missing or late, burst ratio, and share of frames recovered from redundancy; of the whole
/// call, the mean payload of a packet, and the shares of packets with FEC and DRED. Then the
/// estimated MOS. Absent where there are no values for the codec, or the source is not speech.
#[pyfunction]
#[pyo3(signature = (flow, reverse, played, mouth_to_ear_s, loss, burst_ratio, recovered, whole))]
#[expect(clippy::too_many_arguments, reason = "they are those of the Python function")]
pub(crate) fn opinion(
    flow: &str,
    reverse: bool,
    played: Vec<u64>,
    mouth_to_ear_s: Option<f64>,
    loss: f64,
    burst_ratio: Option<f64>,
    recovered: f64,
    whole: [Option<f64>; 3],
) -> PyResult<(Option<f64>, Option<f64>, Option<f64>)> {
    let [payload_bytes, fec_ratio, dred_ratio] = whole;
    let played = &played;
    let heard = Heard {
        played,
        mouth_to_ear_s,
        loss,
        burst_ratio,
        recovered,
        payload_bytes,
        fec_ratio,
        dred_ratio,
    };
    let quality = rated(flow, reverse, &heard)?;
    Ok((quality.r_factor, quality.mos, quality.estimated_mos))
}

fn rated(flow: &str, reverse: bool, heard: &Heard<'_>) -> PyResult<Quality> {
    let flow: Flow =
        serde_json::from_str(flow).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let source = if reverse { flow.reverse.as_ref() } else { Some(&flow.source) };
    Ok(source.map_or_else(Quality::default, |source| {
        talkspurt_experiment::opinion(&flow, source, heard)
    }))
}
