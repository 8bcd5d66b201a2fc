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

/// What was set.
#[derive(Default)]
pub struct Replication {
    pub groups: BTreeMap<u64, Vec<Member>>,
    /// Sessions whose copies go to several ports.
    pub sessions: BTreeMap<u64, Vec<Member>>,
}

/// The group of a session.
fn session_group(session: u64) -> Result<u64, String> {
    let number =
        u32::try_from(session).map_err(|_| format!("{session} is no mirroring session: 0 to {} are", u32::MAX))?;
    Ok(SESSION_GROUPS | u64::from(number))
}

impl Replication {
    fn room(&self, members: usize) -> Result<(), String> {
        let all = self.groups.values().chain(self.sessions.values()).map(Vec::len).sum::<usize>();
        if all + members > MOST_MEMBERS {
            return Err(format!("groups and sessions have more than {MOST_MEMBERS} members together"));
        }
        Ok(())
    }

    /// Sets the members of a group; none of them ends it.
    pub fn group(&mut self, switch: &Switch, group: u64, members: &[Member]) -> Result<(), String> {
        if group == 0 || group > MOST_GROUP {
            return Err(format!("{group} is no multicast group: 1 to {MOST_GROUP} are"));
        }
        self.room(members.len())?;
        switch.each_engine(|engine| engine.group(group, members));
        match members {
            [] => drop(self.groups.remove(&group)),
            _ => drop(self.groups.insert(group, members.to_vec())),
        }
        Ok(())
    }

    /// Copies of a session go to these ports; nowhere when there are none.
    pub fn session(&mut self, switch: &Switch, session: u64, members: &[Member]) -> Result<(), String> {
        self.room(members.len())?;
        let group = session_group(session)?;
        switch.each_engine(|engine| {
            engine.group(group, members);
            engine.unmirror(session);
            if !members.is_empty() {
                engine.mirror(session, true, group);
            }
        });
        match members {
            [] => drop(self.sessions.remove(&session)),
            _ => drop(self.sessions.insert(session, members.to_vec())),
        }
        Ok(())
    }

    /// Copies of a session go to a port or a group, or nowhere.
    pub fn mirror(
        &mut self,
        switch: &Switch,
        session: u64,
        port: Option<u64>,
        group: Option<u64>,
    ) -> Result<(), String> {
        if port.is_some() && group.is_some() {
            return Err("copies go to a port or to a group, not to both".into());
        }
        let own_group = session_group(session)?;
        switch.each_engine(|engine| {
            engine.unmirror(session);
            engine.group(own_group, &[]);
            match (port, group) {
                (Some(port), _) => engine.mirror(session, false, port),
                (None, Some(group)) => engine.mirror(session, true, group),
                (None, None) => {}
            }
        });
        self.sessions.remove(&session);
        Ok(())
    }

    /// Ends all of them.
    pub fn reset(&mut self, switch: &Switch) -> Result<(), String> {
        for group in self.groups.keys().copied().collect::<Vec<_>>() {
            self.group(switch, group, &[])?;
        }
        for session in self.sessions.keys().copied().collect::<Vec<_>>() {
            self.session(switch, session, &[])?;
        }
        Ok(())
    }
}
