//! The signals that stop a team.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signal that stops a team.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopSignal {
    /// SIGINT: a person at the terminal.
    Interrupt,
    /// SIGTERM, or SIGHUP.
    End,
}

/// SIGINT, SIGTERM and SIGHUP. Signals that arrive before the first call of `next` are kept, so
/// that none ends the program during its start.
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    /// None if SIGHUP is ignored, as under `nohup`.
    hangup: Option<Signal>,
    /// Signals that somebody else takes.
    left_out: u8,
}

impl StopSignals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: (!ignores_hangup()).then(|| signal(SignalKind::hangup())).transpose()?,
            left_out: 0,
        })
    }

    /// Listens from the second signal on: somebody else takes the first.
    pub(crate) fn listen_after_one() -> std::io::Result<Self> {
        Ok(Self { left_out: 1, ..Self::listen()? })
    }

    /// Waits for the next signal. Cancel-safe.
    pub(crate) async fn next(&mut self) -> StopSignal {
        while self.left_out > 0 {
            self.any().await;
            self.left_out -= 1;
        }
        self.any().await
    }

    async fn any(&mut self) -> StopSignal {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::End,
            () = hangup => StopSignal::End,
        }
    }
}

/// Whether SIGHUP is ignored, by `/proc`; false on systems without it.
fn ignores_hangup() -> bool {
    const HANGUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & HANGUP != 0)
}
