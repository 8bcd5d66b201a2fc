//! Strategies that can be chosen.

use namehop_forward::strategy::ParameterInfo;
use serde::Serialize;
use utoipa::ToSchema;

/// A strategy that can be chosen.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct StrategyView {
    /// Name with version.
    pub strategy: String,
    /// Whether it is a program that was loaded, or one of the router's own.
    pub loaded: bool,
    /// What it does, in a line; `null` for programs.
    #[schema(required)]
    pub summary: Option<String>,
    /// Its parameters; `null` for programs.
    #[schema(required)]
    pub parameters: Option<Vec<ParameterView>>,
}

/// A parameter, `key~value` in the name of a strategy.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ParameterView {
    /// What stands before the `~`.
    pub key: String,
    /// The value when none is given.
    pub default: String,
    /// Least value.
    pub min: String,
    /// Greatest value.
    pub max: String,
    /// What it means, with its unit.
    pub meaning: String,
}

impl From<ParameterInfo> for ParameterView {
    fn from(info: ParameterInfo) -> Self {
        let ParameterInfo { key, default, min, max, meaning } = info;
        ParameterView { key, default, min, max, meaning }
    }
}
