//! The built-in include files: `core.p4` and `v1model.p4`, written for this compiler, and `namehop.p4`, which only this
//! compiler has.

/// The text of a built-in file.
pub fn file(name: &str) -> Option<&'static str> {
    match name {
        "core.p4" => Some(include_str!("core.p4")),
        "v1model.p4" => Some(include_str!("v1model.p4")),
        "namehop.p4" => Some(include_str!("namehop.p4")),
        _ => None,
    }
}

/// The built-in file that declares a function.
pub fn home(function: &str) -> &'static str {
    if function.starts_with("aes_") { "namehop.p4" } else { "v1model" }
}

/// The name of a built-in file in messages.
pub fn name(base: &str) -> String {
    format!("<{base}>")
}
