//! CPU time of processes and of their threads, from `/proc`.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Linux reports times to user space in units of 1/100 s (USER_HZ) on every supported architecture, independent of the
/// kernel's own tick.
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
    /// Fails if there is no such process, or `/proc` has an unexpected format.
    pub fn of(pid: u32) -> io::Result<Self> {
        Stat::read(&stat_file(pid)).map(|stat| stat.own)
    }

    fn add(&mut self, other: Self) {
        self.user += other.user;
        self.system += other.system;
    }

    /// Returns user and system time together.
    pub fn total(self) -> Duration {
        self.user + self.system
    }

    /// Returns the time used since an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self { user: self.user.saturating_sub(earlier.user), system: self.system.saturating_sub(earlier.system) }
    }
}

/// The used fields of a `stat` file in `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    own: ProcessTimes,
    /// Times of children that have ended and were waited for.
    ended_children: ProcessTimes,
}

impl Stat {
    fn read(file: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(file)?;
        let unexpected =
            || io::Error::new(io::ErrorKind::InvalidData, format!("unexpected format of {}", file.display()));
        Self::parse(&text).ok_or_else(unexpected)
    }

    fn parse(text: &str) -> Option<Self> {
        // The command name is in parentheses and may itself contain spaces and parentheses.
        let (_, rest) = text.rsplit_once(')')?;
        // After it comes field 3 (state); utime, stime, cutime and cstime are fields 14 to 17 (proc(5)).
        let mut fields = rest.split_ascii_whitespace().skip(11);
        let mut time =
            || fields.next()?.parse::<u64>().ok().map(|ticks| Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND));
        let own = ProcessTimes { user: time()?, system: time()? };
        Some(Self { own, ended_children: ProcessTimes { user: time()?, system: time()? } })
    }
}

/// CPU times of processes and of each of their threads at one moment.
#[derive(Clone, Debug, Default)]
pub struct ProcessReading {
    total: ProcessTimes,
    threads: HashMap<u32, Duration>,
}

/// CPU time used by processes between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUse {
    /// Of all threads.
    pub total: ProcessTimes,
    /// Of the thread that used the most.
    pub busiest_thread: Duration,
}

impl ProcessReading {
    /// Reads one process.
    ///
    /// # Errors
    /// Fails if there is no such process, or `/proc` has an unexpected format.
    pub fn of(pid: u32) -> io::Result<Self> {
        let mut reading = Self::default();
        reading.add(pid)?;
        Ok(reading)
    }

    /// Reads a process and all its descendants.
    ///
    /// # Errors
    /// Fails if there is no such process, or `/proc` has an unexpected format. A descendant that ends meanwhile is not
    /// an error.
    pub fn of_tree(pid: u32) -> io::Result<Self> {
        let mut reading = Self::default();
        for (index, pid) in process_tree(pid).into_iter().enumerate() {
            match reading.add(pid) {
                Err(error) if index == 0 => return Err(error),
                Err(_) => continue,
                Ok(stat) => reading.total.add(stat.ended_children),
            }
        }
        Ok(reading)
    }

    fn add(&mut self, pid: u32) -> io::Result<Stat> {
        let stat = Stat::read(&stat_file(pid))?;
        self.total.add(stat.own);
        for thread in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
            let number = thread.file_name().to_str().and_then(|name| name.parse().ok());
            // A thread that has just ended has no file.
            if let (Some(number), Ok(stat)) = (number, Stat::read(&thread.path().join("stat"))) {
                self.threads.insert(number, stat.own.total());
            }
        }
        Ok(stat)
    }

    /// Returns the time used since an earlier reading.
    pub fn since(&self, earlier: &Self) -> CpuUse {
        let of_thread = |(thread, time): (&u32, &Duration)| {
            time.saturating_sub(earlier.threads.get(thread).copied().unwrap_or_default())
        };
        let busiest_thread = self.threads.iter().map(of_thread).max().unwrap_or_default();
        CpuUse { total: self.total.since(earlier.total), busiest_thread }
    }
}

/// Returns a process and all its descendants, itself first.
pub fn process_tree(pid: u32) -> Vec<u32> {
    let mut tree = vec![pid];
    let mut next = 0;
    while let Some(&pid) = tree.get(next) {
        next += 1;
        // A process that ended meanwhile has no children. A child is listed under the thread that started it.
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            tree.extend(numbers(&children));
        }
    }
    tree
}

/// Returns the resident memory of processes in bytes; shared memory counts once per process, ended processes count 0.
pub fn resident_bytes(pids: &[u32]) -> u64 {
    let of = |pid: &u32| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    };
    pids.iter().filter_map(of).sum()
}

fn stat_file(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/stat"))
}

fn numbers(text: &str) -> impl Iterator<Item = u32> {
    text.split_ascii_whitespace().filter_map(|number| number.parse().ok())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_hostile_command_name_does_not_shift_the_fields() {
        let line = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 1234 567 89 1 20 0 4 0 100";
        let times =
            |user, system| ProcessTimes { user: Duration::from_millis(user), system: Duration::from_millis(system) };
        assert_eq!(Stat::parse(line), Some(Stat { own: times(12_340, 5_670), ended_children: times(890, 10) }));
        assert_eq!(Stat::parse("42 (a) S 1"), None);
    }

    #[test]
    fn own_process_can_be_read_and_a_missing_one_is_an_error() {
        assert!(ProcessTimes::of(std::process::id()).is_ok());
        assert!(ProcessTimes::of(u32::MAX).is_err());
    }
    /// A shell that waits for one child and has waited for another one that used CPU time.
    #[test]
    fn what_a_process_has_started_counts_with_it() {
        let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let mut shell = Command::new("sh")
            .args(["-c", &format!("sh -c '{busy}'; sleep 60 & echo ready; wait")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let tree = process_tree(shell.id());
        let (all, alone) = (ProcessReading::of_tree(shell.id()).unwrap(), ProcessReading::of(shell.id()).unwrap());
        let memory = [resident_bytes(&tree), resident_bytes(&tree[..1])];
        for &pid in tree.iter().rev() {
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        shell.wait().unwrap();
        assert_eq!((tree.len(), tree[0]), (2, shell.id()));
        assert!(all.total.total() > alone.total.total(), "{all:?} {alone:?}");
        assert!(memory[0] > memory[1] && memory[1] > 0);
        assert!(ProcessReading::of_tree(u32::MAX).is_err() && resident_bytes(&[u32::MAX]) == 0);
    }

    #[test]
    fn the_busiest_thread_is_found() {
        let before = ProcessReading::of(std::process::id()).unwrap();
        let began = std::time::Instant::now();
        let mut sum = 0_u64;
        while began.elapsed() < Duration::from_millis(100) {
            sum = std::hint::black_box(sum + 1);
        }
        let used = ProcessReading::of(std::process::id()).unwrap().since(&before);
        assert!(
            used.busiest_thread > Duration::ZERO
                && used.busiest_thread <= used.total.total() + Duration::from_millis(20)
        );
    }
}
