//! The contents of all datasets.
//!
//! The list of faces is built in portions with a pause after each, so that commands are not held up. Faces that change
//! meanwhile are listed as they were or as they are.

use namehop_face::counters::LinkDrop;
use namehop_forward::fib::FibCursor;
use namehop_packet::DropReason;
use namehop_wire::security::unix_time_ms;
use namehop_wire::tlv::Writer;

use super::cs::cs_info;
use super::faces::face_status;
use super::streams::Source;
use super::{ControlPlane, Management};
use crate::nfd::{ChannelStatus, DatasetItem, DropCount, FaceQueryFilter, GeneralStatus, StrategyChoice, encode_item};
use crate::rib::Cursor;

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
    FibSnapshot,
    Rib,
    StrategyChoices,
    ContentStore,
    Drops,
    Readvertise,
    Workers,
}

impl Dataset {
    /// Is its content made while it is fetched?
    pub(super) fn is_streamed(&self) -> bool {
        matches!(self, Dataset::Fib | Dataset::FibSnapshot | Dataset::Rib)
    }
}

impl<C: ControlPlane> Management<C> {
    /// The source of a dataset whose content is made while it is fetched.
    pub(super) fn source_of(&self, dataset: &Dataset) -> Option<Source> {
        match dataset {
            Dataset::Fib => Some(Source::Fib(FibCursor::default())),
            Dataset::FibSnapshot => Some(self.snapshot_source()),
            Dataset::Rib => Some(Source::Rib(Cursor::default())),
            _ => None,
        }
    }

    /// The content of another dataset, as of now.
    pub(super) async fn build_dataset(&self, dataset: &Dataset) -> Vec<u8> {
        match dataset {
            Dataset::General => self.general_status().await.to_vec(),
            Dataset::Faces => self.face_list(&FaceQueryFilter::default()).await,
            Dataset::MatchingFaces(filter) => self.face_list(filter).await,
            Dataset::Channels => {
                let channels = self.control.channels();
                encode_all(channels.iter().map(|uri| ChannelStatus { local_uri: uri.to_string() }))
            }
            // Made while they are fetched.
            Dataset::Fib | Dataset::FibSnapshot | Dataset::Rib => Vec::new(),
            Dataset::StrategyChoices => self.control.with_fib(|fib| {
                encode_all(fib.strategies().map(|(name, strategy)| StrategyChoice {
                    name: name.to_owned(),
                    strategy: strategy.name().clone(),
                }))
            }),
            Dataset::Drops => self.drop_list().await,
            Dataset::Readvertise => encode_all(self.readvertise_status().into_iter()),
            Dataset::Workers => encode_all(self.control.worker_statuses().await.into_iter()),
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
        for &reason in LinkDrop::ALL {
            put(None, "link", reason.name(), faces.link_drops().get(reason));
        }
        for face in faces.snapshot() {
            let id = Some(u64::from(face.id().0));
            for &reason in DropReason::ALL {
                put(id, "engine", reason.name(), face.counters.engine_drop(reason));
            }
            for &reason in LinkDrop::ALL {
                put(id, "link", reason.name(), face.counters.link_drop(reason));
            }
        }
        writer.into_vec()
    }

    async fn general_status(&self) -> GeneralStatus {
        let engine = self.control.engine_status().await;
        let (counters, sizes) = (&engine.counters, &engine.sizes);
        GeneralStatus {
            version: concat!("Namehop/", env!("CARGO_PKG_VERSION")).to_owned(),
            start_timestamp_ms: self.started_unix_ms,
            current_timestamp_ms: unix_time_ms(),
            name_tree_entries: sizes.pcct as u64,
            fib_entries: self.control.with_fib(|fib| fib.len() as u64),
            pit_entries: sizes.pit as u64,
            measurements_entries: sizes.measurements as u64,
            cs_entries: sizes.cs as u64,
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
}

fn encode_all<T: DatasetItem>(items: impl Iterator<Item = T>) -> Vec<u8> {
    let mut writer = Writer::new();
    for item in items {
        encode_item(&item, &mut writer);
    }
    writer.into_vec()
}
