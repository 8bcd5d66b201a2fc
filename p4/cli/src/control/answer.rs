//! Answers of control commands: as JSON, or as one line for each entry or cell.

use std::io::{self, Write};

use serde_json::Value;

use super::To;
use crate::common::print_json;

/// Prints an answer.
///
/// # Errors
/// Fails if the output cannot be written.
pub(crate) fn print(to: &To, answer: &Value) -> io::Result<()> {
    if to.json {
        return print_json(answer);
    }
    io::stdout().lock().write_all(lines(answer).as_bytes())
}

/// Formats a value or its parts.
pub(crate) fn value_text(value: &Value) -> String {
    match value {
        Value::Object(parts) => {
            let part = |(name, value): (&String, &Value)| format!("{name}:{}", value_text(value));
            parts.iter().map(part).collect::<Vec<_>>().join(" ")
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Formats a response: one line per entry or cell.
fn lines(answer: &Value) -> String {
    let list = |name: &str| answer[name].as_array().into_iter().flatten();
    let entries = list("entries").filter_map(Value::as_str).map(|entry| format!("{entry}\n"));
    let counters = list("cells").filter(|_| answer["counter"].is_string()).map(|cell| {
        let counter = answer["counter"].as_str().unwrap_or_default();
        format!("{}: {} packets, {} bytes\n", cell_name(counter, cell), cell["packets"], cell["bytes"])
    });
    let registers = list("cells").filter(|_| answer["register"].is_string()).map(|cell| {
        let register = answer["register"].as_str().unwrap_or_default();
        format!("{register}({}): {}\n", cell["index"], value_text(&cell["value"]))
    });
    let meters = list("cells").filter(|_| answer["meter"].is_string()).map(|cell| {
        let (meter, unit) = (answer["meter"].as_str().unwrap_or_default(), answer["unit"].as_str().unwrap_or_default());
        let rates = &cell["rates"];
        format!(
            "{}: committed {} {unit}/s, burst {}; peak {} {unit}/s, burst {}\n",
            cell_name(meter, cell),
            rates["committed_rate"],
            rates["committed_burst"],
            rates["peak_rate"],
            rates["peak_burst"]
        )
    });
    let members =
        list("members").map(|member| format!("{}: {}\n", member["id"], member["action"].as_str().unwrap_or_default()));
    let groups = list("groups").map(|group| {
        let shares = group["members"].as_array().into_iter().flatten();
        let shares: Vec<String> = shares.map(|share| format!("{}:{}", share[0], share[1])).collect();
        format!("{}: {}\n", group["id"], shares.join(" "))
    });
    let values = list("values").filter_map(Value::as_str).map(|member| format!("{member}\n"));
    let loaded = answer["loaded"].as_u64().map(|count| format!("{count} entries loaded\n"));
    entries
        .chain(counters)
        .chain(registers)
        .chain(meters)
        .chain(members)
        .chain(groups)
        .chain(values)
        .chain(loaded)
        .collect()
}

/// Names a cell by its index, or by its entry.
fn cell_name(of: &str, cell: &Value) -> String {
    match cell["entry"].as_str() {
        Some(entry) => format!("{of}: {entry}"),
        None => format!("{of}({})", cell["index"]),
    }
}
