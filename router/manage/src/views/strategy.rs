//! Views of available strategies.

use namehop_client::nfd::{LoadedStrategy, StrategyParameter};
use namehop_engine::strategy::{ParameterInfo, StrategyInfo};
use serde::Serialize;
use utoipa::ToSchema;

/// An available strategy.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct StrategyView {
    /// Name with version.
    pub strategy: String,
    /// True for a loaded program, false for a built-in strategy.
    pub loaded: bool,
    /// Summary, one line.
    pub summary: String,
    /// Its parameters.
    pub parameters: Vec<StrategyParameter>,
}

impl From<&StrategyInfo> for StrategyView {
    fn from(info: &StrategyInfo) -> Self {
        StrategyView {
            strategy: info.versioned_name().to_string(),
            loaded: false,
            summary: info.summary.to_owned(),
            parameters: info.parameters().into_iter().map(parameter_record).collect(),
        }
    }
}

impl From<LoadedStrategy> for StrategyView {
    fn from(loaded: LoadedStrategy) -> Self {
        StrategyView {
            strategy: loaded.strategy.to_string(),
            loaded: true,
            summary: loaded.summary,
            parameters: loaded.parameters,
        }
    }
}

/// Returns a parameter as the field of a message.
pub(crate) fn parameter_record(info: ParameterInfo) -> StrategyParameter {
    let ParameterInfo { key, default, min, max, meaning } = info;
    StrategyParameter { key, default, min, max, meaning }
}
