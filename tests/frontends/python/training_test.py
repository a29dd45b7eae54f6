"""Trains a model from Python: PyTorch's losses and parameters, with numpy alone."""

import os
import tempfile
import unittest
import warnings

from checkout import DATA, FOLDED, golden, numpy, targets

import partita

GPT2 = os.path.join(DATA, "gpt2", "model_train.onnx")


class TrainingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.golden = golden("gpt2")
        cls.batch = cls.golden["in.input_ids"], targets("gpt2")
        cls.step = partita.compile(GPT2, dims={"batch": 2, "seq": 12}, train=partita.adamw(1e-3))

    def expect_losses(self, step, state):
        for expected in self.golden["losses"]:
            state, loss = step(state, *self.batch)
            self.assertAlmostEqual(loss, expected, delta=1e-4 * abs(expected))
        return state

    def test_five_steps_are_pytorchs(self):
        state = self.step.init()
        self.assertEqual(state.step, 0)
        self.expect_losses(self.step, state)
        self.assertEqual(state.step, 5)
        self.assertEqual(len(state.losses), 5)
        self.assertIn("step 5", repr(state))
        self.assertEqual(state._repr_svg_().count(","), 5)

    def test_parameters_after_a_step_are_pytorchs(self):
        state = self.step.init()
        state, _ = self.step(state, *self.batch)
        found = state.parameters()
        compared = 0
        for name, expected in self.golden.items():
            if name.startswith("step1."):
                numpy.testing.assert_allclose(found[name[len("step1."):]], expected, rtol=1e-3, atol=1e-5, err_msg=name)
                compared += 1
        self.assertGreater(compared, 20)
        self.assertTrue(any(numpy.abs(value).max() > 0 for value in state.optimizer_states().values()))

    def test_a_state_dict_goes_in_and_out(self):
        start = self.step.init().parameters()
        self.expect_losses(self.step, self.step.init(start))
        # Tied weights, under a second name, and buffers come back under theirs.
        name = next(iter(start))
        given = dict(start, tied=start[name], buffer=numpy.arange(3))
        state, _ = self.step(self.step.init(given), *self.batch)
        found = state.parameters()
        self.assertEqual(set(found), set(given))
        self.assertTrue((found["tied"] == found[name]).all())
        self.assertFalse((found["tied"] == start[name]).all())
        self.assertTrue((found["buffer"] == numpy.arange(3)).all())

    def test_values_without_effect_are_named(self):
        start = self.step.init().parameters()
        name = next(iter(start))
        given = dict(start, **{"misspelt.weight": numpy.zeros((2, 3), "float32"), "tied": start[name].copy(), "mask": numpy.ones(3, bool)})
        with self.assertWarnsRegex(partita.PartitaWarning, "no parameters misspelt.weight, tied of the state_dict: their values are not used"):
            found = self.step.init(given).parameters()
        self.assertEqual(set(found), set(given))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.step.init(dict(start, tied=start[name], mask=numpy.ones(3, bool)))

    def test_parameters_that_are_not_trained(self):
        step = partita.compile(GPT2, dims={"batch": 2, "seq": 12}, train=partita.sgd(0.1, trained="*.ln_*"))
        start = step.init().parameters()
        self.assertIn("transformer.h.0.mlp.c_fc.weight", start)
        state, _ = step(step.init(start), *self.batch)
        found = state.parameters()
        self.assertFalse((found["transformer.ln_f.weight"] == start["transformer.ln_f.weight"]).all())
        self.assertTrue((found["transformer.h.0.mlp.c_fc.weight"] == start["transformer.h.0.mlp.c_fc.weight"]).all())
        changed = dict(start, **{"transformer.h.0.mlp.c_fc.weight": 2 * start["transformer.h.0.mlp.c_fc.weight"]})
        with self.assertRaisesRegex(partita.InvalidError, "expected the values of the model's file for transformer.h.0.mlp.c_fc.weight, which "
                                    "this step does not train, found others"):
            step.init(changed)
        step.init({name: value for name, value in start.items() if ".ln_" in name})  # the others need not be given

    def test_checkpoints(self):
        with tempfile.TemporaryDirectory() as folder:
            state = self.step.init()
            for _ in range(2):
                state, _ = self.step(state, *self.batch)
            state.save(folder)
            state = self.step.init()
            state.load(folder)
            self.assertEqual(state.step, 2)
            state, loss = self.step(state, *self.batch)
            self.assertAlmostEqual(loss, self.golden["losses"][2], delta=1e-4 * loss)

    def test_divided(self):
        step = partita.compile(GPT2, dims={"batch": 2, "seq": 12}, train=partita.adamw(1e-3), mesh={"data": 2, "tensor": 2},
                               shard="B=data;M=tensor,N=tensor", zero=1)
        self.expect_losses(step, step.init())

    def test_learning_rates(self):
        step = partita.compile(GPT2, dims={"batch": 2, "seq": 12}, train=partita.sgd(lambda number: 0.0 if number < 3 else 0.1))
        state = step.init()
        losses = [step(state, *self.batch)[1] for _ in range(4)]
        self.assertEqual(losses[0], losses[1])
        self.assertEqual(losses[1], losses[2])
        self.assertLess(losses[3], losses[2])

    def test_refusals(self):
        state = self.step.init()
        self.step.init()
        with self.assertRaisesRegex(partita.InvalidError, "expected the state of this step's last init"):
            self.step(state, *self.batch)
        with self.assertRaisesRegex(partita.MissingError, "expected the parameters transformer"):
            self.step.init({"m.transformer.wte.weight": numpy.zeros((128, 32), "float32")})
        start = self.step.init().parameters()
        name = next(iter(start))
        with self.assertRaisesRegex(partita.InvalidError, "expected"):
            self.step.init(dict(start, **{name: numpy.zeros(3, "float32")}))
        again = self.step.init().parameters()  # nothing of the refused one is left
        for key, value in start.items():
            self.assertTrue((again[key] == value).all(), key)
        net = partita.compile(os.path.join(DATA, "gpt2", "model_eval.onnx"), dims={"batch": 2, "seq": 12})
        with self.assertRaisesRegex(partita.PartitaError, "train"):
            net.session.train_step(self.batch[0], learning_rate=1e-3)


