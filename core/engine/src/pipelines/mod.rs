//! The forwarding pipelines of the NFD developer's guide (chapter 4, "Forwarding"), under its names. Each rule is one
//! commented step, with the section of the NDN packet format specification or of NDNLPv2 that it comes from.
//!
//! | file | pipelines |
//! |---|---|
//! | `incoming_interest` | incoming Interest |
//! | `content_store_miss` | Content Store miss; Interest loop, and no room for an Interest |
//! | `received_interest` | an Interest on its way through these pipelines |
//! | `content_store` | Content Store hit; admission of Data |
//! | `second_tier` | Interests that wait for the second tier |
//! | `outgoing_interest` | outgoing Interest |
//! | `interest_finalize` | Interest finalize, and the timers of PIT entries |
//! | `incoming_data`, `satisfy` | incoming Data, Data unsolicited |
//! | `outgoing_data` | outgoing Data |
//! | `nack` | incoming Nack, outgoing Nack |
//! | `retry`, `new_nexthop` | pending Interests that are sent again |
//! | `context` | what a strategy sees of a PIT entry, and does with it |

mod content_store;
mod content_store_miss;
mod context;
mod incoming_data;
mod incoming_interest;
mod interest_finalize;
mod nack;
mod new_nexthop;
mod outgoing_data;
mod outgoing_interest;
mod received_interest;
mod retry;
mod satisfy;
mod second_tier;
