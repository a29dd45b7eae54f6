"""`partita plan` against brute force. Every combination of pipeline, division of heads and batch, ZeRO stage, recomputation,
schedule and number of microbatches of a four-layer GPT-2 on four devices is fixed in turn, compiled and simulated. The free
choice of `partita plan` must be as fast as the fastest of them: on fast links, where all fit, and on slow ones with little memory,
where not all do.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PARTITA = os.path.abspath("compiler/tools/partita")
MODEL = os.path.abspath("tests/data/onnx-tiny/gpt2_4l/model_train.onnx")
BATCH, DEVICES = 16, 4
SLOW = """
name: workstations
devices: 4
device: {like: a100-40-sxm, memory: 2 GB}
levels:
  - {name: ethernet, devices: 4, bandwidth: 1 Gbit/s, latency: 30 us, efficiency: 0.9}
"""


def fixed_choices():
    for pp, tp in ((1, 1), (1, 2), (2, 1), (2, 2), (4, 1)):
        dp = DEVICES // pp // tp
        for schedule in ("1f1b", "zb-h1", "zb-v") if pp > 1 else ("",):
            # Two chunks of layers per rank.
            if schedule == "zb-v" and pp == 4:
                continue
            for zero in range(4) if dp > 1 else (0,):
                for recompute in ("none", "selective", "full"):
                    for microbatches in (1, 2, 4, 8):
                        if BATCH % (dp * microbatches) == 0:
                            choices = "pp=%d,tp=%d,dp=%d,recompute=%s,mbs=%d" % (pp, tp, dp, recompute, BATCH // dp // microbatches)
                            choices += ",zero=%d" % zero if dp > 1 else ""
                            yield choices + (",schedule=" + schedule if schedule else "")


class OptimalPlanTest(unittest.TestCase):
    def plan(self, cluster, *options):
        """The plan, or None if none with these options fits the memory."""
        done = subprocess.run([PARTITA, "plan", MODEL, "--dim", "batch=%d,seq=8" % BATCH, "--cluster", cluster, "--precision", "bf16", "--json",
                               *options], capture_output=True, text=True, check=False)
        if done.returncode == 1 and "expected a division within" in done.stderr:
            return None
        self.assertEqual(done.returncode, 0, " ".join(options) + "\n" + done.stdout + done.stderr)
        return json.loads(done.stdout)

    def compare(self, cluster, least_that_fit):
        chosen = self.plan(cluster)
        plans = [self.plan(cluster, "--fix", choices, "--effort", "1") for choices in fixed_choices()]
        fit = [plan for plan in plans if plan]
        best = min(fit, key=lambda plan: plan["step_seconds"])
        print("%s: chosen %.6f ms (%s); of %d fixed ones, of which %d fit, %.6f ms (%s)" % (
            cluster, 1e3 * chosen["step_seconds"], chosen["division"], len(plans), len(fit), 1e3 * best["step_seconds"], best["division"]))
        self.assertGreaterEqual(len(fit) / len(plans), least_that_fit)
        self.assertLessEqual(chosen["step_seconds"], best["step_seconds"] * (1 + 1e-9))

    def test_fast_links(self):
        self.compare("4x a100-80-sxm", 1)

    def test_slow_links(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "slow.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(SLOW)
            self.compare(path, 0.9)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
