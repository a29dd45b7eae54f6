"""//:demo: infers, divides, trains, pipelines, plans and simulates with the commands that a user types, and checks each answer.

Runs in Bazel's runfiles folder. Exits 0 if all answers are right, 1 if not.
"""

import json
import math
import os
import re
import sys
import tempfile
import time

import chart
import tensors
from shell import Failed, Shell, found, seconds

USE = """Each command starts with $; its output is shortened. To try one yourself:
  ./bazelw build //:demo && cd bazel-bin/tests/demo/demo.runfiles/partita
  export PATH=$PWD/compiler/tools:$PWD/runtime/tools:$PATH"""

COMPILED = "operations|memory|wrote"
RAN = "^(y |time)"

COATNET = "tests/data/coatnet-0 --dim batch=1"
TINY = "tests/data/onnx-tiny/gpt2"
TRAIN = "--data tests/data/devils-dictionary/text.txt --steps 60 --lr 1e-3 --warmup 10 --log %s.jsonl --quiet"
# Upper bound on the difference between losses of the same step: a divided sum rounds differently, and training amplifies that.
NEAR = 2e-3
# Nats per byte at the end. The entropy of a byte in this text is 3.09 nats, that of 256 equally likely bytes 5.55.
LEARNED = 3.3
STAGES, MICROBATCHES = 4, 8
LLAMA = "llama-2-7b --dim batch=64,seq=1024"
STEP = r"\bstep\b.*?([\d.]+ m?s)\b"
CLUSTER, DEVICES = '--cluster "4 nodes x h100-sxm"', 32


def check_tensor(sh, name, other, actual, expected):
    largest, equal = tensors.compare(actual, expected)
    sh.check(equal, "%s differ from %s by at most %.1e; tolerance %g + %g of the value" % (
        name, other, largest, tensors.ABSOLUTE, tensors.RELATIVE))


def check_coatnet(sh, folder):
    check_tensor(sh, "the 1000 logits", "timm's", tensors.read_npy(sh.path(folder + "/y.npy")),
                 tensors.read_npy(sh.path("tests/data/coatnet-0/logits.npy")))


def collectives(explained):
    """Executions of each kind of collective by a device in one step."""
    counts = {}
    for kind, times in re.findall(r"^(\w+) over .* (?:x|in) (\d+)$", explained, re.MULTILINE):
        counts[kind] = counts.get(kind, 0) + int(times)
    return counts


def infer(sh):
    sh.run("partita compile %s -o coatnet.partita" % COATNET, show=COMPILED)
    sh.run("partita run coatnet.partita --input x=tests/data/coatnet-0/image.npy --repeat 10 --output-dir out/coatnet", show=RAN)
    check_coatnet(sh, "out/coatnet")
    sh.run("partita compile gpt2 --dim batch=1,seq=64 -o gpt2.partita", show=COMPILED)
    sh.run("partita run gpt2.partita --input input_ids=random:0:50257 --repeat 5 --output-dir out/gpt2", show=RAN)
    sh.run("partita compile gpt2 --dim batch=1,seq=64 --mesh tensor=2 --shard M=tensor,N=tensor,V=tensor -o halves.partita", show=COMPILED)
    sh.run("partita run halves.partita --input input_ids=random:0:50257 --repeat 5 --output-dir out/halves", show=RAN)
    check_tensor(sh, "64 x 50257 logits of two devices", "one device's", tensors.read_npy(sh.path("out/halves/y.npy")),
                 tensors.read_npy(sh.path("out/gpt2/y.npy")))


