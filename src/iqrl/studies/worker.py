"""A worker process of the local executor: `python -m iqrl.studies.worker CORE`.

It reads work units from stdin, one JSON object a line, and answers each with a line on stdout: an empty object when the
unit is done, its error when it is not. It ends at once when stdin ends, whatever it is doing: then the study is gone.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import traceback
from typing import Any


def main() -> None:
    if hasattr(os, "sched_setaffinity") and len(sys.argv) > 1:
        os.sched_setaffinity(0, {int(sys.argv[1])})
    # stdout is for answers alone; whatever else is printed goes to the log.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    orders: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_read, args=(orders,), daemon=True).start()
    while True:
        print(json.dumps(answer_to(orders.get())), file=answers)


def _read(orders: queue.Queue) -> None:
    for line in sys.stdin:
        orders.put(json.loads(line))
    os._exit(0)


def answer_to(order: dict[str, Any]) -> dict[str, str]:
    from iqrl.errors import BadInput, RunFailed
    from iqrl.studies.directory import Unit
    from iqrl.studies.work import work

    try:
        work(Unit(**order))
    except (BadInput, RunFailed) as error:
        return {"error": str(error)}
    except KeyboardInterrupt:
        return {"error": "interrupted"}
    except BaseException as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}
    return {}


if __name__ == "__main__":
    main()
