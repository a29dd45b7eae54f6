// Models by three doors, a Hugging Face folder, a .pt2 file and an ONNX file of
// PyTorch's default exporter: the same results, work and memory.
#include "compiler/driver/compilation.h"
#include "compiler/driver/import_model.h"
#include "gtest/gtest.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/golden.h"

namespace partita::e2e {
namespace {

// Work that a file has and the folder has not. The rest is equal.
struct Extra {
  int64_t launches = 0, arena_bytes = 0, derived_bytes = 0, layer_kinds = 0;
};

struct Door {
  std::string model, file;
  Extra inferred, trained;

  std::string folder() const { return "tests/data/torch-tiny/" + model + "/"; }
};

void PrintTo(const Door& door, std::ostream* out) {
  *out << door.model << "/" << door.file;
}

std::string NameOf(const testing::TestParamInfo<Door>& info) {
  const std::string& file = info.param.file;
  return info.param.model + "_" + file.substr(file.rfind('.') + 1);
}

driver::ImportOptions Sizes() {
  driver::ImportOptions options;
  options.dims = {{"batch", 3}, {"seq", 5}};
  return options;
}

// The report of a program without machine code.
driver::CompileReport ReportOf(const std::string& path, bool trains) {
  CompilerContext context;
  auto module = driver::importModel(path, Sizes(), context.get());
  EXPECT_TRUE(module) << path << ": " << context.errors;
  if (!module) return {};
  driver::CompileOptions options;
  if (trains) options.train.optimizer = "adamw";
  driver::Compilation program(*module, options, driver::Milestone::kImported,
                              /*machine_code=*/false);
  program.report().countModel(*module);
  EXPECT_TRUE(mlir::succeeded(program.runTo(driver::Milestone::kPlanned)))
      << path << ": " << context.errors;
  program.report().measureEntries(program.module());
  return program.report();
}

class DoorsTest : public testing::TestWithParam<Door> {};

TEST_P(DoorsTest, ComputesAsPyTorch) {
  const std::string folder = GetParam().folder();
  CompilerContext context;
  auto module =
      driver::importModel(folder + GetParam().file, Sizes(), context.get());
  ASSERT_TRUE(module) << context.errors;
  auto model = CompiledModel::Make(*module, testing::TempDir(), "model", 1);
  ASSERT_TRUE(model.ok()) << model.status();
  auto inputs = ReadTensors(folder + "io.safetensors", "in.");
  auto expected = ReadTensors(folder + "io.safetensors", "out.eval.");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_TRUE(expected.ok()) << expected.status();
  auto outputs = (*model)->Run(*inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_TRUE(Compare(outputs->front(), expected->at("y"), 1e-4, 1e-5).within);
}

class FileTest : public testing::TestWithParam<Door> {};

TEST_P(FileTest, DoesTheSameWorkAsTheFolder) {
  for (bool trains : {false, true}) {
    SCOPED_TRACE(trains ? "trained" : "inferred");
    const driver::CompileReport expected = ReportOf(
                                    GetParam().folder() + "folder", trains),
                                found = ReportOf(
                                    GetParam().folder() + GetParam().file,
                                    trains);
    const Extra& extra = trains ? GetParam().trained : GetParam().inferred;
    ASSERT_GT(expected.gemms, 0);
    EXPECT_EQ(found.parameters, expected.parameters);
    EXPECT_EQ(found.parameter_elements, expected.parameter_elements);
    EXPECT_EQ(found.gemms, expected.gemms);
    EXPECT_EQ(found.launches - expected.launches, extra.launches);
    EXPECT_EQ(found.arena_bytes - expected.arena_bytes, extra.arena_bytes);
    EXPECT_EQ(found.derived_bytes - expected.derived_bytes,
              extra.derived_bytes);
    EXPECT_EQ(found.layer_kinds - expected.layer_kinds, extra.layer_kinds);
    EXPECT_EQ(found.layer_calls - expected.layer_calls, extra.layer_kinds);
  }
}

INSTANTIATE_TEST_SUITE_P(Doors, DoorsTest,
                         testing::ValuesIn(std::vector<Door>{
                             {"gpt2", "folder"},
                             {"gpt2", "model_eval.pt2"},
                             {"gpt2", "model.onnx"},
                             {"bert", "folder"},
                             {"bert", "model_eval.pt2"},
                             {"bert", "model.onnx"},
                             {"llama", "folder"},
                             {"llama", "model_eval.pt2"},
                             {"llama", "model.onnx"}}),
                         NameOf);

// Files gather the rows of position tables, whose gradients are scattered; the
// folder slices them. ONNX counts negative token ids from the end, in a kernel
// of its own. BERT's mask is gathered. Llama's rotary tables are computed when
// weights are loaded, and it rotates by a concatenation. GPT-2's positions are
// added in another order, so that fewer sums take an operand's place in memory.
INSTANTIATE_TEST_SUITE_P(
    Doors, FileTest,
    testing::ValuesIn(std::vector<Door>{
        {"gpt2", "model_eval.pt2", {0, 2880}, {2, 0, 0, 1}},
        {"gpt2", "model.onnx", {1, 2880}, {3, 0, 0, 1}},
        {"bert", "model_eval.pt2", {1}, {4, 384}},
        {"bert", "model.onnx", {2}, {5, 384}},
        {"llama", "model_eval.pt2", {3, 0, 160}, {7, 256, 0, 1}},
        {"llama", "model.onnx", {4, 0, 160}, {8, 256, 0, 1}}}),
    NameOf);

}  // namespace
}  // namespace partita::e2e
