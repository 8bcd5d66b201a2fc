//! Status of readvertising: `status/readvertise`. Namehop's own addition to the NFD management protocol. One item for
//! each configured routing daemon and gateway, available or not.
//!
//! Forwarders without this dataset do not answer. The TLV-TYPE numbers are from the range for application use.

use namehop_wire::Name;
use namehop_wire::tlv::types::{self, nfd};

use super::record::{HERE, records};

records! {
    /// Announcements to a routing daemon or gateway.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ReadvertiseStatus(131) {
        /// `daemon` or `gateway`.
        destination: String = 132,
        /// Name prefix of the commands that are sent to it, before the verb.
        command_prefix: Name = types::NAME,
        /// Faces through which it is reached; empty if it is not available.
        face_ids: Vec<u64> = nfd::FACE_ID,
        /// Prefixes that are announced to it, and accepted.
        announced_prefixes: u64 = 133,
        /// Prefixes still to be announced, or announced again.
        waiting_prefixes: u64 = 134,
        /// Prefixes that it refused. The router retries them at increasing intervals.
        refused_prefixes: u64 = 135,
        /// Prefixes still to be withdrawn.
        withdrawing_prefixes: u64 = 136,
        /// Counters since the start.
        counters: ReadvertiseCounters = HERE => Inline,
        /// The last command that failed.
        last_error: Option<ReadvertiseError> = 143,
    }

    /// Counters of the commands to a routing daemon or gateway.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct ReadvertiseCounters {
        /// Announcements that it accepted, including repeated ones.
        announced: u64 = 137,
        /// Withdrawals that it accepted.
        withdrawn: u64 = 138,
        /// Commands that it refused.
        refused: u64 = 139,
        /// Commands that came back as a Nack.
        nacked: u64 = 140,
        /// Commands that were not answered.
        timed_out: u64 = 141,
        /// Prefixes that were left out because there were too many.
        left_out: u64 = 142,
    }

    /// A failed command to a routing daemon or gateway.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ReadvertiseError {
        /// The prefix of the command.
        prefix: Name = types::NAME,
        /// The reason, as text; a refusal begins with its status code.
        reason: String = 144,
        /// Age of the failure, in milliseconds.
        age_ms: u64 = 145,
    }
}
