// Indices outside a table are named; other rows, and no limit, cause no error.
#include "runtime/data/check_indices.h"

#include <cstring>

#include "gtest/gtest.h"

namespace partita::data {
namespace {

const base::TensorSpec kIds = {"ids", base::DType::kI64, {3, 2}, 48};

TEST(CheckIndicesTest, NamesTheFirstOutside) {
  const int64_t ids[] = {0, 9, -100, 4, 10, 11};
  EXPECT_EQ(CheckIndices(kIds, ids, 10).message(),
            "input 'ids', row 2, element 0: expected a number below 10, the "
            "rows of the table that it is looked up in, found 10; is the data "
            "made for this model's vocabulary?");
  EXPECT_TRUE(CheckIndices(kIds, ids, 12).ok());
  EXPECT_TRUE(CheckIndices(kIds, ids, 0).ok());
  // Rows that are not read are not checked.
  EXPECT_TRUE(CheckIndices(kIds, ids, 10, {0, 2}).ok());
  EXPECT_FALSE(CheckIndices(kIds, ids, 10, {2, 1}).ok());
}

TEST(CheckIndicesTest, OtherTypes) {
  const uint16_t narrow[] = {3, 65535};
  const base::TensorSpec spec = {"t", base::DType::kU16, {2}, 4};
  EXPECT_EQ(
      std::string(CheckIndices(spec, narrow, 65535).message()).substr(0, 60),
      "input 't', row 1: expected a number below 65535, the rows of");
  EXPECT_TRUE(CheckIndices(spec, narrow, 65536).ok());
  const int32_t one[] = {7};
  EXPECT_FALSE(CheckIndices({"s", base::DType::kI32, {}, 4}, one, 7).ok());
  const float number[] = {7};
  EXPECT_TRUE(CheckIndices({"f", base::DType::kF32, {1}, 4}, number, 7).ok());
}

class Constant : public BatchSource {
 public:
  const std::vector<base::TensorSpec>& specs() const override { return specs_; }
  absl::Status Next(Batch& batch) override {
    const int64_t ids[] = {0, 1, 2, 3, 4, next_++};
    std::memcpy(batch.data(0), ids, sizeof(ids));
    return absl::OkStatus();
  }
  std::string State() const override { return "here"; }
  absl::Status Restore(const std::string& state) override {
    return absl::OkStatus();
  }

 private:
  const std::vector<base::TensorSpec> specs_ = {kIds};
  int64_t next_ = 6;
};

TEST(CheckIndicesTest, BatchesAreCheckedOneByOne) {
  auto source = CheckedSource(std::make_unique<Constant>(), {8});
  auto batch = Batch::Allocate(source->specs());
  ASSERT_TRUE(batch.ok());
  EXPECT_TRUE(source->Next(*batch).ok());
  EXPECT_TRUE(source->Next(*batch).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(source->Next(*batch)));
  EXPECT_EQ(source->State(), "here");
}

}  // namespace
}  // namespace partita::data
