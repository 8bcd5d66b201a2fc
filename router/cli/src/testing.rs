//! Checks of command lines, for the tests of this crate and of other programs.

/// Checks that each command without subcommands has an example and a description. `path` is the path of the parent
/// command, for messages.
///
/// # Panics
/// A command lacks one of them.
pub fn check_examples(command: &clap::Command, path: &str) {
    let path = format!("{path} {}", command.get_name());
    let subcommands: Vec<_> = command.get_subcommands().filter(|sub| sub.get_name() != "help").collect();
    if subcommands.is_empty() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("namehop "), "{path} has no example");
        assert!(command.get_about().is_some(), "{path} has no description");
    }
    for sub in subcommands {
        check_examples(sub, &path);
    }
}
