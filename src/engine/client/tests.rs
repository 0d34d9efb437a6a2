//! Conversations with engines that answer well, badly, or not at all.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use super::*;
use crate::engine::containers::ContainerState;
use crate::vantage::paths::LocalPath;

enum Reply {
    Json(Value),
    Status(u16),
    /// Says nothing more.
    Hang,
    /// Promises more than it sends.
    CloseMidAnswer,
    Junk,
    /// `/_ping`, as engines answer it.
    Pong(&'static str),
}

/// An engine on a socket in a directory of its own; its thread ends with the test's process.
struct Fake {
    dir: tempfile::TempDir,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    fn serve(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("engine.sock")).unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (requests.clone(), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (log.clone(), answer.clone());
                thread::spawn(move || answer_one(stream, &log, &*answer));
            }
        });
        Self { dir, requests }
    }

    /// The usual engine: `containers` is what it lists.
    fn listing(containers: Value) -> Self {
        Self::serve(move |path| match path {
            "/version" => Reply::Json(json!({"ApiVersion": "1.41", "Version": "fake"})),
            "/containers/json" => Reply::Json(containers.clone()),
            path => match path.strip_prefix("/containers/").and_then(|p| p.strip_suffix("/json")) {
                Some("0a1b") => {
                    Reply::Json(json!({"State": {"Pid": 42}, "Config": {"WorkingDir": "/w/sub"}}))
                }
                _ => Reply::Status(404),
            },
        })
    }

    fn endpoint(&self) -> Endpoint {
        at(self.dir.path().join("engine.sock"))
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer_one(mut stream: UnixStream, log: &Mutex<Vec<String>>, answer: &dyn Fn(&str) -> Reply) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            // Only a look whether somebody listens.
            _ => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let line = head.lines().next().unwrap();
    log.lock().unwrap().push(line.to_owned());
    let path = line.split(' ').nth(1).unwrap().split('?').next().unwrap();
    let path = path.strip_prefix("/v1.41").unwrap_or(path);
    let ok = |body: &str, length: usize| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let text = match answer(path) {
        Reply::Json(value) => ok(&value.to_string(), value.to_string().len()),
        Reply::Status(code) => {
            format!(
                "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{{\"message\":\"m\"}}"
            )
        }
        Reply::CloseMidAnswer => ok("[{\"Id\":", 1000),
        Reply::Junk => "\x1b[31mno HTTP\r\n\r\n".to_owned(),
        Reply::Pong(version) => format!("HTTP/1.1 200 OK\r\nApi-Version: {version}\r\n\r\nOK"),
        Reply::Hang => {
            thread::sleep(Duration::from_secs(60));
            return;
        }
    };
    // The other side may have given up.
    let _ = stream.write_all(text.as_bytes());
}

fn at(path: PathBuf) -> Endpoint {
    Endpoint { name: "test".into(), address: Address::Unix(path), origin: Origin::Found }
}

struct Asking {
    mounts: MountTable,
    versions: KnownVersions,
    time_limit: Duration,
    ignore: Vec<String>,
}

fn asking() -> Asking {
    let mounts = MountTable::parse(b"1 0 8:1 / / rw - ext4 d rw\n").unwrap();
    Asking {
        mounts,
        versions: KnownVersions::default(),
        time_limit: Duration::from_secs(3),
        ignore: Vec::new(),
    }
}

impl Asking {
    fn ask(&self, endpoints: Vec<Endpoint>) -> Vec<Engine> {
        let roots = [Spot::new(LocalPath::new("/src").unwrap(), &self.mounts)];
        let ask = Ask {
            time_limit: self.time_limit,
            ignore: &self.ignore,
            roots: &roots,
            own: &OwnContainer::No,
            wsl: None,
            mounts: &self.mounts,
            versions: &self.versions,
        };
        ask_all(endpoints, &ask).unwrap()
    }

    fn one(&self, endpoint: Endpoint) -> Engine {
        self.ask(vec![endpoint]).remove(0)
    }
}

fn bind(source: &str, destination: &str) -> Value {
    json!({"Type": "bind", "Source": source, "Destination": destination})
}

