"""Activations of a stage scale with the microbatches in flight: S - i for 1F1B, all m for GPipe. The memory tables match the memory
of the processes.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PARTITA = "compiler/tools/partita"
PARTITA_RUN = "runtime/tools/partita-run"
ENVIRONMENT = "runtime/tools/mpi_environment.sh"
STAGES = 4
# Eight layers and a small vocabulary: layer activations are most of the memory.
CONFIG = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 64, "n_positions": 64, "n_embd": 64, "n_layer": 8,
          "n_head": 4}


class PipelineMemoryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.configure()

    def configure(self, **changes):
        with open(self.path("config.json"), "w", encoding="utf-8") as file:
            json.dump({**CONFIG, **changes}, file)

    def path(self, name):
        return os.path.join(self.folder, name)

    def tables(self, schedule, microbatches, *options, stages=STAGES, rows=2):
        """The memory table of each rank. The size of a microbatch does not depend on their number."""
        compiled = subprocess.run(
            [PARTITA, "compile", self.folder, "--dim", "batch=%d,seq=64" % (rows * microbatches), "--train", "adamw", "--mesh",
             "pipe=%d" % stages, "--shard", "D=pipe", "--microbatches", str(microbatches), "--schedule", schedule, "-o",
             self.path("m.partita"), "--json", *options],
            check=True, capture_output=True, text=True)
        return json.loads(compiled.stdout)["memory_by_rank"]

    def activations(self, schedule, microbatches):
        return [table["activations"] for table in self.tables(schedule, microbatches)]

    def test_in_flight_as_the_formula_says(self):
        some, many = 8, 16
        gpipe = {m: self.activations("gpipe", m) for m in (some, many)}
        one_one = {m: self.activations("1f1b", m) for m in (some, many)}
        for stage in range(STAGES):
            # Bytes per microbatch in flight, from the growth of GPipe.
            each = (gpipe[many][stage] - gpipe[some][stage]) / (many - some)
            spared = {m: (gpipe[m][stage] - one_one[m][stage]) / each for m in (some, many)}
            print("stage %d: %.0f kB each, gpipe %.2f MB, 1f1b %.2f MB, %.2f and %.2f fewer in flight" % (
                stage, each / 1e3, gpipe[many][stage] / 1e6, one_one[many][stage] / 1e6, spared[some], spared[many]), flush=True)
            self.assertGreater(each, 0)
            for m in (some, many):
                self.assertAlmostEqual(spared[m], m - (STAGES - stage), delta=0.5)

    def test_stages_are_cut_where_they_fit(self):
        # Activations of the first layers are most of the memory, and the head takes time.
        self.configure(vocab_size=512, tie_word_embeddings=False)
        by_time = [table["total"] for table in self.tables("1f1b", 4, stages=2, rows=4)]
        least = 0.94 * max(by_time)
        fitting = [table["total"] for table in self.tables("1f1b", 4, "--memory", "%d B" % least, stages=2, rows=4)]
        print("by time %s bytes, within %d: %s" % (by_time, least, fitting), flush=True)
        self.assertLessEqual(max(fitting), least)
        # If the stages cut by time fit the limit, the cut does not change.
        for fits in ("1 GB", "%d B" % max(by_time)):
            self.assertEqual([table["total"] for table in self.tables("1f1b", 4, "--memory", fits, stages=2, rows=4)], by_time)

    def test_it_is_said_how_they_were_cut(self):
        self.configure(vocab_size=512, tie_word_embeddings=False)
        by_time = max(table["total"] for table in self.tables("1f1b", 4, stages=2, rows=4))
        for share, cut_again in ((1, False), (0.94, True)):
            said = subprocess.run(
                [PARTITA, "compile", self.folder, "--dim", "batch=16,seq=64", "--train", "adamw", "--mesh", "pipe=2", "--shard",
                 "D=pipe", "--microbatches", "4", "--memory", "%d B" % (share * by_time), "-o", self.path("m.partita")],
                check=True, capture_output=True, text=True).stderr
            self.assertEqual("stages of equal work take" in said, cut_again, said)
            self.assertEqual("stages are cut by memory instead, to" in said, cut_again, said)

    def test_processes_hold_what_the_tables_say(self):
        for schedule in ("gpipe", "1f1b", "interleaved(2)", "zb-v"):
            for processes in (False, True) if schedule == "1f1b" else (False,):
                with self.subTest(schedule=schedule, processes=processes):
                    self.compare(self.tables(schedule, 4), processes)

    def compare(self, tables, processes):
        command = [PARTITA_RUN, "train", self.path("m.partita"), "--input", "input_ids=random:0:60", "--input", "targets=random:0:60",
                   "--steps", "2", "--lr", "1e-3", "--json", "--quiet"]
        if processes:
            command = ["bash", "-c", 'source "$0"; "${mpi[@]}" -np "$1" "${@:2}"', ENVIRONMENT, str(STAGES)] + command
        run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
        ranks = json.loads(run.stdout)["ranks"]
        self.assertEqual([rank["pipeline_rank"] for rank in ranks], list(range(STAGES)))
        for table, held in zip(tables, (rank["memory"] for rank in ranks)):
            kept = table["parameters"] + table["optimizer_states"] + table["derived_from_parameters"]
            self.assertEqual(held["globals"], kept)
            self.assertEqual(held["arena"], table["total"] - kept - table["inputs_and_outputs"])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
