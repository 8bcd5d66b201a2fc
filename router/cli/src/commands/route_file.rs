//! Adding many routes from a file.
//!
//! Commands are pipelined. Each carries the current time as SignatureTime. Some forwarders accept several commands with
//! the same time, others require a newer one each. After the first refusal with code 403, the remaining and the refused
//! commands are therefore sent one per millisecond. Times never run ahead of the clock, which would lock out other
//! programs until the clock catches up. If a paced command is refused too and no route was added so far, the key lacks
//! the permission, and the rest is not tried.

use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use namehop_client::endpoint::{CommandError, Endpoint, RouteOptions};
use namehop_client::nfd::numbers::status_code;
use namehop_manage::route_file::{FaceSelector, RouteLine, parse_route_file};
use namehop_wire::security::unix_time_ms;
use serde::Serialize;

use super::route::RouteOptionArgs;
use crate::failure::{FORBIDDEN_HINT, Failure};
use crate::manager::Manager;
use crate::output;
use crate::printable;
use crate::progress::Progress;
use crate::units::{milliseconds, show_duration};

/// Number of commands in flight.
const PIPELINE: usize = 128;
/// Number of failed lines shown; more are only counted.
const MAX_SHOWN: usize = 10;

#[derive(Serialize)]
struct Summary {
    routes: usize,
    added: usize,
    failed: usize,
    elapsed_s: f64,
}

fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().lock().read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(path).map_err(|error| Failure::failed(error).context(path.display()))
}

/// Adds all routes of a file.
pub async fn add(manager: &Manager, path: &Path, options: &RouteOptionArgs, json: bool) -> Result<(), Failure> {
    let started = Instant::now();
    let lines = parse_route_file(&read(path)?).map_err(|error| Failure::failed(error).context(path.display()))?;
    let mut faces: HashMap<&FaceSelector, u64> = HashMap::new();
    for line in &lines {
        if !faces.contains_key(&line.next_hop) {
            let face = manager.find_or_create_face(&line.next_hop).await;
            faces.insert(&line.next_hop, face.map_err(|error| error.context(format!("line {}", line.line)))?);
        }
    }
    let progress = Progress::new("{wide_bar} {pos}/{len} {msg} {elapsed}");
    progress.set_length(lines.len() as u64);
    progress.set_message("routes");
    let (added, failures) = send_all(manager.endpoint(), &lines, &faces, options, &progress).await?;
    drop(progress);
    for (number, error) in failures.iter().take(MAX_SHOWN) {
        eprintln!("line {number}: {}", printable::in_line(&error.to_string()));
    }
    let missing = lines.len() - added;
    let elapsed = started.elapsed();
    if json {
        output::json(&Summary { routes: lines.len(), added, failed: missing, elapsed_s: elapsed.as_secs_f64() })?;
    } else {
        output::line(format!("{added} of {} routes added in {}", lines.len(), show_duration(elapsed)))?;
    }
    match missing {
        0 => Ok(()),
        count if failures.iter().any(|(_, error)| is_forbidden(error)) => {
            Err(Failure::failed(format!("{count} routes were not added\n{FORBIDDEN_HINT}")))
        }
        count => Err(Failure::failed(format!("{count} routes were not added"))),
    }
}

fn is_forbidden(error: &CommandError) -> bool {
    matches!(error, CommandError::Refused { code: status_code::FORBIDDEN, .. })
}

type Failed = (usize, CommandError);

async fn send_all(
    endpoint: &Endpoint,
    lines: &[RouteLine],
    faces: &HashMap<&FaceSelector, u64>,
    options: &RouteOptionArgs,
    progress: &Progress,
) -> Result<(usize, Vec<Failed>), Failure> {
    let mut queue: VecDeque<&RouteLine> = lines.iter().collect();
    let mut flights = FuturesUnordered::new();
    let mut failures = Vec::new();
    let (mut paced, mut added) = (false, 0);
    loop {
        while flights.len() < PIPELINE {
            let Some(line) = queue.pop_front() else { break };
            let time_ms = if paced { next_time_ms(endpoint).await } else { unix_time_ms() };
            let route = RouteOptions {
                face_id: faces.get(&line.next_hop).copied(),
                origin: Some(options.origin),
                cost: Some(line.cost.unwrap_or(options.cost)),
                flags: Some(options.flags),
                expiration_ms: options.expires.map(milliseconds),
            };
            let was_paced = paced;
            flights.push(async move {
                let result = endpoint.register_route_at(&line.prefix, &route, time_ms).await;
                (line, was_paced, result)
            });
            if paced {
                // Send one at a time until a paced command is accepted: order matters now.
                break;
            }
        }
        let Some((line, was_paced, result)) = flights.next().await else { return Ok((added, failures)) };
        match result {
            Ok(()) => {
                added += 1;
                progress.inc(1);
            }
            Err(error) if is_forbidden(&error) && !was_paced => {
                paced = true;
                queue.push_back(line);
            }
            Err(error) if is_forbidden(&error) && added == 0 => {
                failures.push((line.line, error));
                queue.clear();
            }
            Err(error @ CommandError::Express(namehop_client::endpoint::ExpressError::Closed(_))) => {
                return Err(error.into());
            }
            Err(error) => failures.push((line.line, error)),
        }
    }
}

/// Returns a SignatureTime newer than the last one, but not ahead of the clock.
async fn next_time_ms(endpoint: &Endpoint) -> u64 {
    let time_ms = endpoint.next_signature_time_ms();
    let ahead_ms = time_ms.saturating_sub(unix_time_ms());
    if ahead_ms > 0 {
        tokio::time::sleep(Duration::from_millis(ahead_ms)).await;
    }
    time_ms
}
