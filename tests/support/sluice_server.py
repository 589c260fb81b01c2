# SPDX-License-Identifier: GPL-3.0-or-later
"""`sluice-headless serve` as a process on a free port, and JSON calls to it. Standard library only.

Scripts of other folders import it after sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))."""
import json
import subprocess
import threading
import urllib.error
import urllib.request


def call(url, path, body=None, method=None, headers=None):
    """Status and parsed body, of errors too; POST where there is a body."""
    request = urllib.request.Request(url + path, method=method or ("GET" if body is None else "POST"),
                                     data=None if body is None else json.dumps(body).encode(),
                                     headers={"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


class NotStarted(RuntimeError):
    """The program ended, or said something else, before it served."""


class Server:
    """Ready once made, since `serve` prints its line when the model is loaded. With stderr=subprocess.PIPE what the program says
    there is gathered in `errors`; otherwise it goes where subprocess.Popen sends it."""

    def __init__(self, program, folder, *extra, model=None, env=None, stderr=None):
        words = [program, "serve", "--data", folder, "--port", "0", *(["--model", model] if model else []), *extra]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=stderr, text=True, env=env)
        self.errors = []
        if stderr == subprocess.PIPE:
            threading.Thread(target=self._drain, daemon=True).start()
        line = self.process.stdout.readline()
        while line.startswith("Listening on "):  # said where loading takes a while
            line = self.process.stdout.readline()
        if not line.startswith("Serving ") or " on http" not in line:
            try:
                code = self.process.wait(30)
            except subprocess.TimeoutExpired:
                code = "none yet"
            self.kill()
            raise NotStarted(f"the server did not start: {line!r}, exit status {code} {self.errors}")
        self.url = line.rsplit(" ", 1)[1].strip()

    def _drain(self):
        with self.process.stderr as lines:
            self.errors.extend(lines)

    def call(self, path, body=None, method=None, headers=None):
        return call(self.url, path, body, method, headers)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        """As a user stops it; its exit status."""
        self.process.terminate()
        code = self.process.wait(60)
        self.process.stdout.close()
        return code
