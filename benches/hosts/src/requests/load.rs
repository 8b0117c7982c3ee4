//! Clients that each keep a connection, and ask for the next answer when they have the last, or when it is due.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// How many requests a second were answered, and how long they took.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) per_second: f64,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
}

/// What is asked for, with one key after the other, and the status that is expected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) path: &'a str,
    pub(super) keys: &'a [String],
    pub(super) status: u16,
}

/// Asks `count` times: at this rate, or as fast as it is answered. A request that is due counts as asked.
pub(super) async fn run(
    addresses: &[String],
    clients: usize,
    count: usize,
    per_second: Option<u32>,
    Asked { path, keys, status }: Asked<'_>,
) -> Load {
    let requests: Arc<Vec<String>> = Arc::new(keys.iter().map(|key| request(path, key)).collect());
    let step = per_second.map(|rate| Duration::from_secs(1) / rate);
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    let began = Instant::now();
    for client in 0..clients {
        let (requests, next) = (Arc::clone(&requests), Arc::clone(&next));
        let address = addresses[client % addresses.len()].clone();
        tasks.spawn(async move {
            let mut stream = TcpStream::connect(&address).await.expect("it listens");
            let _ = stream.set_nodelay(true);
            let (mut took, mut buffer) = (Vec::new(), Vec::new());
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return took;
                }
                let asked = match step {
                    Some(step) => {
                        let due = began + step * u32::try_from(number).expect("a few seconds");
                        tokio::time::sleep_until(due.into()).await;
                        due
                    }
                    None => Instant::now(),
                };
                let request = &requests[number % requests.len()];
                stream.write_all(request.as_bytes()).await.expect("written");
                let answered = answer(&mut stream, &mut buffer).await;
                took.push(asked.elapsed());
                assert_eq!(answered, status, "{}", String::from_utf8_lossy(&buffer));
            }
        });
    }
    let mut took: Vec<Duration> = tasks.join_all().await.into_iter().flatten().collect();
    let elapsed = began.elapsed();
    took.sort_unstable();
    let part = |percent: usize| took[(took.len() - 1) * percent / 100];
    Load { per_second: count as f64 / elapsed.as_secs_f64(), p50: part(50), p99: part(99) }
}

fn request(path: &str, key: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer {key}\r\n\r\n")
}

/// Reads one answer into the buffer, and returns its status.
async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> u16 {
    buffer.clear();
    loop {
        let read = stream.read_buf(buffer).await.expect("an answer");
        assert!(read > 0, "closed after {}", String::from_utf8_lossy(buffer));
        let Some(head) = buffer.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let text = std::str::from_utf8(&buffer[..head]).expect("a head");
        let field = |line: &str| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        };
        let length: usize = text.lines().find_map(field).expect("a length");
        if buffer.len() == head + 4 + length {
            return text[9..12].parse().expect("a status");
        }
    }
}
