//! Connections to a receiver that are used again.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use testing::receiver::read;
use testing::running::{Service, delivery_path};

/// What the receiver does once it has read a request.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// Answers, and reads the next request.
    Answer(&'static str),
    /// Answers and closes.
    AnswerAndClose(&'static str),
    /// Closes: nothing is answered.
    Close,
}

const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\n\r\n";

/// Which request came on which connection, by the delivery's id.
type Came = Arc<Mutex<Vec<(usize, String)>>>;

/// A receiver that does, with the nth request of a connection, the nth of these, and the last from
/// then on.
fn receiver(then: &'static [Then]) -> (String, Came) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let came = Came::default();
    let all = Arc::clone(&came);
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (mut stream, all) = (stream.unwrap(), Arc::clone(&all));
            std::thread::spawn(move || {
                for nth in 0.. {
                    let Some(got) = read(&mut stream) else { return };
                    let id = got.header("x-service-delivery").to_owned();
                    all.lock().unwrap().push((number, id));
                    match then[nth.min(then.len() - 1)] {
                        Then::Answer(answer) => stream.write_all(answer.as_bytes()).unwrap(),
                        Then::AnswerAndClose(answer) => {
                            return stream.write_all(answer.as_bytes()).unwrap();
                        }
                        Then::Close => return,
                    }
                }
            });
        }
    });
    (url, came)
}

/// Sends so many, each once the one before has ended. Returns the outcomes of each one's attempts.
fn send(url: &str, count: usize) -> Vec<Vec<String>> {
    let service = Service::start(&["--allow-loopback-endpoints", "--time-scale", "0.0001"]);
    service.endpoint(url);
    let one = |_| {
        let ended = service.after_pending(&delivery_path(&service.call()));
        let attempts = ended["attempts"].as_array().unwrap().iter();
        attempts.map(|attempt| attempt["outcome"].as_str().unwrap().to_owned()).collect()
    };
    (0..count).map(one).collect()
}

#[test]
fn one_connection_carries_many_requests() {
    let (url, came) = receiver(&[Then::Answer(NO_CONTENT)]);
    assert_eq!(send(&url, 10), vec![["204"]; 10]);
    let came = came.lock().unwrap();
    assert_eq!(came.len(), 10);
    // Not all on one: on a slow machine it may have waited too long.
    let connections = came.iter().map(|(number, _)| *number).max().unwrap() + 1;
    assert!(connections < 10, "{connections} connections");
}

// A receiver may close a connection that waits, and does not say when: whoever sends then has not
// failed, for the next request gets a new one within the same attempt.
#[test]
fn a_kept_connection_that_ends_fails_nobody() {
    for (name, then, each) in [
        ("after its answer", &[Then::AnswerAndClose(NO_CONTENT)][..], 1),
        ("under the next request", &[Then::Answer(NO_CONTENT), Then::Close][..], 2),
    ] {
        let (url, came) = receiver(then);
        assert_eq!(send(&url, 6), vec![["204"]; 6], "{name}");
        let came = came.lock().unwrap();
        for (_, id) in came.iter() {
            let times = came.iter().filter(|(_, other)| other == id).count();
            assert!((1..=each).contains(&times), "{name}: {times} times");
        }
    }
}

// A new connection that ends is what the endpoint does, so nothing hides it.
#[test]
fn a_new_connection_that_ends_is_a_failure() {
    let (url, came) = receiver(&[Then::Close]);
    assert_eq!(send(&url, 1), [vec!["reset"; 6]]);
    assert_eq!(came.lock().unwrap().len(), 6);
}

// What is not read to its end would be taken for the next answer.
#[test]
fn a_connection_with_an_unread_body_is_not_used_again() {
    const LONG: &str = concat!(
        "HTTP/1.1 200 OK\r\nContent-Length: 1200\r\n\r\n",
        "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"
    );
    let (url, came) = receiver(&[Then::Answer(LONG)]);
    assert_eq!(send(&url, 2), vec![["200"]; 2]);
    let came = came.lock().unwrap();
    assert_ne!(came[0].0, came[1].0, "{came:?}");
}
