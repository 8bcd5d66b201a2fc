//! The `namehop` binary as users meet it.

mod management;
mod measure;
mod setup;
mod signed;
mod support;
mod traffic;
