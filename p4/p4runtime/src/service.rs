//! Implementation of the requests: permissions, and execution one after the other.

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use tonic::Status;

use crate::arbitration::{Arbiter, Role};
use crate::device::{Device, Undo};
use crate::message::forwarding_pipeline_config::Cookie;
use crate::message::get_forwarding_pipeline_config_request::ResponseType;
use crate::message::set_forwarding_pipeline_config_request::Action;
use crate::message::update::Type as UpdateType;
use crate::message::write_request::Atomicity;
use crate::message::{
    CapabilitiesResponse, Entity, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest,
    GetForwardingPipelineConfigResponse, SetForwardingPipelineConfigRequest, SetForwardingPipelineConfigResponse,
    Uint128, Update, WriteRequest, WriteResponse,
};
use crate::operator::{SetMirrorRequest, SetMirrorResponse};
use crate::{compare, fates};

/// Version of the P4Runtime specification.
const API_VERSION: &str = "1.4.0";

/// Maximum number of updates of a batch that packets have to wait for.
const MOST_AT_ONCE: usize = 4096;

/// Who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A controller, at an address that others can reach too.
    Controller,
    /// The operator, at the device's own socket. A write without a role and an election id is the operator's: it takes
    /// no part in the arbitration. Device id 0 stands for the device.
    Operator,
}

/// The pipeline that a controller has set.
#[derive(Default)]
struct Pipeline {
    cookie: Option<Cookie>,
    /// The cookie of a pipeline that was verified and waits for its commit.
    saved: Option<Option<Cookie>>,
}

/// A device as controllers see it.
pub struct Service<D> {
    /// The device.
    pub device: D,
    /// Its controllers.
    pub arbiter: Arbiter,
    pipeline: Mutex<Pipeline>,
    /// Serializes writers.
    writing: Mutex<()>,
}

impl<D: Device> Service<D> {
    /// Makes the service of a device with a running program.
    pub fn new(device: D) -> Arc<Service<D>> {
        let arbiter = Arbiter::new(device.id());
        Arc::new(Service { device, arbiter, pipeline: Mutex::default(), writing: Mutex::default() })
    }

    /// Checks that a request is for this device.
    ///
    /// # Errors
    /// Fails if it is for another device.
    pub fn check_device(&self, device_id: u64, caller: Caller) -> Result<(), Status> {
        let own = self.device.id();
        if device_id == own || (device_id == 0 && caller == Caller::Operator) {
            return Ok(());
        }
        Err(Status::not_found(format!("there is no device {device_id}; the id of this device is {own}")))
    }

    fn check_writer(
        &self,
        device_id: u64,
        role: &Role,
        election_id: Option<Uint128>,
        caller: Caller,
    ) -> Result<(), Status> {
        self.check_device(device_id, caller)?;
        if caller == Caller::Operator && *role == Role::default() && election_id.is_none() {
            return Ok(());
        }
        self.arbiter.check_role(role)?;
        if !self.arbiter.is_primary(role, election_id) {
            return Err(Status::permission_denied(format!(
                "only the primary controller of {role} may do this: open a stream with the highest election id, and \
                 give that id in the request"
            )));
        }
        Ok(())
    }

    /// Applies updates in order: either every one that succeeds, or all or none, as the request's atomicity says.
    ///
    /// # Errors
    /// Returns the result of each update if one has failed.
    pub fn write(&self, request: &WriteRequest, caller: Caller) -> Result<WriteResponse, Status> {
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let role = Role { id: request.role_id, name: request.role.clone() };
        self.check_writer(request.device_id, &role, request.election_id, caller)?;
        let updates = &request.updates;
        let results: Vec<_> = match Atomicity::try_from(request.atomicity) {
            Ok(Atomicity::ContinueOnError) => updates.iter().map(|update| self.update(update)).collect(),
            Ok(Atomicity::RollbackOnError) => self.all_or_none(updates)?,
            Ok(Atomicity::DataplaneAtomic) if updates.len() > MOST_AT_ONCE => {
                return Err(Status::unimplemented(format!(
                    "a batch with DATAPLANE_ATOMIC delays packets, so it is limited to {MOST_AT_ONCE} updates; this \
                     one has {}",
                    updates.len()
                )));
            }
            Ok(Atomicity::DataplaneAtomic) => self.device.hold(|| self.all_or_none(updates))?,
            Err(_) => return Err(Status::invalid_argument(format!("unknown atomicity {}", request.atomicity))),
        };
        if results.iter().all(Result::is_ok) { Ok(WriteResponse {}) } else { Err(fates::status(&results)) }
    }

    fn update(&self, update: &Update) -> Result<(), Status> {
        let (kind, entity) = parts_of(update)?;
        self.device.change(kind, entity)
    }

