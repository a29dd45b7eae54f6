"""A peer of Partita in a benchmark: loads a model once, then times the runs that the harness requests.

`partita bench` starts this file as `python3 -c TEXT REQUEST`, where REQUEST is a JSON object: {"system": "onnxruntime", "torch" or
"torch-compile", "model": FILE, "threads": N, "inputs": [[NAME, FILE.npy], ...], "outputs": FOLDER}. After a first run, it prints
{"outputs": [FILE.npy, ...]}, or {"error": TEXT} if the model cannot run. Then it prints one JSON object for each line of its
standard input; `serve` describes both. Benchmarks in tests/bench use `answers_file` and `serve`, too. The functions import what
they need, because a system's environment may lack the others' packages.
"""

import ctypes
import json
import os
import signal
import sys
import time

PR_SET_PDEATHSIG = 1


def answers_file():
    """The file for a peer's answers. Libraries may print, so standard output is redirected to standard error. Also asks the kernel
    to kill this process with the harness, because the harness may die while this process is stopped."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def peak_bytes():
    """Peak memory of this process. getrusage includes the peak of the process that started it."""
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def serve(answers, first, run):
    """Prints `first`, then answers until the harness closes standard input. `run` does the timed work once.

    For each line {"warmup": W, "seconds": S} or {"warmup": W, "repeat": N} it prints {"times_ms": [...], "cpu_ms": CPU time of one
    run, "peak_bytes": peak memory of its process}.
    """
    print(json.dumps(first), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        for _ in range(request.get("warmup", 0)):
            run()
        times, cpu, begin = [], time.process_time(), time.perf_counter()
        while len(times) < request.get("repeat", 1) or time.perf_counter() - begin < request.get("seconds", 0):
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3)
        print(json.dumps({"times_ms": times, "cpu_ms": (time.process_time() - cpu) * 1e3 / len(times), "peak_bytes": peak_bytes()}),
              file=answers, flush=True)


def onnxruntime_session(model, threads):
    """A session with all graph optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def run_onnxruntime(model, threads, inputs):
    session = onnxruntime_session(model, threads)
    names = [port.name for port in session.get_inputs()]
    if missing := [name for name in names if name not in inputs]:
        raise ValueError(f"expected the inputs {', '.join(names)}, found no {', '.join(missing)}")
    feeds = {name: inputs[name] for name in names}
    return lambda: session.run(None, feeds)


def in_order_of(names, inputs):
    """The inputs by these names, or in their own order if the names are others."""
    if set(names) == set(inputs):
        return [inputs[name] for name in names]
    if len(names) != len(inputs):
        raise ValueError(f"expected the inputs {', '.join(names)}, found {', '.join(inputs)}")
    return list(inputs.values())


def run_torch(model, threads, inputs, compiled=False):
    import torch
    import torch.utils._pytree as pytree

    torch.set_num_threads(threads)
    program = torch.export.load(model)
    values = [torch.from_numpy(value) for value in in_order_of(list(program.graph_signature.user_inputs), inputs)]
    arguments, named = pytree.tree_unflatten(values, program.call_spec.in_spec)
    module = program.module()
    if compiled:
        import torch._inductor.config

        torch._inductor.config.freezing = True
        module = torch.compile(module)

    def run():
        with torch.inference_mode():
            results = pytree.tree_leaves(module(*arguments, **named))
            return [value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy() for value in results
                    if torch.is_tensor(value)]

    return run


SYSTEMS = {
    "onnxruntime": run_onnxruntime,
    "torch": run_torch,
    "torch-compile": lambda model, threads, inputs: run_torch(model, threads, inputs, compiled=True),
}


def main():
    request = json.loads(sys.argv[-1])
    answers = answers_file()
    # Libraries read these when they are imported.
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(request["threads"])
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    try:
        import numpy

        run = SYSTEMS[request["system"]](request["model"], request["threads"],
                                         {name: numpy.load(path) for name, path in request["inputs"]})
        paths = []
        for number, value in enumerate(run()):
            paths.append(os.path.join(request["outputs"], f"{request['system']}-{number}.npy"))
            numpy.save(paths[-1], numpy.ascontiguousarray(value))
    except Exception as error:  # of any library: the table shows it
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=answers, flush=True)
        return 1
    serve(answers, {"outputs": paths}, run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
