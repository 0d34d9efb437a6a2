//! Which version of its API an engine speaks, by the question that costs it least: every engine says it in a header of its
//! answer to `/_ping`. Docker takes sixty times as long for `/version`, which bollard asks.

use bollard::ClientVersion;
use tokio::net::UnixStream;

const REQUEST: &[u8] = b"GET /_ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
/// The headers of such an answer have some hundred bytes.
const LIMIT: usize = 8 << 10;

/// Asks at `stream`, which was just connected; `None` if the answer is not the usual one. The caller limits the time.
pub(super) async fn api_version(stream: &UnixStream) -> Option<ClientVersion> {
    send(stream).await?;
    version_in(&head(stream).await?)
}

/// The version in the status line and the headers of an answer.
fn version_in(head: &[u8]) -> Option<ClientVersion> {
    let mut lines = std::str::from_utf8(head).ok()?.lines();
    let status = lines.next()?;
    let answered = status.starts_with("HTTP/1.") && status.split(' ').nth(1) == Some("200");
    let value = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("api-version").then(|| value.trim())
    });
    value.filter(|_| answered).and_then(parse)
}

fn parse(version: &str) -> Option<ClientVersion> {
    let (major, minor) = version.split_once('.')?;
    Some(ClientVersion { major_version: major.parse().ok()?, minor_version: minor.parse().ok()? })
}

async fn send(stream: &UnixStream) -> Option<()> {
    let mut rest = REQUEST;
    while !rest.is_empty() {
        stream.writable().await.ok()?;
        match stream.try_write(rest) {
            Ok(sent) => rest = &rest[sent..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
    Some(())
}

/// What comes before the first empty line.
async fn head(stream: &UnixStream) -> Option<Vec<u8>> {
    let mut bytes = vec![0; LIMIT];
    let mut length = 0;
    loop {
        if let Some(end) = bytes[..length].windows(4).position(|four| four == b"\r\n\r\n") {
            bytes.truncate(end);
            return Some(bytes);
        }
        stream.readable().await.ok()?;
        match stream.try_read(&mut bytes[length..]) {
            // The end, or no more room.
            Ok(0) => return None,
            Ok(more) => length += more,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_usual_answer_tells_a_version() {
        let version = |head: &str| version_in(head.as_bytes()).map(|v| v.to_string());
        let usual = "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nServer: x";
        assert_eq!(version(usual).as_deref(), Some("1.41"));
        assert_eq!(version("HTTP/1.0 200\r\nServer: x\r\nAPI-VERSION:1.9").as_deref(), Some("1.9"));
        for other in [
            "",
            "HTTP/1.1 404 Not Found\r\nApi-Version: 1.41",
            "HTTP/1.1 200 OK\r\nLibpod-Api-Version: 5.0.0",
            "HTTP/1.1 200 OK\r\nApi-Version: 5.0.0",
            "HTTP/1.1 200 OK\r\nApi-Version: one",
            "SSH-2.0-x\r\nApi-Version: 1.41",
        ] {
            assert_eq!(version(other), None, "{other}");
        }
    }

    #[test]
    fn an_answer_without_an_end_is_none() {
        use std::io::Write;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let asked = |answer: Vec<u8>| {
            let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            // We hang up before all of it is said.
            let saying = std::thread::spawn(move || theirs.write_all(&answer).is_ok());
            let version = runtime.block_on(async { api_version(&UnixStream::from_std(ours).unwrap()).await });
            saying.join().unwrap();
            version.map(|v| v.to_string())
        };
        let usual = b"HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\n\r\nOK";
        assert_eq!(asked(usual.to_vec()).as_deref(), Some("1.41"));
        assert_eq!(asked(usual[..30].to_vec()), None, "it hangs up");
        assert_eq!(asked([&usual[..20], &[b'x'; 1 << 20]].concat()), None, "it has no end");
    }
}
