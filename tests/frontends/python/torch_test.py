"""Trains a GPT-2 of Hugging Face with Partita and goes on with it in PyTorch. Runs in the environment of tests/peers.

usage: torch_test.py [SETUP]: SETUP is tests/peers/setup.sh, which makes the environment; the test then runs there.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import warnings

if len(sys.argv) == 2:
    os.environ.setdefault("HOME", os.path.expanduser("~"))  # Bazel hides it
    python = subprocess.run([sys.argv[1], "--torch"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    os.execv(python, [python, os.path.abspath(__file__)])

sys.path.insert(0, os.path.abspath("frontends/python"))
os.environ["PARTITA_RUNTIME_LIBRARY"] = os.path.abspath("runtime/api/libpartita_runtime.so")
os.environ["PARTITA_COMPILER_LIBRARY"] = os.path.abspath("compiler/api/libpartita_compiler.so")

import torch
import transformers

import partita
import partita.torch_backend

BATCH, LENGTH, VOCABULARY, STEPS = 8, 16, 64, 200


def loss_of(model, ids, targets):
    logits = model(ids).logits
    return torch.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1))


class TorchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        torch.set_num_threads(1)
        config = transformers.GPT2Config(vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0,
                                         attn_pdrop=0)
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.model = transformers.GPT2LMHeadModel(config)
        cls.model.save_pretrained(cls.folder.name)
        # Each row counts up by its own step, so the next token can be learnt.
        rows = torch.arange(LENGTH + 1) * torch.randint(1, 5, (512, 1)) + torch.randint(0, VOCABULARY, (512, 1))
        cls.data = torch.utils.data.TensorDataset(rows[:, :-1] % VOCABULARY, rows[:, 1:] % VOCABULARY)

    def loader(self):
        generator = torch.Generator().manual_seed(1)
        while True:
            yield from torch.utils.data.DataLoader(self.data, batch_size=BATCH, shuffle=True, generator=generator)

    def fresh(self):
        model = transformers.GPT2LMHeadModel.from_pretrained(self.folder.name)
        model.eval()
        return model

    def test_tensors_come_back_as_tensors(self):
        net = partita.compile(self.folder.name, dims={"batch": BATCH, "seq": LENGTH})
        ids, _ = next(self.loader())
        found = net(ids)
        self.assertIsInstance(found, torch.Tensor)
        with torch.no_grad():
            expected = self.fresh()(ids).logits
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(net(ids.t().contiguous().t()), expected, rtol=1e-4, atol=1e-5)
        kept = net(ids)
        del net
        torch.testing.assert_close(kept, expected, rtol=1e-4, atol=1e-5)  # results outlive the program

    def test_a_module_goes_in_and_trains_divided(self):
        class Logits(torch.nn.Module):
            def __init__(self, model):
                super().__init__()
                self.model = model

            def forward(self, ids):
                return self.model(ids, use_cache=False).logits

        module = Logits(self.fresh())
        ids, targets = next(self.loader())
        net = partita.compile(module, example=(ids,), mesh={"tensor": 2}, shard="M=tensor,N=tensor")
        with torch.no_grad():
            torch.testing.assert_close(net(ids), module(ids), rtol=1e-4, atol=1e-5)
        costs = partita.explain(module, example=(ids,), mesh={"tensor": 2}, shard="M=tensor,N=tensor")
        self.assertEqual([cost.kind for cost in costs], ["all_reduce", "all_reduce"])  # of attention and of the MLP
        self.assertIn("/transformer/h/0/attn/c_proj", costs[0].source)

        step = partita.compile(module, example=(ids, targets), train=partita.adamw(1e-3), mesh={"data": 2}, shard="B=data", zero=1)
        state = step.init(module.state_dict())
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.01)
        for number in range(5):
            state, loss = step(state, ids, targets)
            optimizer.zero_grad()
            expected = loss_of(module.model, ids, targets)
            expected.backward()
            optimizer.step()
            self.assertAlmostEqual(loss, expected.item(), delta=1e-4 * expected.item(), msg="step %d" % number)

    def test_backend_of_torch_compile(self):
        ids, _ = next(self.loader())
        model = self.fresh()
        with torch.no_grad():
            expected = model(ids).logits
            for options in ({}, {"mesh": {"tensor": 2}, "shard": "M=tensor,N=tensor"}):
                torch._dynamo.reset()
                with warnings.catch_warnings():
                    warnings.simplefilter("error", partita.PartitaWarning)
                    found = torch.compile(model, backend="partita", options=options)(ids).logits
                torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
            fast = torch.compile(model, backend="partita")
            fast(ids)
            with warnings.catch_warnings():
                warnings.simplefilter("error", partita.PartitaWarning)
                model.lm_head.weight.mul_(2)
                torch.testing.assert_close(fast(ids).logits, model(ids).logits, rtol=1e-4, atol=1e-5)

    def test_backend_compiles_again_for_other_weights(self):
        torch._dynamo.reset()
        first, second, value = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), torch.randn(2, 4)
        fast = torch.compile(lambda layer, x: layer(x), backend="partita")
        with torch.no_grad(), warnings.catch_warnings(), self.count_compilations() as count:
            warnings.simplefilter("error", partita.PartitaWarning)
            for layer in (first, second, first, second):
                torch.testing.assert_close(fast(layer, value), layer(value))
            self.assertEqual(count(), 2)
            first.weight = torch.nn.Parameter(torch.ones(4, 4))
            torch.testing.assert_close(fast(first, value), first(value))
            first.load_state_dict({"weight": torch.zeros(4, 4), "bias": torch.ones(4)}, assign=True)
            torch.testing.assert_close(fast(first, value), first(value))
            self.assertEqual(count(), 4)

    def test_backend_compiles_a_bounded_number_of_times(self):
        torch._dynamo.reset()
        layer, value, most = torch.nn.Linear(4, 4), torch.randn(2, 4), partita.torch_backend.MOST_COMPILATIONS
        fast = torch.compile(layer, backend="partita")
        with torch.no_grad(), self.count_compilations() as count:
            with warnings.catch_warnings():
                warnings.simplefilter("error", partita.PartitaWarning)
                for _ in range(most):
                    layer.weight.add_(1)
                    torch.testing.assert_close(fast(value), layer(value))
            layer.weight.add_(1)
            with self.assertWarnsRegex(partita.PartitaWarning, "expected at most %d sets of weights" % most):
                torch.testing.assert_close(fast(value), layer(value))
            with warnings.catch_warnings():
                warnings.simplefilter("error", partita.PartitaWarning)  # one warning is enough
                torch.testing.assert_close(fast(value), layer(value))
            self.assertEqual(count(), most)

    @staticmethod
    @contextlib.contextmanager
    def count_compilations():
        with unittest.mock.patch("partita.torch_backend.compile_model", wraps=partita.compile) as compiled:
            yield lambda: compiled.call_count

    def test_backend_keeps_what_is_not_new(self):
        torch._dynamo.reset()
        value = torch.zeros(2, 2)
        with torch.no_grad(), self.assertWarnsRegex(partita.PartitaWarning, "a view of an input"):
            view, _ = torch.compile(lambda x: (x.view(-1), x + 1), backend="partita")(value)
        view.fill_(3)
        self.assertEqual(float(value.sum()), 12)
        with torch.no_grad(), self.assertRaisesRegex(Exception, "no option '--mesh-shape'"):
            torch.compile(torch.nn.Linear(2, 2), backend="partita", options={"mesh_shape": 2})(value)

    def test_pytorch_keeps_its_threads(self):
        torch._dynamo.reset()
        torch.set_num_threads(2)
        try:
            layer, value = torch.nn.Linear(4, 4), torch.randn(2, 4)
            with torch.no_grad():
                torch.testing.assert_close(torch.compile(layer, backend="partita", options={"threads": 1})(value), layer(value))
            self.assertEqual(torch.get_num_threads(), 2)
        finally:
            torch.set_num_threads(1)

    def test_the_wheels_entry_point_names_the_backend(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "partita-0.dist-info"))
            for name, text in {"METADATA": "Metadata-Version: 2.1\nName: partita\nVersion: 0\n",
                               "entry_points.txt": "[torch_dynamo_backends]\npartita = partita.torch_backend:partita_backend\n"}.items():
                with open(os.path.join(folder, "partita-0.dist-info", name), "w", encoding="utf-8") as file:
                    file.write(text)
            code = ("import torch\nwith torch.no_grad(): "
                    "print(torch.compile(lambda x: x + 1, backend='partita')(torch.ones(2)).tolist())")
            path = os.pathsep.join([folder, os.path.abspath("frontends/python")])
            done = subprocess.run([sys.executable, "-W", "error::UserWarning:partita", "-c", code], capture_output=True, text=True, check=False,
                                  env=dict(os.environ, PYTHONPATH=path))
        self.assertEqual(done.stdout.strip(), "[2.0, 2.0]", done.stderr)

    def test_a_data_loader_is_brought_ahead(self):
        """Batches of a DataLoader, with and without processes of its own, are those of a loop over it."""
        step = partita.compile(self.folder.name, dims={"batch": BATCH, "seq": LENGTH}, train=partita.adamw(1e-3))
        start, losses = self.fresh().state_dict(), []
        for workers in (0, 2):
            loader = torch.utils.data.DataLoader(self.data, batch_size=BATCH, shuffle=True, num_workers=workers,
                                                 generator=torch.Generator().manual_seed(1))
            state, found = step.train(step.init(start), loader)
            self.assertEqual((state.step, len(found)), (len(self.data) // BATCH,) * 2)
            losses.append(found)
        state = step.init(start)
        loader = torch.utils.data.DataLoader(self.data, batch_size=BATCH, shuffle=True, generator=torch.Generator().manual_seed(1))
        losses.append([step(state, *batch)[1] for batch in loader])
        self.assertEqual(losses[0], losses[2])
        self.assertEqual(losses[1], losses[2])
        self.assertEqual([thread.name for thread in threading.enumerate() if thread.name == "partita ahead"], [])

        class Broken(torch.utils.data.Dataset):
            def __len__(self):
                return 64

            def __getitem__(self, i):
                if i == 20:
                    raise OSError("no row 20")
                return torch.zeros(LENGTH, dtype=torch.int64), torch.zeros(LENGTH, dtype=torch.int64)

        state = step.init(start)
        with self.assertRaisesRegex(OSError, "no row 20"):
            step.train(state, torch.utils.data.DataLoader(Broken(), batch_size=BATCH))
        self.assertEqual(state.step, 2)

    def test_windows_that_overlap(self):
        """Unfold and Fold, as in VOLO: outputs and training."""
        class Outlook(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear, self.head = torch.nn.Linear(9, 9), torch.nn.Linear(3 * 7 * 6, 4)

            def forward(self, x):
                windows = torch.nn.functional.unfold(x, (3, 3), padding=1, stride=2).view(x.shape[0], 3, 9, -1)
                windows = self.linear(windows.transpose(2, 3)).transpose(2, 3).reshape(x.shape[0], 27, -1)
                return self.head(torch.nn.functional.fold(windows, (7, 6), (3, 3), padding=1, stride=2).flatten(1))

        torch.manual_seed(3)
        module, value, targets = Outlook(), torch.randn(2, 3, 7, 6), torch.tensor([1, 3])
        with torch.no_grad():
            torch.testing.assert_close(partita.compile(module, example=(value,))(value), module(value), rtol=1e-4, atol=1e-5)
        step = partita.compile(module, example=(value, targets), train=partita.sgd(0.1))
        state = step.init(module.state_dict())
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for _ in range(3):
            state, loss = step(state, value, targets)
            expected = torch.nn.functional.cross_entropy(module(value), targets)
            optimizer.zero_grad()
            expected.backward()
            optimizer.step()
            self.assertAlmostEqual(loss, expected.item(), delta=1e-4 * expected.item())

    def test_targets_are_no_optional_input(self):
        class Scaled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(4, 3)

            def forward(self, x, mask=None):
                x = self.linear(x)
                return x if mask is None else x * mask

        module, value, targets = Scaled(), torch.randn(2, 4), torch.tensor([0, 2])
        step = partita.compile(module, example=(value, targets), train=partita.sgd(0.1))
        _, loss = step(step.init(module.state_dict()), value, targets)
        self.assertAlmostEqual(loss, torch.nn.functional.cross_entropy(module(value), targets).item(), delta=1e-5)

    def test_backend_leaves_what_it_lacks_to_pytorch(self):
        torch._dynamo.reset()
        matrix = torch.randn(4, 4)
        with torch.no_grad(), self.assertWarnsRegex(partita.PartitaWarning, "linalg_svdvals"):
            found = torch.compile(lambda x: torch.linalg.svdvals(x) + 1, backend="partita")(matrix)
        torch.testing.assert_close(found, torch.linalg.svdvals(matrix) + 1)
        linear = torch.nn.Linear(4, 4)
        with self.assertWarnsRegex(partita.PartitaWarning, "need gradients"):
            torch.compile(linear, backend="partita")(matrix).sum().backward()
        self.assertIsNotNone(linear.weight.grad)

    def test_training_goes_on_in_pytorch(self):
        model, reference = self.fresh(), self.fresh()
        optimizer = torch.optim.AdamW(reference.parameters(), lr=1e-3, weight_decay=0.01)
        step = partita.compile(self.folder.name, dims={"batch": BATCH, "seq": LENGTH}, train=partita.adamw(1e-3), mesh={"data": 2}, shard="B=data",
                               zero=1)
        state = step.init(model.state_dict())
        for number, (ids, targets) in zip(range(STEPS), partita.ahead(self.loader())):
            state, loss = step(state, ids, targets)
            if number < 20:  # PyTorch's own training begins alike
                optimizer.zero_grad()
                expected = loss_of(reference, ids, targets)
                expected.backward()
                optimizer.step()
                self.assertAlmostEqual(loss, expected.item(), delta=1e-4 * expected.item(), msg="step %d" % number)
        self.assertLess(loss, 0.5 * state.losses[0])
        result = model.load_state_dict(state.parameters())
        self.assertEqual((result.missing_keys, result.unexpected_keys), ([], []))
        self.assertIs(model.lm_head.weight, model.transformer.wte.weight)
        ids, targets = next(self.loader())
        with torch.no_grad():
            expected = loss_of(model, ids, targets).item()
        state, found = step(state, ids, targets, learning_rate=0.0)
        self.assertAlmostEqual(found, expected, delta=1e-4)
        print("loss %.4f after 1 step, %.4f after %d; in PyTorch %.6f, in Partita %.6f" % (state.losses[0], loss, STEPS, expected, found))


if __name__ == "__main__":
    unittest.main(verbosity=1)
