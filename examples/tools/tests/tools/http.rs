//! Just enough of an HTTP client: one request on one connection, byte for byte as the test says.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use http::{HeaderMap, Request};

use crate::program::PATIENCE;

/// The status of the answer. An error means that there was none, or not all of its head.
pub(crate) fn post(to: SocketAddr, headers: &HeaderMap, body: &[u8]) -> io::Result<u16> {
    let mut request = format!("POST /hooks HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n");
    request += &format!("content-length: {}\r\n", body.len());
    let mut request = request.into_bytes();
    for (name, value) in headers {
        request.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    request.extend(b"\r\n");
    request.extend(body);
    exchange(to, &request)
}

pub(crate) fn send(to: SocketAddr, request: &Request<Vec<u8>>) -> io::Result<u16> {
    post(to, request.headers(), request.body())
}

/// Sends until it is acknowledged, as a service does: 503 says that storing it took too long.
#[track_caller]
pub(crate) fn accepted(to: SocketAddr, request: &Request<Vec<u8>>) {
    let began = Instant::now();
    loop {
        let status = send(to, request).unwrap();
        if status == 204 {
            return;
        }
        assert_eq!(status, 503);
        assert!(began.elapsed() < PATIENCE, "it is never stored");
    }
}

pub(crate) fn exchange(to: SocketAddr, request: &[u8]) -> io::Result<u16> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // An answer may come before all of a request is read, and the rest be refused.
    let written = stream.write_all(request);
    let mut answer = Vec::new();
    let mut chunk = [0; 1024];
    while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut chunk) {
            Ok(0) => {
                written?;
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                written?;
                return Err(error);
            }
            Ok(len) => answer.extend(&chunk[..len]),
        }
    }
    let text = String::from_utf8_lossy(&answer);
    text.split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no status in the answer"))
}

/// An address that stays, in front of a program that comes and goes: a port that was given back may be
/// another test's next.
pub(crate) struct Front {
    pub(crate) address: SocketAddr,
    /// Where the program listens. Without it, connections are closed.
    pub(crate) behind: Arc<Mutex<Option<SocketAddr>>>,
}

impl Front {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let behind = Arc::new(Mutex::new(None));
        let shared = Arc::clone(&behind);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let to: Option<SocketAddr> = *shared.lock().unwrap();
                let Some(program) = to.and_then(|to| TcpStream::connect(to).ok()) else { continue };
                let (from, to) = (stream.try_clone().unwrap(), program.try_clone().unwrap());
                std::thread::spawn(move || pass(from, to));
                std::thread::spawn(move || pass(program, stream));
            }
        });
        Self { address, behind }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
