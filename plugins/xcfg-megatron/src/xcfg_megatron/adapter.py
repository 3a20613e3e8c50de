"""A GPTModel that looks like a Hugging Face model, so that what is shared by torch scorers can pass and observe it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from xcfg.errors import UnsupportedError
from xcfg_megatron.layers import LOCAL
from xcfg_megatron.pipeline import Pipeline

if TYPE_CHECKING:
    import torch


@cache
def adapter_class() -> type:
    """The adapter, a module of torch."""
    import torch
    from transformers.modeling_outputs import CausalLMOutput

    class HuggingFaceView(torch.nn.Module):
        """``config`` is transformers' own; ``columns`` the logits of one rank; ``kind`` its layer specification."""

        def __init__(self, gpt: Any, *, config: Any, pipeline: Pipeline, columns: int, kind: str) -> None:
            super().__init__()
            self.gpt, self.config, self.pipeline, self.columns, self.kind = gpt, config, pipeline, columns, kind

        def get_output_embeddings(self) -> Any:
            """What holds the rows of the head on this stage; None where it has none."""
            if self.pipeline.last and self.gpt.output_layer.weight is not None:
                return self.gpt.output_layer
            return self.gpt.embedding.word_embeddings if self.pipeline.first and self.pipeline.last else None

        def forward(
            self,
            *,
            input_ids: torch.Tensor,
            attention_mask: torch.Tensor,
            position_ids: torch.Tensor,
            use_cache: bool = False,
        ) -> Any:
            """Ids, mask and positions (B, T): ``logits`` (B, T, columns), the same on every pipeline stage."""
            rows, width = input_ids.shape
            mask = self._mask(attention_mask)
            self._place(position_ids, attention_mask)
            first = next(self.gpt.parameters())
            if not self.pipeline.first:
                shape = (width, rows, self.gpt.config.hidden_size)
                self.gpt.set_input_tensor(self.pipeline.receive(shape, first.dtype, first.device))
            output = self.gpt(input_ids, position_ids, mask)
            if not self.pipeline.last:
                self.pipeline.send(output)
                output = first.new_empty((rows, width, self.columns))
            return CausalLMOutput(logits=self.pipeline.from_the_end(output))

        def _mask(self, attention_mask: torch.Tensor) -> torch.Tensor | None:
            """None where causality alone keeps padding out of every scored token: where it is all on the right."""
            real = attention_mask.bool()
            if bool(real[:, 0].all()):
                return None
            if self.kind != LOCAL:
                raise UnsupportedError(
                    "Transformer Engine's causal attention takes no mask of padding on the left",
                    where="layout.padding_side",
                )
            places = torch.arange(real.shape[1], device=real.device)
            own = places[:, None] == places  # a row of padding sees itself: of nothing at all, attention is NaN
            return ((places[:, None] >= places) & real[:, None, None, :]) | own

        def _place(self, position_ids: torch.Tensor, attention_mask: torch.Tensor) -> None:
            columns = torch.arange(position_ids.shape[1], device=position_ids.device)
            counted = bool(((position_ids == columns) | ~attention_mask.bool()).all())
            self.gpt.rotary_pos_emb.positions = None if counted else position_ids

    return HuggingFaceView
