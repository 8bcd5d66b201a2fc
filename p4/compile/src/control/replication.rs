//! Multicast groups and mirroring sessions: where copies of packets go. What was set is remembered, since it cannot be read where it is.

use std::collections::BTreeMap;

use namehop_switch::Control as Switch;

/// Groups that a program can name.
pub const MOST_GROUP: u64 = 0xFFFF;
/// Sessions with several copies have groups of their own, which no program can name.
const SESSION_GROUPS: u64 = 1 << 32;
/// Members of all groups together. Each copy of a packet looks through them.
const MOST_MEMBERS: usize = 16_384;

/// A replication number and a port.
pub type Member = (u64, u64);

/// A multicast group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub members: Vec<Member>,
    /// What a controller keeps with it.
    pub metadata: Vec<u8>,
}

/// A session whose copies go to several ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    pub members: Vec<Member>,
    /// Bytes that a copy has at most; 0 is any number.
    pub longest_bytes: u32,
}

/// A session whose copies go to one port or one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// A number of a port, or of a group.
    pub target: u64,
    pub is_group: bool,
    /// Bytes that a copy has at most; 0 is any number.
    pub longest_bytes: u32,
}

/// What was set. No session is in both lists.
#[derive(Default)]
pub struct Replication {
    pub groups: BTreeMap<u64, Group>,
    pub sessions: BTreeMap<u64, Session>,
    pub mirrors: BTreeMap<u64, Mirror>,
}

/// The group of a session.
fn session_group(session: u64) -> Result<u64, String> {
    let number =
        u32::try_from(session).map_err(|_| format!("{session} is no mirroring session: 0 to {} are", u32::MAX))?;
    Ok(SESSION_GROUPS | u64::from(number))
}

impl Replication {
    /// Whether there is room for so many members, of which so many take the place of others.
    fn room(&self, members: usize, replaced: Option<usize>) -> Result<(), String> {
        let sessions = self.sessions.values().map(|session| session.members.len());
        let all = self.groups.values().map(|group| group.members.len()).chain(sessions).sum::<usize>();
        if all + members > MOST_MEMBERS + replaced.unwrap_or_default() {
            return Err(format!("groups and sessions have more than {MOST_MEMBERS} members together"));
        }
        Ok(())
    }

    /// Sets the members of a group; none of them ends it.
    pub fn group(&mut self, switch: &Switch, group: u64, new: Group) -> Result<(), String> {
        if group == 0 || group > MOST_GROUP {
            return Err(format!("{group} is no multicast group: 1 to {MOST_GROUP} are"));
        }
        self.room(new.members.len(), self.groups.get(&group).map(|group| group.members.len()))?;
        switch.each_engine(|engine| engine.group(group, &new.members));
        match &new.members[..] {
            [] => drop(self.groups.remove(&group)),
            _ => drop(self.groups.insert(group, new)),
        }
        Ok(())
    }

    /// Copies of a session go to these ports; nowhere when there are none.
    pub fn session(&mut self, switch: &Switch, session: u64, new: Session) -> Result<(), String> {
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

    /// Copies of a session go to a port or a group, or nowhere.
    pub fn mirror(&mut self, switch: &Switch, session: u64, mirror: Option<Mirror>) -> Result<(), String> {
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

    /// Ends all of them.
    pub fn reset(&mut self, switch: &Switch) -> Result<(), String> {
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
