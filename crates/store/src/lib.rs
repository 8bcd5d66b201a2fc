//! Content-store policies: which packet leaves when the store is full.
//!
//! A policy knows packets only as small numbers below its capacity (slots of the Content Store) and orders them. It
//! holds no packets, so the engine and simulations run the same code. All operations are O(1) and none allocates.
//!
//! A policy is a file that implements [`EvictionPolicy`], and a line in the list `policies!` below.

#![forbid(unsafe_code)]

mod in_order;
mod list;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

pub use in_order::{Fifo, InOrder, Lru};
use list::Place;
use namehop_table::TableError;

/// Order in which packets leave a full store.
///
/// The store tells it what happens to each packet; ids are below the capacity the policy was made with, and every
/// method panics on one that is not.
pub trait EvictionPolicy {
    /// The packet entered the store; it was not there.
    fn admitted(&mut self, id: u32);
    /// The packet answered an Interest. Nothing happens if it is not in the store.
    fn hit(&mut self, id: u32);
    /// The packet left the store, for whatever reason. Nothing happens if it is not in the store.
    fn removed(&mut self, id: u32);
    /// The packet to evict next; `None` when the store is empty. It stays in the order until
    /// [`removed`](Self::removed) is called for it.
    fn victim(&mut self) -> Option<u32>;
    /// The packet to evict after those that `ahead` has passed: what [`victim`](Self::victim) will say later if nothing else
    /// happens meanwhile, and a guess if something does. `None` at the end of the order, or when it is not known.
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32>;
    /// Asks for the memory that [`admitted`](Self::admitted) and [`hit`](Self::hit) look at first. Any id may be given.
    fn prefetch(&self, id: u32);
    /// Asks for what else [`hit`](Self::hit) needs. Reads what [`prefetch`](Self::prefetch) asks for. Any id may be given.
    fn prefetch_hit(&self, id: u32);
    /// Packets in the store.
    fn len(&self) -> usize;
    /// Is the store empty?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How far a look at the packets to be evicted next has come; at first, before all of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ahead(Option<Place>);

/// Makes [`PolicyKind`] and [`Policy`] from the list of policies: a type with a function `new(capacity)`, and its name in
/// configurations. The first is the default.
macro_rules! policies {
    ($default:ident $default_name:literal; $($policy:ident $name:literal;)*) => {
        policies! { @all $default, $default $default_name; $($policy $name;)* }
    };
    (@all $default:ident, $($policy:ident $name:literal;)*) => {
        /// Names of the policies, as in a configuration file.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum PolicyKind {
            $(
                #[doc = concat!("[`", stringify!($policy), "`], written `", $name, "`.")]
                $policy,
            )*
        }

        impl PolicyKind {
            /// All policies.
            pub const ALL: &[PolicyKind] = &[$(PolicyKind::$policy),*];

            /// How it is written in a configuration.
            pub const fn name(self) -> &'static str {
                match self {
                    $(PolicyKind::$policy => $name,)*
                }
            }
        }

        impl Default for PolicyKind {
            fn default() -> Self {
                PolicyKind::$default
            }
        }

        /// Any of the policies, chosen at run time.
        #[derive(Debug)]
        pub enum Policy {
            $(
                #[doc = concat!("[`PolicyKind::", stringify!($policy), "`].")]
                $policy($policy),
            )*
        }

        impl Policy {
            /// The policy of this kind for ids below `capacity`.
            ///
            /// # Errors
            /// When the memory for the order cannot be had.
            pub fn new(kind: PolicyKind, capacity: usize) -> Result<Self, TableError> {
                Ok(match kind {
                    $(PolicyKind::$policy => Policy::$policy($policy::new(capacity)?),)*
                })
            }

            /// Which one it is.
            pub fn kind(&self) -> PolicyKind {
                match self {
                    $(Policy::$policy(_) => PolicyKind::$policy,)*
                }
            }
        }

        impl EvictionPolicy for Policy {
            fn admitted(&mut self, id: u32) {
                match self {
                    $(Policy::$policy(policy) => policy.admitted(id),)*
                }
            }

            fn hit(&mut self, id: u32) {
                match self {
                    $(Policy::$policy(policy) => policy.hit(id),)*
                }
            }

            fn removed(&mut self, id: u32) {
                match self {
                    $(Policy::$policy(policy) => policy.removed(id),)*
                }
            }

            fn victim(&mut self) -> Option<u32> {
                match self {
                    $(Policy::$policy(policy) => policy.victim(),)*
                }
            }

            #[inline]
            fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
                match self {
                    $(Policy::$policy(policy) => policy.upcoming(ahead),)*
                }
            }

            #[inline]
            fn prefetch(&self, id: u32) {
                match self {
                    $(Policy::$policy(policy) => policy.prefetch(id),)*
                }
            }

            #[inline]
            fn prefetch_hit(&self, id: u32) {
                match self {
                    $(Policy::$policy(policy) => policy.prefetch_hit(id),)*
                }
            }

            fn len(&self) -> usize {
                match self {
                    $(Policy::$policy(policy) => policy.len(),)*
                }
            }
        }
    };
}

policies! {
    Lru "lru";
    Fifo "fifo";
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// There is no policy with this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPolicy(pub String);

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown content store policy '{}', expected", self.0)?;
        for (position, kind) in PolicyKind::ALL.iter().enumerate() {
            let separator = if position == 0 { "" } else { " or" };
            write!(f, "{separator} '{kind}'")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownPolicy {}

impl FromStr for PolicyKind {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let found = PolicyKind::ALL.iter().copied().find(|kind| text.eq_ignore_ascii_case(kind.name()));
        found.ok_or_else(|| UnknownPolicy(text.to_owned()))
    }
}
