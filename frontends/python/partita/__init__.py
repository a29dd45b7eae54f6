"""Partita: divides a model over devices, compiles it, and runs or trains it.

    import partita
    net = partita.compile("model.onnx", dims={"batch": 8, "seq": 128}, mesh={"tensor": 2}, shard="M=tensor,N=tensor")
    logits = net(ids)                                        # numpy, torch or jax; results are of the same kind

`plan`, `explain`, `verify`, `simulate` and `inspect` are the commands of the command line, with objects for answers. Neither torch nor jax
is imported unless the caller has imported it.
"""

from partita_runtime import (DataLossError, Generator, InternalError, InvalidError, MissingError, NoMemoryError, ParameterInfo, PartitaError,
                             Session, TensorInfo, UnavailableError, __version__)

from .batches import Ahead, ahead
from .commands import CompileError, PartitaWarning, UsageError
from .generation import generate, generator
from .jax_program import JaxProgram, from_jax, partition_specs
from .judge import Timetable, annotate, explain, inspect, plan, simulate, timetable, verify
from .optimizers import Optimizer, adafactor, adam, adamw, lamb, sgd
from .program import Program, compile  # pylint: disable=redefined-builtin
from .reports import Alternative, Cost, Description, Explanation, Plan, Report, Simulation, Verification
from .training import State, TrainingStep

__all__ = [
    "Ahead", "Alternative", "CompileError", "Cost", "DataLossError", "Description", "Explanation", "Generator", "InternalError",
    "InvalidError", "JaxProgram", "MissingError", "NoMemoryError", "Optimizer", "ParameterInfo", "PartitaError", "PartitaWarning",
    "Plan", "Program", "Report", "Session", "Simulation", "State", "TensorInfo", "Timetable", "TrainingStep", "UnavailableError",
    "UsageError", "Verification", "adafactor", "adam", "adamw", "ahead", "annotate", "compile", "explain", "from_jax", "generate", "generator",
    "inspect", "lamb", "partition_specs", "plan", "sgd", "simulate", "timetable", "verify"
]
