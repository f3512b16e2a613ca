//! The cost of the port, against a bare server in the same run that only shares the bytes of a line
//! among its clients and writes all waiting lines of a client in one call. Both have the same publisher
//! and the same clients, over loopback. Results are ratios, which don't depend on the machine.

pub(crate) mod bare;
pub(crate) mod clients;
pub(crate) mod ours;

use std::time::{Duration, Instant};

use self::bare::Bare;
use self::clients::{Clients, Stalled};
use self::ours::Ours;
use crate::figures::median;
use tokio::runtime::{Builder, Runtime};

const CLIENTS: [usize; 4] = [1, 10, 100, 1_000];

/// Lines before the publisher waits for all clients: within what a client may lag behind.
const BATCH: usize = 2_000;

/// Bytes of a line.
const LINE: usize = 400;

const ROUNDS: usize = 5;

/// Pairs of servers whose throughput is compared.
const STARTS: usize = 9;
const ROUND: Duration = Duration::from_secs(1);

/// One that sends each line to all of its clients.
pub(crate) trait Publisher {
    fn publish(&mut self, seq: u64);
    fn port(&self) -> u16;
}

pub(crate) fn run() {
    throughput();
    latency();
    stalled();
}

fn throughput() {
    println!("{:<22} {:>16} {:>10}", "deliveries a second", "bare, millions", "the port");
    for clients in CLIENTS {
        let mut rates = [Vec::new(), Vec::new()];
        // Servers anew in each round: how fast one is depends on where its threads and sockets lie.
        for _ in 0..STARTS {
            rates[0].push(Bench::new(Bare::start, clients).rate());
            rates[1].push(Bench::new(Ours::start, clients).rate());
        }
        let [bare, ours] = rates.map(median);
        println!("{:<22} {:>16.2} {:>10.2}", format!("{clients} clients"), bare / 1e6, ours / bare);
    }
}

fn latency() {
    let mut bare = Bench::new(Bare::start, 10);
    let mut ours = Bench::new(Ours::start, 10);
    let mut worst = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        worst[0].push(bare.p99());
        worst[1].push(ours.p99());
    }
    let [bare, ours] = worst.map(median);
    println!("{:<22} {:>16} {:>10}", "\np99 of delivery", "bare, µs", "the port");
    println!("{:<22} {bare:>16.0} {:>10.2}", "10,000/s × 10 clients", ours / bare);
}

fn stalled() {
    let mut alone = Bench::new(Ours::start, 10);
    let mut beside = Bench::new(Ours::start, 10);
    let _stalled = Stalled::connect(beside.publisher.port());
    let mut rates = [Vec::new(), Vec::new()];
    // The first round fills what is bounded.
    rates[0].push(alone.rate());
    rates[1].push(beside.rate());
    let before = resident();
    for _ in 0..ROUNDS {
        rates[0].push(alone.rate());
        rates[1].push(beside.rate());
    }
    let after = resident();
    let [alone, with] = rates.map(median);
    println!("\none stalled client beside 10");
    println!("{:<22} {:>16.2}", "deliveries to others", with / alone);
    println!("{:<22} {:>16} {:>10}", "resident memory, MB", before >> 20, after >> 20);
}

/// A server with its clients.
struct Bench<P> {
    runtime: Runtime,
    publisher: P,
    clients: Clients,
    seq: u64,
}

impl<P: Publisher> Bench<P> {
    fn new(start: impl FnOnce(&Runtime) -> P, clients: usize) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let publisher = start(&runtime);
        let clients = Clients::connect(publisher.port(), clients);
        // Of ten digits to the end, so that all lines have the same length.
        Self { runtime, publisher, clients, seq: 1_000_000_000 }
    }

    /// Returns how many lines clients received a second.
    fn rate(&mut self) -> f64 {
        let (begun, mut lines) = (Instant::now(), 0);
        while begun.elapsed() < ROUND {
            self.runtime.block_on(async {
                for sent in 0..BATCH {
                    self.publisher.publish(self.seq);
                    self.seq += 1;
                    if sent % 64 == 63 {
                        tokio::task::yield_now().await;
                    }
                }
            });
            self.clients.wait_for(BATCH);
            lines += BATCH;
        }
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let deliveries = (lines * self.clients.count()) as f64;
        deliveries / begun.elapsed().as_secs_f64()
    }

    /// Returns the time within which 99 of 100 lines arrive, in microseconds.
    fn p99(&mut self) -> f64 {
        let begun = Instant::now();
        let mut published = Vec::new();
        self.clients.record();
        self.runtime.block_on(async {
            let mut ticks = tokio::time::interval(Duration::from_millis(1));
            while begun.elapsed() < ROUND {
                ticks.tick().await;
                for _ in 0..10 {
                    published.push(Instant::now());
                    self.publisher.publish(self.seq);
                    self.seq += 1;
                }
            }
        });
        self.clients.wait_for(published.len());
        let mut times: Vec<f64> = self
            .clients
            .arrivals()
            .into_iter()
            .flat_map(|arrivals| {
                assert_eq!(arrivals.len(), published.len());
                let times = arrivals.into_iter().zip(&published);
                times
                    .map(|(arrived, sent)| (arrived - *sent).as_secs_f64() * 1e6)
                    .collect::<Vec<_>>()
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[times.len() * 99 / 100]
    }
}

/// Bytes of memory that this process has.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096
}
