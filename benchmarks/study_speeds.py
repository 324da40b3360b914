"""The speeds by which `iqrl study list` estimates times, from finished studies or exports of them.

    python benchmarks/study_speeds.py results/table1 studies/minatar …

Writes src/iqrl/experiments/study/speeds.json: the microseconds per environment step of every task, method and buffer
size, and the time that a small piece of arithmetic takes on one core of this machine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from iqrl.experiments.study.estimate import arithmetic_seconds
from iqrl.experiments.study.results import RunRecord, load_results

TARGET = Path(__file__).parent.parent / "src" / "iqrl" / "experiments" / "study" / "speeds.json"


def entry(record: RunRecord) -> dict:
    named = {name: record.config[name] for name in ("task", "method", "buffer_size")}
    return named | {"microseconds": round(1e6 / record.info["timing"]["steps_per_second"], 2)}


def main() -> None:
    records = [record for path in sys.argv[1:] for record in load_results(path).runs]
    runs = [entry(record) for record in records if record.variant == ""]
    lines = ",\n".join(json.dumps(run) for run in runs)
    TARGET.write_text(f'{{"arithmetic_seconds": {arithmetic_seconds():.5f}, "runs": [\n{lines}\n]}}\n')
    print(f"{len(runs)} speeds written to {TARGET}")


if __name__ == "__main__":
    main()
