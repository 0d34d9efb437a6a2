//! A socket that answers as a container engine does: for states of containers that a test can't bring a real engine into.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::env::{TestEnv, utf8};

/// Lists the containers that it was given, and knows nothing more of them.
pub struct Api {
    socket: PathBuf,
    requests: Arc<Mutex<Vec<String>>>,
}

/// A container as an engine lists it: its name and state, and what it mounts where (source, destination).
pub fn container(name: &str, state: &str, mounts: &[(&Path, &str)]) -> Value {
    let mounts = mounts.iter().map(
        |(source, destination)| json!({"Type": "bind", "Source": utf8(source), "Destination": destination}),
    );
    json!({
        "Id": format!("{name}0123456789abcdef"),
        "Names": [format!("/{name}")],
        "State": state,
        "Labels": {},
        "Mounts": mounts.collect::<Vec<_>>(),
    })
}

impl Api {
    pub fn listing(env: &TestEnv, containers: Value) -> Self {
        let socket = env.root().join("engine.sock");
        let listener = UnixListener::bind(&socket).expect("the engine's socket");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, containers) = (log.clone(), containers.clone());
                std::thread::spawn(move || while answer(&stream, &log, &containers).is_some() {});
            }
        });
        Self { socket, requests }
    }

    pub fn socket(&self) -> &str {
        utf8(&self.socket)
    }

    /// Everything that was asked; an engine is only ever read.
    pub fn assert_only_read(&self) {
        let requests = self.requests.lock().expect("requests");
        assert!(!requests.is_empty() && requests.iter().all(|r| r.starts_with("GET ")), "{requests:?}");
    }
}

/// Answers one request; `None` when the client is done.
fn answer(mut stream: &UnixStream, log: &Mutex<Vec<String>>, containers: &Value) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let request = String::from_utf8_lossy(&head).lines().next()?.to_owned();
    log.lock().expect("requests").push(request.clone());
    let path = request.split(' ').nth(1)?.split('?').next()?;
    let path = path.strip_prefix("/v1.").map_or(path, |rest| rest.find('/').map_or(path, |at| &rest[at..]));
    let (status, body) = match path {
        "/version" => ("200 OK", json!({"ApiVersion": "1.41", "Version": "test"})),
        "/containers/json" => ("200 OK", containers.clone()),
        _ => ("404 Not Found", json!({"message": "not here"})),
    };
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).ok()
}
