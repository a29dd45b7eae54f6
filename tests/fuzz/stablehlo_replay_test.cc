// Runs the reader and the importer of JAX's programs on systematic damage:
// truncations and changed bytes of real files. Nothing crashes; every refusal
// gives a reason.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "dialects/nn/dialect.h"
#include "frontends/stablehlo/importer.h"
#include "tests/fuzz/replay.h"

namespace {

using partita::fuzz::ReadFile;
using partita::fuzz::Replay;

namespace stablehlo = partita::stablehlo;

constexpr const char* kReal[] = {
    "tests/data/jax-tiny/mlp.mlirbc",
    "tests/data/jax-tiny/mlp.jax",
    "tests/data/jax-tiny/gpt_2x2.mlirbc",
    "tests/data/jax-tiny/indexing.mlirbc",
    "tests/data/jax-tiny/loop_in_branch.mlirbc",
    "tests/data/jax-tiny/manual_gather_scatter_2x2.mlirbc"};

// Returns true if the bytes are imported. Otherwise a diagnostic must exist.
bool Imports(const std::string& bytes) {
  mlir::DialectRegistry registry;
  partita::nn::registerExternalModels(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  int errors = 0;
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic& diagnostic) {
    errors += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
  });
  auto module =
      stablehlo::importStablehloBytes(bytes, "damaged.mlirbc", {}, &context);
  EXPECT_TRUE(errors > 0 || module);
  return static_cast<bool>(module);
}

class StablehloReplay : public testing::TestWithParam<const char*> {};

TEST_P(StablehloReplay, TheRealFileIsGood) {
  const std::string file = ReadFile(GetParam());
  ASSERT_GT(file.size(), 1000u);
  Replay(file);
  EXPECT_TRUE(Imports(file));
}

TEST_P(StablehloReplay, EveryTruncationIsSurvivedByTheReader) {
  const std::string file = ReadFile(GetParam());
  for (size_t size = 0; size < file.size(); ++size)
    Replay(file.substr(0, size));
}

TEST_P(StablehloReplay, ChangedBytesAreSurvivedByTheReader) {
  std::string file = ReadFile(GetParam());
  for (size_t i = 0; i < file.size(); ++i) {
    const char good = file[i];
    for (const char bad : {'\0', '\xff', static_cast<char>(good ^ 1)}) {
      file[i] = bad;
      Replay(file);
    }
    file[i] = good;
  }
}

TEST_P(StablehloReplay, ChangedBytesAreSurvivedByTheImporter) {
  const std::string good = ReadFile(GetParam());
  std::mt19937 random(3);
  int refused = 0;
  for (int round = 0; round < 200; ++round) {
    std::string bad = good;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes)
      bad[random() % bad.size()] = static_cast<char>(random());
    refused += !Imports(bad);
  }
  // Half of jax.export's file is a header, which is not read.
  EXPECT_GT(refused, 50);
}

INSTANTIATE_TEST_SUITE_P(Files, StablehloReplay, testing::ValuesIn(kReal));

}  // namespace
