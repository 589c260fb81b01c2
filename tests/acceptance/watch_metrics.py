#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps the last /metrics of a server in a file until the server is gone: watch_metrics.py URL FILE PROCESS_ID

Reads every half second while the process lives; a read that fails leaves the file as it was."""
import http.client
import os
import sys
import time
import urllib.request


def main():
    url, path, process = sys.argv[1], sys.argv[2], int(sys.argv[3])
    while True:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        try:
            with urllib.request.urlopen(url + "/metrics", timeout=10) as answer:
                text = answer.read()
        except (OSError, http.client.HTTPException):
            text = b""  # not yet, or no longer
        if text:
            with open(path + ".new", "wb") as file:
                file.write(text)
            os.replace(path + ".new", path)
        time.sleep(0.5)


if __name__ == "__main__":
    main()
