// The C interface on small programs: runs, training steps, checkpoints and
// refusals.
#include "runtime/api/partita.h"

#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/program/test_program.h"
#include "runtime/program/test_training_program.h"

namespace {

using ::partita::program::DividedProgram;
using ::partita::program::SampleProgram;
using ::partita::program::TrainingProgram;
using ::partita::program::TrainingStep;
using ::partita::program::WriteArtifact;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

// A tensor over memory of the test.
struct View {
  std::vector<int64_t> shape;
  partita_tensor tensor = {};

  View(void* data, partita_type type, std::vector<int64_t> sizes)
      : shape(std::move(sizes)) {
    tensor.data = data;
    tensor.device = {1, 0};
    tensor.type = type;
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.shape = shape.data();
  }
};

constexpr partita_type kF32 = {PARTITA_FLOAT, 32, 1};

class ApiTest : public ::testing::Test {
 protected:
  ApiTest() {
    folder_ = ::testing::TempDir() + "/api_XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~ApiTest() override {
    partita_close(session_);
    std::filesystem::remove_all(folder_);
  }

  std::string Path(const std::string& name) const {
    return folder_ + "/" + name;
  }
  template <typename Program>
  partita_status Open(const Program& program) {
    EXPECT_TRUE(WriteArtifact(Path("model.partita"), program.Parts()).ok());
    partita_options options = PARTITA_OPTIONS;
    options.threads = 2;
    partita_close(session_);
    session_ = nullptr;
    return partita_open(Path("model.partita").c_str(), &options, &session_);
  }
  // Expects that the last call failed with this status and text.
  void ExpectError(partita_status status, partita_status expected,
                   const std::string& text) {
    EXPECT_EQ(status, expected);
    EXPECT_THAT(partita_last_error(), HasSubstr(text));
  }

  std::string folder_;
  partita_session* session_ = nullptr;
};

TEST_F(ApiTest, DescribesAndRuns) {
  ASSERT_EQ(Open(SampleProgram()), PARTITA_OK) << partita_last_error();
  EXPECT_EQ(partita_device_count(session_), 1);
  EXPECT_EQ(partita_process_count(session_), 1);
  ASSERT_EQ(partita_input_count(session_), 2u);
  ASSERT_EQ(partita_output_count(session_), 3u);
  partita_tensor_info info;
  ASSERT_EQ(partita_input(session_, 0, &info), PARTITA_OK);
  EXPECT_STREQ(info.name, "x");
  EXPECT_EQ(Floats(info.shape, info.shape + info.ndim), (Floats{4, 8}));
  EXPECT_EQ(info.bytes, 128);
  EXPECT_EQ(info.role, PARTITA_DATA);

  Floats x(32, 1), image(256, 1);
  View first(x.data(), kF32, {4, 8}), second(image.data(), kF32, {1, 4, 8, 8});
  const partita_tensor given[] = {first.tensor, second.tensor};
  std::vector<partita_managed_tensor*> made(3);
  std::vector<partita_tensor> outputs;
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(partita_new_output(session_, i, &made[i]), PARTITA_OK);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(made[i]->tensor.data) % 64, 0u);
    outputs.push_back(made[i]->tensor);
  }
  ASSERT_EQ(partita_run(session_, given, 2, outputs.data(), 3), PARTITA_OK)
      << partita_last_error();
  partita_close(session_);
  session_ = nullptr;
  // Outputs outlive the session.
  EXPECT_NE(made[2]->tensor.data, nullptr);
  for (partita_managed_tensor* tensor : made) tensor->deleter(tensor);
}

