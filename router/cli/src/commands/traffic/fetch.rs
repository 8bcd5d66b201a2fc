//! `namehop traffic fetch`: fetches several objects concurrently into files.

mod board;
mod report;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use futures_util::stream::{self, StreamExt};
use namehop_client::endpoint::Endpoint;
use namehop_traffic::segmented::{
    Discard, FetchError, FetchOptions, FetchProgress, FetchReport, FileOutput, OutputError, fetch,
};
use namehop_wire::Name;

use self::board::Board;
use self::report::FetchRunReport;
use crate::commands::fetching::FetchingArgs;
use crate::connection::{ConnectionArgs, block_on, interrupted};
use crate::failure::{Failure, FailureKind};
use crate::output;

/// Fetch several objects concurrently into files, and account for every Interest
///
/// Each object becomes a file, named by the last component of its name that is not a version. Each segment is written
/// at its offset in a temporary file, which is renamed when it is complete and then replaces a file of that name. All
/// objects use one connection, each with its own congestion window. Fetches objects of 'namehop traffic fileserver',
/// 'namehop put', ndnputchunks, NDNts and 'ndnd put'. For objects with segments of different sizes, use 'namehop cat'.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop traffic fetch /example/film.mp4 /example/song.mp3
  namehop traffic fetch /example/film.mp4 --into downloads --json
  namehop traffic fetch /example/a /example/b /example/c --parallel 2 --discard")]
pub struct FetchArgs {
    /// Names of the objects, with or without version
    #[arg(required = true, value_name = "NAME")]
    names: Vec<Name>,
    /// Directory for the files; created if it does not exist
    #[arg(short = 'C', long, value_name = "DIRECTORY", default_value = ".")]
    into: PathBuf,
    /// Write nothing, only measure
    #[arg(long, conflicts_with = "into")]
    discard: bool,
    /// Maximum number of objects fetched concurrently
    #[arg(short = 'p', long, value_name = "N", default_value_t = 8)]
    parallel: usize,
    #[command(flatten)]
    fetching: FetchingArgs,
    /// Print no progress
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// An object to fetch.
pub struct Wanted {
    pub name: Name,
    /// `None` if nothing is written.
    pub file: Option<PathBuf>,
}

/// Result for an object.
pub enum Outcome {
    Fetched(Box<FetchReport>),
    Failed(FetchError),
    Interrupted,
}

/// Returns the file name for an object.
fn file_name(name: &Name) -> Result<&OsStr, String> {
    let parts: Vec<_> = name.components().collect();
    let object = parts.iter().rev().find(|part| !part.is_version() && !part.is_segment());
    let bytes = match object {
        Some(part) if part.is_generic() => part.value,
        _ => return Err(format!("{name} does not end with a file name: fetch it with 'namehop cat'")),
    };
    let is_path = bytes.iter().any(|byte| matches!(byte, 0 | b'/'));
    if bytes.is_empty() || bytes == b"." || bytes == b".." || is_path {
        return Err(format!("the last component of {name} cannot be a file name: fetch it with 'namehop cat'"));
    }
    Ok(OsStr::from_bytes(bytes))
}

impl FetchArgs {
    fn wanted(&self) -> Result<Vec<Wanted>, Failure> {
        if self.discard {
            return Ok(self.names.iter().map(|name| Wanted { name: name.clone(), file: None }).collect());
        }
        let mut taken = BTreeMap::new();
        let mut wanted = Vec::new();
        for name in &self.names {
            let file = file_name(name).map_err(Failure::usage)?;
            if let Some(other) = taken.insert(file, name) {
                return Err(Failure::usage(format!(
                    "{other} and {name} would both be written to {}: fetch them separately, with different --into \
                     folders",
                    file.display()
                )));
            }
            wanted.push(Wanted { name: name.clone(), file: Some(self.into.join(file)) });
        }
        std::fs::create_dir_all(&self.into).map_err(|error| {
            Failure::failed(error).context(format!("cannot create the directory {}", self.into.display()))
        })?;
        Ok(wanted)
    }

    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        let options = self.fetching.options()?;
        let wanted = self.wanted()?;
        let board = RefCell::new(Board::new(wanted.len(), !(self.quiet || self.json)));
        let started = Instant::now();
        let (outcomes, counters) = block_on(async {
            let endpoint = connection.connect().await?;
            let outcomes = fetch_all(&endpoint, &wanted, &options, self.parallel, &board).await;
            Ok((outcomes, endpoint.counters()))
        })?;
        let elapsed = started.elapsed();
        let progress = board.into_inner().end();
        let report = FetchRunReport::of(&wanted, &outcomes, &progress, elapsed, counters);
        if self.json {
            output::json(&report)?;
        } else {
            output::print(&report.describe())?;
        }
        failure_of(outcomes)
    }
}

