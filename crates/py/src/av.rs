//! Encoders and decoders of the Python module `talkspurt.real_time.codecs`, for the codecs that need PyAV.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use talkspurt_experiment::external::{self, Codec, Coder, Library, Role};

/// Where the Python part is.
const MODULE: &str = "talkspurt.real_time.codecs";

/// Makes the module's coders available to the engine. The module is imported when they are first needed.
pub(crate) fn register() {
    external::register(Box::new(Av));
}

#[derive(Debug)]
struct Av;

impl Library for Av {
    fn error(&self) -> Option<String> {
        Python::attach(|py| {
            let asked =
                py.import(MODULE).and_then(|module| module.call_method0("error")?.extract());
            asked.unwrap_or_else(|error: PyErr| Some(error.to_string()))
        })
    }

    fn coder(&self, codec: Codec, role: Role) -> Result<Box<dyn Coder>, String> {
        let class = match role {
            Role::Encodes => "Encoder",
            Role::Decodes => "Decoder",
        };
        Python::attach(|py| {
            let made =
                py.import(MODULE).and_then(|it| it.getattr(class)?.call1((codec.spec().name,)));
            let made = made.map_err(|error| error.to_string())?;
            Ok(Box::new(AvCoder(made.unbind())) as Box<dyn Coder>)
        })
    }
}

/// An instance of `Encoder` or `Decoder`.
#[derive(Debug)]
struct AvCoder(Py<PyAny>);

impl Coder for AvCoder {
    fn code(&mut self, frame: &[u8]) -> Result<Vec<u8>, String> {
        Python::attach(|py| {
            let coded = self.0.bind(py).call_method1("code", (PyBytes::new(py, frame),));
            coded.and_then(|coded| coded.extract()).map_err(|error| error.to_string())
        })
    }
}
