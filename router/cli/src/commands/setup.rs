//! `namehop setup`: shows and changes the settings of this host that make a router fast, and undoes the changes.

mod view;

use std::env;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use namehop_setup::detect::Machine;
use namehop_setup::plan::{HugePageRequest, Plan, SetupRequest};
use namehop_setup::{Finding, Outcome, Record, StateFile, System, apply, findings, undo};
use serde::Serialize;

use crate::failure::{Failure, FailureKind};
use crate::output;
use crate::units::parse_bytes;

/// Show what this host offers a fast router, and prepare it: huge pages and network cards
///
/// A router works without any of this, but slower. Without options, changes nothing: it shows the current state and a
/// numbered list of changes. '--apply' makes them after asking; '--undo' reverts them exactly. The original state is
/// kept in /var/lib/namehop-setup/state.json. A network card that carries the default route or an SSH session is taken
/// only if it is named with '--force-nic'.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop setup
  sudo namehop setup --apply
  sudo namehop setup --huge-pages 16GiB --page-size 1GiB --apply
  sudo namehop setup --nic 0000:03:00.0 --nic eth2 --apply --yes
  sudo namehop setup --undo")]
pub struct SetupArgs {
    /// Total memory to reserve in huge pages: a size, 'auto' (what default settings use), or 'keep' (unchanged)
    #[arg(long, value_name = "SIZE", default_value = "auto", value_parser = parse_memory)]
    huge_pages: HugePageRequest,
    /// Size of a huge page: 2MiB or 1GiB [default: chosen for the host]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    page_size: Option<u64>,
    /// Network card to give to programs that drive it without the kernel: a PCI address or an interface; can be
    /// repeated
    #[arg(long, value_name = "PCI")]
    nic: Vec<String>,
    /// Same as --nic, for a card that carries the default route or an SSH session: this host may be unreachable
    /// afterwards
    #[arg(long, value_name = "PCI")]
    force_nic: Vec<String>,
    /// Change only the running system, not its state after a restart of the host
    #[arg(long)]
    until_restart: bool,
    /// Make the planned changes
    #[arg(long)]
    apply: bool,
    /// Revert all changes that '--apply' made
    #[arg(long, conflicts_with_all = ["apply", "huge_pages", "nic", "force_nic", "page_size", "until_restart"])]
    undo: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Inspect (and change) the files of another host, with its /proc, /sys and /etc below DIR; runs no programs
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

/// Output of `--json`.
#[derive(Serialize)]
struct SetupReport<'r> {
    machine: &'r Machine,
    findings: &'r [Finding],
    plan: &'r Plan,
    /// Changes made by earlier runs.
    changed: &'r [Record],
    /// Results of the steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcomes: Option<&'r [Outcome]>,
}

fn parse_memory(text: &str) -> Result<HugePageRequest, String> {
    match text {
        "auto" => Ok(HugePageRequest::Auto),
        "keep" => Ok(HugePageRequest::Unchanged),
        size => parse_bytes(size).map(HugePageRequest::Bytes),
    }
}

impl SetupArgs {
    pub fn run(self) -> Result<(), Failure> {
        if !self.root.is_dir() {
            return Err(Failure::usage(format!("--root {}: no such folder", self.root.display())));
        }
        let system = System::new(&self.root);
        if self.undo {
            return self.undo(&system);
        }
        let ssh_connection = env::var("SSH_CONNECTION").ok();
        let machine = Machine::detect(&system, ssh_connection.as_deref());
        let plan = Plan::new(&system, &machine, &self.wishes());
        let findings = findings(&machine);
        // A user without permission to read the changes still sees the rest.
        let changed = StateFile::read(&system).unwrap_or_default();
        let report =
            SetupReport { machine: &machine, findings: &findings, plan: &plan, changed: &changed, outcomes: None };
        if !self.json {
            output::print(&view::show(&report))?;
        }
        let is_possible = plan.obstacles.is_empty();
        if !is_possible && self.json {
            output::json(&report)?;
        }
        if !is_possible {
            return Err(Failure::silent(FailureKind::Failed));
        }
        if !self.apply || plan.steps.is_empty() {
            return if self.json { output::json(&report) } else { self.say_how(&machine, &plan) };
        }
        if !machine.is_root {
            return Err(Failure::failed(format!("this needs root: {}", command_as_root(&["--apply"]))));
        }
        self.confirm(&format!("Do {} now?", count(plan.steps.len(), "step")))?;
        let outcomes = self.apply(&system, &plan)?;
        if self.json { output::json(&SetupReport { outcomes: Some(&outcomes), ..report }) } else { Ok(()) }
    }

