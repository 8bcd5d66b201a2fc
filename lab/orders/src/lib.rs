//! Orders of the forwarding engine's steps, for comparison with the router's schedule.
//!
//! The engine exposes the steps of a burst (`namehop_engine::schedule`), and the router has one order of them. This
//! crate has the others. All use the same steps, so a comparison of orders compares nothing else. On the router's path
//! all orders send the same bytes for the same input, and differ only in time.
//!
//! The published orders are `Naive`, `BucketPrefetch`, `PreHash` and `Speculative` (Takemasa, Koizumi and Hasegawa, ICN
//! 2017, sections 4 and 6.5). The publications leave details of the last one open, so it has five variants:
//!
//! | | two steps: buckets, entries | a third step: what entries point to |
//! |---|---|---|
//! | entries of all matching tags (ICN 2017, section 4.2) | `Speculative` | `SpeculativeContents` |
//! | of the first matching tag (Takemasa, 2019, section 4.3.2) | `SpeculativeFirst` | `SpeculativeFirstContents` |
//! | entries of two packets, then both are handled | `SpeculativePairs` | |
//!
//! The descriptions have two steps. The evaluation says that the bucket of replaced Data is prefetched, too (ICN 2017,
//! section 6.5.1). Its address is in the entry, so this needs a third step, which reads entries right after their
//! prefetch. Pairs with the third step, or with the first tag only, gained nothing in any load (docs/benchmarks.md).
//!
//! Each order can also run on the stripped path, which the publications measured instead of a whole router, and that
//! path can be timed block by block.
//!
//! | file | what |
//! |---|---|
//! | `schedule_kind` | names of the orders |
//! | `order` | an order on a path, which takes the place of the engine's own schedule |
//! | `arrangement` | the orders, one function each |
//! | `path` | what differs between paths; the router's path |
//! | `stripped` | the stripped path |
//! | `clock` | a clock for the blocks of the stripped path |
//!
//! ```
//! use namehop_engine::fib::FibWriter;
//! use namehop_engine::strategy::StrategyInstance;
//! use namehop_engine::{Engine, EngineConfig};
//! use namehop_hash::HashKey;
//! use namehop_orders::{Order, PathKind, ScheduleKind};
//! use namehop_packet::{BufferPool, Timestamp};
//!
//! let key = HashKey::random();
//! let fib = FibWriter::new(key, StrategyInstance::default())?;
//! let mut engine = Engine::new(EngineConfig::default(), fib.reader(), BufferPool::new(100, 100), key)?;
//! // Handles the bursts of the same engine in two orders.
//! for kind in [ScheduleKind::Naive, "speculative".parse()?] {
//!     let (mut burst, mut sent) = (Vec::new(), Vec::new());
//!     Order::new(kind, PathKind::Whole).process(&mut engine, Timestamp(0), &mut burst, &mut sent);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod arrangement;
mod clock;
mod order;
mod path;
mod schedule_kind;
mod stripped;

pub use clock::{BlockTicks, FlowBlock};
pub use order::{Order, PathKind};
pub use schedule_kind::{ScheduleKind, UnknownSchedule};
