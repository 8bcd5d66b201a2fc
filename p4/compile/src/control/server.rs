//! The control socket of a program that runs: a request is a line of JSON, and so is its answer. Only the user who runs the program
//! can connect.

use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use namehop_switch::Control as Switch;
use namehop_switch::prepare_socket;
use namehop_switch::program::{Change, Entry, Program};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cells::{Asked, MeterRates};
use super::describe::Description;
use super::live::Live;
use super::replication::{Group, Mirror, Replication};
use super::state::State;

/// The longest request, in bytes: a file of some millions of entries.
const LONGEST_REQUEST: u64 = 256 << 20;
/// Longer ones take turns, so that memory has a bound.
const SHORT_REQUEST: u64 = 64 << 10;
/// Connections at once.
const MOST_CLIENTS: usize = 16;
/// How long to wait when a connection cannot be taken.
const NO_DESCRIPTORS: Duration = Duration::from_millis(100);
/// How long a client may be silent.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a client may ask for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Adds an entry: `table [priority] key:value … action(name:value, …)`.
    TableAdd { entry: String },
    /// Gives an entry another action.
    TableModify { entry: String },
    /// Takes an entry out: `table [priority] key:value …`.
    TableDelete { entry: String },
    /// Sets what keys without an entry get: `table action(name:value, …)`.
    TableDefault { action: String },
    /// Adds all entries of a text, one a line, or none.
    TableLoad { text: String },
    /// All entries of a table, or of all tables.
    TableList { table: Option<String> },
    /// Adds a member to an action profile or selector: `action(name:value, …)`.
    MemberAdd { profile: String, id: u32, action: String },
    /// Gives a member another action; entries and groups that have it change with it.
    MemberModify { profile: String, id: u32, action: String },
    /// Takes out a member that no entry and no group has.
    MemberDelete { profile: String, id: u32 },
    /// All members of a profile.
    MemberList { profile: String },
    /// Makes a group or changes it: members with their weights.
    GroupSet { profile: String, id: u32, members: Vec<(u32, u32)> },
    /// Takes out a group that no entry has.
    GroupDelete { profile: String, id: u32 },
    /// All groups of a selector.
    GroupList { profile: String },
    /// Gives a value set these members and no others: values with commas between them.
    ValueSetPut { set: String, members: Vec<String> },
    /// All members of a value set.
    ValueSetList { set: String },
    /// A cell of a counter, or all that are not zero.
    CounterRead { counter: String, index: Option<u64> },
    /// Lets a cell, or all, begin at nothing.
    CounterReset { counter: String, index: Option<u64> },
    /// A cell of a register, or all that are not zero.
    RegisterRead { register: String, index: Option<u64> },
    /// Writes a cell: one value, or one for each part that is named.
    RegisterWrite { register: String, index: u64, values: Vec<String> },
    /// Makes a cell, or all, zero.
    RegisterReset { register: String, index: Option<u64> },
    /// What a cell of a meter lets pass, or all that were set.
    MeterRead { meter: String, index: Option<u64> },
    /// Sets it.
    MeterSet { meter: String, index: u64, rates: MeterRates },
    /// Lets a cell, or all, pass everything.
    MeterReset { meter: String, index: Option<u64> },
    /// Takes so many reports at most that wait.
    DigestTake { most: u64 },
    /// The members of a multicast group, each a replication number and a port; none of them ends it.
    Multicast { group: u64, members: Vec<(u64, u64)> },
    /// Where copies of a mirroring session go: to a port or a group, or nowhere; with so many bytes at most, 0 for any number.
    Mirror {
        session: u64,
        port: Option<u64>,
        group: Option<u64>,
        #[serde(default)]
        longest_bytes: u32,
    },
}

/// What answers requests.
pub struct Control {
    state: Mutex<State<Arc<Live>>>,
    pub(crate) live: Arc<Live>,
    replication: Mutex<Replication>,
    /// Held by whoever changes something.
    changing: Mutex<()>,
}