TEST_F(ApiTest, DevicesAreThreads) {
  Floats one, four;
  for (const int64_t devices : {1, 2}) {
    ASSERT_EQ(Open(DividedProgram(4, devices, devices)), PARTITA_OK)
        << partita_last_error();
    EXPECT_EQ(partita_device_count(session_), devices * devices);
    Floats x(32);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1f * static_cast<float>(i);
    View input(x.data(), kF32, {4, 8});
    std::vector<partita_managed_tensor*> made(partita_output_count(session_));
    std::vector<partita_tensor> outputs;
    for (size_t i = 0; i < made.size(); ++i) {
      ASSERT_EQ(partita_new_output(session_, i, &made[i]), PARTITA_OK);
      outputs.push_back(made[i]->tensor);
    }
    ASSERT_EQ(
        partita_run(session_, &input.tensor, 1, outputs.data(), outputs.size()),
        PARTITA_OK)
        << partita_last_error();
    const auto* values = static_cast<const float*>(outputs[0].data);
    (devices == 1 ? one : four)
        .assign(values, values + outputs[0].shape[0] * outputs[0].shape[1]);
    for (partita_managed_tensor* tensor : made) tensor->deleter(tensor);
  }
  ASSERT_EQ(one.size(), four.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], four[i], 1e-5);
}

TEST_F(ApiTest, TrainsSavesAndGoesOn) {
  constexpr int64_t kBatch = 4, kWidth = TrainingProgram::kWidth,
                    kOut = TrainingProgram::kOut;
  Floats x(kBatch * kWidth), t(kBatch * kOut);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) * 0.1f;
  for (size_t i = 0; i < t.size(); ++i) t[i] = static_cast<float>(i % 5) * 0.2f;
  View data_x(x.data(), kF32, {kBatch, kWidth}),
      data_t(t.data(), kF32, {kBatch, kOut});
  const partita_tensor data[] = {data_x.tensor, data_t.tensor};
  ASSERT_EQ(Open(TrainingProgram(kBatch, 1, 1)), PARTITA_OK);

  Floats expected(kWidth * kOut);
  View weight(expected.data(), kF32, {kWidth, kOut});
  ASSERT_EQ(partita_read_parameter(session_, "w", &weight.tensor), PARTITA_OK)
      << partita_last_error();
  std::vector<double> losses;
  for (int i = 0; i < 4; ++i) {
    double loss = 0;
    ASSERT_EQ(partita_train_step(session_, data, 2, 0.01, &loss), PARTITA_OK)
        << partita_last_error();
    EXPECT_NEAR(loss, TrainingStep(x, t, 0.01f, expected), 1e-5 * (1 + loss));
    losses.push_back(loss);
    if (i == 1)
      ASSERT_EQ(partita_save_checkpoint(session_, Path("saved").c_str()),
                PARTITA_OK)
          << partita_last_error();
  }
  EXPECT_LT(losses[3], losses[0]);
  EXPECT_EQ(partita_step(session_), 4);

  // Under another plan: four devices.
  ASSERT_EQ(Open(TrainingProgram(kBatch, 2, 2)), PARTITA_OK);
  ASSERT_EQ(partita_load_checkpoint(session_, Path("saved").c_str()),
            PARTITA_OK)
      << partita_last_error();
  EXPECT_EQ(partita_step(session_), 2);
  for (int i = 2; i < 4; ++i) {
    double loss = 0;
    ASSERT_EQ(partita_train_step(session_, data, 2, 0.01, &loss), PARTITA_OK)
        << partita_last_error();
    EXPECT_NEAR(loss, losses[static_cast<size_t>(i)], 1e-5 * (1 + loss));
  }
  Floats read(expected.size());
  View current(read.data(), kF32, {kWidth, kOut});
  ASSERT_EQ(partita_read_parameter(session_, "w", &current.tensor), PARTITA_OK);
  for (size_t i = 0; i < read.size(); ++i)
    EXPECT_NEAR(read[i], expected[i], 1e-5);
  // The next step uses the written parameters.
  std::fill(read.begin(), read.end(), 0.0f);
  ASSERT_EQ(partita_write_parameter(session_, "w", &current.tensor),
            PARTITA_OK);
  double loss = 0;
  ASSERT_EQ(partita_train_step(session_, data, 2, 0.01, &loss), PARTITA_OK);
  float squares = 0;
  for (const float value : t) squares += value * value;
  EXPECT_NEAR(loss, squares, 1e-4);

  ExpectError(partita_load_checkpoint(session_, Path("nowhere").c_str()),
              PARTITA_NOT_FOUND, "nowhere");
  ExpectError(partita_write_parameter(session_, "f", &current.tensor),
              PARTITA_INVALID, "'f'");
  ExpectError(partita_read_parameter(session_, "v", &current.tensor),
              PARTITA_NOT_FOUND, "v");
  ExpectError(partita_train_step(session_, data, 1, 0.01, &loss),
              PARTITA_INVALID, "expected 2 data inputs, found 1");
}

