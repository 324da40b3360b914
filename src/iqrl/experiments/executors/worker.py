"""A worker process of the local executor: `python -m iqrl.experiments.executors.worker CORE`.

It reads work units from stdin, one JSON object a line, and replies to each with a line on stdout: an empty object when
the unit is done, its error when it is not. It ends at once when stdin ends, whatever it is doing: then the process of
the study has ended.
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
    # stdout is for replies alone; whatever else is printed goes to the log.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    while True:
        print(json.dumps(reply_to(requests.get())), file=replies)


def _read(requests: queue.Queue) -> None:
    for line in sys.stdin:
        requests.put(json.loads(line))
    os._exit(0)


def reply_to(request: dict[str, Any]) -> dict[str, str]:
    """Run the unit of a request; {} or {"error": why}."""
    from iqrl.errors import BadInput, RunFailed
    from iqrl.experiments.study.directory import WorkUnit
    from iqrl.experiments.study.work import run_unit

    try:
        run_unit(WorkUnit(**request))
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
