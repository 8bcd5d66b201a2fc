//! The declarations that programs include: `core.p4` and `v1model.p4`, in our own words.

/// The text of a file that is built in.
pub fn file(name: &str) -> Option<&'static str> {
    match name {
        "core.p4" => Some(include_str!("core.p4")),
        "v1model.p4" => Some(include_str!("v1model.p4")),
        _ => None,
    }
}

/// How a file that is built in is called in messages.
pub fn name(base: &str) -> String {
    format!("<{base}>")
}