TEST_F(ApiTest, RefusesWhatCannotBeOpened) {
  ExpectError(partita_open(nullptr, nullptr, &session_), PARTITA_INVALID,
              "expected the path of a compiled model, found NULL");
  ExpectError(partita_open("x", nullptr, nullptr), PARTITA_INVALID, "NULL");
  ExpectError(partita_open(Path("none").c_str(), nullptr, &session_),
              PARTITA_NOT_FOUND, "none");
  partita_options options = PARTITA_OPTIONS;
  options.abi_version = PARTITA_ABI_VERSION + 1;
  ExpectError(partita_open("x", &options, &session_), PARTITA_INVALID,
              "expected a program for ABI version 1");
  options = PARTITA_OPTIONS;
  options.size = 8;
  ExpectError(partita_open("x", &options, &session_), PARTITA_INVALID,
              "found 8");
  options = PARTITA_OPTIONS;
  options.device = "tpu";
  ExpectError(partita_open("x", &options, &session_), PARTITA_INVALID,
              "expected the device cpu, cuda or null, found 'tpu'");
  options = PARTITA_OPTIONS;
  options.timeout_seconds = std::numeric_limits<double>::quiet_NaN();
  ExpectError(partita_open("x", &options, &session_), PARTITA_INVALID,
              "timeout_seconds");
  options = PARTITA_OPTIONS;
  options.join_job = 1;
  ExpectError(partita_open("x", &options, &session_), PARTITA_INVALID,
              "mpirun");
  EXPECT_EQ(session_, nullptr);
}

