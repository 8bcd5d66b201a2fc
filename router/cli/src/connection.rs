//! Connections to the forwarder, and execution of asynchronous code.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use clap::Args;
use namehop_client::client_conf;
use namehop_client::endpoint::Endpoint;
use namehop_client::target::TransportUri;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// Options that select the forwarder.
#[derive(Args, Clone, Debug)]
pub struct ConnectionArgs {
    /// Forwarder to talk to: unix:///path, tcp://host:port, udp://host:port or ws://host:port
    ///
    /// The default is NDN_CLIENT_TRANSPORT, then client.conf in ~/.ndn, /usr/local/etc/ndn and /etc/ndn, then
    /// /run/nfd/nfd.sock, /var/run/nfd/nfd.sock and $XDG_RUNTIME_DIR/nfd/nfd.sock.
    #[arg(long, global = true, value_name = "URI")]
    pub transport: Option<String>,
}

impl ConnectionArgs {
    /// Connects to the forwarder.
    pub async fn connect(&self) -> Result<Endpoint, Failure> {
        Ok(Endpoint::connect(self.transport.as_deref()).await?)
    }

    /// Returns the first candidate of [`ConnectionArgs::connect`] that is not a Unix socket, or is an existing one. If
    /// there is none, returns the first candidate.
    pub fn first_candidate(&self) -> Result<TransportUri, Failure> {
        let candidates = client_conf::candidates(self.transport.as_deref()).map_err(Failure::usage)?;
        let exists = candidates.iter().find(|candidate| candidate.uri.unix_path().is_none_or(|path| path.exists()));
        match exists.or_else(|| candidates.first()) {
            Some(candidate) => Ok(candidate.uri.clone()),
            None => Err(Failure::usage("no transport is configured")),
        }
    }
}

/// Runs a command's asynchronous part on this thread.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(work);
    // A thread that still reads standard input must not keep the process alive.
    runtime.shutdown_background();
    result
}

/// Completes on SIGINT or SIGTERM.
pub async fn interrupted() {
    let terminate = async {
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => drop(terminate.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        result = tokio::signal::ctrl_c() => {
            if result.is_err() {
                // Without a handler, the signal ends the process.
                std::future::pending::<()>().await;
            }
        }
        () = terminate => {}
    }
}

/// Sets `stop` on SIGINT or SIGTERM, from a thread that ends with the process.
pub fn stop_when_interrupted(stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    let stop = Arc::clone(stop);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (listens, when_it_listens) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        runtime.block_on(async {
            let mut interrupted = pin!(interrupted());
            // The first poll installs the signal handlers. Before that, a signal would end the process.
            let has_come = poll_fn(|context| Poll::Ready(interrupted.as_mut().poll(context).is_ready())).await;
            // Fails only if the caller has returned.
            let _ = listens.send(());
            if !has_come {
                interrupted.await;
            }
        });
        stop.store(true, Ordering::Relaxed);
    });
    // Fails only if the thread panicked, which is reported anyway.
    let _ = when_it_listens.recv();
    Ok(())
}
