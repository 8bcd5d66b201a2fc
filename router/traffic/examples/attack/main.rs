//! The traffic of `make attack-test`: floods and other attacks on a router, at stated rates, and the well-behaved
//! exchanges that must go on meanwhile. Use it only against routers in network namespaces of a test.
//!
//! `attack NAME OPTION=VALUE...` runs for `seconds` and prints one line of JSON with what it sent. The names and their
//! usual rates are in `tests/system/attack_plans.py`. Packet floods are in `floods`, attacks by connections in
//! `connections`, and well-behaved applications in `exchanges`.

mod connections;
mod exchanges;
mod floods;
mod options;
mod packets;
mod senders;

use std::process::ExitCode;

use options::{Failure, Options};

fn run() -> Result<String, Failure> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("no attack given; tests/system/attack_plans.py lists them")?;
    let options = Options::parse(arguments)?;
    match name.as_str() {
        "ask" => exchanges::ask(options),
        "answer" => exchanges::answer(&options),
        "silent-connections" => connections::silent(&options),
        "slow-readers" => connections::slow_readers(&options),
        "garbage-streams" => connections::garbage(&options),
        "web-page" => connections::web_page(&options),
        flood => floods::run(flood, &options),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("attack: {error}");
            ExitCode::FAILURE
        }
    }
}
