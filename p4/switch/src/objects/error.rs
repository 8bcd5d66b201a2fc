//! Why changes of objects are refused.

use std::fmt;

use thiserror::Error;

use super::replication::ReplicationError;
use crate::program::TableError;

/// A member or a group of an action profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileObject {
    kind: &'static str,
    id: u32,
    profile: String,
}

impl ProfileObject {
    /// A member.
    pub fn member(id: u32, profile: &str) -> ProfileObject {
        ProfileObject { kind: "member", id, profile: profile.to_owned() }
    }

    /// A group.
    pub fn group(id: u32, profile: &str) -> ProfileObject {
        ProfileObject { kind: "group", id, profile: profile.to_owned() }
    }
}

impl fmt::Display for ProfileObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of profile {}", self.kind, self.id, self.profile)
    }
}

/// Why a change is refused. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ObjectError {
    /// The compiled program refuses an entry or a default action.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A multicast group or a mirroring session cannot be reset.
    #[error(transparent)]
    Replication(#[from] ReplicationError),
    /// A table lacks an action of its profile.
    #[error("table {0} has no action {1}")]
    NoAction(String, String),
    /// An entry cannot have this action.
    #[error("table {0}: action {1} can only be the default action")]
    DefaultOnly(String, String),
    /// An entry refers to a profile, and its table has none.
    #[error("table {0} has no action profile")]
    NoProfile(String),
    /// An entry refers to an object that does not exist.
    #[error("table {0}: profile {profile} has no {kind} {id}", profile = .1.profile, kind = .1.kind, id = .1.id)]
    NoReferred(String, ProfileObject),
    /// A set has no actions.
    #[error("table {0}: an action set has no actions")]
    EmptySet(String),
    /// A set has several actions, and its table has no selector.
    #[error("table {0} has no action selector, so an action set must have one action")]
    NoSelector(String),
    /// A value set has too many members.
    #[error("value set {0} has room for {1} members")]
    ValueSetFull(String, u64),
    /// The compiled program refuses the members of a value set.
    #[error("value set {0} rejected its members")]
    ValueSet(String),
    /// There is no room for the slots of groups and sets.
    #[error("profile {0} is full: the sum of the weights of all groups is limited to {1}")]
    SlotsFull(String, u64),
    /// There is no room for another member.
    #[error("profile {0} is full: it has {1} members")]
    MembersFull(String, u64),
    /// The object exists.
    #[error("{0} already exists")]
    Exists(ProfileObject),
    /// The object does not exist.
    #[error("there is no {0}")]
    NotFound(ProfileObject),
    /// A group has this member.
    #[error("{0} is in group {1}")]
    InGroup(ProfileObject, u32),
    /// Entries refer to the object.
    #[error("entries use {0}")]
    InUse(ProfileObject),
    /// A member has no action.
    #[error("{0} needs an action")]
    Actionless(ProfileObject),
    /// The profile cannot have groups.
    #[error("profile {0} is not an action selector, so it has no groups")]
    NotASelector(String),
    /// A group has a member that does not exist.
    #[error("{0}: member {1} does not exist")]
    NoMember(ProfileObject, u32),
    /// A member has no weight in a group, or occurs twice.
    #[error("{0}: member {1} must have a weight of at least 1 and occur only once")]
    Weight(ProfileObject, u32),
    /// A group is larger than its controller allows.
    #[error("{0}: the sum of the weights is {1}, above the limit of {2}")]
    GroupFull(ProfileObject, u64, u32),
}