impl Control {
    /// Of a program that has been started.
    ///
    /// # Errors
    /// When its description does not fit this version.
    pub fn new(program: &Arc<Program>, switch: Switch) -> Result<Control, String> {
        let description: Description = serde_json::from_str(&program.description)
            .map_err(|error| format!("the description of {} does not fit: {error}", program.name))?;
        let initial: Vec<(usize, Entry)> = program.own_entries()?;
        let live = Arc::new(Live::new(Arc::clone(program), switch, description.meters.len()));
        let state = State::new(description, Arc::clone(&live), initial).with_defaults(program.own_defaults()?);
        Ok(Control { state: Mutex::new(state), live, replication: Mutex::default(), changing: Mutex::default() })
    }

    /// What is in the tables; others wait meanwhile.
    pub(crate) fn state(&self) -> MutexGuard<'_, State<Arc<Live>>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where copies go.
    pub(crate) fn replication(&self) -> MutexGuard<'_, Replication> {
        self.replication.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does this while no request is answered at the control socket. If packets are not to see parts of it, they wait.
    pub(crate) fn alone<R>(&self, packets_wait: bool, work: impl FnOnce() -> R) -> R {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let _hold = packets_wait.then(|| self.live.switch.hold());
        work()
    }

    /// Makes everything as it was when the program started.
    pub(crate) fn reset(&self) -> Result<(), String> {
        let mut state = self.state();
        state.reset()?;
        let own = state.description.counters.iter().enumerate().filter(|(_, counter)| counter.table.is_none());
        for (place, counter) in own {
            for index in 0..counter.size as usize {
                self.live.program.set_counter(place, index, 0, 0);
            }
        }
        for (place, register) in state.description.registers.iter().enumerate() {
            self.live.each_register_cell(place, 0..register.size, |_, cell| cell.fill(0));
        }
        for (place, meter) in state.description.meters.iter().enumerate() {
            self.live.set_rates(place, 0..meter.size, None);
        }
        self.replication().reset(&self.live.switch)
    }

    /// Answers a line, whatever is in it.
    pub fn answer(&self, line: &[u8]) -> Value {
        let request = serde_json::from_slice(line).map_err(|error| format!("no request: {error}"));
        let carry_out = |request| self.alone(false, || self.carry_out(request));
        match request.and_then(carry_out) {
            Ok(answer) => json!({ "answer": answer }),
            Err(reason) => json!({ "error": reason }),
        }
    }

    fn carry_out(&self, request: Request) -> Result<Value, String> {
        let mut state = self.state();
        match request {
            Request::TableAdd { entry } => state.change(Change::Insert, &entry).map(|()| Value::Null),
            Request::TableModify { entry } => state.change(Change::Modify, &entry).map(|()| Value::Null),
            Request::TableDelete { entry } => state.change(Change::Delete, &entry).map(|()| Value::Null),
            Request::TableDefault { action } => state.set_default(&action).map(|()| Value::Null),
            Request::TableLoad { text } => state.load(&text).map(|count| json!({ "loaded": count })),
            Request::TableList { table } => state.list(table.as_deref()).map(|entries| json!({ "entries": entries })),
            Request::MemberAdd { profile, id, action } => state.member(Change::Insert, &profile, id, Some(&action)),
            Request::MemberModify { profile, id, action } => state.member(Change::Modify, &profile, id, Some(&action)),
            Request::MemberDelete { profile, id } => state.member(Change::Delete, &profile, id, None),
            Request::MemberList { profile } => state.members(&profile),
            Request::GroupSet { profile, id, members } => state.group(&profile, id, Some(&members)),
            Request::GroupDelete { profile, id } => state.group(&profile, id, None),
            Request::GroupList { profile } => state.groups(&profile),
            Request::ValueSetPut { set, members } => state.put_value_set(&set, &members),
            Request::ValueSetList { set } => state.value_set(&set),
            Request::CounterRead { counter, index } => {
                self.read_counter(&state, &Asked::new(&state.description, &counter, index))
            }
            Request::CounterReset { counter, index } => {
                self.reset_counter(&state, &Asked::new(&state.description, &counter, index))
            }
            Request::RegisterRead { register, index } => {
                self.read_register(&Asked::new(&state.description, &register, index))
            }
            Request::RegisterWrite { register, index, values } => {
                self.write_register(&Asked::new(&state.description, &register, Some(index)), &values)
            }
            Request::RegisterReset { register, index } => {
                self.reset_register(&Asked::new(&state.description, &register, index))
            }
            Request::MeterRead { meter, index } => {
                self.read_meter(&state, &Asked::new(&state.description, &meter, index))
            }
            Request::MeterSet { meter, index, rates } => {
                self.set_meter(&Asked::new(&state.description, &meter, Some(index)), rates)
            }
            Request::MeterReset { meter, index } => self.reset_meter(&Asked::new(&state.description, &meter, index)),
            Request::DigestTake { most } => self.take_digests(&state.description, most),
            Request::Multicast { group, members } => {
                let mut known = self.replication();
                let metadata = known.groups.get(&group).map(|group| group.metadata.clone()).unwrap_or_default();
                known.group(&self.live.switch, group, Group { members, metadata }).map(|()| Value::Null)
            }
            Request::Mirror { session, port, group, longest_bytes } => {
                let mirror = match (port, group) {
                    (Some(_), Some(_)) => return Err("copies go to a port or to a group, not to both".into()),
                    (None, None) => None,
                    (Some(target), None) => Some(Mirror { target, is_group: false, longest_bytes }),
                    (None, Some(target)) => Some(Mirror { target, is_group: true, longest_bytes }),
                };
                self.replication().mirror(&self.live.switch, session, mirror).map(|()| Value::Null)
            }
        }
    }
}

