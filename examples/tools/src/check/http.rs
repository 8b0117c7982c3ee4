//! Requests with every byte chosen: an HTTP library would write them in its own way, and repair them.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::http::Uri;
use host::tls;
use serde_json::Value;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, StreamOwned};

/// How long an answer may take.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// The most that is read of an answer: 64 MiB.
const LONGEST: usize = 64 * 1024 * 1024;

/// Where requests go.
#[derive(Clone, Debug)]
pub struct Place {
    pub host: String,
    pub port: u16,
    /// The text of `Host`.
    pub authority: String,
    /// The beginning of each path, without a slash at its end.
    pub base: String,
    /// The path and the query of the address.
    pub target: String,
    pub tls: Option<Arc<ClientConfig>>,
}

/// A connection.
#[derive(Debug)]
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// An answer. Names of fields are in lower case.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Place {
    /// Reads where requests go.
    ///
    /// # Errors
    /// The text is not an address of a web server, or the certificates cannot be read.
    pub fn new(url: &str, trust: Option<&Path>) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("URL: {error}"))?;
        let (Some(scheme @ ("http" | "https")), Some(authority)) =
            (uri.scheme_str(), uri.authority())
        else {
            return Err("URL: expected http://HOST:PORT/PATH or https://".to_owned());
        };
        if authority.as_str().contains('@') {
            return Err("URL: a user or a password is not allowed".to_owned());
        }
        let tls = match scheme {
            "https" => {
                let config = tls::config(trust, b"http/1.1");
                Some(Arc::new(config.map_err(|error| format!("--trust-ca: {error}"))?))
            }
            _ => None,
        };
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 }),
            authority: authority.as_str().to_owned(),
            base: uri.path().trim_end_matches('/').to_owned(),
            target: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            tls,
        })
    }

    /// Connects, with a limit on every wait.
    ///
    /// # Errors
    /// There is no connection.
    pub fn connect(&self) -> Result<Stream, String> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found = found.map_err(|error| format!("{}: {error}", self.host))?;
        self.over(connect(found)?).map_err(|error| error.to_string())
    }

    fn over(&self, stream: TcpStream) -> Result<Stream, Box<dyn std::error::Error>> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let Some(config) = &self.tls else { return Ok(Stream::Plain(stream)) };
        let name = ServerName::try_from(self.host.clone())?;
        let connection = ClientConnection::new(Arc::clone(config), name)?;
        Ok(Stream::Tls(Box::new(StreamOwned::new(connection, stream))))
    }

    /// Sends bytes on a connection of their own, and reads the answer to its end.
    ///
    /// # Errors
    /// There was no answer, or a part of one.
    pub fn exchange(&self, bytes: &[u8]) -> Result<Answer, String> {
        self.exchange_by(bytes, |stream| Answer::read(stream, bytes.starts_with(b"HEAD ")))
    }

    /// Sends bytes on a connection of their own, and reads the answer so.
    ///
    /// # Errors
    /// There was no answer, or a part of one.
    pub fn exchange_by(
        &self,
        bytes: &[u8],
        read: impl FnOnce(&mut Stream) -> Result<Answer, String>,
    ) -> Result<Answer, String> {
        let mut stream = self.connect()?;
        // Who refuses early may not read the rest, and its answer counts.
        let _ = stream.write_all(bytes);
        read(&mut stream)
    }

    /// Writes a request: further fields each end with a line end.
    pub fn request(&self, method: &str, target: &str, fields: &str, body: &[u8]) -> Vec<u8> {
        let (base, authority) = (&self.base, &self.authority);
        let length = match body {
            b"" => String::new(),
            body => format!("Content-Length: {}\r\n", body.len()),
        };
        let head =
            format!("{method} {base}{target} HTTP/1.1\r\nHost: {authority}\r\n{length}{fields}");
        [format!("{head}Connection: close\r\n\r\n").as_bytes(), body].concat()
    }
}

