//! The interface between the service and a device that runs a program.

use tonic::Status;

use crate::info::P4Info;
use crate::message::update::Type as UpdateType;
use crate::message::{DigestList, Entity, IdleTimeoutNotification, PacketIn, PacketOut};
use crate::operator::{SetMirrorRequest, TakeReportsResponse};

/// The parts of an answer, each of bounded size.
pub type Parts<'d> = Box<dyn Iterator<Item = Result<Vec<Entity>, Status>> + Send + 'd>;

/// Undoes a change.
pub type Undo<'d> = Box<dyn FnOnce() -> Result<(), Status> + 'd>;

/// A device with a running program. Methods may be called from several threads.
pub trait Device: Send + Sync + 'static {
    /// The number that controllers use for it.
    fn id(&self) -> u64;

    /// The program's p4info.
    fn p4info(&self) -> &P4Info;

    /// The program itself, in the form that controllers send.
    fn program(&self) -> &[u8];

    /// Resets all state to that at the program's start.
    ///
    /// # Errors
    /// Returns what could not be reset.
    fn reset(&self) -> Result<(), Status>;

    /// Makes one change.
    ///
    /// # Errors
    /// Returns the reason; the device is then unchanged.
    fn change(&self, update: UpdateType, entity: &Entity) -> Result<(), Status>;

    /// Makes one change, and returns a function that undoes it.
    ///
    /// # Errors
    /// Returns the reason, or that the change could not be undone; the device is then unchanged.
    fn change_undoably(&self, update: UpdateType, entity: &Entity) -> Result<Undo<'_>, Status>;

    /// Calls `work` while packets wait, so that they see all of its changes as one step.
    fn hold<R>(&self, work: impl FnOnce() -> R) -> R
    where
        Self: Sized;

    /// Reads what matches a request, part by part as the caller takes them.
    ///
    /// # Errors
    /// Returns what is wrong with the request.
    fn read(&self, entity: &Entity) -> Result<Parts<'_>, Status>;

    /// Sends a packet into the program.
    ///
    /// # Errors
    /// Returns what is wrong with the packet, or that too many packets wait.
    fn send(&self, packet: &PacketOut) -> Result<(), Status>;

    /// Takes the next packet from the program to the controller.
    fn receive(&self) -> Option<PacketIn>;

    /// Takes the digests that are due to be sent.
    fn digests(&self) -> Option<DigestList>;

    /// Takes the entries that no packet has used for their idle timeout. Each is reported once until a packet uses it
    /// again.
    fn idle(&self) -> Option<IdleTimeoutNotification>;

    /// Sets the destination of the copies of a clone session.
    ///
    /// # Errors
    /// Returns what is wrong with the request; the device is then unchanged.
    fn set_mirror(&self, request: &SetMirrorRequest) -> Result<(), Status>;

    /// Takes waiting digests that no controller has requested, `most` at most.
    fn take_reports(&self, most: u32) -> TakeReportsResponse;
}
