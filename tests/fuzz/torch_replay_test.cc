// Runs the reader and the importer of .pt2 files on systematic damage:
// truncations, flipped bits and changed words of real files. Nothing crashes;
// every refusal gives a reason.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "dialects/nn/dialect.h"
#include "frontends/torch/archive.h"
#include "frontends/torch/importer.h"
#include "tests/fuzz/replay.h"

namespace {

using partita::fuzz::ReadFile;
using partita::fuzz::Replay;

namespace torch = partita::torch;

constexpr const char* kReal[] = {
    "tests/data/torch-tiny/gpt2/model_eval.pt2",
    "tests/data/torch-tiny/t5/model_eval.pt2",
    "tests/data/torch-tiny/coatnet/model_train.pt2"};
constexpr char kProgram[] = "models/model.json";

torch::Entry EntryOf(const std::string& file, const std::string& name) {
  torch::Archive archive;
  std::string error;
  EXPECT_TRUE(archive.open(file, error)) << error;
  const torch::Entry* entry = archive.find(name);
  EXPECT_TRUE(entry) << name;
  return entry ? *entry : torch::Entry();
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
  torch::ImportOptions options;
  options.dims["batch"] = 2;
  for (const char* name : {"input_ids", "decoder_input_ids"})
    if (bytes.find(std::string("\"") + name + "\"") != std::string::npos)
      options.dims[name == std::string("input_ids") ? "seq" : "decoder_seq"] =
          5;
  auto module =
      torch::importTorchBytes(bytes, "damaged.pt2", options, &context);
  EXPECT_EQ(errors == 0, static_cast<bool>(module));
  return static_cast<bool>(module);
}

class TorchReplay : public testing::TestWithParam<const char*> {};

TEST_P(TorchReplay, TheRealFileIsGood) {
  const std::string file = ReadFile(GetParam());
  ASSERT_GT(file.size(), 1000u);
  Replay(file);
  EXPECT_TRUE(Imports(file));
}

TEST_P(TorchReplay, TruncationsAreSurvived) {
  const std::string file = ReadFile(GetParam());
  for (size_t size = 0; size < file.size(); size += 4001)
    Replay(file.substr(0, size));
}

TEST_P(TorchReplay, FlippedBitsOfTheDirectoryAreSurvived) {
  std::string file = ReadFile(GetParam());
  // The directory is at the end; its entries are short.
  const size_t start = file.size() - std::min<size_t>(file.size(), 4096);
  for (size_t i = start; i < file.size(); i += 23) {
    const char good = file[i];
    file[i] = static_cast<char>(good ^ (1 << (i % 8)));
    Replay(file);
    file[i] = good;
  }
}

TEST_P(TorchReplay, FlippedBitsOfTheProgramAreSurvivedByTheReader) {
  const std::string file = ReadFile(GetParam());
  const torch::Entry entry = EntryOf(file, kProgram);
  std::string json = file.substr(entry.offset, entry.size);
  for (size_t i = 0; i < json.size(); i += 1009) {
    const char good = json[i];
    json[i] = static_cast<char>(good ^ (1 << (i % 8)));
    Replay(json);
    json[i] = good;
  }
}

// Changes digits and names, which keeps the JSON readable.
TEST_P(TorchReplay, ChangedNumbersAreSurvivedByTheImporter) {
  const std::string good = ReadFile(GetParam());
  const torch::Entry entry = EntryOf(good, kProgram);
  std::vector<size_t> digits;
  for (size_t i = entry.offset; i < entry.offset + entry.size; ++i)
    if (good[i] >= '0' && good[i] <= '9') digits.push_back(i);
  ASSERT_GT(digits.size(), 100u);
  std::mt19937 random(3);
  int refused = 0;
  for (int round = 0; round < 150; ++round) {
    std::string bad = good;
    char& digit = bad[digits[random() % digits.size()]];
    digit = static_cast<char>('0' + (digit - '0' + 1 + random() % 9) % 10);
    refused += !Imports(bad);
  }
  // Other changes hit names, lines and strides, which the importer ignores.
  EXPECT_GT(refused, 15);
}

INSTANTIATE_TEST_SUITE_P(Files, TorchReplay, testing::ValuesIn(kReal));

}  // namespace
