//! Packet-in, packet-out tables: what the engine does by which rule, one file per group of rules.

mod aggregation;
mod content_store;
mod data_matching;
mod expiry;
mod face_fields;
mod floods;
mod forwarding_hint;
mod hop_limit;
mod loops_and_dead_nonces;
mod memory;
mod mutated;
mod nack;
mod new_nexthop;
mod packets;
mod pit_token;
mod requests;
mod router;
mod scope;
mod second_tier;
mod self_learning;
mod shares;
mod soak;
mod stamps;
mod stripped_path;
mod suppression_best_route;
mod trace;