#[test]
fn containers_are_listed_and_those_that_matter_are_inspected() {
    let fake = Fake::listing(json!([
        {"Id": "0a1b", "Names": ["/dev"], "State": "running", "Mounts": [bind("/src/app", "/w")]},
        {"Id": "0a1c", "State": "running", "Mounts": [bind("/", "/host")]},
        {"Id": "0a1d", "State": "exited", "Mounts": [bind("/src/app", "/w")]},
        {"Id": "0a1e", "State": "running", "Mounts": [bind("/data", "/d")]},
        {},
    ]));
    let asking = asking();
    let engine = asking.one(fake.endpoint());
    assert_eq!(engine.state, EngineState::Answered { api_version: "1.41".into() });
    let [dev, host, stopped, database, silent] = &engine.containers[..] else { panic!("{engine:?}") };
    let Init::Known(init) = &dev.init else { panic!("{dev:?}") };
    let dir = init.working_dir.as_ref().unwrap();
    assert_eq!((init.pid, dir.path.to_string().as_str()), (42, "/w/sub"));
    assert_eq!(dir.places[0].known().unwrap().path(), &LocalPath::new("/src/app/sub").unwrap());
    assert!(matches!(&host.init, Init::Unknown(why) if why.contains("404")), "{host:?}");
    assert_eq!((&stopped.init, &database.init), (&Init::NotAsked, &Init::NotAsked));
    assert_eq!((silent.state, silent.mounts[0].is_unplaceable()), (ContainerState::Unknown, true));
    let before = fake.requests();
    assert!(before.iter().all(|line| line.starts_with("GET ")), "{before:?}");
    assert!(before.iter().any(|line| line.contains("all=true")));
    asking.one(fake.endpoint());
    let again = fake.requests().split_off(before.len());
    assert!(!again.iter().any(|line| line.contains("/version")), "the version is remembered: {again:?}");
}

#[test]
fn an_engine_that_was_replaced_is_asked_for_its_version_anew() {
    let fake = Fake::serve(|path| match path {
        "/version" => Reply::Json(json!({"ApiVersion": "1.41"})),
        "/containers/json" => Reply::Json(json!([])),
        _ => Reply::Status(400),
    });
    let asking = asking();
    asking.versions.set(
        &fake.endpoint().address.to_string(),
        Some(ClientVersion { major_version: 1, minor_version: 47 }),
    );
    assert!(asking.one(fake.endpoint()).answered());
}

#[test]
fn an_engine_that_says_its_version_at_once_is_not_asked_for_more() {
    // A newer one than we know is spoken to as one that we know.
    for (says, spoken) in [("1.41", "1.41"), ("9.99", &*API_DEFAULT_VERSION.to_string())] {
        let fake = Fake::serve(move |path| match path {
            "/_ping" => Reply::Pong(says),
            path if path.ends_with("/containers/json") => Reply::Json(json!([])),
            _ => Reply::Status(404),
        });
        let state = asking().one(fake.endpoint()).state;
        assert_eq!(state, EngineState::Answered { api_version: spoken.into() });
        let asked = fake.requests();
        assert!(!asked.iter().any(|line| line.contains("/version")), "{asked:?}");
    }
}

#[test]
fn a_volume_that_is_a_directory_of_the_host_counts_as_one() {
    let fake = Fake::serve(|path| match path {
        "/version" => Reply::Json(json!({"ApiVersion": "1.41"})),
        "/containers/json" => Reply::Json(json!([{"Id": "1", "State": "exited", "Mounts": [
            {"Type": "volume", "Name": "code", "Source": "", "Destination": "/w"},
            {"Type": "volume", "Name": "plain", "Source": "", "Destination": "/d"},
            {"Type": "volume", "Name": "other", "Source": "/x", "Destination": "/e"},
        ]}])),
        _ => Reply::Json(json!({"Volumes": [
            {"Name": "code", "Driver": "local", "Mountpoint": "/v/code/_data", "Labels": null, "Scope": "local",
             "Options": {"device": "/src/app", "o": "rw,bind", "type": "none"}},
            {"Name": "plain", "Driver": "local", "Mountpoint": "/v/plain/_data", "Labels": {}, "Scope": "local",
             "Options": null},
        ]})),
    });
    let engine = asking().one(fake.endpoint());
    let sources: Vec<_> =
        engine.containers[0].mounts.iter().map(|m| format!("{:?} {}", m.kind, m.source)).collect();
    let plain = "Volume { name: Some(\"plain\") } /v/plain/_data";
    assert_eq!(sources, ["Bind /src/app", plain, "Volume { name: Some(\"other\") } /x"]);
}

