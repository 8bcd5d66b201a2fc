//! Adding many routes from a file.
//!
//! Commands are pipelined. Each carries the present time as SignatureTime; some forwarders accept
//! several commands with the same time, others demand a newer one each. So the first refusal with
//! code 403 makes the rest go out one per millisecond, the refused ones again. Times never run ahead of
//! the clock, since that would lock out other programs until the clock catches up.

use std::collections::{HashMap, VecDeque};
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use namehop_manage::nfd::numbers::status_code;
use namehop_traffic::endpoint::{CommandError, Endpoint, RouteOptions};
use namehop_wire::Name;
use namehop_wire::security::unix_time_ms;
use serde::Serialize;

use super::route::RouteOptionArgs;
use crate::failure::{FORBIDDEN_HINT, Failure};
use crate::manager::{FaceArg, Manager};
use crate::output;
use crate::units::{milliseconds, show_duration};

/// Commands in flight at once.
const PIPELINE: usize = 128;
/// Failed lines shown; more are only counted.
const MAX_SHOWN: usize = 10;

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    number: usize,
    prefix: Name,
    nexthop: FaceArg,
    cost: Option<u64>,
}

#[derive(Serialize)]
struct Summary {
    routes: usize,
    added: usize,
    failed: usize,
    elapsed_s: f64,
}

/// Reads the routes in a text. All errors are found before anything is sent.
fn parse(text: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for (index, content) in text.lines().enumerate() {
        let number = index + 1;
        let content = content.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let mut words = content.split_whitespace();
        let (Some(prefix), Some(nexthop)) = (words.next(), words.next()) else {
            return Err(format!("line {number}: expected PREFIX NEXTHOP [COST]"));
        };
        let cost = words.next().map(|cost| cost.parse().map_err(|_| format!("line {number}: '{cost}' is not a cost")));
        if let Some(extra) = words.next() {
            return Err(format!("line {number}: unexpected '{extra}'"));
        }
        lines.push(Line {
            number,
            prefix: prefix.parse().map_err(|error| format!("line {number}: {error}"))?,
            nexthop: nexthop.parse().map_err(|error| format!("line {number}: {error}"))?,
            cost: cost.transpose()?,
        });
    }
    Ok(lines)
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
    let lines = parse(&read(path)?).map_err(|error| Failure::failed(error).context(path.display()))?;
    let mut faces: HashMap<&FaceArg, u64> = HashMap::new();
    for line in &lines {
        if !faces.contains_key(&line.nexthop) {
            let face = manager.find_or_create_face(&line.nexthop).await;
            faces.insert(&line.nexthop, face.map_err(|error| error.context(format!("line {}", line.number)))?);
        }
    }
    let bar = progress_bar(lines.len());
    let failures = send_all(manager.endpoint(), &lines, &faces, options, &bar).await?;
    bar.finish_and_clear();
    for (number, error) in failures.iter().take(MAX_SHOWN) {
        eprintln!("line {number}: {error}");
    }
    let added = lines.len() - failures.len();
    let elapsed = started.elapsed();
    if json {
        output::json(&Summary {
            routes: lines.len(),
            added,
            failed: failures.len(),
            elapsed_s: elapsed.as_secs_f64(),
        })?;
    } else {
        output::line(format!("{added} of {} routes added in {}", lines.len(), show_duration(elapsed)))?;
    }
    match failures.len() {
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
    lines: &[Line],
    faces: &HashMap<&FaceArg, u64>,
    options: &RouteOptionArgs,
    bar: &ProgressBar,
) -> Result<Vec<Failed>, Failure> {
    let mut queue: VecDeque<&Line> = lines.iter().collect();
    let mut flights = FuturesUnordered::new();
    let mut failures = Vec::new();
    let mut paced = false;
    loop {
        while flights.len() < PIPELINE {
            let Some(line) = queue.pop_front() else { break };
            let time_ms = if paced { next_time_ms(endpoint).await } else { unix_time_ms() };
            let route = RouteOptions {
                face_id: faces.get(&line.nexthop).copied(),
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
                // One at a time until the pace is seen to be accepted: order matters now.
                break;
            }
        }
        let Some((line, was_paced, result)) = flights.next().await else { return Ok(failures) };
        match result {
            Ok(()) => bar.inc(1),
            Err(error) if is_forbidden(&error) && !was_paced => {
                paced = true;
                queue.push_back(line);
            }
            Err(error @ CommandError::Express(namehop_traffic::endpoint::ExpressError::Closed(_))) => {
                return Err(error.into());
            }
            Err(error) => failures.push((line.number, error)),
        }
    }
}

/// A SignatureTime newer than the last, not ahead of the clock.
async fn next_time_ms(endpoint: &Endpoint) -> u64 {
    let time_ms = endpoint.next_signature_time_ms();
    let ahead_ms = time_ms.saturating_sub(unix_time_ms());
    if ahead_ms > 0 {
        tokio::time::sleep(Duration::from_millis(ahead_ms)).await;
    }
    time_ms
}

fn progress_bar(routes: usize) -> ProgressBar {
    let bar = ProgressBar::new(routes as u64);
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} routes {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_line_by_line() {
        let lines = parse("# comment\n\n/a 300\n  /b/c udp4://192.0.2.1:6363 7 \n").unwrap();
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].number, &lines[0].nexthop, lines[0].cost), (3, &FaceArg::Id(300), None));
        assert_eq!((lines[1].prefix.to_string(), lines[1].cost), ("/b/c".to_owned(), Some(7)));
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, part) in
            [("/a", "line 1: expected"), ("\n/a x", "line 2"), ("/a 1 x", "not a cost"), ("/a 1 2 3", "unexpected '3'")]
        {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
