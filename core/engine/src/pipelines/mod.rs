//! What happens to packets: the pipelines of the NFD developer's guide (chapter 4, "Forwarding") under its names, one commented
//! step per rule, with the section of the NDN packet format specification or of NDNLPv2 that it is from.
//!
//! | file | pipelines |
//! |---|---|
//! | `incoming_interest` | incoming Interest, Interest loop, Content Store miss |
//! | `content_store` | Content Store hit; what Data enters the Content Store |
//! | `second_tier` | Interests that wait for the disk |
//! | `outgoing_interest` | outgoing Interest |
//! | `interest_finalize` | Interest finalize, and the timers of PIT entries |
//! | `incoming_data` | incoming Data, Data unsolicited |
//! | `outgoing_data` | outgoing Data |
//! | `nack` | incoming Nack, outgoing Nack |
//! | `stripped` | what publications measured in place of all that |

mod content_store;
mod incoming_data;
mod incoming_interest;
pub(crate) mod interest_finalize;
mod nack;
pub(crate) mod outgoing_data;
mod outgoing_interest;
mod received_interest;
mod second_tier;
mod stripped;