#[test]
fn every_way_to_fail_is_told_apart() {
    let version = || Reply::Json(json!({"ApiVersion": "1.41"}));
    let list =
        |reply: fn() -> Reply| Fake::serve(move |path| if path == "/version" { version() } else { reply() });
    let fakes = [
        ("junk", Fake::serve(|_| Reply::Junk)),
        ("no version", Fake::serve(|_| Reply::Status(404))),
        ("closes", list(|| Reply::CloseMidAnswer)),
        ("500", list(|| Reply::Status(500))),
        ("no list", list(|| Reply::Json(json!({"a": 1})))),
        ("unheard-of state", list(|| Reply::Json(json!([{"Id": "1", "State": "sleeping"}])))),
    ];
    for (name, fake) in fakes {
        let engine = asking().one(fake.endpoint());
        assert!(
            matches!(&engine.state, EngineState::Failed(why) if !why.contains('\x1b')),
            "{name}: {engine:?}"
        );
        assert!(engine.failed() && engine.containers.is_empty(), "{name}");
    }
}

#[test]
fn an_engine_that_hangs_costs_its_limit_and_no_more() {
    let answers = Fake::listing(json!([]));
    let silent = Fake::serve(|_| Reply::Hang);
    let half = Fake::serve(|path| match path {
        "/version" => Reply::Json(json!({"ApiVersion": "1.41"})),
        "/containers/json" => Reply::Json(json!([
            {"Id": "1", "State": "running", "Mounts": [bind("/src", "/w")]},
            {"Id": "2", "State": "exited"},
        ])),
        _ => Reply::Hang,
    });
    let asking = Asking { time_limit: Duration::from_millis(400), ..asking() };
    let start = Instant::now();
    let engines = asking.ask(vec![silent.endpoint(), half.endpoint(), answers.endpoint()]);
    assert!(start.elapsed() < Duration::from_millis(1500), "{:?}", start.elapsed());
    assert_eq!(engines[0].state, EngineState::TimedOut);
    assert!(engines[1].answered() && engines[2].answered());
    assert!(matches!(engines[1].containers[0].init, Init::Unknown(_)), "its list still counts");
}

#[test]
fn a_socket_may_be_absent_dead_forbidden_or_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    drop(UnixListener::bind(path("dead")).unwrap());
    fs::write(path("file"), "").unwrap();
    let asking = Asking { ignore: vec![path("ignored").display().to_string()], ..asking() };
    let state = |name: &str| asking.one(at(path(name))).state;
    assert_eq!(state("absent"), EngineState::Missing);
    assert_eq!(state("file/below"), EngineState::Missing);
    assert_eq!(state("dead"), EngineState::Refused);
    assert_eq!(state("file"), EngineState::Failed("not a socket".into()));
    assert_eq!(state("ignored"), EngineState::Ignored);
    let remote = Endpoint { address: Address::parse(b"tcp://127.0.0.1:1"), ..at(path("x")) };
    assert_eq!(asking.one(remote).state, EngineState::Remote);
    let broken = Endpoint { address: Address::parse(b"what"), ..at(path("x")) };
    assert!(matches!(asking.one(broken).state, EngineState::Failed(_)));
    if !rustix::process::geteuid().is_root() {
        let _listener = UnixListener::bind(path("closed")).unwrap();
        fs::set_permissions(path("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        assert_eq!(state("closed"), EngineState::PermissionDenied { group: None });
    }
}

#[test]
fn a_refusal_names_the_group_that_may() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    fs::write(&path, "").unwrap();
    let denied = || refusal(&path, &io::Error::from(io::ErrorKind::PermissionDenied));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(denied(), EngineState::PermissionDenied { group: None });
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o660)).unwrap();
        assert_eq!(denied(), EngineState::PermissionDenied { group: Some("root".into()) });
    }
}

#[test]
fn ten_thousand_containers_are_no_trouble() {
    let containers: Vec<_> = (0..10_000)
        .map(|n| {
            let mounts: Vec<_> = (0..4).map(|m| bind(&format!("/data/{n}/{m}"), &format!("/m{m}"))).collect();
            json!({"Id": format!("{n:064x}"), "Names": [format!("/c{n}")], "State": "running", "Mounts": mounts})
        })
        .collect();
    let fake = Fake::listing(containers.into());
    let start = Instant::now();
    let asking = Asking { time_limit: Duration::from_secs(30), ..asking() };
    let engine = asking.one(fake.endpoint());
    eprintln!("10,000 containers: {:?}", start.elapsed());
    assert_eq!(engine.containers.len(), 10_000);
}
