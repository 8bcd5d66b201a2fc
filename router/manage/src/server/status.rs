//! The list of all datasets, and their contents.
//!
//! A new dataset is one more entry of the list, and a function.
//!
//! The list of faces is built in portions with a pause after each, so that commands are not delayed. A face that
//! changes meanwhile is listed in its old or its new state.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use namehop_client::nfd::names::module;
use namehop_client::nfd::{
    ChannelStatus, DropCount, Element, FaceQueryFilter, GeneralStatus, LoadedStrategy, Record, StrategyChoice,
    encode_items,
};
use namehop_engine::fib::FibCursor;
use namehop_face::counters::LinkDrop;
use namehop_packet::DropReason;
use namehop_wire::Name;
use namehop_wire::security::unix_time_ms;
use namehop_wire::tlv::Writer;

use super::cs::cs_info;
use super::faces::face_status;
use super::streams::Source;
use super::{ControlPlane, Management};
use crate::rib::Cursor;
use crate::views::parameter_record;

/// Entries of a long list built between two pauses.
const PORTION: usize = 2048;
/// The time of day counts as set if it deviates from the monotonic clock by at least this much, in milliseconds.
const CLOCK_TOLERANCE_MS: u64 = 2000;

/// Maximum number of name dispatch table entries in `ndt/list`.
const LISTED_ENTRIES: usize = 1024;

/// A status dataset.
pub(super) struct Dataset<C: 'static> {
    /// First name component after the prefix of management.
    pub(super) module: &'static str,
    /// Name component after the module.
    pub(super) verb: &'static str,
    /// How its content is built.
    pub(super) content: Content<C>,
}

/// How the content of a dataset is built.
pub(super) enum Content<C: 'static> {
    /// As a whole, from the current state.
    Whole(fn(Rc<Management<C>>) -> Making),
    /// As a whole, with only the faces that match the filter component of the name.
    Filtered(fn(Rc<Management<C>>, FaceQueryFilter) -> Making),
    /// In portions while the client fetches it.
    Streamed(fn(&Management<C>) -> Source),
}

/// Future of the encoded content of a dataset.
pub(super) type Making = Pin<Box<dyn Future<Output = Vec<u8>>>>;

impl<C: ControlPlane> Management<C> {
    /// All datasets.
    const DATASETS: &[Dataset<C>] = &[
        Dataset {
            module: module::STATUS,
            verb: "general",
            content: Content::Whole(|this| Box::pin(async move { this.general_status().await.to_content() })),
        },
        Dataset {
            module: module::STATUS,
            verb: "drops",
            content: Content::Whole(|this| Box::pin(async move { this.drop_list().await })),
        },
        Dataset {
            module: module::STATUS,
            verb: "readvertise",
            content: Content::Whole(|this| Box::pin(async move { encode_items(this.readvertise_status()) })),
        },
        Dataset {
            module: module::STATUS,
            verb: "workers",
            content: Content::Whole(|this| Box::pin(async move { encode_items(this.control.worker_statuses().await) })),
        },
        Dataset {
            module: module::STATUS,
            verb: "power",
            content: Content::Whole(|this| Box::pin(async move { encode_items(this.control.power()) })),
        },
        Dataset {
            module: module::STATUS,
            verb: "latency",
            content: Content::Whole(|this| Box::pin(async move { encode_items([this.control.latency().await]) })),
        },
        Dataset {
            module: module::NDT,
            verb: "list",
            content: Content::Whole(|this| {
                Box::pin(async move { encode_items(this.control.dispatch_entries().into_iter().take(LISTED_ENTRIES)) })
            }),
        },
        Dataset {
            module: module::FACES,
            verb: "list",
            content: Content::Whole(|this| Box::pin(async move { this.face_list(&FaceQueryFilter::default()).await })),
        },
        Dataset {
            module: module::FACES,
            verb: "query",
            content: Content::Filtered(|this, filter| Box::pin(async move { this.face_list(&filter).await })),
        },
        Dataset {
            module: module::FACES,
            verb: "channels",
            content: Content::Whole(|this| Box::pin(async move { this.channel_list() })),
        },
        Dataset {
            module: module::FIB,
            verb: "list",
            content: Content::Streamed(|_| Source::Fib(FibCursor::default())),
        },
        Dataset { module: module::FIB, verb: "snapshot", content: Content::Streamed(|this| this.snapshot_source()) },
        Dataset { module: module::RIB, verb: "list", content: Content::Streamed(|_| Source::Rib(Cursor::default())) },
        Dataset {
            module: module::STRATEGY_CHOICE,
            verb: "list",
            content: Content::Whole(|this| Box::pin(async move { this.strategy_list() })),
        },
        Dataset {
            module: module::STRATEGY_CHOICE,
            verb: "loaded",
            content: Content::Whole(|this| Box::pin(async move { this.loaded_strategy_list() })),
        },
        Dataset {
            module: module::CS,
            verb: "info",
            content: Content::Whole(|this| {
                Box::pin(async move { encode_items([cs_info(&this.control.cs_info().await)]) })
            }),
        },
    ];

