"""Loading a Hugging Face model directory, from its own files and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xcfg.errors import InvalidInput
from xcfg_torch.dtypes import torch_dtype
from xcfg_torch.weights_check import check_weights


def load_model(
    folder: Path,
    *,
    dtype: str | None,
    attention: str | None,
    trust_remote_code: bool = False,
    device: Any = "cpu",
    distributed: Any = None,
) -> Any:
    """The causal language model in ``folder``, in evaluation mode, on ``device``.

    ``dtype`` None keeps the checkpoint's own; ``attention`` None keeps the model's own choice; ``distributed`` is
    transformers' DistributedConfig, by which each rank loads its part. Only safetensors are read: they are what the
    checkpoint digest covers. Raises InvalidInput where the folder is missing, cannot be read, or does not hold exactly
    the weights that config.json asks for.
    """
    import transformers
    from safetensors import SafetensorError

    if not folder.is_dir():
        raise InvalidInput("no model directory here", where=str(folder), hint="give the folder with config.json")
    split = {} if distributed is None else {"distributed_config": distributed}
    try:
        model, report = transformers.AutoModelForCausalLM.from_pretrained(
            folder,
            dtype="auto" if dtype is None else torch_dtype(dtype),
            attn_implementation=attention,
            trust_remote_code=trust_remote_code,
            local_files_only=True,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported and refused below, by name
            **split,
        )
    except (OSError, ValueError, SafetensorError) as error:
        raise InvalidInput(f"transformers cannot load this model: {error}", where=str(folder)) from error
    check_weights(model, report, folder)
    return model.eval().to(device)


def load_tokenizer(folder: Path, *, trust_remote_code: bool = False) -> Any:
    """The tokenizer in ``folder``. Raises InvalidInput where it is missing or unreadable."""
    import transformers

    try:
        return transformers.AutoTokenizer.from_pretrained(
            folder, trust_remote_code=trust_remote_code, local_files_only=True
        )
    except Exception as error:  # the tokenizers library raises bare Exception on a file it cannot parse
        raise InvalidInput(f"cannot read the tokenizer: {error}", where=str(folder)) from error
