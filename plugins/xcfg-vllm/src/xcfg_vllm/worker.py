"""The worker extension: what ``collective_rpc`` can ask each vLLM worker. Reading only, except the forcing hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xcfg_vllm.adapter_facts import adapter_facts
from xcfg_vllm.layer_facts import int8_sums, linear_facts
from xcfg_vllm.meter import Meter, dtype_name
from xcfg_vllm.model_facts import attention_facts, compile_facts, logit_facts, parallel_facts, weight_facts
from xcfg_vllm.sampler_watch import watch_sampler
from xcfg_vllm.state_digest import state_digest
from xcfg_vllm.told_names import TOLD


class WorkerProbe:
    """Mixed into vLLM's worker class through ``worker_extension_cls``; every name starts with ``xcfg_``.

    ``xcfg_install`` goes first, once. All answers are plain data.
    """

    model_runner: Any
    vllm_config: Any
    get_model: Callable[[], Any]
    _xcfg_kernel: Any = None
    _xcfg_step: Any = None

    def xcfg_install(self, force: bool) -> dict[str, Any]:
        """Hook the meter and, for Model Runner V1, forcing. Says what was hooked."""
        runner = self.model_runner
        model = self.get_model()
        self._xcfg_meter = meter = Meter()
        self._xcfg_meter_steps(runner, meter)
        eager = not compile_facts(model, runner)["compile_wrapped"]
        hooked = _meter_dtypes(model, meter, linears=eager)
        watched = watch_sampler(runner.sampler, meter)
        if force:
            from xcfg_vllm.forcing import forcing_sample

            runner.sampler.sample = forcing_sample(runner.sampler.sample, meter.saw_forced)
        return {
            "linears": hooked,
            "sampler": watched,
            "runner": type(runner).__module__ + "." + type(runner).__qualname__,
        }

    def xcfg_meter(self, reset: bool = False) -> dict[str, Any]:
        """What this worker has seen since the last reset."""
        facts = self._xcfg_meter.facts()
        if reset:
            self._xcfg_meter.reset()
        return facts

    def xcfg_told(self) -> dict[str, Any] | None:
        """What a :class:`~xcfg_vllm.told_scheduler.ToldScheduler` told with its latest step; None of any other."""
        told: dict[str, Any] | None = getattr(self._xcfg_step, TOLD, None)
        return told

    def xcfg_facts(self) -> dict[str, Any]:
        """Attention, KV cache, weights, compilation, parallel group, threads and sampler as they are now."""
        model, runner = self.get_model(), self.model_runner
        context = self.vllm_config.compilation_config.static_forward_context
        return {
            "attention": attention_facts(context),
            "weights": weight_facts(model),
            "linears": linear_facts(model),
            "int8_sums": int8_sums(model),
            "quantization": self.vllm_config.model_config.quantization,
            "adapters": adapter_facts(model, runner),
            "compile": compile_facts(model, runner),
            "parallel": parallel_facts(),
            "logits": logit_facts(model),
            "logprobs_mode": getattr(runner.sampler, "logprobs_mode", None),
            "model_class": type(model).__name__,
        }

    def xcfg_host(self, target: str, request: dict[str, Any]) -> str:
        """Bind a kernel backend (:class:`~xcfg_vllm.hosted.Hosted`) and say why it cannot be; empty where it can."""
        from xcfg_vllm.hosted import Hosted

        self._xcfg_kernel = Hosted(self.model_runner.sampler)
        self._xcfg_kernel.bind(target, request)
        return self._xcfg_kernel.refusal

    def xcfg_hosted(self) -> dict[str, Any] | None:
        """The kernel this worker called since it was bound."""
        return self._xcfg_kernel.told()

    def xcfg_unhost(self) -> None:
        """Give the sampler its own methods back."""
        if self._xcfg_kernel is not None:
            self._xcfg_kernel.undo()

    def xcfg_digest(self) -> dict[str, Any]:
        """See ``state_digest``."""
        return state_digest(self.get_model())

    def _xcfg_meter_steps(self, runner: Any, meter: Meter) -> None:
        execute = runner.execute_model

        def metered(scheduler_output: Any, *rest: Any, **named: Any) -> Any:
            self._xcfg_step = scheduler_output
            meter.saw_step(scheduler_output)
            return execute(scheduler_output, *rest, **named)

        runner.execute_model = metered


def _meter_dtypes(model: Any, meter: Meter, *, linears: bool) -> int:
    """Record input dtypes of the head and, unless compiled, of every linear layer. Returns linear layers hooked."""
    from vllm.lora.layers.base_linear import BaseLinearLayerWithLoRA
    from vllm.model_executor.layers.linear import LinearBase
    from vllm.model_executor.layers.logits_processor import LogitsProcessor

    hooked = 0
    for module in model.modules():
        if isinstance(module, LogitsProcessor):
            module.register_forward_pre_hook(_saw_dtype(meter, "head_dtypes", 1), with_kwargs=True)
        elif linears and isinstance(module, LinearBase | BaseLinearLayerWithLoRA):
            module.register_forward_pre_hook(_saw_dtype(meter, "linear_dtypes", 0), with_kwargs=True)
            hooked += 1
    return hooked


def _saw_dtype(meter: Meter, counter: str, position: int) -> Any:
    def hook(module: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        tensor = args[position] if len(args) > position else named.get("hidden_states", named.get("input_"))
        if tensor is not None:
            getattr(meter, counter)[dtype_name(tensor.dtype)] += 1

    return hook
