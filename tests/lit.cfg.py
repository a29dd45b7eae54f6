# lit finds the tools under PARTITA_TOOLS (Bazel's runfiles) or in bazel-bin, so plain `lit tests` also works.
import os
import tempfile

import lit.formats

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
tools = os.environ.get("PARTITA_TOOLS", os.path.join(root, "bazel-bin"))

config.name = "partita"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".mlir"]
config.test_exec_root = os.environ.get("PARTITA_LIT_OUT") or tempfile.mkdtemp(prefix="partita-lit-")
config.environment["PATH"] = os.pathsep.join([
    os.path.join(tools, "compiler", "tools"),
    os.path.join(tools, "runtime", "tools"),
    "/usr/lib/llvm-22/bin",
    os.environ["PATH"],
])
config.substitutions.append(("%data", os.path.join(tools, "tests", "data") if "PARTITA_TOOLS" in os.environ
                             else os.path.join(root, "tests", "data")))
