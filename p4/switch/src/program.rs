//! A loadable program: loaded once; any thread may change its tables; each worker processes packets with its own
//! engine.

mod engine;

use std::ffi::{CStr, c_char, c_uint};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libloading::{Library, Symbol};
use namehop_packet::BufferPool;

use crate::digests::Digests;
use crate::ffi::{self, Host, SLACK_BYTES};

pub use engine::{Engine, Fates, TooManyEngines};

/// Buffer for the reason of a refusal, in bytes.
const WHY_BYTES: usize = 512;

/// Why a program cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read, or is not a shared object.
    #[error("cannot load {0}: {1}; compile programs with 'namehop p4 compile'")]
    Unreadable(PathBuf, libloading::Error),
    /// The program encrypts packets, and the library for that is missing.
    #[error("{0} encrypts packets, which needs the library intel-ipsec-mb: apt install libipsec-mb1")]
    Cipher(PathBuf),
    /// The file is a shared object of another kind, or from before programs had a version.
    #[error("{0} is not a compiled program; create it with 'namehop p4 compile FILE -o {0}'")]
    Foreign(PathBuf),
    /// The program was compiled for another version.
    #[error(
        "{0} was compiled for another version of Namehop (version {1}, expected {v}); compile it again",
        v = ffi::VERSION
    )]
    Version(PathBuf, u32),
    /// The program's initialization failed.
    #[error("{0} failed to start: {1}")]
    Start(PathBuf, String),
}

/// Why a command of a program's initial configuration cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// There is no such command.
    #[error("unknown command: {0}")]
    Unknown(String),
    /// A number is malformed.
    #[error("'{0}' is not a number")]
    Number(String),
    /// Bytes are malformed.
    #[error("'{0}' are not bytes")]
    Bytes(String),
}

/// Why a change of a table is refused. The table is then unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Keys and masks have different sizes.
    #[error("the size of the entry does not match its table")]
    Size,
    /// The program refuses it. The text names the table.
    #[error("{0}")]
    Refused(String),
}

/// Why a program's own entries are not in its tables.
#[derive(Debug, thiserror::Error)]
enum FillError {
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Kind of change to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Insert a new entry.
    Insert = 0,
    /// Replace the action of an existing entry.
    Modify = 1,
    /// Delete an entry.
    Delete = 2,
}

/// An entry in the form that compiled programs hold: all keys packed into one number, and all action data into one byte
/// string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Priority, used if a key is ternary, a range or optional: the larger one wins.
    pub priority: i64,
    /// Length of the prefix, in bits, over all keys.
    pub prefix: u32,
    /// Index of the action in the table's list.
    pub action: u32,
    /// The packed keys, the lowest word first.
    pub key: Vec<u64>,
    /// The packed masks, with as many words as `key`.
    pub mask: Vec<u64>,
    /// First and last value of each range.
    pub ranges: Vec<u64>,
    /// Action data, in network byte order.
    pub data: Vec<u8>,
}

/// A command of the program's initial configuration.
enum Command {
    Add(usize, Entry),
    Default(usize, u32, Vec<u8>),
}

/// A loaded program.
pub struct Program {
    pub(crate) host: &'static Host,
    /// Digests that the program has reported.
    pub digests: Arc<Digests>,
    /// Name of the program.
    pub name: String,
    /// Description of its tables and other state, as the compiler wrote it.
    pub description: String,
    /// Initial entries and default actions, as commands.
    entries: Vec<String>,
    // The code lives as long as this; dropped last.
    _library: &'static Library,
}

