//! Handles the loads of `packet_cost` that need no prefetching, one packet after another. `packet_cost` runs it in
//! cachegrind.
#![forbid(unsafe_code)]

#[expect(dead_code, reason = "packet_cost uses the rest")]
mod load;
mod packets;

use std::env;
use std::error::Error;
use std::process::ExitCode;

use load::Load;
use namehop_orders::{Order, PathKind, ScheduleKind};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let mut order = Order::new(ScheduleKind::Naive, PathKind::Whole);
    let result: Result<(), Failure> = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["run", load, parts] => {
            Load::run(load, parts, move |engine, now, burst, out| order.process(engine, now, burst, out))
        }
        _ => Err("usage: naive_cost run LOAD PARTS (in valgrind)".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("naive_cost: {error}");
            ExitCode::FAILURE
        }
    }
}