/// Fetches all objects, at most `parallel` at a time, and returns their results in the order of `wanted`.
async fn fetch_all(
    endpoint: &Endpoint,
    wanted: &[Wanted],
    options: &FetchOptions,
    parallel: usize,
    board: &RefCell<Board>,
) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = wanted.iter().map(|_| Outcome::Interrupted).collect();
    let jobs = wanted.iter().enumerate().map(|(index, wanted)| async move {
        let shown = |progress| board.borrow_mut().show(index, progress);
        let result = fetch_one(endpoint, wanted, options, shown).await;
        board.borrow_mut().done();
        (index, result)
    });
    let mut running = stream::iter(jobs).buffer_unordered(parallel.max(1));
    let mut stop = Box::pin(interrupted());
    loop {
        let next = tokio::select! {
            next = running.next() => next,
            () = &mut stop => None,
        };
        let Some((index, result)) = next else { return outcomes };
        outcomes[index] = match result {
            Ok(report) => Outcome::Fetched(Box::new(report)),
            Err(error) => Outcome::Failed(error),
        };
    }
}

async fn fetch_one(
    endpoint: &Endpoint,
    wanted: &Wanted,
    options: &FetchOptions,
    progress: impl FnMut(FetchProgress),
) -> Result<FetchReport, FetchError> {
    match &wanted.file {
        Some(path) => {
            let mut file = FileOutput::create(path).map_err(|error| {
                let error = std::io::Error::new(error.kind(), format!("{}: {error}", path.display()));
                OutputError::Write(error)
            })?;
            fetch(endpoint, &wanted.name, &mut file, options, progress).await
        }
        None => fetch(endpoint, &wanted.name, &mut Discard, options, progress).await,
    }
}

/// Returns the failure of the command, if any object failed.
fn failure_of(outcomes: Vec<Outcome>) -> Result<(), Failure> {
    let all = outcomes.len();
    if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Interrupted)) {
        return Err(Failure::failed("interrupted"));
    }
    let mut errors: Vec<FetchError> = outcomes
        .into_iter()
        .filter_map(|outcome| match outcome {
            Outcome::Failed(error) => Some(error),
            _ => None,
        })
        .collect();
    match errors.len() {
        0 => Ok(()),
        1 if all == 1 => Err(errors.remove(0).into()),
        failed if failed == all && errors.iter().all(FetchError::is_timeout) => {
            Err(Failure::new(FailureKind::Nothing, format!("none of {all} objects was fetched: no Data was received")))
        }
        failed => {
            Err(Failure::failed(format!("{failed} of {all} objects were not fetched; the report gives the reasons")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_files_in_the_directory_and_nowhere_else() {
        let file = |uri: &str| file_name(&uri.parse().unwrap()).map(|file| file.to_str().unwrap().to_owned());
        assert_eq!(file("/a/film.mp4").as_deref(), Ok("film.mp4"));
        assert_eq!(file("/a/film/v=7").as_deref(), Ok("film"));
        assert_eq!(file("/a/film/v=7/seg=2").as_deref(), Ok("film"));
        for uri in ["/", "/v=1", "/a/32=ls", "/a/%2E%2E%2Fpasswd", "/a/...", "/a/....", "/a/.....", "/a/x%00y"] {
            assert!(file(uri).is_err(), "{uri}");
        }
    }
}
