//! Traces: the decisions about single packets, from the start to the end of a trace, in one answer.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use namehop_client::nfd::names::module;
use namehop_client::nfd::numbers::{MAX_TRACED_PACKETS, status_code};
use namehop_client::nfd::{ControlParameters, TracedPacket, decode_items};
use serde::Deserialize;
use tokio::time::{Instant, sleep};
use utoipa::ToSchema;

use super::extract::{JsonBody, name};
use super::{Api, Failure, answer};
use crate::server::Inside;
use crate::views::TracedPacketView;

/// Defaults for the number of packets and the duration of a trace.
const DEFAULT_COUNT: u64 = 10;
const DEFAULT_SECONDS: f64 = 5.0;
/// Maximum duration of a trace, in seconds. The answer must be written before the server closes the connection, 30
/// seconds after it was opened.
const MAX_SECONDS: f64 = 20.0;
/// Interval of reads from the trace.
const PAUSE: Duration = Duration::from_millis(50);

/// Packets to trace.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewTrace {
    /// Traces packets with names under this prefix. Names under /localhost, which are commands to this router, are
    /// traced only if the prefix is under /localhost, too.
    name: String,
    /// Number of packets after which the answer is sent: 1 to 1000; default 10.
    #[schema(minimum = 1, maximum = 1000)]
    count: Option<u64>,
    /// Seconds after which the answer is sent, even with fewer packets: 0 to 20; default 5.
    #[schema(minimum = 0, maximum = 20)]
    seconds: Option<f64>,
}

/// Show the decisions of the router about packets, step by step
///
/// The answer is sent when there are enough packets, or when the time is over. One trace runs at a time. If its client
/// disconnects, it ends after 10 seconds.
#[utoipa::path(post, operation_id = "trace_packets", path = "/trace", tag = "status", request_body = NewTrace,
    responses((status = 200, description = "As `namehop trace --json`, as one list", body = Vec<TracedPacketView>)))]
pub(super) async fn trace(State(api): State<Api>, JsonBody(wanted): JsonBody<NewTrace>) -> Result<Response, Failure> {
    let prefix = name("name", &wanted.name)?;
    let (count, seconds) = (wanted.count.unwrap_or(DEFAULT_COUNT), wanted.seconds.unwrap_or(DEFAULT_SECONDS));
    if !(1..=MAX_TRACED_PACKETS).contains(&count) {
        return Err(Failure::bad_request(format!("count must be from 1 to {MAX_TRACED_PACKETS}")));
    }
    if !(0.0..=MAX_SECONDS).contains(&seconds) {
        return Err(Failure::bad_request(format!("seconds must be from 0 to {MAX_SECONDS}")));
    }
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let parameters = ControlParameters { name: Some(prefix), count: Some(count), ..ControlParameters::default() };
    answer::done(api.inside.command(module::TRACE, "start", parameters, Vec::new()).await?)?;
    let packets = follow(&api.inside, count, end).await?;
    answer::made(move || {
        let first_ns = packets.first().map_or(0, |packet| packet.time_ns);
        Ok(packets.into_iter().map(|packet| TracedPacketView::new(packet, first_ns)).collect::<Vec<_>>())
    })
    .await
}

/// Reads packets until there are enough or the time is over, and ends the trace.
async fn follow(inside: &Inside, count: u64, end: Instant) -> Result<Vec<TracedPacket>, Failure> {
    let mut packets = Vec::new();
    loop {
        // The clock is read first, because packets that arrive before the end belong to the trace.
        let is_over = Instant::now() >= end;
        let response = inside.command(module::TRACE, "take", ControlParameters::default(), Vec::new()).await?;
        if response.code == status_code::NOT_FOUND {
            // Another client has stopped the trace.
            return Ok(packets);
        }
        let taken: Vec<TracedPacket> = decode_items(&response.body)?;
        let is_all = taken.is_empty();
        packets.extend(taken);
        if packets.len() as u64 >= count {
            return Ok(packets);
        }
        if is_all && is_over {
            answer::done(inside.command(module::TRACE, "stop", ControlParameters::default(), Vec::new()).await?)?;
            return Ok(packets);
        }
        if is_all {
            sleep(PAUSE.min(end.saturating_duration_since(Instant::now()))).await;
        }
    }
}
