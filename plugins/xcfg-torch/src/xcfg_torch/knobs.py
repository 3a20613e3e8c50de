"""The plugin's own knobs, as plain data."""

from __future__ import annotations

from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
from xcfg_torch.route_fault import FORWARDS, WHOLE

DEVICE = Knob(
    name="torch.device",
    summary="Device kind of the torch scorers; null is CUDA where there is one, else the CPU",
    source_class=SourceClass.ARITHMETIC,
    lifecycle=Lifecycle.ENGINE,
    targets=Target.BOTH,
    domain=Domain(kind=Kind.STR, values=("cpu", "cuda"), optional=True),
    semantic_scope=1,
    intrusion=1,
)
HEAD_DTYPE = Knob(
    name="torch.head_dtype",
    summary="Dtype in which the output head multiplies, its input and weights cast to it; null is the model's own",
    source_class=SourceClass.ARITHMETIC,
    lifecycle=Lifecycle.ENGINE,
    targets=Target.TRAINING,
    domain=Domain(kind=Kind.STR, values=("float32",), optional=True, aliases={"fp32": "float32"}),
    semantic_scope=1,
    intrusion=1,
)
NORM_KERNEL = Knob(
    name="torch.norm_kernel",
    summary="RMS norms by torch's one function, which rounds once, or spelt out; null is the model's own way",
    source_class=SourceClass.ARITHMETIC,
    lifecycle=Lifecycle.ENGINE,
    targets=Target.TRAINING,
    domain=Domain(kind=Kind.STR, values=("fused", "unfused"), optional=True),
    semantic_scope=1,
    intrusion=1,
)
SDPA_KERNEL = Knob(
    name="torch.sdpa_kernel",
    summary="The one kernel that torch's fused attention may run; null leaves it the choice",
    source_class=SourceClass.ARITHMETIC,
    lifecycle=Lifecycle.REQUEST,
    targets=Target.TRAINING,
    domain=Domain(kind=Kind.STR, values=("math", "flash", "efficient", "cudnn"), optional=True),
    semantic_scope=1,
    intrusion=1,
)
FORWARD = Knob(
    name="torch.forward",
    summary="Rows in one pass, prompts and then one forced token a pass, or runs of columns, keys and values kept",
    source_class=SourceClass.EXECUTION,
    lifecycle=Lifecycle.REQUEST,
    targets=Target.TRAINING,
    domain=Domain(kind=Kind.STR, values=FORWARDS),
    default=WHOLE,
    semantic_scope=1,
    intrusion=1,
    aligned={"torch.forward": WHOLE},
)
PREFILL_CHUNK = Knob(
    name="torch.prefill_chunk",
    summary="Most columns of a prefill pass under torch.forward: chunked_prefill or cached_decode; null is all",
    source_class=SourceClass.EXECUTION,
    lifecycle=Lifecycle.REQUEST,
    targets=Target.TRAINING,
    domain=Domain(kind=Kind.INT, minimum=1, optional=True),
    semantic_scope=1,
    intrusion=1,
)
ROLLOUT_PREFILL_CHUNK = Knob(
    name="torch.rollout_prefill_chunk",
    summary="Most columns of a prefill pass of a torch rollout; null is all",
    source_class=SourceClass.EXECUTION,
    lifecycle=Lifecycle.REQUEST,
    targets=Target.ROLLOUT,
    domain=Domain(kind=Kind.INT, minimum=1, optional=True),
    semantic_scope=1,
    intrusion=1,
)

KNOBS = (DEVICE, HEAD_DTYPE, NORM_KERNEL, SDPA_KERNEL, FORWARD, PREFILL_CHUNK, ROLLOUT_PREFILL_CHUNK)
"""Every knob of this plugin."""
