// Figures of a benchmark, files, and a peer that is a shell script.
#include "compiler/driver/bench/bench.h"

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/driver/bench/bench_files.h"
#include "compiler/driver/bench/peer_process.h"
#include "gtest/gtest.h"
#include "llvm/Support/JSON.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/npy.h"
#include "runtime/program/artifact.h"

namespace partita::driver {
namespace {

class BenchTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/bench";
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, std::vector<float> values) {
    const std::string path = folder_ + "/" + name;
    const absl::Status status =
        base::WriteNpy(path, base::DType::kF32,
                       {static_cast<int64_t>(values.size())}, values.data());
    EXPECT_TRUE(status.ok()) << status;
    return path;
  }

  absl::StatusOr<std::unique_ptr<PeerProcess>> startShell(
      const std::string& script) {
    return PeerProcess::start({"/bin/sh", "-c", script}, folder_ + "/log");
  }

  std::string folder_;
};

TEST_F(BenchTest, MediansAndRatios) {
  EXPECT_EQ(medianOf({}), 0);
  EXPECT_EQ(medianOf({3, 1, 2}), 2);
  EXPECT_EQ(medianOf({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(geometricMean({}), 0);
  EXPECT_DOUBLE_EQ(geometricMean({0.5, 2}), 1);
  // The load of the machine changes from round to round, and the ratio does
  // not; medians of either system would give 2.
  EXPECT_EQ(ratioOf({1, 10, 20}, {2, 20, 5}), 0.5);
}

TEST_F(BenchTest, DifferencesOfOutputs) {
  const std::string a = write("a.npy", {1, -8, 3});
  const std::string b = write("b.npy", {1.5, -8, 3});
  const std::string nan = write("nan.npy", {1.5, NAN, 3});
  const std::string two = write("two.npy", {1, 2});
  auto apart = compareOutputs({a, a}, {a, b});
  ASSERT_TRUE(apart.ok()) << apart.status();
  EXPECT_EQ(apart->largest, 0.5);
  EXPECT_EQ(apart->magnitude, 8);
  EXPECT_TRUE(std::isinf(compareOutputs({a}, {nan})->largest));
  EXPECT_EQ(compareOutputs({nan}, {nan})->largest, 0);
  EXPECT_EQ(compareOutputs({a}, {two}).status().message(),
            "expected an output of shape [2], found [3]");
  EXPECT_EQ(compareOutputs({a}, {a, b}).status().message(),
            "expected 2 outputs, found 1");
}

TEST_F(BenchTest, InputsHaveTheProgramsTypes) {
  program::ProgramT sample;
  const auto add = [&](const char* name, program::DType dtype,
                       std::vector<int64_t> shape, int64_t limit) {
    auto port = std::make_unique<program::PortT>();
    port->name = name;
    port->type = std::make_unique<program::TensorTypeT>();
    port->type->dtype = dtype;
    port->type->shape = std::move(shape);
    port->limit = limit;
    sample.inputs.push_back(std::move(port));
  };
  add("x", program::DType::f32, {100, 10}, 0);
  add("ids", program::DType::i64, {500}, 7);
  add("mask", program::DType::i1, {4}, 0);
  const std::string bytes = program::SerializeProgram(sample);
  auto files = writeInputs(*program::GetProgram(bytes.data()), folder_);
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 3);
  const auto valuesOf = [&](size_t i, std::vector<int64_t> shape) {
    const NamedFile& named = (*files)[i];
    auto file = base::MappedFile::Open(named.path);
    EXPECT_TRUE(file.ok()) << file.status();
    auto array = base::ParseNpy(file->bytes(), named.path);
    EXPECT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->shape, shape);
    std::vector<double> values;
    for (int64_t k = 0; k < *base::ElementCount(shape); ++k)
      values.push_back(
          base::ElementAsDouble(array->dtype, array->data.data(), k));
    return values;
  };
  double squares = 0;
  for (const double x : valuesOf(0, {100, 10})) squares += x * x;
  EXPECT_NEAR(squares / 1000, 1, 0.2);
  std::vector<int> counts(7);
  for (const double id : valuesOf(1, {500})) ++counts.at(static_cast<int>(id));
  for (const int count : counts) EXPECT_GT(count, 0);
  EXPECT_EQ(valuesOf(2, {4}), std::vector<double>(4, 1));
  EXPECT_EQ((*files)[1].name, "ids");
}

TEST_F(BenchTest, PeersAnswer) {
  auto peer = startShell(
      "echo '{\"outputs\": []}'; while read line; do echo \"{\\\"got\\\": "
      "$line}\"; done");
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_NE((*peer)->first().getArray("outputs"), nullptr);
  for (int number = 0; number < 3; ++number) {
    auto answer = (*peer)->ask(llvm::json::Object{{"number", number}});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->getObject("got")->getInteger("number"), number);
  }
}

TEST_F(BenchTest, FailuresOfPeersAreErrors) {
  const auto messageOf = [&](const std::string& script) {
    return std::string(startShell(script).status().message());
  };
  EXPECT_EQ(messageOf("echo one >&2; echo 'no memory' >&2; exit 3"),
            "its process ended without an answer: no memory");
  EXPECT_EQ(messageOf("echo '{\"error\": \"no module\"}'; read line"),
            "no module");
  EXPECT_EQ(messageOf("echo hello; read line"),
            "expected a JSON object as an answer, found 'hello'");
  EXPECT_EQ(
      PeerProcess::start({"/nonexistent"}, folder_ + "/log").status().message(),
      "/nonexistent cannot be started: No such file or directory");
  auto peer = startShell("echo '{}'; read line; echo 'out of memory' >&2");
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ((*peer)->ask(llvm::json::Object{{"repeat", 1}}).status().message(),
            "its process ended without an answer: out of memory");
}

}  // namespace
}  // namespace partita::driver
