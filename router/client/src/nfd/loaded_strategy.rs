//! Loaded strategies: the dataset `strategy-choice/loaded`. Namehop's own addition to the NFD management protocol. The
//! TLV-TYPE numbers are from the range for application use.

use namehop_engine::strategy::ParameterInfo;
use namehop_wire::Name;
use namehop_wire::tlv::{Writer, types::nfd};

use super::codec::{CodecError, DatasetItem, Fields, put_name, put_strategy};

const SUMMARY: u32 = 220;
const PARAMETER: u32 = 221;
const KEY: u32 = 222;
const DEFAULT: u32 = 223;
const MIN: u32 = 224;
const MAX: u32 = 225;
const MEANING: u32 = 226;

/// A strategy loaded at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedStrategy {
    /// Name under which it is loaded, as the only component.
    pub name: Name,
    /// Full name with version.
    pub strategy: Name,
    /// Summary, one line.
    pub summary: String,
    /// Its parameters.
    pub parameters: Vec<ParameterInfo>,
}

impl DatasetItem for LoadedStrategy {
    const TYPE: u32 = nfd::STRATEGY_CHOICE;

    fn encode_value(&self, writer: &mut Writer) {
        put_name(writer, &self.name);
        put_strategy(writer, &self.strategy);
        writer.element(SUMMARY, self.summary.as_bytes());
        for ParameterInfo { key, default, min, max, meaning } in &self.parameters {
            writer.nested(PARAMETER, |writer| {
                for (typ, text) in [(KEY, key), (DEFAULT, default), (MIN, min), (MAX, max), (MEANING, meaning)] {
                    writer.element(typ, text.as_bytes());
                }
            });
        }
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        let parameter = |value| {
            let fields = Fields::parse(value)?;
            Ok(ParameterInfo {
                key: fields.required_text(KEY, "key")?,
                default: fields.required_text(DEFAULT, "default")?,
                min: fields.required_text(MIN, "min")?,
                max: fields.required_text(MAX, "max")?,
                meaning: fields.required_text(MEANING, "meaning")?,
            })
        };
        Ok(LoadedStrategy {
            name: fields.required_name()?,
            strategy: fields.strategy()?.ok_or(CodecError::Missing("Strategy"))?,
            summary: fields.required_text(SUMMARY, "summary")?,
            parameters: fields.all(PARAMETER).map(parameter).collect::<Result<_, CodecError>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::{decode_items, encode_items};
    use super::*;

    #[test]
    fn strategies_are_read_as_they_were_written() {
        let text = str::to_owned;
        let parameter = ParameterInfo {
            key: text("patience"),
            default: text("50"),
            min: text("1"),
            max: text("10000"),
            meaning: text("how long"),
        };
        let whole = LoadedStrategy {
            name: "/hedge".parse().expect("a name"),
            strategy: "/localhost/nfd/strategy/hedge/v=1".parse().expect("a name"),
            summary: text("asks twice"),
            parameters: vec![parameter.clone(), ParameterInfo { key: text("other"), ..parameter }],
        };
        let strategies = [whole.clone(), LoadedStrategy { parameters: Vec::new(), ..whole }];
        assert_eq!(decode_items::<LoadedStrategy>(&encode_items(strategies.clone())), Ok(strategies.to_vec()));
    }
}
