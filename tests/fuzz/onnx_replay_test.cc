// Runs the ONNX reader and importer on systematic damage: truncations and
// flipped bits of real files. Nothing crashes; every refusal gives a reason.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "dialects/nn/dialect.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/model.h"
#include "tests/fuzz/replay.h"

namespace {

using partita::fuzz::ReadFile;
using partita::fuzz::Replay;

using partita::onnx::ImportOptions;

constexpr const char* kReal[] = {"tests/data/onnx-tiny/vit/model_train.onnx",
                                 "tests/data/onnx-tiny/t5/model_eval.onnx",
                                 "tests/data/onnx-tiny/gpt2/model_train.onnx",
                                 "tests/fuzz/divided.onnx"};

// Positions outside of the weights, where damage hits the structure.
std::vector<size_t> StructureOf(const std::string& file) {
  partita::onnx::Model model;
  partita::onnx::WireError error;
  EXPECT_TRUE(partita::onnx::parseModel(file, model, error)) << error.str();
  std::vector<bool> is_weight(file.size());
  for (const auto& tensor : model.graph.initializers)
    for (size_t i = 0; i < tensor.raw.size(); ++i)
      is_weight[tensor.raw_offset + i] = true;
  std::vector<size_t> positions;
  for (size_t i = 0; i < file.size(); ++i)
    if (!is_weight[i]) positions.push_back(i);
  return positions;
}

// Returns true if the bytes are imported. Otherwise a diagnostic must exist.
bool Imports(const std::string& bytes) {
  mlir::DialectRegistry registry;
  registry.insert<partita::nn::NNDialect>();
  partita::nn::registerExternalModels(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  int errors = 0;
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic& diagnostic) {
    errors += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
  });
  ImportOptions options;
  if (bytes.find("batch") != std::string::npos) options.dims["batch"] = 2;
  for (const char* name : {"seq", "dec"})
    if (bytes.find(name) != std::string::npos) options.dims[name] = 5;
  auto module =
      partita::onnx::importOnnxBytes(bytes, "damaged.onnx", options, &context);
  EXPECT_EQ(errors == 0, static_cast<bool>(module));
  return static_cast<bool>(module);
}

class OnnxReplay : public testing::TestWithParam<const char*> {};

TEST_P(OnnxReplay, TheRealFileIsGood) {
  const std::string file = ReadFile(GetParam());
  ASSERT_GT(file.size(), 1000u);
  Replay(file);
  EXPECT_TRUE(Imports(file));
}

TEST_P(OnnxReplay, TruncationsAreSurvived) {
  const std::string file = ReadFile(GetParam());
  for (size_t size = 0; size < file.size(); size += 41)
    Replay(file.substr(0, size));
}

TEST_P(OnnxReplay, FlippedBitsAreSurvivedByTheReader) {
  std::string file = ReadFile(GetParam());
  for (size_t i : StructureOf(file)) {
    const char good = file[i];
    file[i] = static_cast<char>(good ^ (1 << (i % 8)));
    if (i % 7 == 0) Replay(file);
    file[i] = good;
  }
}

TEST_P(OnnxReplay, FlippedBitsAreSurvivedByTheImporter) {
  const std::string good = ReadFile(GetParam());
  const std::vector<size_t> positions = StructureOf(good);
  std::mt19937 random(3);
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    std::string bad = good;
    const size_t at = positions[random() % positions.size()];
    bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
    refused += !Imports(bad);
  }
  // Most damage is noticed; the rest hits names and unused fields.
  EXPECT_GT(refused, 100);
}

INSTANTIATE_TEST_SUITE_P(Files, OnnxReplay, testing::ValuesIn(kReal));

}  // namespace
