//! The control socket of a running program: a request is a line of JSON, and so is its response. Only the user who runs
//! the program can connect.

use std::fs::{self, Permissions};
use std::io::{self, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use namehop_p4_compile::description::Description;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cells::{Asked, MeterRates};
use super::intake::Intake;
use super::live::Live;
use super::replication::{Group, Mirror, Replication};
use super::state::State;
use crate::Control as Switch;
use crate::prepare_socket;
use crate::program::{Change, Entry, Program};

/// Maximum number of connections.
const MOST_CLIENTS: usize = 16;
/// Pause after a connection could not be accepted.
const NO_DESCRIPTORS: Duration = Duration::from_millis(100);
/// How long a client may be silent.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the commands describe them")]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Adds an entry: `table [priority] key:value … action(name:value, …)`.
    TableAdd { entry: String },
    /// Replaces the action of an entry.
    TableModify { entry: String },
    /// Deletes an entry: `table [priority] key:value …`.
    TableDelete { entry: String },
    /// Sets the action for keys that match no entry: `table action(name:value, …)`.
    TableDefault { action: String },
    /// Adds all entries of a text, one per line, or none if one fails.
    TableLoad { text: String },
    /// Lists all entries of a table, or of all tables.
    TableList { table: Option<String> },
    /// Adds a member to an action profile or selector: `action(name:value, …)`.
    MemberAdd { profile: String, id: u32, action: String },
    /// Replaces the action of a member; entries and groups that use it change with it.
    MemberModify { profile: String, id: u32, action: String },
    /// Deletes a member that no entry and no group uses.
    MemberDelete { profile: String, id: u32 },
    /// Lists all members of a profile.
    MemberList { profile: String },
    /// Creates or changes a group: members with their weights.
    GroupSet { profile: String, id: u32, members: Vec<(u32, u32)> },
    /// Deletes a group that no entry uses.
    GroupDelete { profile: String, id: u32 },
    /// Lists all groups of a selector.
    GroupList { profile: String },
    /// Replaces the members of a value set: values separated by commas.
    ValueSetPut { set: String, members: Vec<String> },
    /// Lists all members of a value set.
    ValueSetList { set: String },
    /// Reads a cell of a counter, or all cells that are not zero.
    CounterRead { counter: String, index: Option<u64> },
    /// Sets a cell of a counter, or all cells, to zero.
    CounterReset { counter: String, index: Option<u64> },
    /// Reads a cell of a register, or all cells that are not zero.
    RegisterRead { register: String, index: Option<u64> },
    /// Writes a cell: one value, or one for each named part.
    RegisterWrite { register: String, index: u64, values: Vec<String> },
    /// Sets a cell of a register, or all cells, to zero.
    RegisterReset { register: String, index: Option<u64> },
    /// Reads the rates of a meter cell, or of all cells that have rates.
    MeterRead { meter: String, index: Option<u64> },
    /// Sets the rates of a meter cell.
    MeterSet { meter: String, index: u64, rates: MeterRates },
    /// Removes the rates of a cell, or of all cells.
    MeterReset { meter: String, index: Option<u64> },
    /// Takes at most `most` waiting digests.
    DigestTake { most: u64 },
    /// Sets the members of a multicast group, each a replication number and a port; without members, the group is
    /// deleted.
    Multicast { group: u64, members: Vec<(u64, u64)> },
    /// Sets the port or group that copies of a mirroring session go to; with neither, there are no copies.
    /// `longest_bytes` limits their length; 0 means no limit.
    Mirror {
        session: u64,
        port: Option<u64>,
        group: Option<u64>,
        #[serde(default)]
        longest_bytes: u32,
    },
}

/// Answers requests.
pub struct Control {
    state: Mutex<State<Arc<Live>>>,
    pub(crate) live: Arc<Live>,
    replication: Mutex<Replication>,
    /// Held while something is changed.
    changing: Mutex<()>,
}

