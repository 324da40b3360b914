"""An agent as an ONNX model."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from iqrl.envs.spaces import channels_first, is_image
from iqrl.errors import BadInput
from iqrl.exporting.primitives import translation_of
from iqrl.exporting.program import Program, Value
from iqrl.exporting.subject import MARK, Subject

OPSET, IR = 18, 8
"""versions of the operations and of the file that runtimes since 2023 have"""


def onnx_model(subject: Subject, program: Program) -> bytes:
    """Inputs: obs [n, …] and, where contexts depend on them, first and score. Outputs: action, q_values, context."""
    onnx = _package()
    graph = Nodes(onnx)
    inputs = {value.name: _shape_of_input(subject, value) for value in program.inputs}
    for value in program.inputs:
        graph.names[value] = _in_rows(graph, subject, value)
    for step in program.steps:
        names = [graph.name(value) for value in step.inputs]
        graph.names[step.output] = translation_of(step).onnx(graph, step, names)
    found = {name: graph.name(value) for name, value in program.outputs.items()}
    found["action"] = graph.add("ArgMax", found["q_values"], axis=-1, keepdims=0)
    types = {"action": np.int64, "q_values": np.float32, "context": np.int32}
    sides = {"q_values": ["n", subject.task.actions]}
    for name, last in found.items():
        graph.nodes.append(onnx.helper.make_node("Identity", [last], [name]))
    described = lambda name, dtype, shape: onnx.helper.make_tensor_value_info(name, _type_of(onnx, dtype), shape)
    body = onnx.helper.make_graph(
        graph.nodes,
        "agent",
        [described(name, np.float32, shape) for name, shape in inputs.items()],
        [described(name, types[name], sides.get(name, ["n"])) for name in types if name in found],
        list(graph.initialisers.values()),
    )
    model = onnx.helper.make_model(
        body, producer_name=MARK, producer_version=subject.version, ir_version=IR,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)], doc_string=subject.title,
    )  # fmt: skip
    onnx.helper.set_model_props(model, {"settings": json.dumps(subject.settings)})
    onnx.checker.check_model(model)
    return model.SerializeToString()


def runner(content: bytes) -> Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]:
    """What computes the model: onnxruntime, or else the slow evaluator of the package onnx."""
    with contextlib.suppress(ImportError):
        import onnxruntime  # ty: ignore[import-not-found]

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        return lambda seen: dict(zip(names, session.run(names, seen), strict=True))
    evaluator = _package().reference.ReferenceEvaluator(content)
    return lambda seen: dict(zip(evaluator.output_names, evaluator.run(None, seen), strict=True))


def _package() -> Any:
    try:
        import onnx
        import onnx.reference
    except ImportError:
        raise BadInput('the package onnx is not installed; pip install "iqrl[onnx]", or export to numpy.') from None
    return onnx


def _type_of(onnx: Any, dtype: Any) -> int:
    return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def _shape_of_input(subject: Subject, value: Value) -> list[Any]:
    return ["n"] if value.name == "score" else ["n", *subject.observation_shape]


def _in_rows(graph: Nodes, subject: Subject, value: Value) -> str:
    """Observations as the agent has them: numbers in a row, channels last."""
    name, space = value.name, subject.observation_space
    if name == "score" or len(subject.observation_shape) == 1:
        return name
    if space is not None and is_image(space) and channels_first(space):
        name = graph.add("Transpose", name, perm=[0, 2, 3, 1])
    return graph.add("Reshape", name, graph.numbers([-1, subject.task.obs_size]))


class Nodes:
    """The graph while it is made (`primitives.Graph`)."""

    def __init__(self, onnx: Any):
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.initialisers: dict[str, Any] = {}
        self.names: dict[Value, str] = {}

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        output = f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operation, list(inputs), [output], **attributes))
        return output

    def name(self, value: Value) -> str:
        if value not in self.names:
            assert value.constant is not None
            self.names[value] = self._constant(value.constant, value.name)
        return self.names[value]

    def numbers(self, values: Any, dtype: Any = np.int64) -> str:
        return self._constant(np.asarray(values, dtype), f"numbers_{len(self.initialisers)}")

    def shape(self, sides: Any) -> str:
        """Of a reshape, which finds n itself."""
        return self.numbers([side if isinstance(side, int) else -1 for side in sides])

    def sizes(self, sides: Any) -> str:
        """All lengths, with n as it is."""
        n = self.add("Shape", "obs", start=0, end=1)
        return self.add("Concat", *(self.numbers([side]) if isinstance(side, int) else n for side in sides), axis=0)

    def cast(self, name: str, dtype: np.dtype) -> str:
        return self.add("Cast", name, to=_type_of(self.onnx, dtype))

    def _constant(self, array: np.ndarray, name: str) -> str:
        self.initialisers[name] = self.onnx.numpy_helper.from_array(
            np.ascontiguousarray(array).reshape(array.shape), name
        )
        return name
