"""An engine that lists as many containers as are asked for: a real one can't run a thousand on a small machine."""

import json
import threading
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingMixIn, UnixStreamServer


class PlayedEngine:
    """Answers at `socket` while it is entered."""

    def __init__(self, socket, containers):
        self.socket = socket
        self.answer = json.dumps([container(number) for number in range(containers)]).encode()

    def __enter__(self):
        self.socket.unlink(missing_ok=True)
        self.server = Server(str(self.socket), handler(self.answer))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.socket.unlink(missing_ok=True)


class Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


def handler(containers):
    version = json.dumps({"Version": "played", "ApiVersion": "1.41", "MinAPIVersion": "1.12"}).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            path = self.path.split("?")[0]
            known = {"/version": version, "/containers/json": containers}
            body = next((body for end, body in known.items() if path.endswith(end)), None)
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body or b"{}")))
            self.end_headers()
            self.wfile.write(body or b"{}")

        def log_message(self, *_):
            pass

        def address_string(self):
            return "here"

    return Handler


def container(number):
    """A stopped container that mounts a directory of its own, as dev containers do."""
    mount = {"Type": "bind", "Source": f"/srv/other/app{number}", "Destination": f"/workspaces/other{number}",
             "Mode": "", "RW": True, "Propagation": "rprivate"}
    return {
        "Id": f"{number:064x}",
        "Names": [f"/dev{number}"],
        "Image": "devbase",
        "ImageID": f"sha256:{number:064x}",
        "Command": "sleep infinity",
        "Created": 1767000000,
        "State": "exited",
        "Status": "Exited (0) 3 days ago",
        "Labels": {"devcontainer.local_folder": f"/srv/other/app{number}"},
        "Mounts": [mount],
    }
