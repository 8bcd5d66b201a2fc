//! The whole tier: a worker's side and the disk thread, with a disk in memory that can fail, stall and be changed;
//! and with files.

mod faults;
mod files;
mod model;

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use namehop_engine::second_tier::{ReadStart, SecondTier, TierState};
use namehop_hash::{HashKey, hash_name};
use namehop_packet::Timestamp;
use namehop_table::handover_ring;
use namehop_wire::security::DigestSigner;
use namehop_wire::{DataBuilder, DataHeader, Name};

use crate::format::{SUPERBLOCK_BYTES, Superblock};
use crate::index::Index;
use crate::messages::RING_SLOTS;
use crate::server::{Client, Server, Time, Worker};
use crate::shared::DiskState;
use crate::storage::{Storage, Transfer};
use crate::tier::DiskTier;

/// How the disk of a test answers requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Works,
    Fails,
    Stalls,
}

#[derive(Clone)]
struct MemoryDisk(Rc<RefCell<DiskParts>>);

struct DiskParts {
    bytes: Vec<u8>,
    mood: Mood,
    wakers: Vec<Waker>,
}

impl MemoryDisk {
    fn new(slots: u64, life: u64) -> Self {
        let mut bytes = Superblock { slots, life }.encode();
        bytes.resize(SUPERBLOCK_BYTES + slots as usize * crate::SLOT_BYTES, 0);
        MemoryDisk(Rc::new(RefCell::new(DiskParts { bytes, mood: Mood::Works, wakers: Vec::new() })))
    }

    fn set_mood(&self, mood: Mood) {
        let mut disk = self.0.borrow_mut();
        disk.mood = mood;
        disk.wakers.drain(..).for_each(Waker::wake);
    }

    fn transfer(&self, buffer: Vec<u8>, act: impl Fn(&mut Vec<u8>, &mut Vec<u8>) -> usize + 'static) -> Transfer {
        let disk = Rc::clone(&self.0);
        let mut buffer = Some(buffer);
        Box::pin(poll_fn(move |context| {
            let mut disk = disk.borrow_mut();
            let mut taken = buffer.take().expect("a future must not be polled after it is ready");
            match disk.mood {
                Mood::Stalls => {
                    disk.wakers.push(context.waker().clone());
                    buffer = Some(taken);
                    Poll::Pending
                }
                Mood::Fails => Poll::Ready((Err(io::Error::other("an error of the test disk")), taken)),
                Mood::Works => {
                    let count = act(&mut disk.bytes, &mut taken);
                    Poll::Ready((Ok(count), taken))
                }
            }
        }))
    }
}

impl Storage for MemoryDisk {
    fn read(&self, buffer: Vec<u8>, bytes: usize, offset: u64) -> Transfer {
        self.transfer(buffer, move |disk, buffer| {
            let start = (offset as usize).min(disk.len());
            let end = (start + bytes).min(disk.len());
            buffer[..end - start].copy_from_slice(&disk[start..end]);
            end - start
        })
    }

    fn write(&self, buffer: Vec<u8>, offset: u64) -> Transfer {
        self.transfer(buffer, move |disk, buffer| {
            disk[offset as usize..offset as usize + buffer.len()].copy_from_slice(buffer);
            buffer.len()
        })
    }
}

fn key() -> HashKey {
    HashKey::new(3, 4)
}

/// Returns the hash of a name given as text.
fn hash_of(name: &str) -> u64 {
    hash_name(&key(), name.parse::<Name>().expect("a name").value())
}

fn value_of(name: &str) -> Vec<u8> {
    name.parse::<Name>().expect("a name").value().to_vec()
}

/// Makes a Data with this name and `bytes` bytes of content, all of one value.
fn data(name: &str, content: u8, bytes: usize) -> Vec<u8> {
    let name: Name = name.parse().expect("a name");
    DataBuilder::new(&name).content(vec![content; bytes]).sign(&DigestSigner).expect("fits")
}

const LIFE: u64 = 77;

/// One worker, the server and a disk in memory, with a clock that the test controls.
struct Rig {
    tier: DiskTier,
    server: Server<MemoryDisk>,
    disk: MemoryDisk,
    shared: Arc<DiskState>,
    started: Instant,
    now_ms: u64,
    /// Time of day when the clock started.
    wall_start_ms: u64,
}

/// Result of a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// This packet, and whether it is fresh.
    Found(Vec<u8>, bool),
    /// The index has no record.
    Unknown,
    /// The disk has no such Data.
    Nothing,
    /// The disk took too long.
    TimedOut,
}

