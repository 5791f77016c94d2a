"""The command of the documentation's examples, run by a process that has everything loaded.

It forks for each.

Starting Python and importing what a run needs takes longer than most examples; the words, the exit
code and the files are those of the command as it is installed. ``python warm.py SOCKET`` serves;
``install`` writes the ``gradestack`` that asks it.
"""

import contextlib
import json
import os
import socket
import sys
import tempfile
from pathlib import Path

ASKING = """\
#!{python} -IS
import json, os, socket, sys
if os.environ.get("PYTHONPATH") != {pythonpath!r}:
    os.execv({python!r}, [{python!r}, "-m", "gradestack.cli", *sys.argv[1:]])
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
said = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode() + b"\\n"
socket.send_fds(server, [said[:1000]], [0, 1, 2])
server.sendall(said[1000:])
os._exit(int(server.recv(8) or 70))
"""


def install(folder, address, environment):
    """Write a ``gradestack`` into a directory that has the server do what it is told."""
    program = folder / "gradestack"
    values = {
        "python": sys.executable,
        "pythonpath": environment["PYTHONPATH"],
        "address": str(address),
    }
    program.write_text(ASKING.format(**values))
    program.chmod(0o755)


def _main(arguments):
    from gradestack.cli.commands import main

    sys.argv = ["gradestack", *arguments]
    try:
        main()
    except SystemExit as ended:
        return ended.code or 0
    return 0


def _answer(server):
    received, files, _, _ = socket.recv_fds(server, 65_536, 3)
    while not received.endswith(b"\n"):
        received += server.recv(65_536)
    arguments, folder, environment = json.loads(received)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    code = _main(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    server.sendall(str(code).encode())


def serve(address):
    """Fork for each command until this process is ended."""
    sys.path.pop(0)  # the directory of this file, which the installed command does not search
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{address}.new")
    listening.listen()
    Path(f"{address}.new").rename(address)
    file_path = Path(__file__)
    recording = file_path.parents[2] / "examples/airline/results.json"
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["grade", str(recording), "--quiet", "-o", f"{folder}/out"]
        _main(arguments)
    while True:
        server, _ = listening.accept()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not os.fork():
            listening.close()
            try:
                _answer(server)
            finally:
                os._exit(70)
        server.close()


if __name__ == "__main__":
    serve(sys.argv[1])
