// Compares grouped products on every device with plain loops.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/device_fixture.h"

namespace partita::conformance {
namespace {

using base::DType;
using device::GroupedGemmDesc;

GroupedGemmDesc Describe(int64_t rows, int64_t groups, int64_t n, int64_t k) {
  GroupedGemmDesc desc;
  desc.rows = desc.lhs_rows = rows;
  desc.groups = groups;
  desc.n = n;
  desc.k = k;
  return desc;
}

// Ids of all groups, and some outside.
std::vector<int64_t> MixedIds(const GroupedGemmDesc& desc) {
  std::vector<int64_t> ids;
  for (int64_t row = 0; row < desc.rows; ++row)
    ids.push_back((row * row * 7 + row * 3) % (desc.groups + 2) - 1);
  return ids;
}

std::vector<float> Reference(const GroupedGemmDesc& desc,
                             const std::vector<float>& lhs,
                             const std::vector<float>& second,
                             const std::vector<int64_t>& ids) {
  const int64_t n = desc.n, k = desc.k, p = desc.rows / desc.lhs_rows;
  std::vector<double> sums(static_cast<size_t>(
      desc.weight_grad ? desc.groups * n * k : desc.rows * n));
  for (int64_t row = 0; row < desc.rows; ++row) {
    const int64_t id = ids[static_cast<size_t>(row)];
    if (id < 0 || id >= desc.groups) continue;
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < k; ++i) {
        const double x = lhs[static_cast<size_t>(row / p * k + i)];
        if (desc.weight_grad) {
          sums[static_cast<size_t>((id * n + j) * k + i)] +=
              x * second[static_cast<size_t>(row * n + j)];
        } else {
          sums[static_cast<size_t>(row * n + j)] +=
              x * second[static_cast<size_t>(desc.transposed
                                                 ? (id * k + i) * n + j
                                                 : (id * n + j) * k + i)];
        }
      }
    }
  }
  return {sums.begin(), sums.end()};
}

class DeviceGroupedGemmTest : public DeviceTest {
 protected:
  // The product and the gradient, with matrices that are constant and not,
  // stored either way, and with all ids of one kind and the other.
  void CheckAll(GroupedGemmDesc desc, const std::vector<int64_t>& ids,
                double tolerance = 2e-5) {
    desc.ids = ids.size() % 2 == 0 ? DType::kI32 : DType::kI64;
    for (const bool transposed : {false, true}) {
      for (const bool constant : {false, true}) {
        SCOPED_TRACE(::testing::Message() << "transposed " << transposed
                                          << " constant " << constant);
        desc.transposed = transposed;
        Check(desc, ids, constant, tolerance);
      }
    }
    SCOPED_TRACE("weight gradient");
    desc.transposed = false;
    desc.weight_grad = true;
    Check(desc, ids, /*constant=*/false, tolerance);
  }

  device::Allocation PutIds(const GroupedGemmDesc& desc,
                            const std::vector<int64_t>& ids) {
    const std::vector<int32_t> narrow(ids.begin(), ids.end());
    return desc.ids == DType::kI32
               ? Upload(narrow.data(), 4 * static_cast<int64_t>(ids.size()))
               : Upload(ids.data(), 8 * static_cast<int64_t>(ids.size()));
  }
  device::Allocation Put(DType dtype, const std::vector<float>& values) {
    const std::string bytes = Encode(dtype, values);
    return Upload(bytes.data(), static_cast<int64_t>(bytes.size()));
  }
  // Random values, rounded to `dtype`.
  static std::vector<float> Rounded(DType dtype, int64_t count, uint64_t seed) {
    return Decode(dtype, Encode(dtype, Values(count, seed)));
  }

  void Check(const GroupedGemmDesc& desc, const std::vector<int64_t>& ids,
             bool constant, double tolerance) {
    const int64_t matrices = desc.groups * desc.n * desc.k,
                  rows = desc.rows * desc.n;
    const std::vector<float> lhs =
                                 Rounded(desc.dtype, desc.lhs_rows * desc.k, 1),
                             second =
                                 Rounded(desc.dtype,
                                         desc.weight_grad ? rows : matrices, 2);
    const device::Allocation a = Put(desc.dtype, lhs),
                             b = Put(desc.dtype, second), i = PutIds(desc, ids);
    // Every element is written.
    const std::vector<float> before(
        static_cast<size_t>(desc.weight_grad ? matrices : rows), 77.0f);
    const device::Allocation out = Put(desc.dtype, before);
    void* buffers[] = {a.data(), b.data(), i.data(), out.data()};
    absl::StatusOr<std::unique_ptr<device::LibraryOp>> op =
        device_->PrepareGroupedGemm(
            desc, {nullptr, constant ? b.data() : nullptr, nullptr, nullptr});
    if (GetParam().IsGpu()) {
      EXPECT_TRUE(absl::IsFailedPrecondition(op.status())) << op.status();
      return;
    }
    ASSERT_TRUE(op.ok()) << op.status();
    for (int repeat = 0; repeat < 2; ++repeat) {
      const absl::Status status =
          device_->Execute(*stream_, **op, buffers, /*count=*/4);
      ASSERT_TRUE(status.ok()) << status;
    }
    std::string found(static_cast<size_t>(out.bytes()), '\0');
    Download(out, found.data());
    if (Executes())
      ExpectNear(Reference(desc, lhs, second, ids), Decode(desc.dtype, found),
                 tolerance);
  }
};

