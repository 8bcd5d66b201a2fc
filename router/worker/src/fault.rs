//! Faults on request, for tests of routers with failing parts.

/// Panics if the environment variable `NAMEHOP_FAULT` has this name, for tests of routers with failing parts. Does
/// nothing in builds without debug assertions.
#[inline]
pub fn fault_point(name: &str) {
    #[cfg(debug_assertions)]
    if std::env::var_os("NAMEHOP_FAULT").is_some_and(|wanted| wanted == name) {
        panic!("a fault was requested in {name}");
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}
