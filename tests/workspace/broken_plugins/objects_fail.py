"""Sound descriptors of objects that fail when they are used."""

from xcfg.model.executor import ExecutorDescriptor
from xcfg.model.importer import ImporterDescriptor
from xcfg.model.scorer import KernelBackendDescriptor, Role
from xcfg.plugin import hookimpl


@hookimpl
def xcfg_importers():
    return [ImporterDescriptor(id="failing", summary="fails", target=f"{__name__}:Importer")]


@hookimpl
def xcfg_executors():
    return [ExecutorDescriptor(id="failing", summary="fails", target=f"{__name__}:Executor")]


@hookimpl
def xcfg_kernel_backends():
    return [
        KernelBackendDescriptor(
            operator="selected_logprob",
            id="failing",
            summary="fails",
            target=f"{__name__}:Backend",
            roles=(Role.TRAINING,),
            dtypes=("float32",),
            check=f"{__name__}:check",
        )
    ]


class Importer:
    def claims(self, fields):
        raise LookupError("no such field")

    def records(self, rows, role):
        for row in rows:
            yield row.fields["nowhere"]


def executor(options):
    raise ZeroDivisionError("no machines")


Executor = executor


class Backend:
    pass


def check(asked):
    raise TypeError("unhashable")
