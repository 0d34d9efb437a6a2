//! A socket that answers as a container engine that misbehaves: late, wrong, or not at all.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::env::TestEnv;

/// What it does when it is asked.
pub enum Reply {
    Json(Value),
    Status(u16),
    /// Says nothing more, until the other side gives up.
    Hang,
    /// Promises more than it sends.
    CloseMidAnswer,
    CloseAtOnce,
    Junk,
    /// Bytes without an end.
    Endless,
}

/// An engine on a socket; its threads end with the test's process.
pub struct Fake {
    pub socket: PathBuf,
    /// How often it was asked for its containers.
    pub lists: Arc<AtomicUsize>,
}

impl Fake {
    /// `answer` gets the path that is asked for, and how often containers were listed before.
    pub fn serve(env: &TestEnv, answer: impl Fn(&str, usize) -> Reply + Send + Sync + 'static) -> Self {
        let socket = env.root().join("engine.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let lists = Arc::new(AtomicUsize::new(0));
        let (counted, answer) = (lists.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (counted, answer) = (counted.clone(), answer.clone());
                std::thread::spawn(move || converse(stream, &counted, &*answer));
            }
        });
        Self { socket, lists }
    }

    /// One that lists what `containers` says for the n-th time.
    pub fn listing(env: &TestEnv, containers: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Self {
        Self::serve(env, move |path, nth| match path {
            "/version" => {
                Reply::Json(json!({"ApiVersion": "1.41", "MinAPIVersion": "1.12", "Version": "fake"}))
            }
            "/containers/json" => containers(nth),
            _ => Reply::Status(404),
        })
    }
}

fn converse(mut stream: UnixStream, lists: &AtomicUsize, answer: &dyn Fn(&str, usize) -> Reply) {
    loop {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut byte) {
                Ok(1) => head.push(byte[0]),
                // The end, or only a look whether somebody listens.
                _ => return,
            }
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let path = head.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default();
        let path = path.strip_prefix("/v1.41").unwrap_or(path);
        let nth = match path {
            "/containers/json" => lists.fetch_add(1, Ordering::SeqCst),
            _ => lists.load(Ordering::SeqCst),
        };
        let whole = |status: u16, body: &str| {
            let length = body.len();
            format!(
                "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            )
        };
        let text = match answer(path, nth) {
            Reply::Json(value) => whole(200, &value.to_string()),
            Reply::Status(code) => whole(code, r#"{"message":"told so"}"#),
            Reply::CloseMidAnswer => {
                let promised =
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n[{";
                // The other side may have given up.
                let _ = stream.write_all(promised.as_bytes());
                return;
            }
            Reply::CloseAtOnce => return,
            Reply::Junk => "\x1b[31mno HTTP\r\n\r\n".to_owned(),
            Reply::Hang => {
                // Until the other side closes.
                let _ = stream.read(&mut byte);
                return;
            }
            Reply::Endless => {
                let head =
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
                let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
                let mut sent = stream.write_all(head.as_bytes());
                while sent.is_ok() {
                    sent = stream.write_all(chunk.as_bytes());
                }
                return;
            }
        };
        if stream.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}
