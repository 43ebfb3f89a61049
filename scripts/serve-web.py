#!/usr/bin/env python3
"""Serves build/web on this machine alone, with the types and headers that threads and WebAssembly want.

Any static server will do: the page brings a service worker that adds the headers itself after the first load.
"""
import functools
import http.server
import sys
from pathlib import Path


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript", ".wasm": "application/wasm", ".webmanifest": "application/manifest+json",
        ".berth": "text/plain",
    }

    def end_headers(self):
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/web")
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 8080
    if not (folder / "index.html").is_file():
        sys.exit(f"{folder}/index.html is not there; 'make web' makes it")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Handler, directory=folder))
    print(f"http://localhost:{port}/ shows {folder}; Ctrl-C ends it")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
