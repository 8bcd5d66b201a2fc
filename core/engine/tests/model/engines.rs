//! One engine, or several that divide the names, as one: packets are transferred between engines without threads.

use std::sync::Arc;

use namehop_engine::counters::EngineCounters;
use namehop_engine::dispatch::{ENTRIES, NameDispatch};
use namehop_engine::engine::{CsChange, Engine, EngineConfig, InvariantError, TableSizes};
use namehop_engine::fib::{FibWriter, NextHop};
use namehop_engine::strategy::StrategyInstance;
use namehop_engine::trace::TraceRequest;
use namehop_hash::{DispatchKey, HashKey};
use namehop_packet::{BufferPool, FaceId, FaceInfo, Incoming, LinkFields, Outgoing, Timestamp};
use namehop_wire::{Name, NameRef};

/// How names are divided.
#[derive(Debug, Clone, Copy)]
pub struct Division {
    pub engines: usize,
    pub components: usize,
    /// One in this number of entries of the name dispatch table is divided from the start; 0: none.
    pub divided: usize,
}

impl Division {
    pub const NONE: Division = Division { engines: 1, components: 1, divided: 0 };
}

/// Handles a burst, with the contract of [`Engine::process`].
pub type Process = Box<dyn FnMut(&mut Engine, Timestamp, &mut Vec<Incoming>, &mut Vec<Outgoing>)>;

/// One or several engines. See the module documentation.
pub struct Engines {
    engines: Vec<Engine>,
    process: Process,
    /// `None` if there is one engine.
    dispatch: Option<Arc<NameDispatch>>,
    pool: BufferPool,
}

impl Engines {
    pub fn new(
        division: Division,
        config: &EngineConfig,
        fib: &FibWriter<StrategyInstance>,
        (pool, key): (BufferPool, HashKey),
        process: Process,
    ) -> Self {
        let dispatch = NameDispatch::new(division.engines, division.components, DispatchKey::new(3, 5));
        (0..ENTRIES).filter(|entry| entry.checked_rem(division.divided) == Some(0)).for_each(|entry| {
            assert!(dispatch.divide_entry(entry));
            dispatch.forget_division(entry);
        });
        let dispatch = (division.engines > 1).then(|| Arc::new(dispatch));
        let engine = |worker| {
            let config = EngineConfig { worker: worker as u8, ..config.clone() };
            let mut engine = Engine::new(config, fib.reader(), pool.clone(), key).expect("memory for a small engine");
            if let Some(dispatch) = &dispatch {
                engine.share_dispatch(Arc::clone(dispatch));
            }
            engine
        };
        Engines { engines: (0..division.engines).map(engine).collect(), process, dispatch, pool }
    }

    pub fn trace_everything(&mut self) {
        let request = TraceRequest { prefix: Name::new(), count: u64::MAX };
        self.engines.iter_mut().for_each(|engine| engine.trace(Some(request.clone())));
    }

    pub fn count(&self) -> usize {
        self.engines.len()
    }

    pub fn process(&mut self, now: Timestamp, burst: &mut Vec<Incoming>, out: &mut Vec<Outgoing>) {
        let Some(dispatch) = self.dispatch.clone() else {
            return (self.process)(&mut self.engines[0], now, burst, out);
        };
        self.advance(now, out);
        let mut waiting: Vec<Incoming> = burst.drain(..).rev().collect();
        while let Some(packet) = waiting.pop() {
            let owners = dispatch.owners(packet.buffer.bytes(), &packet.fields).expect("the packet has a name");
            let copies = owners.others.iter().map(|other| (usize::from(other), self.copy_of(&packet)));
            let copies: Vec<(usize, Incoming)> = copies.collect();
            let owner = &mut self.engines[usize::from(owners.owner)];
            (self.process)(owner, now, &mut vec![packet], out);
            waiting.extend(owner.take_misdirected());
            for (other, copy) in copies {
                self.engines[other].process_offered(now, &mut vec![copy], out);
            }
        }
    }

    fn copy_of(&self, packet: &Incoming) -> Incoming {
        let LinkFields { pit_token, congestion_mark, no_cache, .. } = packet.fields;
        let fields = LinkFields { pit_token, congestion_mark, no_cache, ..LinkFields::default() };
        Incoming { face: packet.face, buffer: self.pool.copy_of(packet.buffer.bytes()).expect("a buffer"), fields }
    }

    pub fn advance(&mut self, now: Timestamp, out: &mut Vec<Outgoing>) {
        self.engines.iter_mut().for_each(|engine| engine.advance(now, out));
    }

    pub fn new_nexthop(&mut self, now: Timestamp, prefix: NameRef<'_>, nexthop: NextHop, out: &mut Vec<Outgoing>) {
        self.engines.iter_mut().for_each(|engine| engine.new_nexthop(now, prefix, nexthop, out));
    }

    pub fn set_face(&mut self, info: FaceInfo) {
        self.engines.iter_mut().for_each(|engine| engine.set_face(info));
    }

    pub fn remove_face(&mut self, id: FaceId) {
        self.engines.iter_mut().for_each(|engine| engine.remove_face(id));
    }

    pub fn cs_configure(&mut self, change: CsChange) {
        self.engines.iter_mut().for_each(|engine| engine.cs_configure(change).expect("the change needs no memory"));
    }

    pub fn counters(&self) -> EngineCounters {
        let mut sum = EngineCounters::default();
        self.engines.iter().for_each(|engine| sum += *engine.counters());
        sum
    }

    pub fn table_sizes(&self) -> TableSizes {
        let mut sum = TableSizes::default();
        self.engines.iter().for_each(|engine| sum += engine.table_sizes());
        sum
    }

    pub fn check_invariants(&self) -> Result<(), InvariantError> {
        self.engines.iter().try_for_each(Engine::check_invariants)
    }

    pub fn is_idle(&self) -> bool {
        self.engines.iter().all(Engine::is_idle)
    }
}
