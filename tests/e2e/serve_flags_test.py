#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `sluice-headless serve` does with its options, on a real process: keys, TLS, pages of other origins, names, editors'
ports, and how it stops while answers are being made.

    serve_flags_test.py SLUICE_HEADLESS MODEL.gguf RECIPE_FOLDER

Standard library and the openssl program only. Exit 0 when every check passed."""
import fcntl
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from sluice_server import NotStarted, Server, call  # noqa: E402

PROGRAM, MODEL, RECIPES = sys.argv[1:4]
EDITOR_PORTS = (8081, 8082)


class ServeFlagsTest(unittest.TestCase):
    def setUp(self):
        temp = tempfile.TemporaryDirectory()
        self.addCleanup(temp.cleanup)
        self.folder = Path(temp.name)

    def serve(self, *words):
        server = Server(PROGRAM, str(self.folder / "ws"), *words, model=MODEL, stderr=subprocess.PIPE)
        self.addCleanup(server.process.stdout.close)
        self.addCleanup(lambda: server.process.poll() is None and server.kill())
        return server

    def refused(self, *words):
        """Exit status and words of a server that does not start."""
        ran = subprocess.run([PROGRAM, "serve", "--data", str(self.folder / "ws"), "--model", MODEL, "--port", "0", *words],
                             capture_output=True, text=True, timeout=120)
        self.assertEqual(ran.stdout, "")
        return ran.returncode, ran.stderr

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    @staticmethod
    def complete(server, headers=None, **fields):
        return server.call("/v1/completions", {"prompt": "Hello", "max_tokens": 4, "temperature": 0, **fields}, headers=headers)

    # ---- who may ----

    def test_api_key_file(self):
        keys = self.write("keys", "# the team\n\nfull-key\nclient:small-key  \r\n")
        server = self.serve("--api-key-file", keys)
        self.assertEqual(server.call("/health"), (200, {"status": "ok"}))
        status, answer = self.complete(server)
        self.assertEqual((status, answer["error"]["code"]), (401, "invalid_api_key"))
        for header in ({"Authorization": "Bearer small-key"}, {"x-api-key": "full-key"}, {"api-key": "small-key"}):
            self.assertEqual(self.complete(server, header)[0], 200, header)
        self.assertEqual(self.complete(server, {"x-api-key": "client:small-key"})[0], 401)
        status, answer = server.call("/sluice/v1/status", headers={"x-api-key": "small-key"})
        self.assertEqual((status, answer["error"]["code"]), (403, "insufficient_scope"))
        self.assertEqual(server.call("/sluice/v1/status", headers={"x-api-key": "full-key"})[0], 200)
        self.assertEqual(server.stop(), 0)

    def test_key_files_that_cannot_be_meant(self):
        status, said = self.refused("--api-key-file", self.write("empty", "# none\n"))
        self.assertEqual(status, 2)
        self.assertIn("holds no key", said)
        status, said = self.refused("--api-key-file", str(self.folder / "absent"))
        self.assertNotEqual(status, 0)
        self.assertIn("absent", said)

    def test_deterministic_reaches_the_engine(self):
        for words, wanted in (((), False), (("--deterministic",), True)):
            server = self.serve(*words)
            status, answer = server.call("/sluice/v1/status")
            self.assertEqual((status, answer["deterministic"]), (200, wanted))
            self.assertEqual(self.complete(server)[0], 200)
            self.assertEqual(server.stop(), 0)

    def test_cors_origins(self):
        server = self.serve("--cors-origins", "https://a.example, https://b.example")
        ask = {"Origin": "https://b.example", "Access-Control-Request-Method": "POST",
               "Access-Control-Request-Headers": "x-stainless-os"}
        with urllib.request.urlopen(urllib.request.Request(server.url + "/v1/completions", method="OPTIONS", headers=ask)) as answer:
            self.assertEqual(answer.status, 204)
            self.assertEqual(answer.headers["Access-Control-Allow-Origin"], "https://b.example")
            self.assertEqual(answer.headers["Access-Control-Allow-Headers"], "x-stainless-os")
        self.assertEqual(server.call("/v1/completions", method="OPTIONS", headers={**ask, "Origin": "https://c.example"})[0], 403)
        status, answer = server.call("/sluice/v1/status", headers={"Origin": "https://c.example"})
        self.assertEqual((status, answer["error"]["code"]), (403, "origin_not_allowed"))
        self.assertEqual(server.stop(), 0)
        status, said = self.refused("--cors-origins", "a.example")
        self.assertNotEqual(status, 0)
        self.assertIn("a.example", said)

    def test_allowed_hosts(self):
        server = self.serve("--allowed-hosts", "box.lan,other.lan")
        self.assertEqual(server.call("/health", headers={"Host": "other.lan"})[0], 200)
        status, answer = server.call("/health", headers={"Host": "evil.lan"})
        self.assertEqual((status, answer["error"]["code"]), (403, "host_not_allowed"))
        self.assertEqual(server.stop(), 0)

    # ---- beyond loopback ----

    def certificate(self):
        cert, key = str(self.folder / "cert.pem"), str(self.folder / "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                       check=True, capture_output=True)
        return cert, key

    def test_tls(self):
        cert, key = self.certificate()
        server = self.serve("--tls-cert", cert, "--tls-key", key)
        self.assertTrue(server.url.startswith("https://127.0.0.1:"), server.url)
        trusting = ssl.create_default_context(cafile=cert)
        with urllib.request.urlopen(server.url + "/health", context=trusting, timeout=60) as answer:
            self.assertEqual(json.loads(answer.read()), {"status": "ok"})
        plain = http.client.HTTPConnection("127.0.0.1", int(server.url.rsplit(":", 1)[1]), timeout=60)
        with self.assertRaises((http.client.HTTPException, ConnectionError)):
            plain.request("GET", "/health")
            plain.getresponse()
        self.assertEqual(server.stop(), 0)

    def test_tls_files_that_cannot_be_used_are_named(self):
        cert, key = self.certificate()
        for words, what in ((["--tls-cert", cert], "key"), (["--tls-key", key], "certificate"),
                            (["--tls-cert", cert, "--tls-key", str(self.folder / "absent.pem")], "absent.pem"),
                            (["--tls-cert", self.write("rubbish.pem", "rubbish"), "--tls-key", key], "rubbish.pem")):
            status, said = self.refused(*words)
            self.assertNotEqual(status, 0, words)
            self.assertIn(what, said)

    def test_another_address_needs_keys_and_encryption(self):
        keys = self.write("keys", "k\n")
        status, said = self.refused("--host", "0.0.0.0")
        self.assertNotEqual(status, 0)
        self.assertIn("API keys", said)
        status, said = self.refused("--host", "0.0.0.0", "--api-key-file", keys)
        self.assertNotEqual(status, 0)
        self.assertIn("--behind-proxy", said)
        status, said = self.refused("--host", "0.0.0.0", "--behind-proxy")
        self.assertNotEqual(status, 0)
        server = self.serve("--host", "0.0.0.0", "--behind-proxy", "--api-key-file", keys)
        url = "http://127.0.0.1:" + server.url.rsplit(":", 1)[1]
        self.assertEqual(call(url, "/v1/models")[0], 401)
        self.assertEqual(call(url, "/v1/models", headers={"x-api-key": "k"})[0], 200)
        self.assertEqual(server.stop(), 0)

    # ---- names and ports ----

    def test_aliases(self):
        server = self.serve("--aliases", "my-qwen-coder, spare")
        listed = [model["id"] for model in server.call("/v1/models")[1]["data"]]
        self.assertEqual((listed[0], listed[-1], listed.count("sluice")), ("my-qwen-coder", "spare", 0))
        for name in ("my-qwen-coder", "spare"):
            status, answer = self.complete(server, model=name)
            self.assertEqual((status, answer["model"], answer["sluice"]["adapter"]), (200, name, "base"))
        status, answer = self.complete(server, model="sluice")
        self.assertEqual((status, answer["error"]["code"]), (404, "model_not_found"))
        status, answer = server.call("/sluice/v1/adapters", {"name": "spare", "path": "/nowhere"})
        self.assertEqual((status, answer["error"]["code"]), (409, "name_in_use"))
        self.assertEqual(server.stop(), 0)
        status, said = self.refused("--aliases", "a b")
        self.assertEqual(status, 2)
        self.assertIn("a b", said)

    def test_compat_rlinf(self):
        with socket.socket() as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                holder.bind(("127.0.0.1", EDITOR_PORTS[1]))
                holder.listen()
            except OSError:
                pass  # somebody else holds it, which is as good
            status, said = self.refused("--compat-rlinf")
            self.assertEqual(status, 1)
            self.assertRegex(said, "808[12]")
        try:
            server = self.serve("--compat-rlinf", "--recipe", RECIPES + "/be-brief.json")
        except NotStarted as why:
            self.skipTest(f"the editors' ports are taken: {why}")
        sampling = json.loads(Path(RECIPES, "be-brief.json").read_text())["sampling"]
        for port, expected in ((EDITOR_PORTS[0], (sampling["temperature"], sampling["max_tokens"])), (None, (1, 16))):
            url = f"http://127.0.0.1:{port}" if port else server.url
            status, answer = call(url, "/v1/completions", {"prompt": "int a", "stop": ["\n\n"]})
            self.assertEqual(status, 200, answer)
            record = server.call("/sluice/v1/records/" + answer["sluice"]["record_id"])[1]
            self.assertAlmostEqual(record["temperature"], expected[0], places=6)
            self.assertEqual(record["max_tokens"], expected[1])
        event = {"completionId": "c", "prompt": "int a", "completion": answer["choices"][0]["text"], "accepted": True}
        status, answer = call(f"http://127.0.0.1:{EDITOR_PORTS[1]}", "/api/training/submit", event)
        self.assertEqual((status, answer["status"]), (200, "submitted"))
        self.assertEqual(server.stop(), 0)

    # ---- the beginning ----

    def held_model(self):
        """A model file whose opening waits until the returned descriptor is closed: 45 s at most, says the kernel."""
        path = self.folder / "held.gguf"
        shutil.copy(MODEL, path)
        signal.signal(signal.SIGIO, signal.SIG_IGN)  # tells the holder that somebody waits
        holder = os.open(path, os.O_RDWR)
        fcntl.fcntl(holder, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        return str(path), holder

    def test_it_listens_while_the_model_loads(self):
        model, holder = self.held_model()
        process = subprocess.Popen([PROGRAM, "serve", "--data", str(self.folder / "ws"), "--model", model, "--port", "0"],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        line = process.stdout.readline()
        self.assertTrue(line.startswith("Listening on http://127.0.0.1:"), line)
        port = line.split(";")[0].rsplit(":", 1)[1]
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=120)
        self.addCleanup(connection.close)

        def ask(method, path, body=None):
            connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.headers, json.loads(answer.read())

        prompt = {"prompt": "Hello", "max_tokens": 4}
        status, headers, answer = ask("GET", "/health")
        self.assertEqual((status, answer), (503, {"status": "loading"}))
        status, headers, answer = ask("POST", "/v1/completions", prompt)
        self.assertEqual((status, answer["error"]["code"], answer["error"]["type"]), (503, "model_loading", "unavailable_error"))
        self.assertGreaterEqual(int(headers["Retry-After"]), 1)
        # Another program on the same port is told so.
        other = subprocess.run([PROGRAM, "serve", "--data", str(self.folder / "other"), "--model", MODEL, "--port", port],
                               capture_output=True, text=True, timeout=60)
        self.assertEqual((other.returncode, other.stdout), (1, ""))
        self.assertIn(f"Port {port} is in use", other.stderr)
        os.close(holder)
        self.assertTrue(process.stdout.readline().startswith("Serving "))
        self.assertEqual(ask("GET", "/health")[0], 200)
        self.assertEqual(ask("POST", "/v1/completions", prompt)[0], 200)
        process.terminate()
        self.assertEqual(process.wait(60), 0)

    # ---- the end ----

    def open_stream(self, server):
        """A stream of which one event was read. It can't end before the rest is: that is more than all buffers hold."""
        connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rsplit(":", 1)[1]), timeout=300)
        body = {"prompt": ["a"] * 32, "n": 16, "max_tokens": 100, "ignore_eos": True, "temperature": 1, "stream": True}
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        stream = connection.getresponse()
        self.assertEqual(stream.status, 200)
        self.assertTrue(stream.readline().startswith(b"data: "))
        self.addCleanup(connection.close)
        return stream

    @staticmethod
    def rest_of(stream):
        try:
            return stream.read()
        except (http.client.IncompleteRead, ConnectionError) as cut:
            return getattr(cut, "partial", b"")

    def test_a_stop_lets_answers_end_and_takes_no_new_ones(self):
        server = self.serve("--drain", "600")
        stream = self.open_stream(server)
        server.process.terminate()
        self.assertTrue(server.process.stdout.readline().startswith("Stopping: "))
        while server.call("/health")[0] == 200:
            pass
        self.assertEqual(server.call("/health"), (503, {"status": "stopping"}))
        status, answer = self.complete(server)
        self.assertEqual((status, answer["error"]["code"], answer["error"]["type"]), (503, "shutting_down", "unavailable_error"))
        rest = stream.read()
        self.assertTrue(rest.endswith(b"data: [DONE]\n\n"))
        self.assertEqual(rest.count(b'"finish_reason":"length"'), 32 * 16)
        self.assertEqual(server.process.wait(120), 0)

    def test_a_second_signal_ends_them_at_once(self):
        server = self.serve("--drain", "600")
        stream = self.open_stream(server)
        server.process.terminate()
        self.assertTrue(server.process.stdout.readline().startswith("Stopping: "))
        server.process.terminate()
        self.assertNotIn(b"[DONE]", self.rest_of(stream))
        self.assertEqual(server.process.wait(120), 0)

    def test_without_a_drain_they_end_at_once(self):
        server = self.serve("--drain", "0")
        stream = self.open_stream(server)
        server.process.terminate()
        self.assertNotIn(b"[DONE]", self.rest_of(stream))
        self.assertEqual(server.process.wait(120), 0)
        status, said = self.refused("--drain", "-1")
        self.assertEqual(status, 2)
        self.assertIn("--drain", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
