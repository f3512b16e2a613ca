//! Standard error without blocking: it may be a pipe without a reader, or a paused terminal.
//!
//! A thread writes queued records. Records that find the queue full are dropped and counted; the
//! count is written once there is room again.

use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use indicatif::ProgressBar;
use parking_lot::{Condvar, Mutex};

/// Maximum bytes in the queue; as many again may be in the thread.
const MOST_WAITING: usize = 1 << 20;

/// Cheap to clone. Each call of [`Write::write`] queues a whole record, or drops it.
#[derive(Clone)]
pub struct Outlet(Arc<OutletShared>);

struct OutletShared {
    queue: Mutex<Queue>,
    /// Drawn below what is written.
    bar: Mutex<Option<ProgressBar>>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<u8>,
    /// Records dropped since the last one that was queued.
    dropped: u64,
    /// The thread is writing bytes it has taken.
    is_writing: bool,
}

/// The outlet to this process's standard error.
pub fn stderr() -> &'static Outlet {
    static STDERR: OnceLock<Outlet> = OnceLock::new();
    STDERR.get_or_init(|| Outlet::to(io::stderr()))
}

impl Outlet {
    /// Starts the thread that writes to a stream until the process ends.
    fn to(stream: impl Write + Send + 'static) -> Self {
        let shared = Arc::new(OutletShared {
            queue: Mutex::default(),
            bar: Mutex::default(),
            changed: Condvar::new(),
        });
        let outlet = Self(Arc::clone(&shared));
        // Without the thread nothing is logged; the program still works.
        let _ =
            std::thread::Builder::new().name("stderr".to_owned()).spawn(move || shared.run(stream));
        outlet
    }

    /// Writes from now on above a bar that is drawn on the same terminal; None: there is no bar any more.
    pub fn above(&self, bar: Option<ProgressBar>) {
        *self.0.bar.lock() = bar;
    }

    fn push(&self, record: &[u8]) {
        let mut queue = self.0.queue.lock();
        if queue.waiting.len() + record.len() > MOST_WAITING {
            queue.dropped += 1;
        } else {
            queue.waiting.extend_from_slice(record);
        }
        self.0.changed.notify_all();
    }

    /// Waits until everything is written, at most for `timeout`.
    pub fn flush_within(&self, timeout: Duration) {
        let is_busy = |queue: &mut Queue| queue.is_writing || queue.has_work();
        self.0.changed.wait_while_for(&mut self.0.queue.lock(), is_busy, timeout);
    }
}

impl Queue {
    fn has_work(&self) -> bool {
        !self.waiting.is_empty() || self.dropped > 0
    }

    /// Takes the bytes to write next: the queue, then the count of records dropped after it.
    fn take(&mut self) -> Vec<u8> {
        let mut next = std::mem::take(&mut self.waiting);
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            let lines = if dropped == 1 { "line was" } else { "lines were" };
            let _ = writeln!(next, "… {dropped} {lines} dropped: standard error was not read");
        }
        next
    }
}

impl OutletShared {
    fn run(&self, mut stream: impl Write) {
        loop {
            let mut queue = self.queue.lock();
            queue.is_writing = false;
            self.changed.notify_all();
            self.changed.wait_while(&mut queue, |queue| !queue.has_work());
            queue.is_writing = true;
            let next = queue.take();
            drop(queue);
            // Errors of a closed stream are ignored.
            let mut write = || drop(stream.write_all(&next).and_then(|()| stream.flush()));
            let bar = self.bar.lock().clone();
            match bar {
                Some(bar) => bar.suspend(write),
                None => write(),
            }
        }
    }
}

impl Write for Outlet {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        self.push(record);
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Read, pipe};

    use super::*;

    #[test]
    fn a_writer_never_waits_and_dropped_records_are_counted() {
        let (mut reader, stream) = pipe().unwrap();
        let mut outlet = Outlet::to(stream);
        let record = format!("{}\n", "x".repeat(1023));
        let records = 4 * MOST_WAITING / record.len();
        for _ in 0..records {
            outlet.write_all(record.as_bytes()).unwrap();
        }
        let (mut text, mut written, mut dropped) = (String::new(), 0, 0);
        while written + dropped < records {
            let mut chunk = [0; 4096];
            let read = reader.read(&mut chunk).unwrap();
            text.push_str(&String::from_utf8_lossy(&chunk[..read]));
            while let Some((line, rest)) = text.split_once('\n') {
                if let Some(count) =
                    line.strip_suffix(" lines were dropped: standard error was not read")
                {
                    dropped += count
                        .trim_start_matches(|c: char| !c.is_ascii_digit())
                        .parse::<usize>()
                        .unwrap();
                } else {
                    written += 1;
                    assert_eq!(line.len(), 1023);
                }
                text = rest.to_owned();
            }
        }
        assert!(dropped > 0 && written >= MOST_WAITING / record.len(), "{written} {dropped}");
        // Later records are written again.
        outlet.write_all(b"more\n").unwrap();
        let mut more = [0; 5];
        reader.read_exact(&mut more).unwrap();
        assert_eq!(&more, b"more\n");
        outlet.flush_within(Duration::from_mins(1));
    }
}
