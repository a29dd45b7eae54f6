// Helpers for tests of sources.
#ifndef PARTITA_RUNTIME_DATA_SOURCE_TESTING_H_
#define PARTITA_RUNTIME_DATA_SOURCE_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/batch_source.h"

namespace partita::data {

// A new path in the test's own folder, with content `bytes`.
inline std::string WriteTestFile(const std::string& name,
                                 const std::string& bytes) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

inline base::TensorSpec Spec(const std::string& name, base::DType dtype,
                             std::vector<int64_t> shape) {
  const int64_t bytes = *base::ByteCount(dtype, shape);
  return {name, dtype, std::move(shape), bytes};
}

inline std::vector<double> Values(const Batch& batch, size_t index) {
  const base::ConstTensor& tensor = batch.tensors()[index];
  std::vector<double> values;
  for (int64_t i = 0; i < *base::ElementCount(tensor.shape); ++i)
    values.push_back(base::ElementAsDouble(tensor.dtype, tensor.data, i));
  return values;
}

inline Batch NewBatch(const BatchSource& source) {
  absl::StatusOr<Batch> batch = Batch::Allocate(source.specs());
  EXPECT_TRUE(batch.ok()) << batch.status();
  return std::move(*batch);
}

// Tensor `index` of the next `count` batches, one after the other.
inline std::vector<double> Draw(BatchSource& source, int count,
                                size_t index = 0) {
  Batch batch = NewBatch(source);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    const absl::Status status = source.Next(batch);
    EXPECT_TRUE(status.ok()) << status;
    const std::vector<double> next = Values(batch, index);
    values.insert(values.end(), next.begin(), next.end());
  }
  return values;
}

}  // namespace partita::data

#endif  // PARTITA_RUNTIME_DATA_SOURCE_TESTING_H_
