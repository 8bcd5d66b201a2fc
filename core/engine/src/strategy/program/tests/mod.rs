//! Tests of programs: compiled from their C sources, loaded, and called with the mock context of the tests of built-in
//! strategies.

mod alike;
mod damaged;
mod examples;
mod limits;
mod refused;

use std::sync::Arc;

use super::StrategyProgram;
use super::context::{OutRecordView, ProgramContext};
use crate::strategy::registry::full_name;
use crate::strategy::{StrategyInstance, StrategyRegistry};
use namehop_ebpf::Refusal;
use namehop_ebpf::testing::{compile_c, sdk};

/// Returns the object file of a program of the SDK.
fn object(path: &str) -> Vec<u8> {
    compile_c(&sdk().join(path), &[])
}

/// Returns the object file of a function given as text, with the usual declarations; it subscribes to Interests and
/// timers.
fn object_of(function: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("program.c");
    let events = "NAMEHOP_ON(NAMEHOP_INTEREST) | NAMEHOP_ON(NAMEHOP_TIMER)";
    let description = format!("NAMEHOP_STRATEGY(\"test\", 1, \"a test\", {events}, 0);");
    std::fs::write(&source, format!("#include \"namehop_strategy.h\"\n{description}\n{function}\n")).expect("written");
    compile_c(&source, &[])
}

fn load(object: &[u8]) -> Result<Arc<StrategyProgram>, Refusal> {
    StrategyProgram::load(object, None)
}

/// Returns a registry with this program.
fn registry_with(object: &[u8]) -> StrategyRegistry {
    let mut registry = StrategyRegistry::default();
    registry.insert(load(object).expect("the program can be loaded")).expect("the name is free");
    registry
}

/// Returns the strategy of this name.
fn chosen(registry: &StrategyRegistry, rest: &str) -> StrategyInstance {
    registry.parse(full_name(rest).expect("a name").as_ref()).expect("a strategy")
}

#[test]
fn the_header_describes_what_programs_get() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("sizes.c");
    let checks = format!(
        "#include \"namehop_strategy.h\"
        _Static_assert(sizeof(struct namehop_context) == {}, \"context\");
        _Static_assert(__builtin_offsetof(struct namehop_context, interest_scratch) == {}, \"scratch\");
        _Static_assert(sizeof(struct namehop_out_record) == {}, \"out-record\");",
        size_of::<ProgramContext>(),
        std::mem::offset_of!(ProgramContext, interest_scratch),
        size_of::<OutRecordView>(),
    );
    std::fs::write(&source, checks).expect("written");
    compile_c(&source, &[]);
    let header = std::fs::read_to_string(sdk().join("namehop_strategy.h")).expect("the header");
    let documentation = include_str!("../../../../../../docs/strategies.md");
    for helper in super::INTERFACE.helpers {
        assert!(header.contains(&format!("{}(", helper.name())), "{} is not in the header", helper.name());
        assert!(documentation.contains(&format!("`{}`", helper.name())), "{} is not documented", helper.name());
    }
}

#[test]
fn parameters_are_checked_against_their_description() {
    let registry = registry_with(&object("strategies/fastroute.c"));
    let parse = |rest: &str| registry.parse(full_name(rest).expect("a name").as_ref());
    for (rest, reason) in [
        ("fastroute-ebpf/v=1/probe-every~0", "not a number from 1 to 4294967295"),
        ("fastroute-ebpf/v=1/probe-every~4294967296", "not a number from 1 to"),
        ("fastroute-ebpf/v=1/colour~1", "unknown parameter 'colour'"),
        ("fastroute-ebpf/v=1/retx-suppression-initial~300", "is less than"),
        ("fastroute-ebpf/v=1/probe-every~2/probe-every~3", "given twice"),
    ] {
        let error = parse(rest).expect_err(rest).to_string();
        assert!(error.contains(reason), "{rest}: {error}");
        assert!(error.contains("probe-every (default 1024, 1 to 4294967295)"), "{rest}: {error}");
    }
    assert!(parse("fastroute-ebpf/v=2").is_err(), "no such version");
    let name = parse("fastroute-ebpf/v=0/probe-every~7").expect("a strategy").name().to_string();
    assert_eq!(name, "/localhost/nfd/strategy/fastroute-ebpf/v=1/probe-every~7");
    assert!(
        StrategyInstance::parse(full_name("fastroute-ebpf").expect("a name").as_ref()).is_err(),
        "the strategy is not built in"
    );
}

#[test]
fn a_program_takes_the_place_of_the_one_with_its_name() {
    let mut registry = registry_with(&object("strategies/reject.c"));
    let other = StrategyProgram::load(&object("strategies/random.c"), Some("reject-ebpf")).expect("loaded");
    let before = chosen(&registry, "reject-ebpf");
    registry.insert(Arc::clone(&other)).expect("a program of the same name is replaced");
    assert_eq!(registry.programs().len(), 1);
    assert_ne!(chosen(&registry, "reject-ebpf"), before);
    for name in ["multicast", "Reject", "", "a/b"] {
        let loaded = StrategyProgram::load(&object("strategies/reject.c"), Some(name));
        assert!(loaded.is_err() || registry.insert(loaded.expect("a name")).is_err(), "{name}");
    }
    assert!(registry.remove("reject-ebpf").is_some_and(|removed| Arc::ptr_eq(&removed, &other)));
    assert!(registry.remove("reject-ebpf").is_none());
}