def divide_gpt2(sh):
    model = TINY + "/model_eval.onnx --dim batch=2,seq=12"
    division = '--mesh data=2,tensor=2 --shard "B=data;M=tensor,N=tensor,V=tensor;L=tensor"'
    sh.run("partita compile %s -o four.partita" % model, division, show=COMPILED)
    sh.run("partita run four.partita --inputs %s/io.safetensors --output-dir out/four" % TINY, show=RAN)
    check_tensor(sh, "2 x 12 x 128 logits", "PyTorch's", tensors.read_npy(sh.path("out/four/y.npy")),
                 tensors.read_safetensors(sh.path(TINY + "/io.safetensors"), "out.eval.y"))
    counts = collectives(sh.run("partita explain " + model, division, show=r"^mesh|^\w+ over "))
    # Two of each kind in both layers; the embedding has one of each, and the last product one gather.
    sh.check(counts == {"all_gather": 6, "reduce_scatter": 5},
             "collectives by kind are %s; sequence parallelism in two layers has 6 and 5" % json.dumps(counts))


def divide_coatnet(sh):
    division = "--mesh rows=2,columns=2 --shard H=rows,W=columns"
    sh.run("partita compile %s -o images.partita" % COATNET, division, show=COMPILED)
    sh.run("partita run images.partita --input x=tests/data/coatnet-0/image.npy --output-dir out/images", show=RAN)
    check_coatnet(sh, "out/images")
    halos = collectives(sh.run("partita explain " + COATNET, division, show="^mesh")).get("exchange", 0)
    # The poolings turn 14 rows, 7 on each device, into 7 rows, 4 and 3 on the devices.
    sh.check(halos == 18, "halo exchanges are %d; 7 convolutions of 3x3 and 2 uneven poolings in 2 directions have 18" % halos)


def losses(sh, name):
    with open(sh.path(name + ".jsonl"), encoding="utf-8") as file:
        values = [json.loads(line)["loss"] for line in file]
    if len(values) != 60 or not all(map(math.isfinite, values)):
        raise Failed("%s.jsonl: expected 60 finite losses, found %s" % (name, values))
    return values


def check_losses(sh, name, whole, divided):
    largest = max(abs(a - b) for a, b in zip(whole, divided))
    sh.check(largest <= NEAR, "60 losses of %s differ from one device's by at most %.1e; tolerance %g" % (name, largest, NEAR))


def train(sh):
    sh.run("cat tests/demo/gpt/config.json")
    sh.run("partita compile tests/demo/gpt --dim batch=16,seq=64 --train adamw -o whole.partita", show=COMPILED)
    # The runs have a thread per device.
    sh.run("partita train whole.partita --threads 1", TRAIN % "whole", show="^time")
    sh.run("partita compile tests/demo/gpt --dim batch=16,seq=64 --train adamw -o zero.partita",
           "--mesh data=2 --shard B=data --zero 1", show=COMPILED)
    sh.run("partita train zero.partita", TRAIN % "zero", show="^time")
    whole, zero = losses(sh, "whole"), losses(sh, "zero")
    print("\n    loss in each step: %s one device, %s two devices with ZeRO-1, %s both" % (chart.FIRST, chart.SECOND, chart.BOTH))
    print("".join("    %s\n" % line for line in chart.draw(whole, zero)))
    check_losses(sh, "ZeRO-1", whole, zero)
    last = sum(whole[-10:]) / 10
    sh.check(whole[0] > 5 and last < LEARNED, "the loss falls from %.2f, expected above 5, to %.2f, expected below %g" % (
        whole[0], last, LEARNED))


def pipeline(sh):
    sh.run("partita compile tests/demo/gpt --dim batch=16,seq=64 --train adamw -o pipe.partita",
           "--mesh pipe=%d --shard D=pipe --schedule 1f1b --microbatches %d" % (STAGES, MICROBATCHES), show=COMPILED)
    bubble = float(found(r"bubble ([\d.]+)%", sh.run("partita inspect pipe.partita --schedule")))
    formula = 100 * (STAGES - 1) / (MICROBATCHES + STAGES - 1)
    sh.check(abs(bubble - formula) < 0.06, "the bubble is %.1f%% of the step; (S - 1) / (m + S - 1) is %.1f%%" % (bubble, formula))
    sh.run("partita train pipe.partita", TRAIN % "pipe", show="^time")
    check_losses(sh, "the pipeline", losses(sh, "whole"), losses(sh, "pipe"))


