//! What a device does for the service: whoever runs a program implements this.

use tonic::Status;

use crate::entity::Entity;
use crate::info::P4Info;
use crate::message::{DigestList, IdleTimeoutNotification, Packet, UpdateType};

/// A part of what was asked for, of a bounded size; the answer ends with the last one.
pub type Parts<'d> = Box<dyn Iterator<Item = Result<Vec<Entity>, Status>> + Send + 'd>;

/// Takes a change back.
pub type Undo<'d> = Box<dyn FnOnce() -> Result<(), Status> + 'd>;

/// A device with a program that runs. All of it may be called by several threads.
pub trait Device: Send + Sync + 'static {
    /// By which number controllers call it.
    fn id(&self) -> u64;

    /// What can be reached of its program.
    fn p4info(&self) -> &P4Info;

    /// The program itself, as controllers send it.
    fn program(&self) -> &[u8];

    /// Makes everything as it was when the program started.
    ///
    /// # Errors
    /// What is not as it was.
    fn reset(&self) -> Result<(), Status>;

    /// Changes one thing.
    ///
    /// # Errors
    /// Why not; nothing has changed then.
    fn change(&self, update: UpdateType, entity: &Entity) -> Result<(), Status>;

    /// Changes one thing, and gives what takes that back.
    ///
    /// # Errors
    /// Why not, or that it could not be taken back; nothing has changed then.
    fn change_undoably(&self, update: UpdateType, entity: &Entity) -> Result<Undo<'_>, Status>;

    /// Does this while nobody else changes the device. Packets wait meanwhile if they are not to see parts of it.
    fn alone<R>(&self, packets_wait: bool, work: impl FnOnce() -> R) -> R
    where
        Self: Sized;

    /// What fits a request, read piece by piece as it is asked for.
    ///
    /// # Errors
    /// What is wrong with the request.
    fn read(&self, entity: &Entity) -> Result<Parts<'_>, Status>;

    /// Sends a packet into the program.
    ///
    /// # Errors
    /// What is wrong with it, or that too many wait.
    fn send(&self, packet: &Packet) -> Result<(), Status>;

    /// The next packet from the program to the controller.
    fn receive(&self) -> Option<Packet>;

    /// What the program has reported, when it is time to send it.
    fn digests(&self) -> Option<DigestList>;

    /// Entries that no packet has used for as long as they wanted, each told once until a packet uses it.
    fn idle(&self) -> Option<IdleTimeoutNotification>;
}
