//! Text output of `namehop setup`.

use namehop_setup::plan::Plan;
use namehop_setup::{Finding, HostChange, Outcome, Record};

use super::SetupReport;

/// Maximum width of the text in columns.
const WIDTH: usize = 100;

/// Formats the findings and the plan.
pub(super) fn show(report: &SetupReport<'_>) -> String {
    let mut text: String = report.findings.iter().map(show_finding).collect();
    text.push_str(&show_plan(report.plan));
    if !report.changed.is_empty() {
        text.push_str(&show_changed(report.changed));
        text.push_str("To undo these changes: namehop setup --undo\n");
    }
    text
}

fn show_finding(finding: &Finding) -> String {
    let mut text = format!("{}\n", finding.subject);
    for line in &finding.found {
        text.push_str(&wrapped(line, "  ", "      "));
    }
    text.push_str(&wrapped(&finding.meaning, "  ", "  "));
    text.push('\n');
    text
}

fn show_plan(plan: &Plan) -> String {
    let mut text = String::new();
    if !plan.steps.is_empty() {
        text.push_str("Planned changes\n");
    }
    for (number, step) in (1..).zip(&plan.steps) {
        text.push_str(&wrapped(&format!("{number}. {}", step.change), "  ", "     "));
        if let HostChange::WriteFile { text: contents, .. } = &step.change {
            let lines = contents.lines().filter(|line| !line.starts_with('#'));
            lines.for_each(|line| text.push_str(&format!("       {line}\n")));
        }
        text.push_str(&wrapped(&step.why, "     ", "     "));
    }
    for (title, list) in [("Obstacles", &plan.obstacles), ("Notes", &plan.notes)] {
        if !list.is_empty() {
            text.push_str(&format!("{title}\n"));
        }
        list.iter().for_each(|item| text.push_str(&wrapped(item, "  - ", "    ")));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Formats the changes made by earlier runs.
pub(super) fn show_changed(changed: &[Record]) -> String {
    let mut text = "Changes made by 'namehop setup'\n".to_owned();
    for (number, record) in (1..).zip(changed) {
        text.push_str(&wrapped(&format!("{number}. {}", record.change), "  ", "     "));
    }
    text
}

/// Formats the result of a step.
pub(super) fn show_outcome(outcome: &Outcome, done: &str) -> String {
    match (&outcome.error, &outcome.remark) {
        (Some(error), _) => format!("failed: {}: {error}", outcome.change),
        (None, Some(remark)) => format!("{done}: {}: {remark}", outcome.change),
        (None, None) => format!("{done}: {}", outcome.change),
    }
}

/// Wraps text at `WIDTH`; `first` starts the first line, `others` the following ones.
fn wrapped(text: &str, first: &str, others: &str) -> String {
    let mut lines = String::new();
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push_str(&line);
            lines.push('\n');
            line = others.to_owned();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words() {
        let text = wrapped(&"word ".repeat(60), "- ", "  ");
        assert!(
            text.lines().all(|line| line.len() <= WIDTH && line.trim() != "") && text.lines().count() == 4,
            "{text}"
        );
        assert!(text.starts_with("- word") && text.lines().skip(1).all(|line| line.starts_with("  word")));
        assert_eq!(wrapped("", "- ", "  "), "- \n");
        assert!(wrapped(&"x".repeat(200), "- ", "  ").lines().count() == 1);
    }
}
