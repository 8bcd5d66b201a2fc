//! A policy that is chosen at run time.

mod change;

use std::fmt;

use namehop_table::TableError;

use crate::eviction::{Ahead, Arrival};
use crate::{CachePolicy, Clock, Guarded, Parameters, PatientTinyLfu, PolicyChoice, PolicyKind, PolicyVisitor};
use change::Change;

/// Any of the policies, chosen at run time.
///
/// It behaves like the chosen policy, and does not call methods without effect.
pub struct Policy {
    choice: PolicyChoice,
    /// [`Parameters::slots`].
    slots: usize,
    traits: Traits,
    held: Held,
}

/// What a policy answers about itself. Kept here, so that a call through the table is saved where it has no effect.
#[derive(Debug, Clone, Copy)]
struct Traits {
    /// [`CachePolicy::counts`] of the policy.
    counts: bool,
    /// [`CachePolicy::expects`] of the policy.
    expects: bool,
    /// [`CachePolicy::admits_most`] of the policy.
    admits_most: bool,
    /// [`CachePolicy::compares_each`] of the policy.
    compares_each: bool,
}

impl Traits {
    fn of(policy: &dyn CachePolicy) -> Self {
        Traits {
            counts: policy.counts(),
            expects: policy.expects(),
            admits_most: policy.admits_most(),
            compares_each: policy.compares_each(),
        }
    }
}

/// The default policy is inlined into its callers; calls of others go through a table, which costs about ten
/// instructions each.
#[expect(clippy::large_enum_variant, reason = "each engine has one, and a box would cost a pointer dereference")]
enum Held {
    Default(Guarded<PatientTinyLfu, Clock>),
    Other(Box<dyn CachePolicy>),
    /// Packets are moving from one policy to another.
    Changing(Box<Change>),
}

/// Puts a policy into a box.
struct Boxed;

impl PolicyVisitor for Boxed {
    type Output = Box<dyn CachePolicy>;

    fn visit<P: CachePolicy + 'static>(self, policy: P) -> Self::Output {
        Box::new(policy)
    }
}

impl Policy {
    /// Makes a policy of this kind, with its settings.
    ///
    /// # Errors
    /// If the memory for it is not available.
    pub fn of(kind: PolicyKind, parameters: &Parameters) -> Result<Self, TableError> {
        let held = match kind {
            PolicyKind::TinyLfuClock => Held::Default(Guarded::new(parameters)?),
            other => Held::Other(other.visit(parameters, Boxed)?),
        };
        let mut traits = match &held {
            Held::Default(policy) => Traits::of(policy),
            Held::Other(policy) => Traits::of(&**policy),
            Held::Changing(change) => Traits::of(&**change),
        };
        // A store without room need not count requests.
        traits.counts &= parameters.capacity > 0;
        let choice = PolicyChoice { kind, tuning: parameters.tuning };
        Ok(Policy { choice, slots: parameters.slots, traits, held })
    }

    /// Makes `newer` decide from now on. The packets move to it in portions, in [`go_on`](Self::go_on); until then
    /// they are evicted before packets that arrive meanwhile.
    pub fn change_to(&mut self, newer: Policy) {
        let Policy { choice, slots, traits, .. } = newer;
        let held = Held::Changing(Box::new(Change { older: None, newer }));
        let older = std::mem::replace(self, Policy { choice, slots, traits, held });
        if let Held::Changing(change) = &mut self.held {
            change.older = Some(older);
        }
    }

    /// Moves up to `portion` packets in a [change](Self::change_to); `arrival` returns the properties of each packet.
    /// After the last packet it returns the old policy, so that the caller can free its memory where that delays
    /// nothing.
    pub fn go_on(&mut self, portion: usize, arrival: impl Fn(u32) -> Arrival) -> Progress {
        let Held::Changing(change) = &mut self.held else { return Progress::Done(None) };
        if !change.go_on(portion, arrival) {
            return Progress::Going;
        }
        let Some(older) = change.older.take() else { return Progress::Done(None) };
        match std::mem::replace(self, older).held {
            Held::Changing(change) => Progress::Done(Some(Box::new(std::mem::replace(self, change.newer)))),
            _ => Progress::Done(None),
        }
    }

    /// Ids of packets are below this.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the kind of policy.
    pub fn kind(&self) -> PolicyKind {
        self.choice.kind
    }

    /// Returns the kind of policy and its settings.
    pub fn choice(&self) -> PolicyChoice {
        self.choice
    }
}

/// Progress of a [change](Policy::change_to).
#[derive(Debug)]
pub enum Progress {
    /// There are packets left.
    Going,
    /// All packets moved, and this is their old policy; or there was no change.
    Done(Option<Box<Policy>>),
}

/// Calls a method of the policy in use.
macro_rules! dispatch {
    ($held:expr, $method:ident($($argument:expr),*)) => {
        match $held {
            Held::Default(policy) => policy.$method($($argument),*),
            Held::Other(policy) => policy.$method($($argument),*),
            Held::Changing(change) => change.$method($($argument),*),
        }
    };
}

impl CachePolicy for Policy {
    #[inline]
    fn counts(&self) -> bool {
        self.traits.counts
    }

    #[inline]
    fn expects(&self) -> bool {
        self.traits.expects
    }

    #[inline]
    fn admits_most(&self) -> bool {
        self.traits.admits_most
    }

    #[inline]
    fn compares_each(&self) -> bool {
        self.traits.compares_each
    }

    #[inline]
    fn requested(&mut self, name_hash: u64) {
        if self.traits.counts {
            dispatch!(&mut self.held, requested(name_hash))
        }
    }

    #[inline]
    fn admits(&mut self, arrival: &Arrival, is_full: bool) -> bool {
        dispatch!(&mut self.held, admits(arrival, is_full))
    }

    #[inline]
    fn admitted(&mut self, id: u32, arrival: &Arrival) {
        dispatch!(&mut self.held, admitted(id, arrival))
    }

    #[inline]
    fn hit(&mut self, id: u32) {
        dispatch!(&mut self.held, hit(id))
    }

    #[inline]
    fn refreshed(&mut self, id: u32, arrival: &Arrival) {
        dispatch!(&mut self.held, refreshed(id, arrival))
    }

    #[inline]
    fn evicted(&mut self, id: u32) {
        dispatch!(&mut self.held, evicted(id))
    }

    #[inline]
    fn removed(&mut self, id: u32) {
        dispatch!(&mut self.held, removed(id))
    }

    #[inline]
    fn victim(&mut self) -> Option<u32> {
        dispatch!(&mut self.held, victim())
    }

    #[inline]
    fn evict(&mut self) -> Option<u32> {
        dispatch!(&mut self.held, evict())
    }

    #[inline]
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        dispatch!(&self.held, upcoming(ahead))
    }

    #[inline]
    fn prefetch(&self, id: u32) {
        dispatch!(&self.held, prefetch(id))
    }

    #[inline]
    fn prefetch_hit(&self, id: u32) {
        dispatch!(&self.held, prefetch_hit(id))
    }

    #[inline]
    fn prefetch_request(&self, name_hash: u64) {
        dispatch!(&self.held, prefetch_request(name_hash))
    }

    #[inline]
    fn prefetch_name(&self, name_hash: u64) {
        dispatch!(&self.held, prefetch_name(name_hash))
    }

    #[inline]
    fn prefetch_victim(&self, id: u32, name_hash: u64) {
        dispatch!(&self.held, prefetch_victim(id, name_hash))
    }

    #[inline]
    fn len(&self) -> usize {
        dispatch!(&self.held, len())
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").field("choice", &self.choice).finish_non_exhaustive()
    }
}