impl Program {
    /// Loads a program for `workers` workers and fills its tables with its constant and initial entries. The program
    /// stays loaded until the process ends.
    ///
    /// # Errors
    /// Fails if the file is not a loadable program, or was compiled for another version.
    ///
    /// # Security
    /// The file's code runs in this process, so anyone who can write to the file controls the process.
    pub fn load(path: &Path, workers: usize) -> Result<Program, LoadError> {
        // A name without a folder would be searched for in the system's library folders.
        let full = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        // SAFETY: a shared object may run any code when it is loaded; the programs that this crate is made for run
        // none.
        let library =
            unsafe { Library::new(&full) }.map_err(|error| match error.to_string().contains("libIPSec_MB") {
                true => LoadError::Cipher(path.to_owned()),
                false => LoadError::Unreadable(path.to_owned(), error),
            })?;
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: the function has this type in all versions (`host.h`).
        let found: Result<Symbol<'_, unsafe extern "C" fn() -> *const Host>, _> =
            unsafe { library.get(b"namehop_p4_host\0") };
        let Ok(function) = found else { return Err(LoadError::Foreign(path.to_owned())) };
        // SAFETY: as above; the structure lies in the library, which stays loaded.
        let host = unsafe { function() };
        // SAFETY: the version is the first field in all versions.
        let version = unsafe { host.cast::<u32>().read() };
        if version != ffi::VERSION {
            return Err(LoadError::Version(path.to_owned(), version));
        }
        // SAFETY: the version matches, so it is such a structure, and it is not written to any more.
        let host = unsafe { &*host };
        let start = |reason: &str| LoadError::Start(path.to_owned(), reason.to_owned());
        // SAFETY: called once, before any other function.
        if !unsafe { (host.start)(workers as c_uint) } {
            return Err(start("the system provides no random numbers"));
        }
        // SAFETY: the pointers lead to C strings in the library; the list of entries ends with a null pointer.
        let (name, description, entries) = unsafe {
            let text = |text: *const c_char| CStr::from_ptr(text).to_string_lossy().into_owned();
            let list = (0..).map(|place| *host.entries.add(place)).take_while(|entry| !entry.is_null());
            (text(host.name), text(host.description), list.map(text).collect::<Vec<_>>())
        };
        let digests = Arc::new(Digests::new(host.digest_count > 0));
        let program = Program { host, digests, name, description, entries, _library: library };
        program.fill().map_err(|reason| start(&reason.to_string()))?;
        Ok(program)
    }

    /// True if only one worker may process packets, because the program keeps state about them.
    pub fn needs_one_worker(&self) -> bool {
        self.host.one_worker
    }

    /// The program's own batch size.
    pub fn batch(&self) -> u32 {
        self.host.batch
    }

    /// The program's own entries, each with its table.
    ///
    /// # Errors
    /// Fails if one of the program's commands is unknown.
    pub fn own_entries(&self) -> Result<Vec<(usize, Entry)>, CommandError> {
        let mut entries = Vec::new();
        for command in self.commands()? {
            if let Command::Add(table, entry) = command {
                entries.push((table, entry));
            }
        }
        Ok(entries)
    }

    /// The program's own default actions: table, index of the action, action data.
    ///
    /// # Errors
    /// Fails if one of the program's commands is unknown.
    pub fn own_defaults(&self) -> Result<Vec<(usize, u32, Vec<u8>)>, CommandError> {
        let default = |command| match command {
            Command::Default(table, action, data) => Some((table, action, data)),
            Command::Add(..) => None,
        };
        Ok(self.commands()?.into_iter().filter_map(default).collect())
    }

    fn commands(&self) -> Result<Vec<Command>, CommandError> {
        let command = |line: &String| match line.split(' ').collect::<Vec<_>>()[..] {
            ["add", table, priority, prefix, action, key, mask, ranges, data] => {
                let entry = Entry {
                    priority: number(priority)?,
                    prefix: number(prefix)?,
                    action: number(action)?,
                    key: numbers(key)?,
                    mask: numbers(mask)?,
                    ranges: numbers(ranges)?,
                    data: bytes(data)?,
                };
                Ok(Command::Add(number(table)?, entry))
            }
            ["default", table, action, data] => Ok(Command::Default(number(table)?, number(action)?, bytes(data)?)),
            _ => Err(CommandError::Unknown(line.clone())),
        };
        self.entries.iter().map(command).collect()
    }

