//! Views of available strategies.

use namehop_client::nfd::LoadedStrategy;
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
    pub parameters: Vec<ParameterView>,
}

impl From<&StrategyInfo> for StrategyView {
    fn from(info: &StrategyInfo) -> Self {
        StrategyView {
            strategy: info.versioned_name().to_string(),
            loaded: false,
            summary: info.summary.to_owned(),
            parameters: info.parameters().into_iter().map(ParameterView::from).collect(),
        }
    }
}

impl From<LoadedStrategy> for StrategyView {
    fn from(loaded: LoadedStrategy) -> Self {
        StrategyView {
            strategy: loaded.strategy.to_string(),
            loaded: true,
            summary: loaded.summary,
            parameters: loaded.parameters.into_iter().map(ParameterView::from).collect(),
        }
    }
}

/// A parameter, `key~value` in the name of a strategy.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ParameterView {
    /// Text before the `~`.
    pub key: String,
    /// Default value.
    pub default: String,
    /// Minimum value.
    pub min: String,
    /// Maximum value.
    pub max: String,
    /// Meaning, with its unit.
    pub meaning: String,
}

impl From<ParameterInfo> for ParameterView {
    fn from(info: ParameterInfo) -> Self {
        let ParameterInfo { key, default, min, max, meaning } = info;
        ParameterView { key, default, min, max, meaning }
    }
}