/// A control socket, which is removed when this is dropped.
pub struct Server {
    path: PathBuf,
}

impl Server {
    /// Makes the socket and answers on it from now on.
    ///
    /// # Errors
    /// When there is no permission for it, or another program has it.
    pub fn start(path: &Path, control: Arc<Control>) -> io::Result<Server> {
        let named =
            |error: io::Error| io::Error::other(format!("cannot make the control socket {}: {error}", path.display()));
        prepare_socket(path).map_err(named)?;
        let before = nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o177));
        let listener = UnixListener::bind(path);
        nix::sys::stat::umask(before);
        let listener = listener.map_err(named)?;
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(named)?;
        let (control, clients, long) = (control, Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(())));
        thread::Builder::new().name("control".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else {
                    // There are no file descriptors, most likely, until other clients have gone.
                    thread::sleep(NO_DESCRIPTORS);
                    continue;
                };
                if clients.load(Ordering::Relaxed) >= MOST_CLIENTS {
                    // Whoever connects sees the end at once.
                    continue;
                }
                clients.fetch_add(1, Ordering::Relaxed);
                let (control, theirs, long) = (Arc::clone(&control), Arc::clone(&clients), Arc::clone(&long));
                let serve = move || {
                    // A client that goes away is no concern of others.
                    let _ = serve(&stream, &control, &long);
                    theirs.fetch_sub(1, Ordering::Relaxed);
                };
                if thread::Builder::new().name("client".to_owned()).spawn(serve).is_err() {
                    clients.fetch_sub(1, Ordering::Relaxed);
                }
            }
        })?;
        Ok(Server { path: path.to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = fs::remove_file(&self.path);
    }
}

fn serve(stream: &UnixStream, control: &Control, long: &Mutex<()>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let count = (&mut reader).take(SHORT_REQUEST).read_until(b'\n', &mut line)?;
        let mut turn = None;
        if count as u64 == SHORT_REQUEST && line.last() != Some(&b'\n') {
            turn = Some(long.lock().unwrap_or_else(PoisonError::into_inner));
            (&mut reader).take(LONGEST_REQUEST - SHORT_REQUEST).read_until(b'\n', &mut line)?;
        }
        if line.is_empty() {
            return Ok(());
        }
        let is_whole = line.last() == Some(&b'\n');
        let answer = if is_whole {
            control.answer(&line)
        } else {
            json!({"error": "a request is a line, and not longer than 256 MiB"})
        };
        drop((line, turn));
        let mut text = serde_json::to_vec(&answer)?;
        text.push(b'\n');
        (&mut &*stream).write_all(&text)?;
        if !is_whole {
            return Ok(());
        }
    }
}
