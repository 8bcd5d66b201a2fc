//! Rates on the command line of `namehop power model`: of Data packets in bits, or of Interests.

use std::str::FromStr;

use namehop_model::router::interests_per_second;

/// What a rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Bits of Data packets.
    Bits,
    /// Interests, each with a Data.
    Packets,
}

/// One rate, or a range of rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    from: f64,
    /// Equal to `from` for a single rate.
    to: f64,
    unit: Unit,
}

/// Accepted units with their factors.
const UNITS: [(&str, Unit, f64); 7] = [
    ("Gbit/s", Unit::Bits, 1e9),
    ("Mbit/s", Unit::Bits, 1e6),
    ("kbit/s", Unit::Bits, 1e3),
    ("bit/s", Unit::Bits, 1.0),
    ("Mpps", Unit::Packets, 1e6),
    ("kpps", Unit::Packets, 1e3),
    ("pps", Unit::Packets, 1.0),
];
/// Maximum rate: more than any host's.
const MOST: f64 = 1e15;

impl FromStr for Rates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a rate; write, for example, 58Gbit/s, 7Mpps or 0..58Gbit/s");
        let unit = UNITS.iter().find(|(name, ..)| text.ends_with(name));
        let &(name, unit, factor) = unit.ok_or_else(wrong)?;
        let numbers = text[..text.len() - name.len()].trim();
        let number = |text: &str| match text.trim().parse::<f64>() {
            Ok(rate) if (0.0..=MOST).contains(&(rate * factor)) => Ok(rate * factor),
            _ => Err(wrong()),
        };
        match numbers.split_once("..") {
            None => number(numbers).map(|rate| Rates { from: rate, to: rate, unit }),
            Some((from, to)) => {
                let (from, to) = (number(from)?, number(to)?);
                if from < to { Ok(Rates { from, to, unit }) } else { Err(wrong()) }
            }
        }
    }
}

impl Rates {
    /// Returns the range from 0 to this many Interests per second.
    pub fn up_to(interests_per_second: f64) -> Self {
        Rates { from: 0.0, to: interests_per_second, unit: Unit::Packets }
    }

    /// Returns Interests per second: for a range, `steps` + 1 equally spaced values.
    pub fn interests_per_second(&self, steps: u32, data_bytes: f64) -> Vec<f64> {
        let in_interests = |rate: f64| match self.unit {
            Unit::Bits => interests_per_second(rate, data_bytes),
            Unit::Packets => rate,
        };
        let (from, to) = (in_interests(self.from), in_interests(self.to));
        if from == to {
            return vec![from];
        }
        // The last value is exactly `to`: rounding must not exceed the maximum of a host.
        (0..=steps)
            .map(|step| if step == steps { to } else { from + (to - from) * f64::from(step) / f64::from(steps) })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_with_their_units() {
        let rates = |text: &str| text.parse::<Rates>().map(|rates| rates.interests_per_second(2, 1000.0));
        assert_eq!(rates("8Gbit/s"), Ok(vec![1e6]));
        assert_eq!(rates("8 Mbit/s"), Ok(vec![1e3]));
        assert_eq!(rates("8kbit/s"), Ok(vec![1.0]));
        assert_eq!(rates("8000bit/s"), Ok(vec![1.0]));
        assert_eq!(rates("1.5Mpps"), Ok(vec![1.5e6]));
        assert_eq!(rates("3kpps"), Ok(vec![3e3]));
        assert_eq!(rates("0..4pps"), Ok(vec![0.0, 2.0, 4.0]));
        assert_eq!(rates("8..16kbit/s"), Ok(vec![1.0, 1.5, 2.0]));
        for text in ["", "5", "Gbit/s", "-1pps", "4..2pps", "1..pps", "nanpps", "1e300Mpps", "1..2..3pps", "1GB/s"] {
            assert!(rates(text).is_err(), "{text}");
        }
    }
}
