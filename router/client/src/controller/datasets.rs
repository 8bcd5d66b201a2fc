//! Fetches status datasets: discovers the newest version and fetches all its segments.

use futures_util::stream::{FuturesUnordered, StreamExt};
use namehop_wire::data::content_type;
use namehop_wire::{Data, InterestBuilder, Name};

use super::{ClientError, Controller, Express};
use crate::nfd::names::{self, module};
use crate::nfd::{
    ChannelStatus, ControlResponse, CsInfo, DispatchEntry, DropCount, Element, FaceQueryFilter, FaceStatus, FibEntry,
    GeneralStatus, LatencyStatus, LoadedStrategy, PowerStatus, ReadvertiseStatus, Record, RibEntry, StrategyChoice,
    WorkerStatus, decode_items,
};

/// InterestLifetime of the first Interest, in milliseconds: the forwarder may have to build a long list.
const FIRST_LIFETIME_MS: u64 = 10_000;
/// InterestLifetime for further segments, in milliseconds. Forwarders keep a dataset for one second; a lost segment has
/// to be requested again within that time.
const SEGMENT_LIFETIME_MS: u64 = 250;
/// Segments requested at the same time.
const WINDOW: usize = 16;
/// Attempts for each further segment.
const TRIES: usize = 8;

/// A decoded segment of a dataset.
struct Segment {
    /// Name without the segment number.
    versioned: Name,
    number: u64,
    last: Option<u64>,
    content: Vec<u8>,
}

impl Segment {
    fn decode(packet: &[u8]) -> Result<Self, ClientError> {
        let data = Data::decode(packet)?;
        if data.content_type == content_type::NACK {
            return Err(ClientError::Refused(ControlResponse::decode(data.content)?));
        }
        let number = data.name.last().and_then(|component| component.as_segment());
        let version = data.name.get_from_end(1).and_then(|component| component.as_version());
        match (version, number) {
            (Some(_), Some(number)) => Ok(Segment {
                versioned: data.name.without_last(1).to_owned(),
                number,
                last: data.final_block_id.and_then(|component| component.as_segment()),
                content: data.content.to_vec(),
            }),
            _ => Err(ClientError::UnexpectedName(data.name.to_string())),
        }
    }
}

impl<E: Express> Controller<E> {
    /// Fetches the newest version of a dataset and returns the contents of all its segments in order.
    ///
    /// # Errors
    /// `Refused` if the forwarder rejects the query; `TooLong`, or another [`ClientError`].
    pub async fn fetch(&self, dataset: &Name) -> Result<Vec<u8>, ClientError> {
        let interest =
            InterestBuilder::new(dataset).can_be_prefix(true).must_be_fresh(true).lifetime_ms(FIRST_LIFETIME_MS);
        let first = Segment::decode(&self.express.express(interest.build()?).await?)?;
        let versioned = first.versioned.clone();
        // The first answer may be any segment, from a cache on the path; the others are requested by name.
        let mut contents: Vec<Option<Vec<u8>>> = Vec::new();
        let mut last = first.last;
        let store = |contents: &mut Vec<Option<Vec<u8>>>, segment: Segment| {
            let index = segment.number as usize;
            if contents.len() <= index {
                contents.resize_with(index + 1, || None);
            }
            contents[index] = Some(segment.content);
        };
        let first_number = first.number;
        if first_number > MAX_SEGMENTS {
            return Err(ClientError::UnexpectedName(versioned.append_segment(first_number).to_string()));
        }
        let mut bytes = first.content.len();
        store(&mut contents, first);
        let mut pending = FuturesUnordered::new();
        let mut next = 0;
        loop {
            // While the last segment is unknown, Interests beyond it would only time out.
            let window = if last.is_some() { WINDOW } else { 1 };
            while pending.len() < window && last.is_none_or(|last| next <= last) {
                if next != first_number {
                    pending.push(self.fetch_segment(versioned.clone().append_segment(next)));
                }
                next += 1;
            }
            let Some(segment) = pending.next().await else { break };
            let segment = segment?;
            last = segment.last.or(last);
            if segment.number > MAX_SEGMENTS {
                return Err(ClientError::UnexpectedName(versioned.append_segment(segment.number).to_string()));
            }
            bytes += segment.content.len();
            if bytes > MAX_DATASET_BYTES {
                return Err(ClientError::TooLong { max_bytes: MAX_DATASET_BYTES });
            }
            store(&mut contents, segment);
        }
        Ok(contents.into_iter().flatten().flatten().collect())
    }

    async fn fetch_segment(&self, name: Name) -> Result<Segment, ClientError> {
        let mut tries = TRIES;
        loop {
            let interest = InterestBuilder::new(&name).lifetime_ms(SEGMENT_LIFETIME_MS).build()?;
            match self.express.express(interest).await {
                Ok(packet) => return Segment::decode(&packet),
                Err(ClientError::Timeout { .. }) if tries > 1 => tries -= 1,
                Err(error) => return Err(error),
            }
        }
    }

    async fn list<T: Element>(&self, dataset: &Name) -> Result<Vec<T>, ClientError> {
        Ok(decode_items(&self.fetch(dataset).await?)?)
    }

    /// Fetches the status of the router as a whole.
    ///
    /// # Errors
    /// As for [`fetch`](Self::fetch).
    pub async fn status(&self) -> Result<GeneralStatus, ClientError> {
        let content = self.fetch(&names::localhost_verb(module::STATUS, "general")).await?;
        Ok(GeneralStatus::from_content(&content)?)
    }

