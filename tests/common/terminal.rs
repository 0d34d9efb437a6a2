//! A person at a pseudo terminal, by way of `script` from util-linux.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::env::TestEnv;

const DEADLINE: Duration = Duration::from_secs(30);

pub const ENTER: &str = "\r";
pub const ESCAPE: &str = "\x1b";
pub const DOWN: &str = "\x1b[B";
pub const INTERRUPT: &str = "\x03";

/// A program that talks to a person.
pub struct Dialogue {
    child: Child,
    keys: ChildStdin,
    bytes: Receiver<Vec<u8>>,
    raw: Vec<u8>,
    /// How much of what can be read has been expected already.
    seen: usize,
}

impl Dialogue {
    /// Runs treesweep with `line`, words for a shell, in a terminal of 80 columns.
    pub fn start(env: &TestEnv, dir: &Path, line: &str) -> Self {
        let treesweep = env!("CARGO_BIN_EXE_treesweep");
        let command = format!("stty rows 40 cols 80; exec {treesweep} {line}");
        let mut script = env.command("script");
        script.args(["--quiet", "--return", "--flush", "--command", &command, "/dev/null"]);
        script.current_dir(dir).env("TERM", "xterm").env("SHELL", "/bin/sh");
        script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = script.spawn().expect("script starts (util-linux)");
        let (keys, mut out) = (child.stdin.take().expect("stdin"), child.stdout.take().expect("stdout"));
        let (sender, bytes) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = out.read(&mut buffer) {
                if sender.send(buffer[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keys, bytes, raw: Vec::new(), seen: 0 }
    }

    /// What was written so far, as it is read: without colours and cursor movements.
    fn text(&self) -> String {
        anstream::adapter::strip_str(&String::from_utf8_lossy(&self.raw)).to_string()
    }

    /// Waits until `text` appears behind what was expected before.
    #[track_caller]
    pub fn expect(&mut self, text: &str) {
        let until = Instant::now() + DEADLINE;
        loop {
            let all = self.text();
            if let Some(at) = all[self.seen..].find(text) {
                self.seen += at + text.len();
                return;
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.bytes.recv_timeout(left) {
                Ok(more) => self.raw.extend(more),
                Err(end) => panic!("no {text:?} ({end}) behind {:?} in:\n{all}", &all[..self.seen]),
            }
        }
    }

    pub fn send(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).expect("keys are taken");
    }

    /// Waits for the end of the program; its exit status and all that it wrote.
    #[track_caller]
    pub fn end(mut self) -> (ExitStatus, String) {
        let until = Instant::now() + DEADLINE;
        loop {
            match self.bytes.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(more) => self.raw.extend(more),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(_) => panic!("it does not end:\n{}", self.text()),
            }
        }
        (self.child.wait().expect("an end"), self.text())
    }
}

impl Drop for Dialogue {
    fn drop(&mut self) {
        // After a failed expectation; else it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
