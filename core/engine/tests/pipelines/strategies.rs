//! The strategies that rules for all strategies are tested with.

use std::sync::LazyLock;

use namehop_ebpf::testing::{compile_c, sdk};
use namehop_engine::strategy::registry::full_name;
use namehop_engine::strategy::{STRATEGIES, StrategyInstance, StrategyProgram, StrategyRegistry};

/// A strategy that sends Interests, with default parameters.
pub struct Forwarding {
    pub name: String,
    pub instance: StrategyInstance,
    /// Milliseconds after which an Interest has just been sent: more than 0 if the strategy delays Interests.
    pub wait_ms: u64,
}

/// All built-in strategies that send Interests, and one loaded program.
pub static FORWARDING: LazyLock<Vec<Forwarding>> = LazyLock::new(|| {
    let sending = STRATEGIES.iter().filter(|info| info.name != "reject");
    let mut all: Vec<_> = sending
        .map(|info| {
            let delay = info.parameters().into_iter().find(|parameter| parameter.key == "delay");
            let delay_ms = delay.map(|parameter| parameter.default.parse::<u64>().expect("a number of milliseconds"));
            let wait_ms = delay_ms.map_or(0, |delay_ms| delay_ms + 5);
            Forwarding { name: info.name.to_owned(), instance: info.with_defaults(), wait_ms }
        })
        .collect();
    all.push(loaded("best-route"));
    all
});

/// Loads a program of the SDK.
fn loaded(file: &str) -> Forwarding {
    let object = compile_c(&sdk().join(format!("strategies/{file}.c")), &[]);
    let program = StrategyProgram::load(&object, None).expect("the program can be loaded");
    let name = program.name().to_owned();
    let mut registry = StrategyRegistry::default();
    registry.insert(program).expect("the name is free");
    let instance = registry.parse(full_name(&name).expect("a name").as_ref()).expect("the program is loaded");
    Forwarding { name, instance, wait_ms: 0 }
}
