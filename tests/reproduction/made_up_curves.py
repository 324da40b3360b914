"""Made-up curves in both forms in which the authors' curves can be read."""

import struct

import numpy as np

from iqrl.reproduction.printed import ATARI_SETTINGS, ENCODER_SETTINGS, ITERATIONS


def make_up(seed=0):
    """By name as in a file of arrays; Pong/10000/DQN has run 4 saved over run 1, Freeway/10000/DQN a run of zeros."""
    generator = np.random.default_rng(seed)
    prefixed = [("", setting) for setting in ATARI_SETTINGS]
    prefixed += [("RE_TE_compare/", setting) for setting in ENCODER_SETTINGS]
    arrays = {
        f"{prefix}{it.game}/{it.buffer_size}/{it.method}/{run}": generator.normal(size=ITERATIONS).cumsum()
        for prefix, it in prefixed
        for run in range(1, 6)
    }
    arrays["tfevents/Pong/10000/DQN/1"] = np.float32(arrays["Pong/10000/DQN/1"]).astype(float)
    arrays["Pong/10000/DQN/1"] = arrays["Pong/10000/DQN/4"]
    arrays["Freeway/10000/DQN/2"] = np.zeros(ITERATIONS)
    arrays["Freeway/10000/DQN/3"] = np.zeros(ITERATIONS)
    return arrays


def write_clone(root, arrays):
    """Folders as in the authors' repository, where some names are in lower case."""
    for name, curve in arrays.items():
        if not name.startswith("tfevents/"):
            folder = root / folder_of(name)
            folder.mkdir(parents=True)
            np.save(folder / "training_performance.npy", curve)
    write_log(
        root / folder_of("Pong/10000/DQN/1") / "events.out.tfevents.1.external", arrays["tfevents/Pong/10000/DQN/1"]
    )
    write_log(root / folder_of("Pong/10000/DQN/4") / "events.out.tfevents.1.external", arrays["Pong/10000/DQN/4"])


def folder_of(name):
    *prefix, game, size, method, run = name.split("/")
    family = "rainbow" if (game, size) == ("Tennis", "10000") and method.startswith("Rainbow") else method.split("+")[0]
    part = method.partition("+")[2]
    if prefix:
        return f"IQ-RE/RE_TE_compare/{game}/{part.removeprefix('IQ-')}_{family}_{run}"
    return f"IQ-RE/experiments/{game}/RBS={size}/{ {'': '', 'SRNN': 'SRNN_', 'IQ-RE': 'IQ_'}[part] }{family}_{run}"


def write_log(path, curve, first=0):
    """TensorBoard's format: a header, and a record for each iteration with two numbers in it."""
    with open(path, "wb") as file:
        file.write(_frame(b"\x09" + bytes(8) + b"\x1a\x0dbrain.Event:2"))
        for iteration, value in enumerate(curve, first):
            numbers = _number(b"Train/NumEpisodes", 30.0) + _number(b"Train/AverageReturns", value)
            step = b"\x10" + _digits(iteration) if iteration else b""
            file.write(_frame(b"\x09" + bytes(8) + step + b"\x2a" + bytes([len(numbers)]) + numbers))


def _frame(record):
    return struct.pack("<Q", len(record)) + bytes(4) + record + bytes(4)


def _number(tag, value):
    inside = b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + struct.pack("<f", value)
    return b"\x0a" + bytes([len(inside)]) + inside


def _digits(number):
    return bytes([number]) if number < 128 else bytes([number % 128 + 128]) + _digits(number // 128)