class FoldedTest(unittest.TestCase):
    """A default export of torch.onnx.export(dynamo=True): weights are transposed and renamed, tied ones are stored twice."""

    @classmethod
    def setUpClass(cls):
        cls.golden = golden(FOLDED)
        cls.batch = cls.golden["in.ids"], cls.golden["in.targets"]
        with warnings.catch_warnings():
            warnings.simplefilter("error", partita.PartitaWarning)  # the names are there
            cls.step = partita.compile(os.path.join(FOLDED, "model.onnx"), train=partita.adamw(1e-3))

    def arrays(self, prefix):
        return {name[len(prefix):]: value for name, value in self.golden.items() if name.startswith(prefix)}

    def test_parameters_have_the_modules_names_and_shapes(self):
        expected, found = self.arrays("start."), self.step.init().parameters()
        tied = {"tokens.weight", "blocks.0.attention.output.weight"}  # state_dict has second names for them
        found = {name: value for name, value in found.items() if not name.startswith("val_")}  # without the causal mask
        self.assertEqual(set(found), set(expected) - tied)
        for name, value in found.items():
            numpy.testing.assert_array_equal(value, expected[name], err_msg=name)
        raw = {info.name: info.shape for info in self.step.program.session.parameters if not info.is_state}
        self.assertEqual(raw["blocks.0.mlp.0.weight.T"], (16, 32))
        self.assertEqual(raw["head.weight"], (24, 16))

    def test_training_is_pytorchs(self):
        start = {name: numpy.array(value) for name, value in self.arrays("start.").items()}
        start["tokens.weight"] = start["head.weight"]
        start["blocks.0.attention.output.weight"] = start["blocks.1.attention.output.weight"]
        with warnings.catch_warnings():
            warnings.simplefilter("error", partita.PartitaWarning)
            state = self.step.init(start)
        for number, expected in enumerate(self.golden["losses"]):
            state, loss = self.step(state, *self.batch)
            self.assertAlmostEqual(loss, expected, delta=1e-4 * expected)
            if number == 0:
                found, wanted = state.parameters(), self.arrays("step1.")
                self.assertEqual(set(found), set(wanted))
                for name, value in found.items():
                    numpy.testing.assert_allclose(value, wanted[name], rtol=1e-3, atol=1e-5, err_msg=name)

    def test_other_values_are_written_transposed(self):
        state = self.step.init()
        _, first = self.step(state, *self.batch)
        start = self.step.init().parameters()
        name = "blocks.1.attention.query.weight"  # square: a wrong orientation would be accepted
        swapped = dict(start, **{name: start[name].T})
        _, other = self.step(self.step.init(swapped), *self.batch)
        _, again = self.step(self.step.init({key: value.tolist() for key, value in start.items()}), *self.batch)
        self.assertNotEqual(first, other)
        self.assertEqual(first, again)

    def test_lost_names_are_said(self):
        with open(os.path.join(FOLDED, "model.onnx"), "rb") as file:
            content = file.read()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "stripped.onnx")
            with open(path, "wb") as file:  # the metadata has other keys of the same length
                file.write(content.replace(b"pkg.torch.onnx.fx_node", b"pkg.other.onnx.fx_node"))
            message = "expected weights with their modules' names, found 1[0-9] of [0-9]+ without: .* optimize=False.*, or give the .pt2"
            with self.assertWarnsRegex(partita.PartitaWarning, message):
                partita.compile(path, train=partita.adamw(1e-3))
            with self.assertWarnsRegex(partita.PartitaWarning, message):
                partita.explain(path, mesh={"tensor": 2}, shard="M=tensor")
            with warnings.catch_warnings():
                warnings.simplefilter("error", partita.PartitaWarning)
                partita.compile(path)  # inference needs no names


if __name__ == "__main__":
    unittest.main(verbosity=1)
