//! Tells the user at the terminal and the service manager that the router runs.

use std::io::Write;
use std::net::SocketAddr;
use std::thread;

use sd_notify::NotifyState;
use tracing::warn;

use namehop_config::Api;
use namehop_config::token_file::TokenFile;
use namehop_face::FaceUri;

/// Reports the progress to systemd, if a unit of `Type=notify` started the router.
pub(super) fn notify_service_manager(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        warn!(%error, "cannot notify the service manager");
    }
}

/// Prints the addresses of the router for the user at the terminal.
pub(super) fn announce(
    channels: &[FaceUri],
    restored: Option<String>,
    metrics: Option<SocketAddr>,
    api: &Api,
    token: Option<&TokenFile>,
) {
    let mut text = format!("Namehop {} is running\n", env!("CARGO_PKG_VERSION"));
    for channel in channels {
        text.push_str(&format!("  listening on  {channel}\n"));
    }
    if let Some(restored) = restored {
        text.push_str(&format!("  restored      {restored}\n"));
    }
    if let Some(address) = metrics {
        text.push_str(&format!("  metrics at    http://{address}/metrics\n"));
        if api.enabled {
            let token = token.map(|token| format!(", token in {}", token.path.display())).unwrap_or_default();
            text.push_str(&format!("  API at        http://{address}/api/v1{token}\n"));
        }
    }
    match channels.iter().find(|channel| matches!(channel, FaceUri::Unix(_))) {
        Some(unix) => text.push_str(&format!("Applications find it with\n  export NDN_CLIENT_TRANSPORT={unix}\n")),
        None => text.push_str("There is no Unix socket: set `transport` in each application's client.conf.\n"),
    }
    // On a separate thread: neither a closed standard output nor one without a reader may stop the router.
    let _ = thread::Builder::new().name("announcement".to_owned()).spawn(move || {
        let mut output = std::io::stdout().lock();
        let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    });
}