impl Rig {
    /// Starts with an empty disk of `slots` slots.
    fn new(slots: u64) -> Self {
        let mut rig = Self::over(MemoryDisk::new(slots, LIFE), slots, 1_700_000_000_000);
        rig.server.start_empty(vec![Index::new(slots).expect("memory")]);
        rig.poll();
        rig
    }

    /// Restarts on the same disk, as after any end of the process.
    fn restart(self, pause_ms: i64) -> Self {
        self.restart_with(pause_ms, &[])
    }

    /// Restarts; the next process remembers that these prefixes were erased.
    fn restart_with(self, pause_ms: i64, erased: &[String]) -> Self {
        let wall_ms = (self.wall_start_ms + self.now_ms).saturating_add_signed(pause_ms);
        self.disk.set_mood(Mood::Works);
        let slots = self.shared.slots;
        let mut rig = Self::over(self.disk.clone(), slots, wall_ms);
        drop(self);
        erased.iter().for_each(|prefix| rig.tier.erase(&value_of(prefix)));
        let index = Index::new(slots).expect("memory");
        rig.server.scan(vec![index], key(), Box::new(|_| 0), rig.started);
        rig.poll();
        rig
    }

    fn over(disk: MemoryDisk, slots: u64, wall_start_ms: u64) -> Self {
        let shared = Arc::new(DiskState::new(slots));
        let (to_disk, from_worker) = handover_ring(RING_SLOTS);
        let (to_worker, from_disk) = handover_ring(RING_SLOTS);
        let started = Instant::now();
        let worker = Worker { wake: Box::new(|| {}), started };
        let client = Client { worker, from_worker, to_worker };
        Rig {
            tier: DiskTier::new(Arc::clone(&shared), 50, to_disk, from_disk),
            server: Server::new(Arc::clone(&shared), vec![client], disk.clone(), LIFE),
            disk,
            shared,
            started,
            now_ms: 0,
            wall_start_ms,
        }
    }

    /// Advances the clock.
    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.poll();
    }

    fn now(&self) -> Timestamp {
        Timestamp::default().plus_ms(self.now_ms)
    }

    /// Runs one poll iteration of the worker, and then the disk thread. Returns the buffers of reads that no Interest
    /// waits for.
    fn poll(&mut self) {
        self.tier.set_now(self.now());
        self.tier.flush();
        let time =
            Time { now: self.started + Duration::from_millis(self.now_ms), wall_ms: self.wall_start_ms + self.now_ms };
        let _ = self.server.poll(&mut Context::from_waker(Waker::noop()), time);
        while let Some(finished) = self.tier.next_finished() {
            self.tier.end_read(finished, false);
        }
        self.tier.flush();
    }

    /// Evicts Data from memory.
    fn offer(&mut self, name: &str, packet: &[u8], fresh_for_ms: u64) {
        let fresh_until = self.now().plus_ms(fresh_for_ms);
        self.tier.offer(hash_of(name), fresh_until, packet);
    }

    /// Looks up a name and waits for the result, as a worker does.
    fn look_up(&mut self, name: &str) -> Outcome {
        let hash = hash_of(name);
        let Some(located) = self.tier.find(hash, false) else { return Outcome::Unknown };
        let id = match self.tier.start_read(hash, located, false) {
            ReadStart::Started(id) | ReadStart::Joined(id) => id,
            ReadStart::Busy => return Outcome::Nothing,
        };
        for _ in 0..60 {
            self.tier.flush();
            let time = Time {
                now: self.started + Duration::from_millis(self.now_ms),
                wall_ms: self.wall_start_ms + self.now_ms,
            };
            let _ = self.server.poll(&mut Context::from_waker(Waker::noop()), time);
            if let Some(finished) = self.tier.next_finished() {
                assert_eq!(finished.id, id);
                let now = self.now();
                let wanted = value_of(name);
                let found = finished.data().filter(|(packet, _)| {
                    let header = DataHeader::decode(packet).expect("a packet with a valid checksum is valid Data");
                    header.name.value() == wanted && !self.tier.is_erased(&wanted, finished.position)
                });
                let outcome = found.map(|(packet, fresh_until)| Outcome::Found(packet.to_vec(), fresh_until > now));
                self.tier.end_read(finished, outcome.is_some());
                return outcome.unwrap_or(Outcome::Nothing);
            }
            if self.tier.next_expired().is_some() {
                return Outcome::TimedOut;
            }
            self.now_ms += 1;
            self.tier.set_now(self.now());
        }
        panic!("the read neither finished nor timed out");
    }
}