def plan(sh):
    """Returns the planner's output."""
    planned = sh.run("partita plan %s --precision bf16 -o plan.yaml" % LLAMA, CLUSTER, show="^(#|chosen|search|runners|  (about )?[0-9.]+ m?s )")
    axes = re.findall(r"\d+", found("^mesh: (.*)$", sh.run("cat plan.yaml")))
    devices = math.prod(map(int, axes))
    sh.check(devices == DEVICES, "the plan uses %d devices; the cluster has %d" % (devices, DEVICES))
    step = seconds(found(STEP, planned))
    others = [seconds(other) for other in re.findall(r"^ +(?:about )?([\d.]+ m?s) \(", planned, re.MULTILINE)]
    if not others:
        raise Failed("expected runner-up plans with their steps, found:\n" + planned)
    sh.check(step <= min(others), "the chosen step takes %g s; the fastest of %d runners-up takes %g s" % (step, len(others), min(others)))
    return planned


def simulate(sh, planned):
    compiled = sh.run("partita compile %s --plan plan.yaml --train adamw" % LLAMA, "--target cuda:sm_90 -o llama.partita", show=COMPILED)
    simulated = sh.run("partita simulate llama.partita " + CLUSTER)
    steps = [found(STEP, text) for text in (planned, simulated)]
    # Equal in the digits that the planner prints.
    digits = len(re.sub(r"^[0.]*|\D", "", steps[0]))
    printed = float("%.*g" % (digits, seconds(steps[1])))
    sh.check(abs(printed - seconds(steps[0])) < 1e-9, "the planned step takes %s, the simulated step %s; expected equal" % tuple(steps))
    memory = [found(r"([\d.]+ GB) a device", planned), found(r"memory of a device: ([\d.]+ GB)", compiled),
              found(r"memory: at most ([\d.]+ GB)", simulated)]
    sh.check(len(set(memory)) == 1, "memory of a device is planned %s, compiled %s, simulated %s; expected equal" % tuple(memory))


def show_all(sh):
    planned = []
    parts = (
        ("Infer: CoAtNet-0 from a folder, GPT-2 by name, both of full size", infer),
        ("Divide: GPT-2, tiny, on 2 x 2 devices by batch, width and sequence", divide_gpt2),
        ("Divide: CoAtNet-0 on 2 x 2 devices by height and width of the image", divide_coatnet),
        ("Train: a small GPT reads a text, on one device and on two with ZeRO-1", train),
        ("Pipeline: the same GPT in four stages under 1F1B", pipeline),
        ("Plan: Llama-2 7B on 32 H100 GPUs that this machine does not have", lambda sh: planned.append(plan(sh))),
        ("Simulate: the compiled plan takes the predicted time and memory", lambda sh: simulate(sh, "".join(planned))),
    )
    for number, (title, part) in enumerate(parts, 1):
        print("\n%d. %s\n" % (number, title), flush=True)
        try:
            part(sh)
        except (Failed, OSError, ValueError, LookupError) as error:
            sh.check(False, str(error))


def main():
    begin = time.monotonic()
    print(USE)
    with tempfile.TemporaryDirectory(prefix="partita-demo-") as folder:
        os.symlink(os.path.abspath("tests"), os.path.join(folder, "tests"))
        sh = Shell(folder, (os.path.abspath("compiler/tools"), os.path.abspath("runtime/tools")))
        show_all(sh)
    print("\n%d answers checked in %.0f s." % (sh.right + sh.wrong, time.monotonic() - begin))
    print("All answers are right." if not sh.wrong else "SOMETHING IS WRONG: %d answers." % sh.wrong)
    return 1 if sh.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
