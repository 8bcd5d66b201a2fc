//! Applies the steps of a plan in order, and undoes recorded changes in reverse order.

use std::io;

use serde::Serialize;

use crate::System;
use crate::plan::Plan;
use crate::state::{Record, StateFile};
use crate::step::{HostChange, StepError};

/// The result of applying or undoing a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The change.
    pub change: HostChange,
    /// A remark for the user; `None` if the change simply succeeded.
    pub remark: Option<String>,
    /// The reason of failure; `None` on success.
    pub error: Option<String>,
}

fn unsaved(error: &io::Error) -> StepError {
    StepError { what: format!("write {}", StateFile::PATH), reason: error.to_string() }
}

/// Applies the steps of a plan in order, and calls `report` for each. The previous state is recorded on disk before a
/// step begins.
///
/// # Errors
/// The first step that failed. Earlier steps are done and recorded; later steps are not begun.
pub fn apply(
    system: &System,
    plan: &Plan,
    state: &mut StateFile,
    mut report: impl FnMut(&Outcome),
) -> Result<(), StepError> {
    for step in &plan.steps {
        let before = step.change.before(system)?;
        let known = state.record_of(&step.change).cloned();
        state.note(step.change.clone(), before).map_err(|error| unsaved(&error))?;
        match step.change.make(system) {
            Ok((made, remark)) => {
                state.note_made(made).map_err(|error| unsaved(&error))?;
                report(&Outcome { change: step.change.clone(), remark, error: None });
            }
            Err(error) => {
                // Restores the previous record, because nothing of this step remains.
                let restored = match known {
                    Some(record) => state.put(record),
                    None => state.forget(&step.change),
                };
                restored.map_err(|error| unsaved(&error))?;
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Undoes the recorded changes, the last one first. Changes that cannot be undone now stay recorded.
///
/// # Errors
/// The record cannot be written.
pub fn undo(system: &System, state: &mut StateFile, mut report: impl FnMut(&Outcome)) -> io::Result<()> {
    let mut a_card_stays = false;
    for Record { change, before, made } in state.records().to_vec().into_iter().rev() {
        if a_card_stays && matches!(change, HostChange::LoadModule { .. }) {
            // Unloading the module would take the card from the program that uses it.
            report(&Outcome { change, remark: None, error: Some("a network card still uses it".to_owned()) });
            continue;
        }
        let outcome = match change.take_back(system, &before, made.as_ref()) {
            Ok(remark) => {
                state.forget(&change)?;
                Outcome { change, remark, error: None }
            }
            Err(error) => {
                a_card_stays |= matches!(change, HostChange::BindNic { .. });
                Outcome { change, remark: None, error: Some(error.reason) }
            }
        };
        report(&outcome);
    }
    Ok(())
}
