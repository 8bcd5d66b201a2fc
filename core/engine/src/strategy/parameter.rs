//! The parameters of strategies: how their values are parsed, and how help describes them.
//!
//! A strategy keeps its parameters in its own fields and lists them once ([`Strategy::parameters`]). Values are written
//! through that list, and help reads the defaults through it, so that help cannot show a wrong default.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::Strategy;
use super::suppression::ExponentialSuppression;

/// The reason why the values of a strategy's parameters are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// The strategy has no parameter with this key.
    #[error("unknown parameter '{0}'")]
    Unknown(String),
    /// A key is given twice.
    #[error("parameter '{0}' is given twice")]
    Twice(String),
    /// A value is no number, or not within its range.
    #[error("{key}~{value}: not a number from {min} to {max}")]
    OutOfRange {
        /// The key of the parameter.
        key: String,
        /// The value as given.
        value: String,
        /// Least valid value.
        min: String,
        /// Greatest valid value.
        max: String,
    },
    /// A parameter is less than another one, which it must not be.
    #[error("{parameter} is less than {least}")]
    LessThan {
        /// The key of the parameter.
        parameter: &'static str,
        /// The key of the other one.
        least: &'static str,
    },
    /// A name component is not of the form of a parameter.
    #[error("'{0}' is not of the form <key>~<value>")]
    Form(String),
}

/// A parameter of a strategy, with access to the field that holds its value.
pub struct Parameter<'a> {
    key: &'a str,
    meaning: &'a str,
    value: Box<dyn Value + 'a>,
}

impl<'a> Parameter<'a> {
    /// Creates the parameter `key` with the field that holds it, its valid values, and its meaning including the unit.
    pub fn new<T>(key: &'a str, field: &'a mut T, range: RangeInclusive<T>, meaning: &'a str) -> Self
    where
        T: FromStr + PartialOrd + Display,
    {
        Parameter { key, meaning, value: Box::new(Bounded { field, range }) }
    }

    fn info(&self) -> ParameterInfo {
        let (min, max) = self.value.range();
        ParameterInfo {
            key: self.key.to_owned(),
            default: self.value.text(),
            min,
            max,
            meaning: self.meaning.to_owned(),
        }
    }
}

/// All parameters of a strategy.
#[derive(Default)]
pub struct Parameters<'a> {
    own: Vec<Parameter<'a>>,
    suppression: Option<&'a mut ExponentialSuppression>,
}

impl<'a> From<Vec<Parameter<'a>>> for Parameters<'a> {
    fn from(own: Vec<Parameter<'a>>) -> Self {
        Parameters { own, suppression: None }
    }
}

impl<'a> Parameters<'a> {
    /// Appends the parameters of retransmission suppression.
    pub fn and_suppression(self, suppression: &'a mut ExponentialSuppression) -> Self {
        Parameters { suppression: Some(suppression), ..self }
    }

    /// Returns the descriptions for help.
    pub fn describe(mut self) -> Vec<ParameterInfo> {
        if let Some(suppression) = self.suppression {
            self.own.extend(suppression.parameters());
        }
        self.own.iter().map(Parameter::info).collect()
    }

    /// Writes values, given as (key, value), to the fields of the parameters.
    ///
    /// # Errors
    /// If a key or value is invalid, or the values of suppression contradict each other.
    pub fn assign(self, values: &[(&str, &str)]) -> Result<(), ParameterError> {
        let Parameters { own, mut suppression } = self;
        let mut all = own;
        if let Some(suppression) = &mut suppression {
            all.extend(suppression.parameters());
        }
        for (position, &(key, value)) in values.iter().enumerate() {
            let parameter = all
                .iter_mut()
                .find(|parameter| parameter.key == key)
                .ok_or_else(|| ParameterError::Unknown(key.to_owned()))?;
            if values[..position].iter().any(|&(earlier, _)| earlier == key) {
                return Err(ParameterError::Twice(key.to_owned()));
            }
            if !parameter.value.set(value) {
                let (min, max) = parameter.value.range();
                return Err(ParameterError::OutOfRange { key: key.to_owned(), value: value.to_owned(), min, max });
            }
        }
        drop(all);
        suppression.map_or(Ok(()), |suppression| suppression.check())
    }
}

/// A number that is written as text.
trait Value {
    /// Sets the number. Returns `false` if the text is no number within the range.
    fn set(&mut self, text: &str) -> bool;
    fn text(&self) -> String;
    fn range(&self) -> (String, String);
}

/// A field and its valid values.
struct Bounded<'a, T> {
    field: &'a mut T,
    range: RangeInclusive<T>,
}

impl<T: FromStr + PartialOrd + Display> Value for Bounded<'_, T> {
    fn set(&mut self, text: &str) -> bool {
        let Some(number) = text.parse().ok().filter(|number| self.range.contains(number)) else { return false };
        *self.field = number;
        true
    }

    fn text(&self) -> String {
        self.field.to_string()
    }

    fn range(&self) -> (String, String) {
        (self.range.start().to_string(), self.range.end().to_string())
    }
}

/// Maximum length of a [`ByteList`].
const LIST_LEN: usize = 8;

/// Up to eight numbers from 1 to 255, separated by hyphens: `3-2-1`. The last applies to all following positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteList([u8; LIST_LEN]);

impl ByteList {
    /// The least list.
    pub const ALL_LEAST: ByteList = ByteList([1; LIST_LEN]);
    /// The greatest list.
    pub const ALL_GREATEST: ByteList = ByteList([u8::MAX; LIST_LEN]);

    /// Returns all numbers, the first in the lowest eight bits.
    pub fn packed(self) -> u64 {
        u64::from_le_bytes(self.0)
    }

    /// Returns the number at a position.
    pub fn get(self, index: usize) -> u64 {
        u64::from(self.0[index.min(LIST_LEN - 1)])
    }
}

impl Default for ByteList {
    fn default() -> Self {
        ByteList::ALL_LEAST
    }
}

impl FromStr for ByteList {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut list = [0; LIST_LEN];
        let mut len = 0;
        for number in text.split('-') {
            let number = number.parse().map_err(drop)?;
            if number == 0 {
                return Err(());
            }
            *list.get_mut(len).ok_or(())? = number;
            len += 1;
        }
        let last = list[len - 1];
        list[len..].fill(last);
        Ok(ByteList(list))
    }
}

impl Display for ByteList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ByteList(list) = self;
        let last = list[LIST_LEN - 1];
        let len = list.iter().rposition(|&number| number != last).map_or(1, |different| different + 2);
        for (index, number) in list[..len].iter().enumerate() {
            let separator = if index == 0 { "" } else { "-" };
            write!(f, "{separator}{number}")?;
        }
        Ok(())
    }
}

/// The description of one parameter for help. Numbers are formatted as after the `~`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterInfo {
    /// The key, in front of the `~`.
    pub key: String,
    /// The default value.
    pub default: String,
    /// Least valid value.
    pub min: String,
    /// Greatest valid value.
    pub max: String,
    /// The meaning, including the unit.
    pub meaning: String,
}

/// Returns the parameters of a strategy with their defaults.
pub fn describe<S: Strategy>() -> Vec<ParameterInfo> {
    S::default().parameters().describe()
}

/// Returns a strategy with these values, given as (key, value), and defaults for all others.
///
/// # Errors
/// If the strategy refuses the values.
pub fn read<S: Strategy>(values: &[(&str, &str)]) -> Result<S, ParameterError> {
    let mut strategy = S::default();
    strategy.parameters().assign(values)?;
    strategy.check()?;
    Ok(strategy)
}
