//! The forwarding engine of one worker: FIB, PIT-CS composite table, strategies, pipelines.
//!
//! [`engine::Engine`] processes bursts of packets and returns packets to send. The types it shares with the rest of the
//! router are in the crate `packet`: time, faces, packet buffers, packets with their link fields. Routes and strategy
//! choices come in through the FIB ([`fib`]), which the control thread writes.
//!
//! | module | what |
//! |---|---|
//! | [`engine`] | the engine and its control operations |
//! | [`dispatch`] | which worker a packet belongs to |
//! | `parse`, `burst` | decoding of packets; the state of a burst before its packets are handled |
//! | [`schedule`] | the stages of a burst: what is hashed and prefetched ahead of the packets |
//! | [`tables`] | the tables step by step, for simpler paths than the pipelines |
//! | `pipelines` | forwarding pipelines, one file per kind of packet |
//! | `state` | the state of an engine, divided by what each part owns |
//! | `pcct` | PIT and Content Store in one table |
//! | [`fib`] | next hops and strategies by prefix, shared by all workers |
//! | [`strategy`] | forwarding strategies and their measurements |
//! | `pit_token` | PIT tokens that lead back to the PIT entry |
//! | [`dead_nonce_list`], [`timer`] | detection of looping Interests; the timer wheel |
//! | [`trace`] | decisions about single packets, traced on an operator's request |
//! | [`second_tier`] | interface of a second tier of the Content Store, which a disk implements |
//! | `scope` | scope prefixes: `/localhost`, `/localhop` |
//! | [`counters`] | packet counters, with drops by reason |
//!
//! ```
//! use namehop_engine::fib::FibWriter;
//! use namehop_engine::strategy::StrategyInstance;
//! use namehop_engine::{Engine, EngineConfig};
//! use namehop_hash::HashKey;
//! use namehop_packet::{BufferPool, FaceId, FaceInfo, FaceScope, Incoming, LinkFields, LinkType};
//! use namehop_packet::{PacketKind, Timestamp};
//! use namehop_wire::{InterestBuilder, Name};
//!
//! let (key, pool) = (HashKey::random(), BufferPool::new(100, 100));
//! let mut fib = FibWriter::new(key, StrategyInstance::default())?;
//! let mut engine = Engine::new(EngineConfig::default(), fib.reader(), pool.clone(), key)?;
//! for id in [FaceId(256), FaceId(300)] {
//!     let (scope, link_type) = (FaceScope::NonLocal, LinkType::PointToPoint);
//!     engine.set_face(FaceInfo { id, scope, link_type, is_up: true });
//! }
//! fib.add_nexthop("/example".parse::<Name>()?.as_ref(), FaceId(300), 10)?;
//!
//! // An Interest from face 256 goes to the next hop.
//! let interest = InterestBuilder::new("/example/a".parse::<Name>()?).build()?;
//! let buffer = pool.copy_of(&interest).expect("the pool has buffers");
//! let mut burst = vec![Incoming { face: FaceId(256), buffer, fields: LinkFields::default() }];
//! let mut sent = Vec::new();
//! engine.process(Timestamp(0), &mut burst, &mut sent);
//! assert_eq!((sent[0].kind, sent[0].face), (PacketKind::Interest, FaceId(300)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod burst;
pub mod counters;
pub mod dead_nonce_list;
pub mod dispatch;
pub mod engine;
pub mod fib;
mod parse;
mod pcct;
mod pipelines;
mod pit_token;
pub mod schedule;
mod scope;
pub mod second_tier;
mod state;
pub mod strategy;
pub mod tables;
pub mod timer;
pub mod trace;

pub use engine::{
    CsChange, CsConfig, CsErasure, CsInfo, Engine, EngineConfig, EngineError, EngineEvent, EngineMemory, TableSizes,
};
pub use engine::{Fib, UnsolicitedPolicy};
pub use pcct::memory::{content_store_bytes, pit_bytes};