TEST_P(DeviceGroupedGemmTest, Sizes) {
  for (const int64_t groups : {1, 3, 8}) {
    for (const int64_t rows : {1, 7, 300}) {
      for (const int64_t n : {1, 5, 96}) {
        for (const int64_t k : {1, 33}) {
          SCOPED_TRACE(::testing::Message()
                       << rows << "x" << n << "x" << k << " of " << groups);
          const GroupedGemmDesc desc = Describe(rows, groups, n, k);
          CheckAll(desc, MixedIds(desc));
        }
      }
    }
  }
}

// More threads than groups divide the columns.
TEST_P(DeviceGroupedGemmTest, Panels) {
  const GroupedGemmDesc desc = Describe(50, 2, 384, 48);
  CheckAll(desc, MixedIds(desc));
  CheckAll(desc, std::vector<int64_t>(50, 1));
  // Parts of an element's width.
  const GroupedGemmDesc odd = Describe(50, 2, 391, 48);
  CheckAll(odd, MixedIds(odd));
}

TEST_P(DeviceGroupedGemmTest, AllRowsOfOneGroup) {
  for (const int64_t rows : {5, 256, 257, 700}) {
    SCOPED_TRACE(rows);
    CheckAll(Describe(rows, 3, 20, 17), std::vector<int64_t>(rows, 2), 1e-4);
  }
}

TEST_P(DeviceGroupedGemmTest, IdsOutsideGiveZero) {
  for (const int64_t id :
       {int64_t{-1}, int64_t{3}, int64_t{-2000000000}, int64_t{2000000000}}) {
    SCOPED_TRACE(id);
    CheckAll(Describe(9, 3, 20, 17), std::vector<int64_t>(9, id));
    CheckAll(Describe(6, 3, 20, 17), {id, 0, 2, id, 2, id});
  }
  // Not the group of the low half.
  CheckAll(Describe(3, 3, 20, 17), {int64_t{1} << 32, 1, 0});
}

// In the order of their groups, rows are read and written in place.
TEST_P(DeviceGroupedGemmTest, SortedRows) {
  std::vector<int64_t> ids;
  for (const int64_t id : {0, 1, 3})
    ids.insert(ids.end(), static_cast<size_t>(id == 1 ? 256 : 16), id);
  CheckAll(Describe(static_cast<int64_t>(ids.size()), 4, 64, 32), ids, 1e-4);
}

TEST_P(DeviceGroupedGemmTest, RowsShareOneOfLhs) {
  for (const int64_t p : {2, 4}) {
    for (const int64_t lhs_rows : {1, 16, 65}) {
      SCOPED_TRACE(::testing::Message() << p << " times " << lhs_rows);
      GroupedGemmDesc desc = Describe(p * lhs_rows, 5, 24, 19);
      desc.lhs_rows = lhs_rows;
      CheckAll(desc, MixedIds(desc));
      // Consecutive rows of one group.
      CheckAll(desc, std::vector<int64_t>(p * lhs_rows, 1));
    }
  }
}

TEST_P(DeviceGroupedGemmTest, HalfPrecision) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const int64_t rows : {1, 13, 600}) {
      for (const int64_t n : {7, 256}) {
        SCOPED_TRACE(::testing::Message()
                     << base::NameOf(dtype) << " " << rows << "x" << n);
        GroupedGemmDesc desc = Describe(rows, 3, n, 35);
        desc.dtype = dtype;
        // The sum is in f32; the stored value has 8 or 11 bits.
        CheckAll(desc, MixedIds(desc), dtype == DType::kBF16 ? 8e-3 : 1e-3);
        CheckAll(desc, std::vector<int64_t>(static_cast<size_t>(rows), 2),
                 dtype == DType::kBF16 ? 8e-3 : 1e-3);
      }
    }
  }
}

TEST_P(DeviceGroupedGemmTest, ConstantsArePackedOnce) {
  if (!Executes() || GetParam().IsGpu()) return;
  const GroupedGemmDesc desc = Describe(64, 4, 256, 128);
  const device::Allocation b =
      Put(desc.dtype, Values(4 * int64_t{256} * 128, 1));
  const int64_t before = device_->Memory().packed;
  {
    const std::vector<const void*> constants = {nullptr, b.data(), nullptr,
                                                nullptr};
    const auto first = device_->PrepareGroupedGemm(desc, constants);
    ASSERT_TRUE(first.ok());
    const int64_t one = device_->Memory().packed - before;
    const auto second = device_->PrepareGroupedGemm(desc, constants);
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(device_->Memory().packed - before, one);
    EXPECT_EQ((*first)->Packed(1), one > 0);
    EXPECT_FALSE((*first)->Packed(0));
  }
  EXPECT_EQ(device_->Memory().packed, before);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceGroupedGemmTest,
                         ::testing::ValuesIn(AllDevices()), DeviceName);

}  // namespace
}  // namespace partita::conformance
