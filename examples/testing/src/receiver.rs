//! A customer's endpoint: answers as it is told to, and keeps what it got.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, SystemTime};

use call_assistant::Timestamp;
use call_assistant::webhook::{SigningSecret, Verifier};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The version of the answers. It says that each is the last of its connection: HTTP/1.1 would need
/// a field to say so, and a sender that is not told may lose its next request to the end.
const HTTP: &str = "HTTP/1.0";

/// What to answer.
#[derive(Clone, Copy, Debug)]
pub enum Reply {
    /// A status, and a short body.
    Status(u16),
    /// A status, and this body.
    Body(u16, &'static str),
    /// A status, with so many fields of this length.
    Fields(u16, usize, usize),
    /// A status, once [`Receiver::release`] is called.
    Held(u16),
    /// The end, at once.
    Close,
    /// Nothing, until the sender has given up.
    Nothing,
    /// A good head, and a body without end.
    Endless,
    /// A head with this status, and nothing of the body it speaks of.
    Stuck(u16),
    /// Something that is not HTTP.
    Garbage,
}

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Got {
    /// When its last byte was read, by the clock that senders on this machine have too.
    pub at: Timestamp,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Got {
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    /// Tells whether this secret signed it, as of now.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let verifier = Verifier::new(SigningSecret::parse(secret).unwrap());
        verifier.verify(&self.headers, &self.body, now()).is_ok()
    }
}

#[derive(Default, Debug)]
struct State {
    got: Vec<Got>,
    closed: HashMap<String, Timestamp>,
    replies: HashMap<String, Vec<Reply>>,
    released: bool,
}

/// A receiver that runs until the test ends.
#[derive(Debug)]
pub struct Receiver {
    address: String,
    scheme: &'static str,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Receiver {
    pub fn start() -> Self {
        Self::with(None)
    }

    /// Starts one at `https://localhost`, with the key of its certificate.
    pub fn over_tls(certificate: CertificateDer<'static>, key: Vec<u8>) -> Self {
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], PrivateKeyDer::try_from(key).unwrap());
        Self::with(Some(config.unwrap()))
    }

    pub fn with(tls: Option<ServerConfig>) -> Self {
        let (scheme, host) =
            if tls.is_some() { ("https", "localhost") } else { ("http", "127.0.0.1") };
        let state = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let (shared, tls) = (Arc::clone(&state), tls.map(Arc::new));
        let address = serving(move |stream| {
            let _ = stream.set_read_timeout(Some(crate::running::PATIENCE));
            match &tls {
                None => answer(stream, &shared),
                Some(tls) => {
                    let connection = ServerConnection::new(Arc::clone(tls)).unwrap();
                    answer(StreamOwned::new(connection, stream), &shared)
                }
            }
        });
        Self { address: format!("{host}:{}", address.port()), scheme, state }
    }

    /// Returns a URL whose requests are answered with these replies in turn, and then with the last.
    pub fn url(&self, path: &str, replies: &[Reply]) -> String {
        self.state.0.lock().unwrap().replies.insert(path.to_owned(), replies.to_vec());
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// Lets go of what is held.
    pub fn release(&self) {
        self.state.0.lock().unwrap().released = true;
        self.state.1.notify_all();
    }

    /// Returns when the sender closed the last connection to a path whose answer is [`Reply::Stuck`].
    pub fn closed_at(&self, path: &str) -> Option<Timestamp> {
        self.state.0.lock().unwrap().closed.get(path).copied()
    }

    /// Returns what came to a path, in its order.
    pub fn got(&self, path: &str) -> Vec<Got> {
        let state = self.state.0.lock().unwrap();
        state.got.iter().filter(|got| got.path == path).cloned().collect()
    }
}

/// Listens until the test ends, serves each connection on a thread of its own, and returns the address.
pub fn serving(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, serve) = (listener.local_addr().unwrap(), Arc::new(serve));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

fn answer(mut stream: impl Read + Write, (state, released): &(Mutex<State>, Condvar)) {
    let Some(got) = read(&mut stream) else { return };
    let path = got.path.clone();
    let reply = {
        let mut state = state.lock().unwrap();
        let replies = state.replies.get_mut(&got.path);
        let reply = replies.map(|replies| match replies.as_slice() {
            [last] => *last,
            _ => replies.remove(0),
        });
        state.got.push(got);
        reply.unwrap_or(Reply::Status(404))
    };
    let _ = match reply {
        Reply::Status(204) => stream.write_all(format!("{HTTP} 204 No Content\r\n\r\n").as_bytes()),
        Reply::Status(status) => with_body(&mut stream, status, "<b>hello</b>"),
        Reply::Body(status, body) => with_body(&mut stream, status, body),
        Reply::Fields(status, count, len) => {
            let fields = format!("X-Field: {}\r\n", "y".repeat(len - 11)).repeat(count);
            stream.write_all(format!("{HTTP} {status} Whatever\r\n{fields}\r\n").as_bytes())
        }
        Reply::Close => Ok(()),
        Reply::Held(status) => {
            let mut state = state.lock().unwrap();
            while !state.released {
                state = released.wait(state).unwrap();
            }
            let head = format!("{HTTP} {status} Whatever\r\nContent-Length: 0\r\n\r\n");
            stream.write_all(head.as_bytes())
        }
        Reply::Nothing => stream.read(&mut [0; 1]).map(drop),
        Reply::Stuck(status) => {
            let head = format!("{HTTP} {status} Whatever\r\nContent-Length: 12\r\n\r\n");
            let stuck = stream.write_all(head.as_bytes()).and_then(|()| stream.read(&mut [0; 1]));
            state.lock().unwrap().closed.insert(path, now());
            stuck.map(drop)
        }
        Reply::Garbage => stream.write_all(b"I am not a web server.\r\n\r\n"),
        Reply::Endless => {
            // The head comes with a part of the body, however long this thread has to wait then.
            let start = [format!("{HTTP} 200 OK\r\n\r\n").as_bytes(), &[b'x'; 2048]].concat();
            let mut written = stream.write_all(&start);
            while written.is_ok() {
                written = stream.write_all(&[b'x'; 1024]);
                std::thread::sleep(Duration::from_millis(1));
            }
            written
        }
    };
    let _ = stream.flush();
}

fn with_body(stream: &mut impl Write, status: u16, body: &str) -> io::Result<()> {
    let fields = format!("Content-Length: {}\r\nLocation: /elsewhere", body.len());
    stream.write_all(format!("{HTTP} {status} Whatever\r\n{fields}\r\n\r\n{body}").as_bytes())
}

/// Reads a delivery, if one comes.
pub fn read(stream: &mut impl Read) -> Option<Got> {
    let (line, headers) = read_head(stream)?;
    let path = line.strip_prefix("POST ")?.strip_suffix(" HTTP/1.1")?.to_owned();
    let length: usize = headers.get("content-length")?.to_str().ok()?.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Got { at: now(), path, headers, body })
}

/// Reads the head of a request, if one comes: its first line, and its fields.
pub fn read_head(stream: &mut impl Read) -> Option<(String, HeaderMap)> {
    let mut bytes = Vec::new();
    let mut byte = [0; 1];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).ok()?;
    let mut lines = head.trim_end().split("\r\n");
    let first = lines.next()?.to_owned();
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ")?;
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_str(value).ok()?);
    }
    Some((first, headers))
}

fn now() -> Timestamp {
    Timestamp::from(SystemTime::now())
}
