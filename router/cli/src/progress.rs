//! Shows the progress of long operations on standard error: a bar on a terminal, otherwise a line every few seconds.

use std::borrow::Cow;
use std::io::{IsTerminal, stderr};
use std::ops::Deref;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::printable;
use crate::units::show_duration;

/// Update interval of the bar on a terminal.
const TICK: Duration = Duration::from_millis(200);
/// Interval of lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Template of the bar for measurements; each step has a text.
const STEPS: &str = "{spinner} {elapsed} {msg} {wide_bar} {percent}%";
/// Template for a step of unknown length.
const STEP: &str = "{spinner} {elapsed} {msg}";

/// A progress bar or progress lines, removed when dropped.
pub struct Progress {
    bar: ProgressBar,
    /// Thread that writes lines until the sender is dropped.
    lines: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Shows progress with a template of [`indicatif`]. Lines outside a terminal do not use the template.
    pub fn new(template: &str) -> Self {
        let bar = ProgressBar::no_length();
        set_template(&bar, template);
        if stderr().is_terminal() {
            bar.enable_steady_tick(TICK);
            return Progress { bar, lines: None };
        }
        bar.set_draw_target(ProgressDrawTarget::hidden());
        let (stop, stopped) = channel();
        let shown = bar.clone();
        let lines = thread::Builder::new().name("progress".to_owned()).spawn(move || {
            while stopped.recv_timeout(LINE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{}", line(&shown));
            }
        });
        // Without a thread, the work continues without progress lines.
        Progress { bar, lines: lines.ok().map(|thread| (stop, thread)) }
    }

    /// Creates a display for measurements; [`show`](Self::show) updates it.
    pub fn of_steps() -> Self {
        Progress::new(STEP)
    }

    /// Shows a step of a measurement: `done` of `total` units, or a step of unknown length if `total` is 0.
    pub fn show(&self, what: String, done: u64, total: u64) {
        let length = (total > 0).then_some(total);
        if self.bar.length() != length {
            match length {
                Some(length) => self.bar.set_length(length),
                None => self.bar.unset_length(),
            }
            set_template(&self.bar, if length.is_some() { STEPS } else { STEP });
        }
        self.bar.set_position(done);
        self.bar.set_message(what);
    }
}

impl Deref for Progress {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.bar
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if let Some((stop, thread)) = self.lines.take() {
            drop(stop);
            // Wait for its last line; a panic of the thread changes no result.
            let _ = thread.join();
        }
    }
}

fn set_template(bar: &ProgressBar, template: &str) {
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
}

/// Formats the state of a bar as a line.
fn line(bar: &ProgressBar) -> String {
    let (message, elapsed) = (bar.message(), show_duration(bar.elapsed()));
    let mut parts = vec![Cow::Owned(elapsed)];
    if !message.is_empty() {
        parts.push(printable::in_line(&message));
    }
    if let Some(length) = bar.length().filter(|&length| length > 0) {
        parts.push(Cow::Owned(format!("{} %", u128::from(bar.position()) * 100 / u128::from(length))));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_is_done_and_how_far_it_is() {
        let progress = Progress { bar: ProgressBar::hidden(), lines: None };
        progress.show("filling the FIB".to_owned(), 1_250_000, 5_000_000);
        assert!(line(&progress).ends_with(", filling the FIB, 25 %"), "{}", line(&progress));
        progress.show("measuring".to_owned(), 0, 0);
        assert!(line(&progress).ends_with("ms, measuring"), "{}", line(&progress));
    }
}