impl Control {
    /// Makes the control of a started program.
    ///
    /// # Errors
    /// Fails if the program's description does not fit this version.
    pub fn new(program: &Arc<Program>, switch: Switch) -> Result<Control, String> {
        let description: Description = serde_json::from_str(&program.description)
            .map_err(|error| format!("the description of {} is not valid: {error}", program.name))?;
        let initial: Vec<(usize, Entry)> = program.own_entries()?;
        let live = Arc::new(Live::new(Arc::clone(program), switch, description.meters.len()));
        let state = State::new(description, Arc::clone(&live), initial).with_defaults(program.own_defaults()?);
        Ok(Control { state: Mutex::new(state), live, replication: Mutex::default(), changing: Mutex::default() })
    }

    /// Locks the contents of the tables.
    pub(crate) fn state(&self) -> MutexGuard<'_, State<Arc<Live>>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the multicast groups and mirroring sessions.
    pub(crate) fn replication(&self) -> MutexGuard<'_, Replication> {
        self.replication.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` while no request is answered at the control socket. With `packets_wait`, packets wait meanwhile, so
    /// that they see all changes as one step.
    pub(crate) fn alone<R>(&self, packets_wait: bool, work: impl FnOnce() -> R) -> R {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let _hold = packets_wait.then(|| self.live.switch.hold());
        work()
    }

    /// Resets all state to that at the program's start.
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
        self.replication().reset(&self.live.switch).map_err(|error| error.to_string())
    }

    /// Answers a request line; any bytes are allowed.
    pub fn answer(&self, line: &[u8]) -> Value {
        let request = serde_json::from_slice(line).map_err(|error| format!("malformed request: {error}"));
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
                let done = known.group(&self.live.switch, group, Group { members, metadata });
                done.map(|()| Value::Null).map_err(|error| error.to_string())
            }
            Request::Mirror { session, port, group, longest_bytes } => {
                let mirror = match (port, group) {
                    (Some(_), Some(_)) => return Err("give either a port or a group for the copies, not both".into()),
                    (None, None) => None,
                    (Some(target), None) => Some(Mirror { target, is_group: false, longest_bytes }),
                    (None, Some(target)) => Some(Mirror { target, is_group: true, longest_bytes }),
                };
                let done = self.replication().mirror(&self.live.switch, session, mirror);
                done.map(|()| Value::Null).map_err(|error| error.to_string())
            }
        }
    }
}

/// A control socket; removed on drop.
pub struct Server {
    path: PathBuf,
}

impl Server {
    /// Creates the socket and answers requests on it in a separate thread.
    ///
    /// # Errors
    /// Fails if there is no permission for it, or if another program uses the socket.
    pub fn start(path: &Path, control: Arc<Control>) -> io::Result<Server> {
        let named = |error: io::Error| {
            io::Error::other(format!("cannot create the control socket {}: {error}", path.display()))
        };
        prepare_socket(path).map_err(named)?;
        let before = nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o177));
        let listener = UnixListener::bind(path);
        nix::sys::stat::umask(before);
        let listener = listener.map_err(named)?;
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(named)?;
        let (clients, intake) = (Arc::new(AtomicUsize::new(0)), Arc::new(Intake::new()));
        thread::Builder::new().name("control".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else {
                    // Probably no file descriptors are left until other clients disconnect.
                    thread::sleep(NO_DESCRIPTORS);
                    continue;
                };
                if clients.load(Ordering::Relaxed) >= MOST_CLIENTS {
                    // Closing the connection tells the client.
                    continue;
                }
                clients.fetch_add(1, Ordering::Relaxed);
                let (control, theirs, intake) = (Arc::clone(&control), Arc::clone(&clients), Arc::clone(&intake));
                let serve = move || {
                    // A client that disconnects does not affect others.
                    let _ = serve(&stream, &control, &intake);
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
        // It may have been removed already.
        let _ = fs::remove_file(&self.path);
    }
}

fn serve(stream: &UnixStream, control: &Control, intake: &Intake) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    loop {
        let line = intake.read(&mut reader)?;
        if line.bytes.is_empty() {
            return Ok(());
        }
        let (turn, is_whole) = (intake.turn(&line), line.is_whole());
        let answer = if is_whole {
            control.answer(&line.bytes)
        } else {
            json!({"error": "a request must be a line of at most 256 MiB, and arrive within a minute"})
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