TEST_F(ApiTest, RefusesWrongTensorsAndStaysUsable) {
  ASSERT_EQ(Open(DividedProgram(4, 2, 1)), PARTITA_OK);
  Floats x(64);
  std::vector<partita_managed_tensor*> made(partita_output_count(session_));
  std::vector<partita_tensor> outputs;
  for (size_t i = 0; i < made.size(); ++i) {
    ASSERT_EQ(partita_new_output(session_, i, &made[i]), PARTITA_OK);
    outputs.push_back(made[i]->tensor);
  }
  const auto run = [&](const partita_tensor& input) {
    return partita_run(session_, &input, 1, outputs.data(), outputs.size());
  };
  View good(x.data(), kF32, {4, 8});
  ExpectError(partita_run(session_, nullptr, 1, outputs.data(), 1),
              PARTITA_INVALID, "expected tensors, found NULL");
  ExpectError(partita_run(session_, &good.tensor, 1, outputs.data(), 1),
              PARTITA_INVALID, "outputs, found 1");
  View narrow(x.data(), kF32, {4, 7});
  ExpectError(run(narrow.tensor), PARTITA_INVALID,
              "input 'x': expected f32[4,8], found f32[4,7]");
  View whole(x.data(), {PARTITA_INT, 32, 1}, {4, 8});
  ExpectError(run(whole.tensor), PARTITA_INVALID, "found i32[4,8]");
  View odd(x.data(), {3, 32, 1}, {4, 8});
  ExpectError(run(odd.tensor), PARTITA_INVALID, "DLPack type 3");
  View vector(x.data(), {PARTITA_FLOAT, 32, 4}, {4, 8});
  ExpectError(run(vector.tensor), PARTITA_INVALID, "4 lanes");
  View empty(nullptr, kF32, {4, 8});
  ExpectError(run(empty.tensor), PARTITA_INVALID, "NULL");
  View shapeless(x.data(), kF32, {4, 8});
  shapeless.tensor.shape = nullptr;
  ExpectError(run(shapeless.tensor), PARTITA_INVALID, "without a shape");
  View gpu(x.data(), kF32, {4, 8});
  gpu.tensor.device = {2, 0};
  ExpectError(run(gpu.tensor), PARTITA_INVALID, "found device 2");
  View unaligned(x.data(), kF32, {4, 8});
  unaligned.tensor.byte_offset = 2;
  ExpectError(run(unaligned.tensor), PARTITA_INVALID, "aligned copy");
  View columns(x.data(), kF32, {4, 8});
  int64_t strides[] = {1, 4};
  columns.tensor.strides = strides;
  ExpectError(run(columns.tensor), PARTITA_INVALID, "contiguous copy");
  int64_t compact[] = {8, 1};
  columns.tensor.strides = compact;
  EXPECT_EQ(run(columns.tensor), PARTITA_OK) << partita_last_error();
  ExpectError(partita_run(nullptr, nullptr, 0, nullptr, 0), PARTITA_INVALID,
              "session");
  double loss = 7;
  ExpectError(partita_train_step(session_, &good.tensor, 1, 0.1, &loss),
              PARTITA_INVALID, "compile the model with --train");
  EXPECT_EQ(loss, 7);
  ExpectError(partita_save_checkpoint(session_, Path("c").c_str()),
              PARTITA_INVALID, "expected a session that has taken");
  partita_tensor_info info;
  ExpectError(partita_input(session_, 1, &info), PARTITA_INVALID,
              "expected an index below 1, found 1");
  EXPECT_EQ(run(good.tensor), PARTITA_OK) << partita_last_error();
  for (partita_managed_tensor* tensor : made) tensor->deleter(tensor);
}

TEST_F(ApiTest, MessagesBelongToThreads) {
  EXPECT_EQ(partita_run(nullptr, nullptr, 0, nullptr, 0), PARTITA_INVALID);
  const std::string here = partita_last_error();
  std::string there = "unset";
  std::thread([&] { there = partita_last_error(); }).join();
  EXPECT_NE(here, "");
  EXPECT_EQ(there, "");
}

TEST(ApiVersionTest, IsTheHeaders) {
  EXPECT_EQ(partita_abi_version(), uint32_t{PARTITA_ABI_VERSION});
  EXPECT_NE(std::strlen(partita_version()), 0u);
}

TEST_F(ApiTest, RefusesWrongGenerators) {
  partita_generator* generator = nullptr;
  EXPECT_EQ(partita_open_generator(nullptr, nullptr, &generator),
            PARTITA_INVALID);
  EXPECT_THAT(partita_last_error(), HasSubstr("the folder of a model"));
  EXPECT_EQ(partita_open_generator(folder_.c_str(), nullptr, &generator),
            PARTITA_NOT_FOUND);
  EXPECT_THAT(partita_last_error(), HasSubstr("generation.json"));
  partita_options options = PARTITA_OPTIONS;
  options.join_job = 1;
  EXPECT_EQ(partita_open_generator(folder_.c_str(), &options, &generator),
            PARTITA_INVALID);
  EXPECT_THAT(partita_last_error(), HasSubstr("join_job"));
  EXPECT_EQ(generator, nullptr);
  partita_generator_info info;
  EXPECT_EQ(partita_describe_generator(nullptr, &info), PARTITA_INVALID);
  EXPECT_EQ(partita_generate(nullptr, nullptr, 0, nullptr, nullptr, nullptr),
            PARTITA_INVALID);
  partita_close_generator(nullptr);
}

}  // namespace
