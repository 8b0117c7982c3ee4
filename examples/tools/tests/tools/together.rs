//! The service, a receiver and a sync, as somebody new runs them: three processes, real sockets.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::json;
use testing::receiver::serving;
use testing::running::{FJORD, Folder, Running, Service, example, run};

use crate::killing::copied;
use crate::{SECRET, listening};

/// EVT-9, DEL-1, DEL-4, DEL-8, SYNC-3: a call reaches its customer by both ways, also while the
/// customer is away.
#[test]
fn a_call_reaches_the_receiver_and_the_file() {
    let folder = Folder::new();
    let service = Service::start(&["--allow-loopback-endpoints", "--time-scale", "0.02"]);
    let front = Front::start();
    let receiver = || {
        let mut command = example("receiver");
        command.args(["--listen", "127.0.0.1:0"]).env("WEBHOOK_SECRET", SECRET);
        command.arg("--journal").arg(folder.path("a.journal"));
        let (running, address) = listening(Running::start(&mut command));
        *front.behind.lock().unwrap() = Some(address);
        running
    };
    let call = |id: &str| {
        service.ask("POST", &format!("{FJORD}/calls"), &json!({ "id": id }), 201);
    };
    let running = receiver();
    let endpoint = json!({ "url": format!("http://{}/hooks", front.address), "secret": SECRET });
    service.ask("POST", &format!("{FJORD}/endpoints"), &endpoint, 201);

    call("call_while_there");
    running.said("call.ended call call_while_there");
    *front.behind.lock().unwrap() = None;
    running.kill();
    // Nobody answers: the service tries again, and does so until somebody does.
    call("call_while_away");
    let running = receiver();
    running.said("call.ended call call_while_away");
    let told = running.interrupt();
    assert_eq!((told.code, told.stdout.lines().count()), (Some(0), 1));

    let mut sync = example("sync");
    sync.args(["--api", service.first["api"].as_str().unwrap(), "--time-scale", "0.01"]);
    sync.env("SERVICE_API_KEY", service.key("acct_fjord_dental", "full"));
    sync.arg("--state").arg(folder.path("state")).arg("--out").arg(folder.path("calls"));
    run(&mut sync, b"").is(0, "");
    let copied = copied(&folder);
    assert!(copied.contains_key("call_while_there") && copied.contains_key("call_while_away"));
    assert!(copied.len() > 100, "{}", copied.len());
    assert_eq!(service.interrupt().code, Some(0));
}

/// An address that stays, in front of a program that comes and goes: a port that was given back may be
/// another test's next.
struct Front {
    address: SocketAddr,
    /// Where the program listens. Without it, connections are closed.
    behind: Arc<Mutex<Option<String>>>,
}

impl Front {
    fn start() -> Self {
        let behind = Arc::new(Mutex::new(None));
        let shared: Arc<Mutex<Option<String>>> = Arc::clone(&behind);
        let address = serving(move |stream| {
            let to = shared.lock().unwrap().clone();
            let Some(program) = to.and_then(|to| TcpStream::connect(to).ok()) else { return };
            let (from, to) = (stream.try_clone().unwrap(), program.try_clone().unwrap());
            std::thread::spawn(move || pass(from, to));
            pass(program, stream);
        });
        Self { address, behind }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
