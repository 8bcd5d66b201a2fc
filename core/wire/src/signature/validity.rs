//! The time for which a certificate or announcement is valid (NDN packet specification, certificate.rst).

use std::fmt::{self, Write as _};

use crate::DecodeError;
use crate::tlv::{OrderedReader, Writer, types};

/// ValidityPeriod, in seconds since the Unix epoch, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ValidityPeriod {
    /// First second of validity.
    pub not_before_s: u64,
    /// Last second of validity.
    pub not_after_s: u64,
}

/// 9999-12-31T23:59:59, the last second that the format can express.
const LAST_SECOND: u64 = 253_402_300_799;

const SECONDS_PER_DAY: u64 = 86_400;

impl ValidityPeriod {
    /// Decodes the VALUE. Times before 1970 count as 1970.
    ///
    /// # Errors
    /// `MissingElement`; `BadLength`, `BadValue` when a time is not `YYYYMMDDThhmmss`.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let rank = |typ| match typ {
            types::NOT_BEFORE => 1,
            types::NOT_AFTER => 2,
            _ => 0,
        };
        let mut elements = OrderedReader::new(value, rank);
        let (mut not_before_s, mut not_after_s) = (None, None);
        while let Some(element) = elements.next_element()? {
            let time = if element.typ == types::NOT_BEFORE { &mut not_before_s } else { &mut not_after_s };
            *time = Some(parse_time(element.value)?);
        }
        Ok(ValidityPeriod {
            not_before_s: not_before_s.ok_or(DecodeError::MissingElement)?,
            not_after_s: not_after_s.ok_or(DecodeError::MissingElement)?,
        })
    }

    /// Appends the element. Times after the year 9999 are written as its last second.
    pub fn encode(&self, writer: &mut Writer) {
        writer.nested(types::VALIDITY_PERIOD, |writer| {
            writer.element(types::NOT_BEFORE, &format_time(self.not_before_s));
            writer.element(types::NOT_AFTER, &format_time(self.not_after_s));
        });
    }

    /// Returns true if the given time, in seconds since the Unix epoch, is within the period.
    pub const fn contains(&self, now_s: u64) -> bool {
        self.not_before_s <= now_s && now_s <= self.not_after_s
    }
}

/// Written as `2026-01-31 00:00:00 UTC to 2027-01-30 23:59:59 UTC`.
impl fmt::Display for ValidityPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |f: &mut fmt::Formatter<'_>, seconds| {
            let text = format_time(seconds);
            for (index, &digit) in text.iter().enumerate() {
                f.write_str(match index {
                    4 | 6 => "-",
                    11 | 13 => ":",
                    _ => "",
                })?;
                f.write_char(if digit == b'T' { ' ' } else { digit.into() })?;
            }
            f.write_str(" UTC")
        };
        show(f, self.not_before_s)?;
        f.write_str(" to ")?;
        show(f, self.not_after_s)
    }
}

fn parse_time(text: &[u8]) -> Result<u64, DecodeError> {
    let text: &[u8; 15] = text.try_into().map_err(|_| DecodeError::BadLength)?;
    let number = |start: usize, end: usize| {
        text[start..end].iter().try_fold(0_u64, |number, &byte| match byte {
            b'0'..=b'9' => Ok(number * 10 + u64::from(byte - b'0')),
            _ => Err(DecodeError::BadValue),
        })
    };
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(9, 11)?, number(11, 13)?, number(13, 15)?);
    // 60 is a leap second.
    let in_range = (1..=12).contains(&month) && hour <= 23 && minute <= 59 && second <= 60;
    if text[8] != b'T' || !in_range || day == 0 || day > days_in_month(year, month) {
        return Err(DecodeError::BadValue);
    }
    let Some(days) = days_from_epoch(year, month, day) else { return Ok(0) };
    Ok(days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second)
}

fn format_time(seconds: u64) -> [u8; 15] {
    let seconds = seconds.min(LAST_SECOND);
    let (mut year, mut days) = (1970, seconds / SECONDS_PER_DAY);
    while days >= days_in_year(year) {
        days -= days_in_year(year);
        year += 1;
    }
    let mut month = 1;
    while days >= days_in_month(year, month) {
        days -= days_in_month(year, month);
        month += 1;
    }
    let second = seconds % SECONDS_PER_DAY;
    let mut text = *b"00000000T000000";
    let mut put = |start: usize, end: usize, mut number: u64| {
        for digit in text[start..end].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    };
    put(0, 4, year);
    put(4, 6, month);
    put(6, 8, days + 1);
    put(9, 11, second / 3600);
    put(11, 13, second / 60 % 60);
    put(13, 15, second % 60);
    text
}

const fn is_leap_year(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_in_year(year: u64) -> u64 {
    if is_leap_year(year) { 366 } else { 365 }
}

const fn days_in_month(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap_year(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01; `None` before that.
fn days_from_epoch(year: u64, month: u64, day: u64) -> Option<u64> {
    // Leap days in all years before `year`, counted from year 1.
    let leap_days_before = |year: u64| (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
    let years = year.checked_sub(1970)?;
    let days = years * 365 + leap_days_before(year) - leap_days_before(1970);
    Some(days + (1..month).map(|month| days_in_month(year, month)).sum::<u64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_times() {
        for (text, seconds) in [
            (b"19700101T000000", 0),
            (b"20000229T235959", 951_868_799),
            (b"20240101T000000", 1_704_067_200),
            (b"20380119T031408", 2_147_483_648),
            (b"99991231T235959", LAST_SECOND),
        ] {
            assert_eq!(parse_time(text), Ok(seconds));
            assert_eq!(&format_time(seconds), text);
        }
        let period = ValidityPeriod { not_before_s: 951_868_799, not_after_s: 1_704_067_200 };
        assert_eq!(period.to_string(), "2000-02-29 23:59:59 UTC to 2024-01-01 00:00:00 UTC");
        assert_eq!(parse_time(b"19691231T235959"), Ok(0));
        assert_eq!(parse_time(b"00000101T000000"), Ok(0));
        assert_eq!(&format_time(u64::MAX), b"99991231T235959");
    }

    #[test]
    fn bad_times() {
        for text in [
            b"20230229T000000",
            b"20231301T000000",
            b"20230001T000000",
            b"20230100T000000",
            b"20230101T240000",
            b"20230101T006000",
            b"20230101T000061",
            b"20230101 000000",
            b"2023010xT000000",
            b"+0230101T000000",
        ] {
            assert_eq!(parse_time(text), Err(DecodeError::BadValue), "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(parse_time(b"20230101T00000"), Err(DecodeError::BadLength));
    }

    #[test]
    fn both_ends_belong_to_the_period() {
        let period = ValidityPeriod { not_before_s: 10, not_after_s: 20 };
        assert_eq!([9, 10, 20, 21].map(|now| period.contains(now)), [false, true, true, false]);
        assert_eq!(ValidityPeriod::decode(&[]), Err(DecodeError::MissingElement));
    }

    proptest! {
        #[test]
        fn round_trip(not_before_s in 0..=LAST_SECOND, not_after_s in 0..=LAST_SECOND) {
            let period = ValidityPeriod { not_before_s, not_after_s };
            let mut writer = Writer::new();
            period.encode(&mut writer);
            prop_assert_eq!(ValidityPeriod::decode(&writer.as_slice()[4..]), Ok(period));
        }
    }
}
