//! eBPF programs, compiled for this processor by DPDK.
//!
//! Programs are verified twice: by the crate `ebpf`, which this relies on, and by DPDK before it compiles them. Neither the
//! environment of DPDK nor a port is needed.

use std::ffi::{CStr, CString, c_char};
use std::sync::Arc;

use namehop_ebpf::instruction::{FRAME_POINTER, INSTRUCTION_BYTES, Instruction};
use namehop_ebpf::{Argument, Code, Helper, Returned, Verified};

use crate::DpdkError;
use crate::ffi::{self, RawBpf, RawHelper, RawLoaded};

/// Room for what DPDK says of a program that it refuses.
const TEXT_BYTES: usize = 1024;
/// Codes of instructions.
const STORE_CONSTANT: u8 = 0x7A;
const MOVE_CONSTANT: u8 = 0xB7;

/// A program in the memory of DPDK.
struct Loaded(*mut RawBpf);

// SAFETY: nothing changes the program once it is loaded, and any thread may free it.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: it was loaded, and this is the only handle.
        unsafe { ffi::namehop_bpf_destroy(self.0) }
    }
}

/// Compiles a program.
///
/// # Errors
/// What DPDK's verifier has against it, that DPDK has no compiler for this processor, or that the system forbids the
/// router to run what was compiled.
pub fn compile(program: &Verified) -> Result<Code, DpdkError> {
    let interface = program.interface();
    let names: Vec<CString> = interface
        .helpers
        .iter()
        .map(|helper| CString::new(helper.name()))
        .collect::<Result<_, _>>()
        .map_err(|error| DpdkError::Unusable(error.to_string()))?;
    let helpers: Vec<RawHelper> = interface
        .helpers
        .iter()
        .zip(&names)
        .map(|(helper, name)| raw_helper(helper, name, interface.context_bytes))
        .collect();
    let encoded: Vec<[u8; INSTRUCTION_BYTES]> =
        [prologue(program)].iter().chain(program.instructions()).map(|instruction| instruction.to_bytes()).collect();
    let mut loaded = RawLoaded { program: std::ptr::null_mut(), entry: None, bytes: 0 };
    let mut text: [c_char; TEXT_BYTES] = [0; TEXT_BYTES];
    // SAFETY: all pointers are to live memory of the sizes given, names end with a zero, and the verifier has looked at what the
    // program does with the helpers.
    let result = unsafe {
        ffi::namehop_bpf_load(
            encoded.as_ptr().cast(),
            encoded.len() as u32,
            interface.context_bytes,
            helpers.as_ptr(),
            helpers.len() as u32,
            &raw mut loaded,
            text.as_mut_ptr(),
            text.len(),
        )
    };
    if result == -libc::EACCES {
        return Err(DpdkError::Unusable(
            "the system does not let the router run what it compiles: a service needs MemoryDenyWriteExecute=no, and \
             SELinux the permission execmem"
                .to_owned(),
        ));
    }
    if result < 0 {
        // SAFETY: the text ends with a zero.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy();
        let text = text.trim().replace('\n', "; ");
        return Err(match text.is_empty() {
            true => DpdkError::refused("compile the program", result),
            // DPDK counts the instruction that was put in front.
            false => DpdkError::Unusable(format!("DPDK refuses the program, counting its instructions from 1: {text}")),
        });
    }
    let memory = Arc::new(Loaded(loaded.program));
    let entry = loaded.entry.ok_or_else(|| DpdkError::Unusable("DPDK gave no program back".to_owned()))?;
    // SAFETY: DPDK has made it from a verified program, and frees it when `memory` is dropped.
    Ok(unsafe { Code::new(entry, loaded.bytes, memory) })
}

/// An instruction in front of the program. It touches the lowest place of the stack that the program uses, so that DPDK makes
/// room for all of it: DPDK does not follow every way through every program. For the same reason no branch stands first.
fn prologue(program: &Verified) -> Instruction {
    match program.stack_bytes() {
        0 => Instruction { code: MOVE_CONSTANT, destination: 0, source: 0, offset: 0, immediate: 0 },
        bytes => Instruction {
            code: STORE_CONSTANT,
            destination: FRAME_POINTER,
            source: 0,
            offset: -(bytes as i16),
            immediate: 0,
        },
    }
}

fn raw_helper(helper: &Helper, name: &CStr, context_bytes: u32) -> RawHelper {
    let mut argument_bytes = [0; Helper::MAX_ARGUMENTS];
    for (bytes, argument) in argument_bytes.iter_mut().zip(helper.arguments()) {
        *bytes = match argument {
            Argument::Context => context_bytes,
            Argument::Number => 0,
        };
    }
    RawHelper {
        name: name.as_ptr(),
        function: helper.function(),
        argument_count: helper.arguments().len() as u32,
        argument_bytes,
        result_bytes: match helper.returned() {
            Returned::Number => 0,
            Returned::Memory(memory) => memory.bytes,
        },
    }
}
