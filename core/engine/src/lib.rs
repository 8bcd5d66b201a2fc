//! The forwarding engine of one worker: FIB, PIT-CS composite table, strategies, pipelines.
//!
//! [`engine::Engine`] takes bursts of packets and gives back packets to send. What it knows of the world outside is in the
//! crate `packet`: time, faces, packet buffers, packets with their link fields. Routes and strategy choices come in through the FIB ([`fib`]), which the control thread writes.
//!
//! | module | what |
//! |---|---|
//! | [`engine`] | the engine, its settings, and what strategies see of it |
//! | [`dispatch`] | which worker a packet belongs to |
//! | `parse` | decoding of packets |
//! | [`schedule`] | what is fetched ahead of the packets that need it |
//! | `pipelines` | what happens to packets, one file per kind of packet |
//! | `pcct` | pending Interests and cached Data in one table |
//! | [`fib`] | next hops and strategies by prefix, shared by all workers |
//! | [`strategy`] | where Interests go, and what is measured for it |
//! | [`dead_nonce_list`], [`timer`] | looping Interests, and what happens later |
//! | [`trace`] | what is decided about single packets, for an operator who asks |
//! | [`counters`] | packets counted, discarded ones by reason |

pub mod counters;
pub mod dead_nonce_list;
pub mod dispatch;
pub mod engine;
pub mod fib;
pub mod flow;
mod parse;
mod pcct;
mod pipelines;
pub mod schedule;
mod scope;
pub mod strategy;
pub mod timer;
pub mod trace;

pub use engine::{
    CsChange, CsConfig, CsErasure, CsInfo, Engine, EngineConfig, EngineError, EngineEvent, EngineMemory, TableSizes,
};
pub use engine::{Fib, UnsolicitedPolicy};
pub use pcct::memory::{content_store_bytes, pit_bytes};