/// Connects to the first of a name's addresses that answers.
///
/// # Errors
/// What stood in the way at the last one, or that there is none.
pub fn connect(addresses: impl IntoIterator<Item = SocketAddr>) -> Result<TcpStream, String> {
    let mut failed = "the name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = format!("{address}: {error}"),
        }
    }
    Err(failed)
}

/// Returns a text as a part of a path, with each byte escaped that is not a letter, a digit, `-`, `_`, `.` or `~`.
pub fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

impl Stream {
    /// Returns the socket.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => &stream.sock,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(into),
            Self::Tls(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

impl Answer {
    /// Reads an answer: to its end by its own head, or to the end of the connection.
    ///
    /// # Errors
    /// Not a whole answer came.
    pub fn read(stream: &mut impl Read, to_head: bool) -> Result<Self, String> {
        read_until(stream, |bytes, ended| Self::parse(bytes, to_head, ended))
    }

    /// Reads the head of an answer.
    ///
    /// # Errors
    /// Not a whole head came.
    pub fn head(stream: &mut impl Read) -> Result<Self, String> {
        read_until(stream, |bytes, _| Self::parse_head(bytes).map(|(answer, _)| answer))
    }

    /// Returns the first head that is not of an interim answer, and what follows it.
    fn parse_head(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let (head, rest) = bytes.split_at_checked(end.checked_add(4)?)?;
        let mut lines = std::str::from_utf8(head).ok()?.trim_end().split("\r\n");
        let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
        if (100..200).contains(&status) {
            return Self::parse_head(rest);
        }
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers =
            headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
        Some((Self { status, headers: headers.collect(), body: Vec::new() }, rest))
    }

    fn parse(bytes: &[u8], to_head: bool, ended: bool) -> Option<Self> {
        let (mut answer, rest) = Self::parse_head(bytes)?;
        answer.body = match (answer.header("content-length"), answer.header("transfer-encoding")) {
            _ if to_head && ended => rest.to_vec(),
            _ if to_head => return None,
            (_, Some(_)) => unchunked(rest)?,
            (Some(length), None) => rest.get(..length.parse().ok()?)?.to_vec(),
            (None, None) if ended => rest.to_vec(),
            (None, None) => return None,
        };
        Some(answer)
    }

    /// Returns the value of a field, the first if it comes twice.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns the code of an error; empty if there is none.
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Returns the status and the code, for a person.
    pub fn in_words(&self) -> String {
        format!("{} {}", self.status, self.code()).trim_end().to_owned()
    }
}

/// Reads until something is found in the bytes so far.
fn read_until(
    stream: &mut impl Read,
    found: impl Fn(&[u8], bool) -> Option<Answer>,
) -> Result<Answer, String> {
    let (mut bytes, mut chunk, began) = (Vec::new(), [0; 16 * 1024], Instant::now());
    loop {
        let read = match stream.read(&mut chunk) {
            Ok(read) => chunk.get(..read).unwrap_or_default(),
            Err(error) if bytes.is_empty() => return Err(format!("no answer: {error}")),
            // A peer that closes with something of ours unread may reset; what came counts.
            Err(_) => &[],
        };
        bytes.extend(read);
        if let Some(answer) = found(&bytes, read.is_empty()) {
            return Ok(answer);
        }
        if read.is_empty() || bytes.len() > LONGEST || began.elapsed() >= PATIENCE {
            let start = String::from_utf8_lossy(bytes.get(..60).unwrap_or(&bytes)).into_owned();
            return Err(format!("not a whole answer in HTTP: {start:?}"));
        }
    }
}

/// Returns the body of an answer in chunks, once it is whole.
fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|window| window == b"\r\n")?;
        let line = std::str::from_utf8(rest.get(..end)?).ok()?;
        let size = usize::from_str_radix(line.split(';').next()?.trim(), 16).ok()?;
        let from = end.checked_add(2)?;
        let to = from.checked_add(size)?;
        body.extend(rest.get(from..to)?);
        rest = rest.get(to.checked_add(2)?..)?;
        if size == 0 {
            return Some(body);
        }
    }
}