    /// Applies all updates; if one fails, undoes those before it. Returns the result of each.
    ///
    /// # Errors
    /// Fails if one could not be undone.
    fn all_or_none(&self, updates: &[Update]) -> Result<Vec<Result<(), Status>>, Status> {
        let mut made: Vec<Undo<'_>> = Vec::new();
        for (place, update) in updates.iter().enumerate() {
            let change = parts_of(update).and_then(|(kind, entity)| self.device.change_undoably(kind, entity));
            let status = match change {
                Ok(undo) => {
                    made.push(undo);
                    continue;
                }
                Err(status) => status,
            };
            let stays: Vec<Status> = made.into_iter().rev().filter_map(|undo| undo().err()).collect();
            if let Some(first) = stays.first() {
                return Err(Status::internal(format!(
                    "update {} of {} failed ({}), and {} earlier updates could not be undone ({})",
                    place + 1,
                    updates.len(),
                    status.message(),
                    stays.len(),
                    first.message()
                )));
            }
            let other = |number| {
                if number < place {
                    "undone, because a later update failed"
                } else {
                    "not attempted, because an earlier update failed"
                }
            };
            let fate = |number| if number == place { status.clone() } else { Status::aborted(other(number)) };
            return Ok((0..updates.len()).map(|number| Err(fate(number))).collect());
        }
        Ok(updates.iter().map(|_| Ok(())).collect())
    }

    /// Sets the pipeline, which must be that of the running program.
    ///
    /// # Errors
    /// Fails if it is another pipeline, with the difference.
    pub fn set_pipeline(
        &self,
        request: &SetForwardingPipelineConfigRequest,
    ) -> Result<SetForwardingPipelineConfigResponse, Status> {
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let role = Role { id: request.role_id, name: request.role.clone() };
        self.check_writer(request.device_id, &role, request.election_id, Caller::Controller)?;
        let action = request.action();
        let mut pipeline = self.pipeline.lock().unwrap_or_else(PoisonError::into_inner);
        let cookie = match (action, &request.config) {
            (Action::Unspecified, _) => return Err(Status::invalid_argument("the action is missing")),
            (Action::Commit, Some(_)) => {
                return Err(Status::invalid_argument("COMMIT uses the saved configuration; omit the configuration"));
            }
            (Action::Commit, None) => pipeline
                .saved
                .ok_or_else(|| Status::failed_precondition("no configuration was saved: use VERIFY_AND_SAVE first"))?,
            (_, None) => return Err(Status::invalid_argument("the configuration is missing")),
            (_, Some(config)) => {
                self.verify(config)?;
                config.cookie
            }
        };
        match action {
            Action::Verify | Action::Unspecified => return Ok(SetForwardingPipelineConfigResponse {}),
            Action::VerifyAndSave => {
                pipeline.saved = Some(cookie);
                return Ok(SetForwardingPipelineConfigResponse {});
            }
            Action::VerifyAndCommit | Action::Commit => self.device.reset()?,
            // The program is the same, so its state stays.
            Action::ReconcileAndCommit => {}
        }
        *pipeline = Pipeline { cookie, saved: None };
        Ok(SetForwardingPipelineConfigResponse {})
    }

    fn verify(&self, config: &ForwardingPipelineConfig) -> Result<(), Status> {
        let given = config.p4info.as_ref().ok_or_else(|| Status::invalid_argument("p4info is missing"))?;
        compare::same(self.device.p4info(), given).map_err(|difference| {
            Status::invalid_argument(format!("p4info differs from that of the running program: {difference}"))
        })?;
        let (own, given) = (self.device.program(), &*config.p4_device_config);
        // Some controllers send only p4info.
        if given.is_empty() || given == own {
            return Ok(());
        }
        Err(Status::invalid_argument(format!(
            "p4_device_config has {} bytes and is not the running program of {} bytes: give the file with which \
             'namehop p4 run' was started; to run another program, restart",
            given.len(),
            own.len()
        )))
    }

    /// The running pipeline.
    ///
    /// # Errors
    /// Fails if the request is for another device.
    pub fn get_pipeline(
        &self,
        request: GetForwardingPipelineConfigRequest,
        caller: Caller,
    ) -> Result<GetForwardingPipelineConfigResponse, Status> {
        self.check_device(request.device_id, caller)?;
        let parts = request.response_type();
        let p4info = matches!(parts, ResponseType::All | ResponseType::P4infoAndCookie);
        let program = matches!(parts, ResponseType::All | ResponseType::DeviceConfigAndCookie);
        let config = ForwardingPipelineConfig {
            p4info: p4info.then(|| self.device.p4info().clone()),
            p4_device_config: if program { self.device.program().to_vec() } else { Vec::new() },
            cookie: self.pipeline.lock().unwrap_or_else(PoisonError::into_inner).cookie,
        };
        Ok(GetForwardingPipelineConfigResponse { config: Some(config) })
    }

    /// Sets the destination of the copies of a clone session.
    ///
    /// # Errors
    /// Fails if there is no such session or group.
    pub fn set_mirror(&self, request: &SetMirrorRequest) -> Result<SetMirrorResponse, Status> {
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.device.set_mirror(request)?;
        Ok(SetMirrorResponse {})
    }

    /// Capabilities of the service.
    pub fn capabilities() -> CapabilitiesResponse {
        CapabilitiesResponse { p4runtime_api_version: API_VERSION.to_owned() }
    }
}

/// Kind and entity of an update.
fn parts_of(update: &Update) -> Result<(UpdateType, &Entity), Status> {
    match (update.r#type(), &update.entity) {
        (UpdateType::Unspecified, _) => Err(Status::invalid_argument("an update must insert, modify or delete")),
        (_, None) => Err(Status::invalid_argument("an update must have an entity")),
        (kind, Some(entity)) => Ok((kind, entity)),
    }
}
