//! A worker's end of the control thread's commands, and the work that they started and that is not finished.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::oneshot;

use namehop_engine::engine::{CsErasure, Engine, EngineEvent};
use namehop_store::Progress;
use namehop_wire::Name;

use super::command::{Mailbox, Settled, WorkerCommand, WorkerMailbox};

/// A running erasure of cached Data. Each poll iteration does a part of it, so that forwarding continues meanwhile.
struct Erasing {
    what: Erased,
    limit: usize,
    erased: usize,
    erasure: CsErasure,
    reply: oneshot::Sender<usize>,
}

/// Selects which Data is erased.
pub(super) enum Erased {
    /// All Data under a prefix.
    Under(Name),
    /// Data of these entries of the name dispatch table.
    Entries(Arc<[usize]>),
}

/// The commands of a worker; see the module's description.
pub(super) struct Commands {
    mailbox: WorkerMailbox,
    erasing: VecDeque<Erasing>,
    /// Replies owed to senders of `CsConfigure`, sent when the change is complete.
    settling: Vec<oneshot::Sender<Settled>>,
    /// The worker was told to shut down.
    pub(super) is_stopping: bool,
}

impl Commands {
    pub(super) fn new(mailbox: Arc<Mailbox>) -> Self {
        Commands { mailbox: WorkerMailbox(mailbox), erasing: VecDeque::new(), settling: Vec::new(), is_stopping: false }
    }

    /// Returns whether there are commands or unfinished work.
    pub(super) fn has_work(&self) -> bool {
        !self.mailbox.commands.is_empty() || !self.erasing.is_empty() || !self.settling.is_empty()
    }

    /// Returns the next command.
    #[inline]
    pub(super) fn next(&mut self) -> Option<WorkerCommand> {
        self.mailbox.commands.pop()
    }

    /// Passes events of the engine to the control thread.
    #[inline]
    pub(super) fn pass_on(&self, events: Vec<EngineEvent>) {
        events.into_iter().for_each(|event| self.mailbox.events.push(event));
    }

    /// Returns whether there are events that the control thread has not taken.
    #[inline]
    pub(super) fn has_events(&self) -> bool {
        !self.mailbox.events.is_empty()
    }

    /// Starts to erase cached Data, at most `limit`.
    pub(super) fn start_erasing(&mut self, what: Erased, limit: usize, reply: oneshot::Sender<usize>) {
        self.erasing.push_back(Erasing { what, limit, erased: 0, erasure: CsErasure::default(), reply });
    }

    /// Replies as soon as all work that follows from changed Content Store settings is complete.
    pub(super) fn reply_when_settled(&mut self, reply: oneshot::Sender<Settled>) {
        self.settling.push(reply);
    }

    /// Does a part of the unfinished work. Returns whether some is left.
    #[inline]
    pub(super) fn go_on(&mut self, engine: &mut Engine) -> bool {
        self.erase(engine);
        self.settle(engine);
        !self.erasing.is_empty() || !self.settling.is_empty()
    }

    /// Does a part of the work that follows from changed Content Store settings, and replies when it is complete.
    fn settle(&mut self, engine: &mut Engine) {
        if self.settling.is_empty() {
            return;
        }
        if let Progress::Done(mut retired) = engine.cs_settle() {
            for reply in self.settling.drain(..) {
                let _ = reply.send(Settled { info: engine.cs_info(), retired: retired.take() });
            }
        }
    }

    /// Does a part of the first erasure in the queue, and replies when it is complete.
    fn erase(&mut self, engine: &mut Engine) {
        let Some(mut erasing) = self.erasing.pop_front() else { return };
        let Erasing { what, limit, erased, erasure, .. } = &mut erasing;
        *erased += match what {
            Erased::Under(prefix) => engine.cs_erase(prefix.as_ref(), *limit - *erased, erasure),
            Erased::Entries(entries) => engine.cs_erase_entries(entries, erasure),
        };
        if *erased < *limit && !erasure.is_complete() {
            self.erasing.push_front(erasing);
        } else {
            // The sender may have stopped waiting.
            let _ = erasing.reply.send(erasing.erased);
        }
    }
}
