//! The forwarding engine of one worker: FIB, PIT-CS composite table, strategies, pipelines.
//!
//! [`engine::Engine`] processes bursts of packets and returns packets to send. The types it shares with the rest of the
//! router are in the crate `packet`: time, faces, packet buffers, packets with their link fields. Routes and strategy
//! choices come in through the FIB ([`fib`]), which the control thread writes.
//!
//! | module | what |
//! |---|---|
//! | [`engine`] | the engine, its settings, and what strategies see of it |
//! | [`dispatch`] | which worker a packet belongs to |
//! | `parse` | decoding of packets |
//! | [`schedule`] | the stages of a burst: what is hashed and prefetched ahead of the packets |
//! | [`tables`] | the tables step by step, for simpler paths than the pipelines |
//! | `pipelines` | forwarding pipelines, one file per kind of packet |
//! | `pcct` | PIT and Content Store in one table |
//! | [`fib`] | next hops and strategies by prefix, shared by all workers |
//! | [`strategy`] | forwarding strategies and their measurements |
//! | [`dead_nonce_list`], [`timer`] | detection of looping Interests; the timer wheel |
//! | [`trace`] | decisions about single packets, traced on an operator's request |
//! | [`second_tier`] | interface of a second tier of the Content Store, which a disk implements |
//! | `scope` | scope prefixes: `/localhost`, `/localhop` |
//! | [`counters`] | packet counters, with drops by reason |

pub mod counters;
pub mod dead_nonce_list;
pub mod dispatch;
pub mod engine;
pub mod fib;
mod parse;
mod pcct;
mod pipelines;
pub mod schedule;
mod scope;
pub mod second_tier;
pub mod strategy;
pub mod tables;
pub mod timer;
pub mod trace;

pub use engine::{
    CsChange, CsConfig, CsErasure, CsInfo, Engine, EngineConfig, EngineError, EngineEvent, EngineMemory, TableSizes,
};
pub use engine::{Fib, UnsolicitedPolicy};
pub use pcct::memory::{content_store_bytes, pit_bytes};