    /// Returns the dataset with this name.
    pub(super) fn find_dataset(module: &[u8], verb: &[u8]) -> Option<&'static Dataset<C>> {
        let is_it = |dataset: &&Dataset<C>| (dataset.module.as_bytes(), dataset.verb.as_bytes()) == (module, verb);
        Self::DATASETS.iter().find(is_it)
    }

    fn channel_list(&self) -> Vec<u8> {
        encode_items(self.control.channels().iter().map(|uri| ChannelStatus { local_uri: uri.to_string() }))
    }

    fn strategy_list(&self) -> Vec<u8> {
        self.control.with_fib(|fib| {
            encode_items(
                fib.strategies().map(|(name, strategy)| StrategyChoice {
                    name: name.to_owned(),
                    strategy: strategy.name().clone(),
                }),
            )
        })
    }

    fn loaded_strategy_list(&self) -> Vec<u8> {
        self.control.with_strategies(|strategies| {
            encode_items(strategies.programs().iter().map(|program| LoadedStrategy {
                name: Name::new().append_generic(program.name()),
                strategy: program.versioned_name(),
                summary: program.summary().to_owned(),
                parameters: program.parameters().into_iter().map(parameter_record).collect(),
            }))
        })
    }

    /// Builds the dataset `status/drops`: the totals, then the drops of each face.
    async fn drop_list(&self) -> Vec<u8> {
        let counters = self.control.engine_status().await.counters;
        let faces = self.control.faces();
        let mut writer = Writer::new();
        let mut put = |face_id, layer: &str, reason: &str, count| {
            if count > 0 {
                let item = DropCount { face_id, layer: layer.to_owned(), reason: reason.to_owned(), count };
                item.encode(&mut writer);
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

    /// Returns the start of the router in Unix time, in milliseconds: the current time of day minus the uptime on the
    /// monotonic clock. The value changes only when the time of day is set, because clients take a changed start for a
    /// restart.
    fn start_unix_ms(&self, now_unix_ms: u64) -> u64 {
        let start_unix_ms = now_unix_ms.saturating_sub(self.now_ms());
        if start_unix_ms.abs_diff(self.start_unix_ms.get()) >= CLOCK_TOLERANCE_MS {
            self.start_unix_ms.set(start_unix_ms);
        }
        self.start_unix_ms.get()
    }

    pub(super) async fn general_status(&self) -> GeneralStatus {
        let engine = self.control.engine_status().await;
        let (counters, sizes) = (&engine.counters, &engine.sizes);
        let start_timestamp_ms = self.start_unix_ms(unix_time_ms());
        GeneralStatus {
            version: concat!("Namehop/", env!("CARGO_PKG_VERSION")).to_owned(),
            start_timestamp_ms,
            current_timestamp_ms: start_timestamp_ms.saturating_add(self.now_ms()),
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
                status.encode(&mut writer);
            }
            tokio::task::yield_now().await;
        }
        writer.into_vec()
    }
}
