//! ControlResponse: the answer to a command.

use namehop_wire::tlv::{Reader, Writer, decode_nni, read_single_element, types::nfd};

use super::codec::CodecError;
use super::numbers::status_code;
use super::parameters::ControlParameters;
use super::record::Element;

/// Status code, text, and a body that depends on the command: nearly always a ControlParameters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ControlResponse {
    /// See [`status_code`].
    pub code: u64,
    /// The outcome, as text for people.
    pub text: String,
    /// Complete elements after the status text; empty if there is no body.
    pub body: Vec<u8>,
}

impl ControlResponse {
    /// Creates a response without body.
    pub fn new(code: u64, text: impl Into<String>) -> Self {
        ControlResponse { code, text: text.into(), body: Vec::new() }
    }

    /// Creates a response with code 200 and the resulting parameters.
    pub fn ok(parameters: &ControlParameters) -> Self {
        ControlResponse::new(status_code::OK, "OK").with_parameters(parameters)
    }

    /// Returns the response with a ControlParameters as body.
    pub fn with_parameters(mut self, parameters: &ControlParameters) -> Self {
        self.body = parameters.to_vec();
        self
    }

    /// Decodes the body as ControlParameters; an empty body gives empty ControlParameters.
    pub fn parameters(&self) -> Result<ControlParameters, CodecError> {
        if self.body.is_empty() { Ok(ControlParameters::default()) } else { ControlParameters::decode(&self.body) }
    }

    /// Appends the element.
    pub fn encode(&self, writer: &mut Writer) {
        writer.nested(nfd::CONTROL_RESPONSE, |writer| {
            writer.nni(nfd::STATUS_CODE, self.code).element(nfd::STATUS_TEXT, self.text.as_bytes()).raw(&self.body);
        });
    }

    /// Encodes the element.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(64);
        self.encode(&mut writer);
        writer.into_vec()
    }

    /// Decodes the complete element. Status code and text precede the body, in any order.
    pub fn decode(wire: &[u8]) -> Result<Self, CodecError> {
        let element = read_single_element(wire)?;
        if element.typ != nfd::CONTROL_RESPONSE {
            return Err(CodecError::Missing("ControlResponse"));
        }
        let (mut code, mut text, mut body) = (None, None, Vec::new());
        let mut reader = Reader::new(element.value);
        while !reader.is_empty() {
            let field = reader.read_element()?;
            match field.typ {
                nfd::STATUS_CODE if code.is_none() => code = Some(decode_nni(field.value)?),
                nfd::STATUS_TEXT if text.is_none() => {
                    let bytes = field.value.to_vec();
                    text = Some(String::from_utf8(bytes).map_err(|_| CodecError::NotText("StatusText"))?);
                }
                _ => body.extend_from_slice(field.wire),
            }
        }
        Ok(ControlResponse {
            code: code.ok_or(CodecError::Missing("StatusCode"))?,
            text: text.ok_or(CodecError::Missing("StatusText"))?,
            body,
        })
    }
}
