//! Loaded strategies: the dataset `strategy-choice/loaded`. Namehop's own addition to the NFD management protocol. The
//! TLV-TYPE numbers are from the range for application use.

use namehop_wire::Name;
use namehop_wire::tlv::types::{self, nfd};
use serde::Serialize;
use utoipa::ToSchema;

use super::record::records;

records! {
    /// A strategy loaded at run time.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct LoadedStrategy(nfd::STRATEGY_CHOICE) {
        /// Name under which it is loaded, as the only component.
        name: Name = types::NAME,
        /// Full name with version.
        strategy: Name = nfd::STRATEGY,
        /// Summary, one line.
        summary: String = 220,
        /// Its parameters.
        parameters: Vec<StrategyParameter> = 221,
    }

    /// A parameter of a strategy, `key~value` in its name.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
    pub struct StrategyParameter {
        /// Text before the `~`.
        key: String = 222,
        /// Default value.
        default: String = 223,
        /// Minimum value.
        min: String = 224,
        /// Maximum value.
        max: String = 225,
        /// Meaning, with its unit.
        meaning: String = 226,
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::{decode_items, encode_items};
    use super::*;

    #[test]
    fn strategies_are_read_as_they_were_written() {
        let text = str::to_owned;
        let parameter = StrategyParameter {
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
            parameters: vec![parameter.clone(), StrategyParameter { key: text("other"), ..parameter }],
        };
        let strategies = [whole.clone(), LoadedStrategy { parameters: Vec::new(), ..whole }];
        assert_eq!(decode_items::<LoadedStrategy>(&encode_items(strategies.clone())), Ok(strategies.to_vec()));
    }
}
