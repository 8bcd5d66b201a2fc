//! Multicast groups and mirroring sessions: the destinations of packet copies. They are recorded here, because they
//! cannot be read back from the program.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::Control as Switch;

/// Highest multicast group number that a program can use.
pub const MOST_GROUP: u64 = 0xFFFF;
/// Base of the group numbers for sessions with several copies; programs cannot use these numbers.
const SESSION_GROUPS: u64 = 1 << 32;
/// Maximum number of members of all groups together, because each copy of a packet searches them.
const MOST_MEMBERS: usize = 16_384;

/// Why groups and sessions stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReplicationError {
    /// The number is not one of a multicast group.
    #[error("{0} is not a multicast group: use 1 to {most}", most = MOST_GROUP)]
    NotAGroup(u64),
    /// The number is not one of a mirroring session.
    #[error("{0} is not a mirroring session: use 0 to {max}", max = u32::MAX)]
    NotASession(u64),
    /// There is no room for the members.
    #[error("groups and sessions have more than {most} members in total", most = MOST_MEMBERS)]
    TooManyMembers,
}

/// A replication number and a port.
pub type Member = (u64, u64);

/// A multicast group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub members: Vec<Member>,
    /// Metadata of the controller.
    pub metadata: Vec<u8>,
}

/// A session with copies to several ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    pub members: Vec<Member>,
    /// Maximum length of a copy, in bytes; 0 means no limit.
    pub longest_bytes: u32,
}

/// A session with copies to one port or one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Number of the port or group.
    pub target: u64,
    pub is_group: bool,
    /// Maximum length of a copy, in bytes; 0 means no limit.
    pub longest_bytes: u32,
}

/// The current configuration. No session is in both lists.
#[derive(Default)]
pub struct Replication {
    pub groups: BTreeMap<u64, Group>,
    pub sessions: BTreeMap<u64, Session>,
    pub mirrors: BTreeMap<u64, Mirror>,
}

/// The internal group of a session.
fn session_group(session: u64) -> Result<u64, ReplicationError> {
    let number = u32::try_from(session).map_err(|_| ReplicationError::NotASession(session))?;
    Ok(SESSION_GROUPS | u64::from(number))
}

impl Replication {
    /// Checks that there is room for `members` members, after `replaced` members are removed.
    fn room(&self, members: usize, replaced: Option<usize>) -> Result<(), ReplicationError> {
        let sessions = self.sessions.values().map(|session| session.members.len());
        let all = self.groups.values().map(|group| group.members.len()).chain(sessions).sum::<usize>();
        if all + members > MOST_MEMBERS + replaced.unwrap_or_default() {
            return Err(ReplicationError::TooManyMembers);
        }
        Ok(())
    }

    /// Sets the members of a group; without members, it is deleted.
    pub fn group(&mut self, switch: &Switch, group: u64, new: Group) -> Result<(), ReplicationError> {
        if group == 0 || group > MOST_GROUP {
            return Err(ReplicationError::NotAGroup(group));
        }
        self.room(new.members.len(), self.groups.get(&group).map(|group| group.members.len()))?;
        switch.each_engine(|engine| engine.group(group, &new.members));
        match &new.members[..] {
            [] => drop(self.groups.remove(&group)),
            _ => drop(self.groups.insert(group, new)),
        }
        Ok(())
    }

    /// Sets the ports that copies of a session go to; without ports, there are no copies.
    pub fn session(&mut self, switch: &Switch, session: u64, new: Session) -> Result<(), ReplicationError> {
        self.room(new.members.len(), self.sessions.get(&session).map(|session| session.members.len()))?;
        let group = session_group(session)?;
        switch.each_engine(|engine| {
            engine.group(group, &new.members);
            engine.unmirror(session);
            if !new.members.is_empty() {
                engine.mirror(session, true, group, new.longest_bytes);
            }
        });
        self.mirrors.remove(&session);
        match &new.members[..] {
            [] => drop(self.sessions.remove(&session)),
            _ => drop(self.sessions.insert(session, new)),
        }
        Ok(())
    }

    /// Sets the port or group that copies of a session go to; `None` for no copies.
    pub fn mirror(&mut self, switch: &Switch, session: u64, mirror: Option<Mirror>) -> Result<(), ReplicationError> {
        let own_group = session_group(session)?;
        switch.each_engine(|engine| {
            engine.unmirror(session);
            engine.group(own_group, &[]);
            if let Some(Mirror { target, is_group, longest_bytes }) = mirror {
                engine.mirror(session, is_group, target, longest_bytes);
            }
        });
        self.sessions.remove(&session);
        match mirror {
            None => drop(self.mirrors.remove(&session)),
            Some(mirror) => drop(self.mirrors.insert(session, mirror)),
        }
        Ok(())
    }

    /// Deletes all groups and sessions.
    ///
    /// # Errors
    /// Fails only if one has a number that it cannot have.
    pub fn reset(&mut self, switch: &Switch) -> Result<(), ReplicationError> {
        for group in self.groups.keys().copied().collect::<Vec<_>>() {
            self.group(switch, group, Group::default())?;
        }
        for session in self.sessions.keys().copied().collect::<Vec<_>>() {
            self.session(switch, session, Session::default())?;
        }
        for session in self.mirrors.keys().copied().collect::<Vec<_>>() {
            self.mirror(switch, session, None)?;
        }
        Ok(())
    }
}
