//! The contents of all datasets.
//!
//! Long lists are built in portions with a pause after each, so that a million routes do not hold up commands. Entries
//! that change meanwhile are listed as they were or as they are.

use namehop_face::counters::LinkDrop;
use namehop_forward::counters::DropReason;
use namehop_forward::fib::FibCursor;
use namehop_wire::security::unix_time_ms;
use namehop_wire::tlv::Writer;
use namehop_wire::tlv::types::NAME;

use super::cs::cs_info;
use super::faces::face_status;
use super::{ControlPlane, Management};
use crate::nfd::{
    self, ChannelStatus, DatasetItem, DropCount, FaceQueryFilter, FibEntry, GeneralStatus, NextHopRecord, RibEntry,
    StrategyChoice, encode_item,
};
use crate::rib::Cursor;

/// Name in the list of drops of pending Interests that were given up to make room for new ones.
const PIT_EVICTED: &str = "pit-evicted";
/// Entries of a long list that are built between two pauses.
const PORTION: usize = 2048;

/// A status dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Dataset {
    General,
    Faces,
    MatchingFaces(FaceQueryFilter),
    Channels,
    Fib,
    /// Made as it is fetched, not by `build_dataset`.
    FibSnapshot,
    Rib,
    StrategyChoices,
    ContentStore,
    Drops,
}

impl<C: ControlPlane> Management<C> {
    /// The content of a dataset, as of now.
    pub(super) async fn build_dataset(&self, dataset: &Dataset) -> Vec<u8> {
        match dataset {
            Dataset::General => self.general_status().await.to_vec(),
            Dataset::Faces => self.face_list(&FaceQueryFilter::default()).await,
            Dataset::MatchingFaces(filter) => self.face_list(filter).await,
            Dataset::Channels => {
                let channels = self.control.channels();
                encode_all(channels.iter().map(|uri| ChannelStatus { local_uri: uri.to_string() }))
            }
            Dataset::Fib => self.fib_list().await,
            Dataset::FibSnapshot => Vec::new(),
            Dataset::Rib => self.rib_list().await,
            Dataset::StrategyChoices => self.control.with_fib(|fib| {
                encode_all(fib.strategies().map(|(name, strategy)| StrategyChoice {
                    name: name.to_owned(),
                    strategy: strategy.name().clone(),
                }))
            }),
            Dataset::Drops => self.drop_list().await,
            Dataset::ContentStore => encode_all(std::iter::once(cs_info(&self.control.cs_info().await))),
        }
    }

    /// Totals first, then what each face has seen.
    async fn drop_list(&self) -> Vec<u8> {
        let counters = self.control.engine_status().await.counters;
        let faces = self.control.faces();
        let mut writer = Writer::new();
        let mut put = |face_id, layer: &str, reason: &str, count| {
            if count > 0 {
                let item = DropCount { face_id, layer: layer.to_owned(), reason: reason.to_owned(), count };
                encode_item(&item, &mut writer);
            }
        };
        for (reason, count) in counters.drops.iter() {
            put(None, "engine", reason.name(), count);
        }
        put(None, "engine", PIT_EVICTED, counters.pit_evictions);
        for &reason in LinkDrop::ALL {
            put(None, "link", reason.name(), faces.link_drops().get(reason));
        }
        for face in faces.snapshot() {
            let id = Some(u64::from(face.id().0));
            for &reason in DropReason::ALL {
                put(id, "engine", reason.name(), face.counters.worker.engine_drops.get(reason.index() as u8));
            }
            for &reason in LinkDrop::ALL {
                put(id, "link", reason.name(), face.counters.link_drop(reason));
            }
        }
        writer.into_vec()
    }

    async fn general_status(&self) -> GeneralStatus {
        let engine = self.control.engine_status().await;
        let counters = &engine.counters;
        GeneralStatus {
            version: concat!("Namehop/", env!("CARGO_PKG_VERSION")).to_owned(),
            start_timestamp_ms: self.started_unix_ms,
            current_timestamp_ms: unix_time_ms(),
            name_tree_entries: engine.name_entries,
            fib_entries: self.control.with_fib(|fib| fib.len() as u64),
            pit_entries: engine.pit_entries,
            measurements_entries: engine.measurements_entries,
            cs_entries: engine.cs_entries,
            in_interests: counters.in_interests,
            in_data: counters.in_data,
            in_nacks: counters.in_nacks,
            out_interests: counters.out_interests,
            out_data: counters.out_data,
            out_nacks: counters.out_nacks,
            satisfied_interests: counters.satisfied_interests,
            unsatisfied_interests: counters.unsatisfied_interests,
        }
    }

    async fn face_list(&self, filter: &FaceQueryFilter) -> Vec<u8> {
        let mut writer = Writer::new();
        for portion in self.control.faces().snapshot().chunks(PORTION) {
            for status in portion.iter().map(|face| face_status(face)).filter(|status| filter.matches(status)) {
                encode_item(&status, &mut writer);
            }
            tokio::task::yield_now().await;
        }
        writer.into_vec()
    }

    async fn fib_list(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        let mut cursor = Some(FibCursor::default());
        while let Some(from) = cursor {
            cursor = self.control.with_fib(|fib| {
                fib.visit_entries(from, PORTION, |name, next_hops| {
                    writer.nested(FibEntry::TYPE, |writer| {
                        writer.element(NAME, name.value());
                        for next_hop in next_hops.iter() {
                            let record = NextHopRecord { face_id: next_hop.face.0.into(), cost: next_hop.cost };
                            encode_item(&record, writer);
                        }
                    });
                })
            });
            tokio::task::yield_now().await;
        }
        writer.into_vec()
    }

    async fn rib_list(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        let mut cursor = Some(Cursor::default());
        while let Some(from) = cursor {
            let now_ms = self.now_ms();
            cursor = self.routes.borrow().rib.visit_entries(from, PORTION, |name, routes| {
                let routes = routes
                    .map(|route| nfd::Route {
                        face_id: route.face.0.into(),
                        origin: route.origin,
                        cost: route.cost,
                        flags: route.flags,
                        expiration_period_ms: route.expires_at_ms.map(|at_ms| at_ms.saturating_sub(now_ms)),
                    })
                    .collect();
                encode_item(&RibEntry { name: name.to_owned(), routes }, &mut writer);
            });
            tokio::task::yield_now().await;
        }
        writer.into_vec()
    }
}

fn encode_all<T: DatasetItem>(items: impl Iterator<Item = T>) -> Vec<u8> {
    let mut writer = Writer::new();
    for item in items {
        encode_item(&item, &mut writer);
    }
    writer.into_vec()
}
