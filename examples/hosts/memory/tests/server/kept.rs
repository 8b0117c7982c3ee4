//! Connections to a receiver that are used again.

use call_assistant::webhook::sender::MAX_ATTEMPTS;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use testing::receiver::{read, serving};
use testing::running::{Service, delivery_path, eventually};

/// The answer of the receiver to a request, and whether it closes the connection then.
type Then = (&'static str, bool);

const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\n\r\n";

/// What the receiver has seen.
#[derive(Debug, Default)]
struct Seen {
    /// Which request came on which connection, by the delivery's id.
    came: Vec<(usize, String)>,
    /// How many connections the receiver has closed.
    closed: usize,
}

/// A receiver that does, with the nth request of a connection, the nth of these, and the last from
/// then on.
fn receiver(then: &'static [Then]) -> (String, Arc<Mutex<Seen>>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let (all, connections) = (Arc::clone(&seen), AtomicUsize::new(0));
    let address = serving(move |mut stream| {
        let number = connections.fetch_add(1, Ordering::Relaxed);
        for nth in 0.. {
            let Some(got) = read(&mut stream) else { return };
            let id = got.header("x-service-delivery").to_owned();
            all.lock().unwrap().came.push((number, id));
            let (answer, closes) = then[nth.min(then.len() - 1)];
            stream.write_all(answer.as_bytes()).unwrap();
            if closes {
                break;
            }
        }
        drop(stream);
        all.lock().unwrap().closed += 1;
    });
    (format!("http://{address}/hook"), seen)
}

/// Sends so many, each once the one before has ended. Returns the outcomes of each one's attempts.
fn send(url: &str, count: usize) -> Vec<Vec<String>> {
    send_when(url, count, |_| true)
}

/// Sends as [`send`] does. After so many, waits until the receiver is ready for the next.
fn send_when(url: &str, count: usize, is_ready: impl Fn(usize) -> bool) -> Vec<Vec<String>> {
    let service = Service::start(&["--allow-loopback-endpoints", "--time-scale", "0.0001"]);
    service.endpoint(url);
    let one = |sent| {
        eventually("the receiver is ready", || is_ready(sent).then_some(()));
        let ended = service.after_pending(&delivery_path(&service.call()));
        let attempts = ended["attempts"].as_array().unwrap().iter();
        attempts.map(|attempt| attempt["outcome"].as_str().unwrap().to_owned()).collect()
    };
    (0..count).map(one).collect()
}

#[test]
fn one_connection_carries_many_requests() {
    let (url, seen) = receiver(&[(NO_CONTENT, false)]);
    assert_eq!(send(&url, 10), vec![["204"]; 10]);
    let came = &seen.lock().unwrap().came;
    assert_eq!(came.len(), 10);
    // Not all on one: on a slow machine it may have waited too long.
    let connections = came.iter().map(|(number, _)| *number).max().unwrap() + 1;
    assert!(connections < 10, "{connections} connections");
}

// D-85: a receiver may close a connection that waits, and does not say when. Who finds it closed has
// not sent anything, so the request goes on a new one, within the same attempt.
#[test]
fn a_kept_connection_found_closed_costs_no_attempt() {
    let (url, seen) = receiver(&[(NO_CONTENT, true)]);
    let is_closed = |sent| seen.lock().unwrap().closed == sent;
    assert_eq!(send_when(&url, 6, is_closed), vec![["204"]; 6]);
    let came = &seen.lock().unwrap().came;
    let connections: Vec<usize> = came.iter().map(|(number, _)| *number).collect();
    assert_eq!(connections, [0, 1, 2, 3, 4, 5]);
}

// D-85: what has been written may have been read, so the attempt is over.
#[test]
fn a_kept_connection_that_ends_under_a_request_ends_its_attempt() {
    let (url, seen) = receiver(&[(NO_CONTENT, false), ("", true)]);
    let attempts = send(&url, 6);
    let came = &seen.lock().unwrap().came;
    assert_eq!(came.len(), attempts.iter().map(Vec::len).sum::<usize>(), "{attempts:?}, {came:?}");
    let lost = attempts.iter().filter(|attempts| **attempts == ["reset", "204"]).count();
    let answered = attempts.iter().filter(|attempts| **attempts == ["204"]).count();
    assert_eq!((lost + answered, lost > 0), (6, true), "{attempts:?}");
}

// A new connection that ends is what the endpoint does, so nothing hides it.
#[test]
fn a_new_connection_that_ends_is_a_failure() {
    let (url, seen) = receiver(&[("", true)]);
    assert_eq!(send(&url, 1), [vec!["reset"; MAX_ATTEMPTS.into()]]);
    assert_eq!(seen.lock().unwrap().came.len(), usize::from(MAX_ATTEMPTS));
}

// What is not read to its end would be taken for the next answer.
#[test]
fn a_connection_with_an_unread_body_is_not_used_again() {
    const LONG: &str = concat!(
        "HTTP/1.1 200 OK\r\nContent-Length: 1200\r\n\r\n",
        "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"
    );
    let (url, seen) = receiver(&[(LONG, false)]);
    assert_eq!(send(&url, 2), vec![["200"]; 2]);
    let came = &seen.lock().unwrap().came;
    assert_ne!(came[0].0, came[1].0, "{came:?}");
}
