//! CPU time of a process, from `/proc/<pid>/stat`.

use std::fs;
use std::io;
use std::time::Duration;

/// Linux reports times to user space in units of 1/100 s (USER_HZ) on every architecture that
/// matters here, whatever the kernel's own tick is.
const TICKS_PER_SECOND: u64 = 100;

/// CPU time of a process since it started, or over an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessTimes {
    /// Time in user mode.
    pub user: Duration,
    /// Time in the kernel on behalf of the process.
    pub system: Duration,
}

impl ProcessTimes {
    /// Reads the times of a process and all its threads.
    ///
    /// # Errors
    /// There is no such process, or `/proc` is not what it should be.
    pub fn of(pid: u32) -> io::Result<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Self::parse(&text)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unexpected form of /proc/<pid>/stat"))
    }

    fn parse(text: &str) -> Option<Self> {
        // The command name stands in parentheses and may itself hold spaces and parentheses.
        let (_, rest) = text.rsplit_once(')')?;
        // After it comes field 3 (state); utime and stime are fields 14 and 15 (proc(5)).
        let mut fields = rest.split_ascii_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        let time = |ticks: u64| Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND);
        Some(Self { user: time(ticks()?), system: time(ticks()?) })
    }

    /// User and system time together.
    pub fn total(self) -> Duration {
        self.user + self.system
    }

    /// What was used since an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self { user: self.user.saturating_sub(earlier.user), system: self.system.saturating_sub(earlier.system) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_command_name_does_not_shift_the_fields() {
        let line = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 1234 567 0 0 20 0 4 0 100";
        let times = ProcessTimes::parse(line).unwrap();
        assert_eq!(times.user, Duration::from_millis(12_340));
        assert_eq!(times.system, Duration::from_millis(5_670));
        assert_eq!(ProcessTimes::parse("42 (a) S 1"), None);
    }

    #[test]
    fn own_process_can_be_read_and_a_missing_one_is_an_error() {
        assert!(ProcessTimes::of(std::process::id()).is_ok());
        assert!(ProcessTimes::of(u32::MAX).is_err());
    }
}
