//! The declarations that programs include: `core.p4` and `v1model.p4`, in our own words, and `namehop.p4`, which no other compiler has.

/// The text of a file that is built in.
pub fn file(name: &str) -> Option<&'static str> {
    match name {
        "core.p4" => Some(include_str!("core.p4")),
        "v1model.p4" => Some(include_str!("v1model.p4")),
        "namehop.p4" => Some(include_str!("namehop.p4")),
        _ => None,
    }
}

/// Where the function of this name is declared.
pub fn home(function: &str) -> &'static str {
    if function.starts_with("aes_") { "namehop.p4" } else { "v1model" }
}

/// How a file that is built in is called in messages.
pub fn name(base: &str) -> String {
    format!("<{base}>")
}
