//! The parameters of strategies: how their values are read, and how help describes them.
//!
//! A strategy keeps its parameters in its own fields and lists them once ([`Strategy::parameters`]). Values are written through
//! that list, and help reads the defaults through it, so that help cannot state a default that is not the real one.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::Strategy;

/// A parameter of a strategy, with access to the field that holds its value.
pub struct Parameter<'a> {
    key: &'static str,
    meaning: &'static str,
    value: Box<dyn Value + 'a>,
}

impl<'a> Parameter<'a> {
    /// The parameter `key` with the field that holds it, the values it may have, and what it means, with its unit.
    pub fn new<T>(key: &'static str, field: &'a mut T, range: RangeInclusive<T>, meaning: &'static str) -> Self
    where
        T: FromStr + PartialOrd + Display,
    {
        Parameter { key, meaning, value: Box::new(Bounded { field, range }) }
    }

    fn info(&self) -> ParameterInfo {
        let (min, max) = self.value.range();
        ParameterInfo { key: self.key, default: self.value.text(), min, max, meaning: self.meaning }
    }
}

/// A number that is written as text.
trait Value {
    fn set(&mut self, text: &str) -> Result<(), String>;
    fn text(&self) -> String;
    fn range(&self) -> (String, String);
}

/// A field and the values it may have.
struct Bounded<'a, T> {
    field: &'a mut T,
    range: RangeInclusive<T>,
}

impl<T: FromStr + PartialOrd + Display> Value for Bounded<'_, T> {
    fn set(&mut self, text: &str) -> Result<(), String> {
        match text.parse() {
            Ok(number) if self.range.contains(&number) => {
                *self.field = number;
                Ok(())
            }
            _ => Err(format!("not a number from {} to {}", self.range.start(), self.range.end())),
        }
    }

    fn text(&self) -> String {
        self.field.to_string()
    }

    fn range(&self) -> (String, String) {
        (self.range.start().to_string(), self.range.end().to_string())
    }
}

/// What help says of one parameter. Numbers are as they are written after the `~`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterInfo {
    /// What stands before the `~`.
    pub key: &'static str,
    /// The value when none is given.
    pub default: String,
    /// Least value that is accepted.
    pub min: String,
    /// Greatest value that is accepted.
    pub max: String,
    /// What it means, with its unit.
    pub meaning: &'static str,
}

/// The parameters of a strategy with their defaults.
pub fn describe<S: Strategy>() -> Vec<ParameterInfo> {
    S::default().parameters().iter().map(Parameter::info).collect()
}

/// A strategy with these values, given as (key, value), and defaults for all others; or what is wrong with them.
pub fn read<S: Strategy>(values: &[(&str, &str)]) -> Result<S, String> {
    let mut strategy = S::default();
    let mut parameters = strategy.parameters();
    for (position, &(key, value)) in values.iter().enumerate() {
        let parameter = parameters
            .iter_mut()
            .find(|parameter| parameter.key == key)
            .ok_or_else(|| format!("unknown parameter '{key}'"))?;
        if values[..position].iter().any(|&(earlier, _)| earlier == key) {
            return Err(format!("parameter '{key}' is given twice"));
        }
        parameter.value.set(value).map_err(|reason| format!("{key}~{value}: {reason}"))?;
    }
    drop(parameters);
    strategy.check()?;
    Ok(strategy)
}
