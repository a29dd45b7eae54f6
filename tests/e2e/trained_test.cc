// Trained weights at full size: the MiniLM sentence encoder and a CoAtNet-0 at
// 224 x 224, compared with PyTorch's results in double precision.
#include <cmath>
#include <cstdlib>

#include "compiler/driver/import_model.h"
#include "gtest/gtest.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/npy.h"
#include "tests/e2e/compiled_model.h"

namespace partita::e2e {
namespace {

HostTensor ReadNpy(const std::string& path) {
  auto file = base::MappedFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return {};
  auto array = base::ParseNpy(file->bytes(), path);
  EXPECT_TRUE(array.ok()) << array.status();
  if (!array.ok()) return {};
  return {array->dtype, array->shape, std::string(array->data)};
}

std::unique_ptr<CompiledModel> Compile(const std::string& folder,
                                       std::map<std::string, int64_t> dims) {
  CompilerContext context;
  driver::ImportOptions options;
  options.dims = std::move(dims);
  auto module = driver::importModel(folder, options, context.get());
  EXPECT_TRUE(module) << context.errors;
  if (!module) return nullptr;
  auto model = CompiledModel::Make(*module, testing::TempDir(), "trained", 2);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? std::move(*model) : nullptr;
}

// 1 minus the cosine of the angle between two rows.
double CosineDistance(const float* a, const float* b, int64_t size) {
  double ab = 0, aa = 0, bb = 0;
  for (int64_t i = 0; i < size; ++i) {
    ab += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return 1 - ab / std::sqrt(aa * bb);
}

TEST(TrainedTest, MiniLmEmbedsTenSentences) {
  const std::string data = "tests/data/minilm/";
  const char* folder = std::getenv("PARTITA_MINILM");
  ASSERT_NE(folder, nullptr) << "minilm_test.sh sets PARTITA_MINILM";
  const HostTensor ids = ReadNpy(data + "input_ids.npy");
  const HostTensor mask = ReadNpy(data + "attention_mask.npy");
  const HostTensor expected = ReadNpy(data + "embeddings.npy");
  auto model = Compile(folder, {{"batch", 10}, {"seq", 65}});
  ASSERT_TRUE(model);
  auto outputs = model->Run({{"input_ids", ids}, {"attention_mask", mask}});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_EQ(outputs->front().shape, expected.shape);
  for (int64_t row = 0; row < 10; ++row) {
    const double distance =
        CosineDistance(outputs->front().floats() + row * 384,
                       expected.floats() + row * 384, 384);
    EXPECT_LT(std::abs(distance), 1e-5) << "sentence " << row;
  }
}

TEST(TrainedTest, CoAtNet0EqualsTimm) {
  const std::string folder = "tests/data/coatnet-0/";
  auto model = Compile(folder, {{"batch", 1}});
  ASSERT_TRUE(model);
  const HostTensor expected = ReadNpy(folder + "logits.npy");
  auto outputs = model->Run(std::map<std::string, HostTensor>{
      {model->executor().inputs().front().name,
       ReadNpy(folder + "image.npy")}});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_EQ(outputs->front().shape, expected.shape);
  const Distance distance = Compare(outputs->front(), expected, 1e-3, 1e-9);
  // Relative to the largest logit; small logits are differences of large
  // numbers.
  EXPECT_LE(distance.largest, 1e-3 * distance.largest_expected);
}

}  // namespace
}  // namespace partita::e2e