    fn wishes(&self) -> SetupRequest {
        SetupRequest {
            memory: self.huge_pages,
            page_bytes: self.page_size,
            nics: self.nic.clone(),
            forced_nics: self.force_nic.clone(),
            is_permanent: !self.until_restart,
        }
    }

    fn say_how(&self, machine: &Machine, plan: &Plan) -> Result<(), Failure> {
        match (plan.steps.is_empty(), machine.is_root) {
            (true, _) => output::line("Nothing to change."),
            (false, true) => output::line(format!("To apply this plan: {}", command(&["--apply"]))),
            (false, false) => output::line(format!("To apply this plan as root: {}", command_as_root(&["--apply"]))),
        }
    }

    fn apply(&self, system: &System, plan: &Plan) -> Result<Vec<Outcome>, Failure> {
        let mut state = open_state(system)?;
        let mut outcomes = Vec::new();
        let mut printed = Ok(());
        let result = apply(system, plan, &mut state, |outcome| {
            if !self.json {
                printed = output::line(view::show_outcome(outcome, "done"));
            }
            outcomes.push(outcome.clone());
        });
        result.map_err(|error| match outcomes.is_empty() {
            true => Failure::failed(error),
            false => Failure::failed(format!("{error}\nthe completed steps can be undone: namehop setup --undo")),
        })?;
        printed.map(|()| outcomes)
    }

    fn undo(&self, system: &System) -> Result<(), Failure> {
        let changed = StateFile::read(system).map_err(Failure::failed)?;
        if changed.is_empty() {
            return if self.json {
                output::json(&[(); 0])
            } else {
                output::line("'namehop setup' has changed nothing.")
            };
        }
        if !self.json {
            output::print(&view::show_changed(&changed))?;
        }
        if !Machine::detect(system, None).is_root {
            return Err(Failure::failed(format!("this needs root: {}", command_as_root(&[]))));
        }
        self.confirm(&format!("Undo {} now?", count(changed.len(), "change")))?;
        let mut outcomes = Vec::new();
        let mut printed = Ok(());
        let mut state = open_state(system)?;
        let result = undo(system, &mut state, |outcome| {
            if !self.json {
                printed = output::line(view::show_outcome(outcome, "undone"));
            }
            outcomes.push(outcome.clone());
        });
        result.map_err(Failure::failed)?;
        printed?;
        if self.json {
            output::json(&outcomes)?;
        }
        match outcomes.iter().any(|outcome| outcome.error.is_some()) {
            true => Err(Failure::silent(FailureKind::Failed)),
            false => Ok(()),
        }
    }

    /// Asks on the terminal, unless `--yes` is given.
    fn confirm(&self, question: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if self.json || !io::stdin().is_terminal() {
            return Err(Failure::usage(
                "cannot ask for confirmation without a terminal: read the plan, then add --yes",
            ));
        }
        eprint!("{question} [y/N] ");
        io::stderr().flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Failure::failed("nothing was changed")),
        }
    }
}

fn open_state(system: &System) -> Result<StateFile, Failure> {
    StateFile::open(system).map_err(|error| Failure::failed(error).context(StateFile::PATH))
}

/// Returns the command line of this process with further options.
fn command(options: &[&str]) -> String {
    let given = env::args().skip(1);
    let options =
        options.iter().map(|&option| option.to_owned()).filter(|option| env::args().all(|given| given != *option));
    let words: Vec<String> = std::iter::once("namehop".to_owned()).chain(given).chain(options).collect();
    words.join(" ")
}

fn command_as_root(options: &[&str]) -> String {
    format!("sudo {}", command(options))
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