    /// Fetches the dropped packets by reason, in total and by face. Only Namehop has this dataset.
    ///
    /// # Errors
    /// As for [`fetch`](Self::fetch); a timeout if the forwarder is not Namehop.
    pub async fn drops(&self) -> Result<Vec<DropCount>, ClientError> {
        self.list(&names::localhost_verb(module::STATUS, "drops")).await
    }

    /// Fetches the status of readvertising. Only Namehop has this dataset.
    ///
    /// # Errors
    /// As for [`fetch`](Self::fetch); a timeout if the forwarder is not Namehop.
    pub async fn readvertise(&self) -> Result<Vec<ReadvertiseStatus>, ClientError> {
        self.list(&names::localhost_verb(module::STATUS, "readvertise")).await
    }

    /// Fetches the status of each worker. Only Namehop has this dataset.
    ///
    /// # Errors
    /// As for [`fetch`](Self::fetch); a timeout if the forwarder is not Namehop.
    pub async fn workers(&self) -> Result<Vec<WorkerStatus>, ClientError> {
        self.list(&names::localhost_verb(module::STATUS, "workers")).await
    }

    /// Fetches the power of the host; `None` if it is neither measured nor estimated. Only Namehop has this dataset.
    ///
    /// # Errors
    /// As for [`fetch`](Self::fetch); a timeout if the forwarder is not Namehop.
    pub async fn power(&self) -> Result<Option<PowerStatus>, ClientError> {
        Ok(self.list(&names::localhost_verb(module::STATUS, "power")).await?.into_iter().next())
    }

    /// Fetches the times that packets stay in the router. Only Namehop has this dataset.
    ///
    /// # Errors
    /// As for [`fetch`](Self::fetch); a timeout if the forwarder is not Namehop.
    pub async fn latency(&self) -> Result<LatencyStatus, ClientError> {
        let statuses: Vec<LatencyStatus> = self.list(&names::localhost_verb(module::STATUS, "latency")).await?;
        statuses.into_iter().next().ok_or(ClientError::Codec(crate::nfd::CodecError::Missing("LatencyStatus")))
    }

    /// Fetches the entries of the name dispatch table that had packets recently, busiest first. Only Namehop has this
    /// dataset.
    ///
    /// # Errors
    /// As for [`fetch`](Self::fetch); a timeout if the forwarder is not Namehop.
    pub async fn dispatch_entries(&self) -> Result<Vec<DispatchEntry>, ClientError> {
        self.list(&names::localhost_verb(module::NDT, "list")).await
    }

    /// Fetches all faces.
    ///
    /// # Errors
    /// As for [`fetch`](Self::fetch).
    pub async fn faces(&self) -> Result<Vec<FaceStatus>, ClientError> {
        self.list(&names::localhost_verb(module::FACES, "list")).await
    }

    /// Fetches the faces that match a filter.
    ///
    /// # Errors
    /// As for [`fetch`](Self::fetch).
    pub async fn query_faces(&self, filter: &FaceQueryFilter) -> Result<Vec<FaceStatus>, ClientError> {
        self.list(&names::localhost_verb(module::FACES, "query").append_generic(filter.to_vec())).await
    }

    /// Fetches the addresses that the router listens on.
    ///
    /// # Errors
    /// As for [`fetch`](Self::fetch).
    pub async fn channels(&self) -> Result<Vec<ChannelStatus>, ClientError> {
        self.list(&names::localhost_verb(module::FACES, "channels")).await
    }

    /// Fetches the FIB.
    ///
    /// # Errors
    /// As for [`fetch`](Self::fetch).
    pub async fn fib(&self) -> Result<Vec<FibEntry>, ClientError> {
        self.list(&names::localhost_verb(module::FIB, "list")).await
    }

    /// Fetches the RIB.
    ///
    /// # Errors
    /// As for [`fetch`](Self::fetch).
    pub async fn rib(&self) -> Result<Vec<RibEntry>, ClientError> {
        self.list(&names::localhost_verb(module::RIB, "list")).await
    }

    /// Fetches the strategy choices.
    ///
    /// # Errors
    /// As for [`fetch`](Self::fetch).
    pub async fn strategies(&self) -> Result<Vec<StrategyChoice>, ClientError> {
        self.list(&names::localhost_verb(module::STRATEGY_CHOICE, "list")).await
    }

    /// Fetches the loaded strategies.
    ///
    /// # Errors
    /// As for [`fetch`](Self::fetch).
    pub async fn loaded_strategies(&self) -> Result<Vec<LoadedStrategy>, ClientError> {
        self.list(&names::localhost_verb(module::STRATEGY_CHOICE, "loaded")).await
    }

    /// Fetches the state of the Content Store.
    ///
    /// # Errors
    /// As for [`fetch`](Self::fetch).
    pub async fn cs_info(&self) -> Result<CsInfo, ClientError> {
        let infos: Vec<CsInfo> = self.list(&names::localhost_verb(module::CS, "info")).await?;
        infos.into_iter().next().ok_or(ClientError::Codec(crate::nfd::CodecError::Missing("CsInfo")))
    }
}

/// Maximum size of a dataset, in bytes: some twenty million routes.
const MAX_DATASET_BYTES: usize = if cfg!(test) { 1 << 20 } else { 1 << 30 };

/// Maximum number of segments of a dataset.
const MAX_SEGMENTS: u64 = 1 << 20;