    fn fill(&self) -> Result<(), FillError> {
        for command in self.commands()? {
            match command {
                Command::Add(table, entry) => self.change(table, Change::Insert, &entry)?,
                Command::Default(table, action, data) => self.set_default(table, action, &data)?,
            }
        }
        Ok(())
    }

    /// Changes a table while packets flow.
    ///
    /// # Errors
    /// Returns what is wrong, with the name of the table; the table is then unchanged.
    pub fn change(&self, table: usize, change: Change, entry: &Entry) -> Result<(), TableError> {
        if entry.mask.len() != entry.key.len() {
            return Err(TableError::Size);
        }
        let data = padded(&entry.data);
        let raw = ffi::Entry {
            priority: entry.priority,
            prefix: entry.prefix,
            action: entry.action,
            key: entry.key.as_ptr(),
            mask: entry.mask.as_ptr(),
            ranges: entry.ranges.as_ptr(),
            data: data.as_ptr(),
            key_words: entry.key.len(),
            range_words: entry.ranges.len(),
            data_bytes: entry.data.len(),
        };
        let mut why = [0; WHY_BYTES];
        // SAFETY: the parts have these lengths, which the function compares with those of the table, and the function
        // synchronizes threads.
        let done = unsafe { (self.host.change)(table, change as c_uint, &raw, why.as_mut_ptr(), WHY_BYTES) };
        if done { Ok(()) } else { Err(TableError::Refused(text_of(&why))) }
    }

    /// Sets the action for keys that match no entry.
    ///
    /// # Errors
    /// As for [`Program::change`].
    pub fn set_default(&self, table: usize, action: u32, data: &[u8]) -> Result<(), TableError> {
        let mut why = [0; WHY_BYTES];
        let room = padded(data);
        // SAFETY: as in `change`.
        let done =
            unsafe { (self.host.set_default)(table, action, room.as_ptr(), data.len(), why.as_mut_ptr(), WHY_BYTES) };
        if done { Ok(()) } else { Err(TableError::Refused(text_of(&why))) }
    }

    /// Sets the members of a value set, each of `words` words, while packets flow. Returns false if the members have
    /// another size, or if there is no memory.
    pub fn set_members(&self, set: usize, words: usize, rows: &[u64]) -> bool {
        let count = rows.len().checked_div(words).unwrap_or(0);
        if count * words != rows.len() {
            return false;
        }
        // SAFETY: `rows` holds `count` times `words` words, and the function compares `words` with the value set's
        // size; it synchronizes threads.
        unsafe { (self.host.value_set)(set, rows.as_ptr(), count, words) }
    }

    /// Makes the engine of one worker. `batch` is the batch size; 0 selects the program's own.
    ///
    /// # Errors
    /// Fails if there are too many engines.
    pub fn engine(&self, batch: u32, pool: &BufferPool) -> Result<Engine, TooManyEngines> {
        Engine::new(self.host, batch, pool, Arc::clone(&self.digests))
    }
}

fn padded(data: &[u8]) -> Vec<u8> {
    [data, &[0; SLACK_BYTES]].concat()
}

fn text_of(text: &[c_char; WHY_BYTES]) -> String {
    let bytes: Vec<u8> = text.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, CommandError> {
    text.parse().map_err(|_| CommandError::Number(text.to_owned()))
}

/// Parses bytes in hexadecimal digits; "-" stands for none.
fn bytes(text: &str) -> Result<Vec<u8>, CommandError> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect::<Option<_>>()
        .ok_or_else(|| CommandError::Bytes(text.to_owned()))
}

/// Parses words of eight bytes, the lowest byte first.
fn numbers(text: &str) -> Result<Vec<u64>, CommandError> {
    Ok(bytes(text)?.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())).collect())
}
