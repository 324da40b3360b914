"""What not every operating system has is not needed: no fcntl, no resource, no flags of POSIX."""

import subprocess
import sys

WITHOUT_POSIX = """
import importlib, os, pathlib, pkgutil, sys, types, warnings
import gymnasium, jax, matplotlib.pyplot, optax, polars, rich.console, safetensors, scipy.spatial, sklearn  # theirs

for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
for name in ("sysconf", "getuid", "fork", "set_blocking", "sched_getaffinity", "sched_setaffinity", "O_NOFOLLOW",
             "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY"):
    delattr(os, name)

held = set()  # as Windows has it: a byte of a file, once
def locking(descriptor, mode, size):
    place = os.fstat(descriptor).st_ino
    if place in held:
        raise PermissionError(13, "Permission denied")
    held.add(place)
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)

import iqrl
for module in pkgutil.walk_packages(iqrl.__path__, "iqrl."):
    if module.name not in ("iqrl.sb3", "iqrl.__main__", "iqrl.cli.__main__"):  # an extra; and what runs when imported
        importlib.import_module(module.name)

from iqrl import files, locks
from iqrl.errors import BadInput
from iqrl.training.loop import physical_memory
from iqrl.training.run_directory import locked_directory

assert physical_memory() == 0
files.MOVES_OPEN_FILES = False
folder = pathlib.Path(sys.argv[1])
files.write_whole(folder / "a.txt", b"one\\n", b"two\\n")
files.write_whole(folder / "a.txt", b"three\\n", keep=folder / "b.txt")
assert files.read_bytes(folder / "a.txt") + files.read_bytes(folder / "b.txt") == b"three\\none\\ntwo\\n"
with files.new_directory(folder / "made") as scratch:
    (scratch / "inside").touch()
(folder / ".iqrl-0123456789abcdef.tmp").touch()
files.sweep(folder)
assert not locks.is_locked(folder)
with locked_directory(folder, "is being trained"):
    assert locks.is_locked(folder)
    try:
        with locked_directory(folder, "is being trained"):
            raise SystemExit("the lock was taken twice")
    except BadInput as error:
        assert str(error) == f"{folder} is being trained."
print(sorted(path.name for path in folder.iterdir()))
"""


def test_without_what_only_posix_has(tmp_path):
    command = [sys.executable, "-c", WITHOUT_POSIX, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['a.txt', 'b.txt', 'made']\n"
