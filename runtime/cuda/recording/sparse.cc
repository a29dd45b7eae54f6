// cuSPARSELt's functions as plain loops on the recording driver's streams.
// Sizes, leading dimensions and addresses that break the library's rules fail
// with its error. A compressed weight has two numbers per group of four, then a
// byte per group with their places.
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "runtime/cuda/recording/queue.h"
#include "runtime/cuda/recording/touched_kernels.h"
#include "runtime/cuda/sparse_api.h"

namespace partita::cuda::recording {
namespace {

constexpr size_t kWorkspace = 4096, kBuffer = 512;

bool Aligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

struct Matrix {
  int64_t rows, columns, leading;
  LtDataType type;
  bool structured;
};
struct Matmul {
  SparseOperation a_op, b_op;
  Matrix a, b, d;
  int relu;
  const void* bias;

  int64_t m() const { return a_op == kSparseAsIs ? a.rows : a.columns; }
  int64_t k() const { return a_op == kSparseAsIs ? a.columns : a.rows; }
  int64_t n() const { return b_op == kSparseAsIs ? b.columns : b.rows; }
  int64_t groups() const { return m() * k() / 4; }
  KernelType type() const {
    return a.type == kLtF16 ? KernelType::kF16 : KernelType::kBF16;
  }
  bool Fits() const {
    return a.structured && !b.structured && a.type == b.type &&
           a.type == d.type &&
           k() == (b_op == kSparseAsIs ? b.rows : b.columns) && d.rows == m() &&
           d.columns == n();
  }
  static int64_t IndexOf(const Matrix& matrix, SparseOperation op, int64_t row,
                         int64_t column) {
    if (op == kSparseTransposed) std::swap(row, column);
    return column * matrix.leading + row;
  }
};

template <typename T>
T& Of(SparseObject* object) {
  static_assert(sizeof(T) <= sizeof(SparseObject));
  return *reinterpret_cast<T*>(object->bytes);
}
template <typename T>
const T& Of(const SparseObject* object) {
  return *reinterpret_cast<const T*>(object->bytes);
}

// A number with its place in a group of four.
void CompressGroup(const Matmul& matmul, const void* dense, void* compressed,
                   int64_t group) {
  const KernelType type = matmul.type();
  unsigned char* const places =
      static_cast<unsigned char*>(compressed) + matmul.groups() * 4 + group;
  const int64_t row = group / (matmul.k() / 4),
                first = group % (matmul.k() / 4) * 4;
  int64_t kept = 0;
  unsigned found = 0;
  float values[2] = {0, 0};
  for (int64_t i = 0; i < 4; ++i) {
    const float value = Load(
        type, dense, Matmul::IndexOf(matmul.a, matmul.a_op, row, first + i));
    if (value == 0 || kept == 2) continue;
    found |= static_cast<unsigned>(i) << (4 * kept);
    values[kept++] = value;
  }
  for (int64_t i = 0; i < 2; ++i)
    Store(type, compressed, group * 2 + i, values[i]);
  *places = static_cast<unsigned char>(found);
  Machine::Get().Touch(places, 1, /*writes=*/true);
}

void Multiply(const Matmul& matmul, float beta, const void* a, const void* b,
              const void* c, void* d, void* workspace) {
  const KernelType type = matmul.type();
  std::memset(workspace, 0x7f, kWorkspace);
  Machine::Get().Touch(workspace, kWorkspace, /*writes=*/true);
  const unsigned char* const places =
      static_cast<const unsigned char*>(a) + matmul.groups() * 4;
  Machine::Get().Touch(places, static_cast<size_t>(matmul.groups()),
                       /*writes=*/false);
  const int64_t groups = matmul.k() / 4;
  for (int64_t row = 0; row < matmul.m(); ++row)
    for (int64_t column = 0; column < matmul.n(); ++column) {
      double sum = 0;
      for (int64_t group = row * groups; group < (row + 1) * groups; ++group)
        for (int64_t i = 0; i < 2; ++i) {
          const int64_t k = group % groups * 4 + (places[group] >> (4 * i) & 3);
          sum +=
              double{Load(type, a, group * 2 + i)} *
              Load(type, b, Matmul::IndexOf(matmul.b, matmul.b_op, k, column));
        }
      const int64_t at = column * matmul.d.leading + row;
      if (beta != 0) sum += beta * Load(type, c, at);
      if (matmul.bias != nullptr) sum += Load(type, matmul.bias, row);
      if (matmul.relu) sum = sum > 0 ? sum : 0;
      Store(type, d, at, static_cast<float>(sum));
    }
}

SparseStatus MakeMatrix(const char* name, SparseObject* matrix, int64_t rows,
                        int64_t columns, int64_t leading, uint32_t alignment,
                        LtDataType type, SparseOrder order, bool structured) {
  const Lock lock(Machine::Get().mutex);
  if (Machine::Get().Enter(name) != kCuSuccess) return kSparseNotSupported;
  if (alignment != 16 || order != kSparseColumnMajor || leading < rows ||
      (type != kLtF16 && type != kLtBF16))
    return kSparseInvalidValue;
  for (const int64_t size : {rows, columns, leading})
    if (size % 8 != 0 || size <= 0) return kSparseNotSupported;
  new (matrix->bytes) Matrix{rows, columns, leading, type, structured};
  return kSparseSuccess;
}

}  // namespace
}  // namespace partita::cuda::recording

using namespace partita::cuda;
using namespace partita::cuda::recording;

#pragma GCC visibility push(default)
extern "C" {

SparseStatus cusparseLtInit(SparseObject*) {
  const Lock lock(Machine::Get().mutex);
  return Machine::Get().Enter(__func__) == kCuSuccess ? kSparseSuccess
                                                      : kSparseArchMismatch;
}
SparseStatus cusparseLtDestroy(const SparseObject*) { return kSparseSuccess; }
SparseStatus cusparseLtGetProperty(SparseProperty property, int* value) {
  *value = property == kSparseMinor ? 10 : 0;
  return kSparseSuccess;
}
SparseStatus cusparseLtDenseDescriptorInit(const SparseObject*,
                                           SparseObject* matrix, int64_t rows,
                                           int64_t columns, int64_t leading,
                                           uint32_t alignment, LtDataType type,
                                           SparseOrder order) {
  return MakeMatrix(__func__, matrix, rows, columns, leading, alignment, type,
                    order, false);
}
SparseStatus cusparseLtStructuredDescriptorInit(
    const SparseObject*, SparseObject* matrix, int64_t rows, int64_t columns,
    int64_t leading, uint32_t alignment, LtDataType type, SparseOrder order,
    SparseSparsity) {
  return MakeMatrix(__func__, matrix, rows, columns, leading, alignment, type,
                    order, true);
}
SparseStatus cusparseLtMatDescriptorDestroy(const SparseObject*) {
  return kSparseSuccess;
}
SparseStatus cusparseLtMatmulDescriptorInit(
    const SparseObject*, SparseObject* matmul, SparseOperation a_op,
    SparseOperation b_op, const SparseObject* a, const SparseObject* b,
    const SparseObject*, const SparseObject* d, SparseCompute compute) {
  const Matmul& made = *new (matmul->bytes) Matmul{
      a_op, b_op, Of<Matrix>(a), Of<Matrix>(b), Of<Matrix>(d), 0, nullptr};
  return made.Fits() && compute == kSparseComputeF32 ? kSparseSuccess
                                                     : kSparseInvalidValue;
}
SparseStatus cusparseLtMatmulDescSetAttribute(const SparseObject*,
                                              SparseObject* matmul,
                                              SparseAttribute attribute,
                                              const void* value, size_t bytes) {
  Matmul& into = Of<Matmul>(matmul);
  if (attribute == kSparseRelu && bytes == sizeof(into.relu))
    std::memcpy(&into.relu, value, bytes);
  else if (attribute == kSparseBiasPointer && bytes == sizeof(into.bias))
    std::memcpy(&into.bias, value, bytes);
  else
    return kSparseInvalidValue;
  return kSparseSuccess;
}
SparseStatus cusparseLtMatmulAlgSelectionInit(const SparseObject*,
                                              SparseObject*,
                                              const SparseObject*,
                                              SparseAlgorithm) {
  return kSparseSuccess;
}
SparseStatus cusparseLtMatmulAlgSelectionDestroy(const SparseObject*) {
  return kSparseSuccess;
}
SparseStatus cusparseLtMatmulPlanInit(const SparseObject*, SparseObject* plan,
                                      const SparseObject* matmul,
                                      const SparseObject*) {
  const Lock lock(Machine::Get().mutex);
  if (Machine::Get().Enter(__func__) != kCuSuccess) return kSparseNotSupported;
  new (plan->bytes) Matmul(Of<Matmul>(matmul));
  return kSparseSuccess;
}
SparseStatus cusparseLtMatmulPlanDestroy(const SparseObject*) {
  return kSparseSuccess;
}
SparseStatus cusparseLtMatmulGetWorkspace(const SparseObject*,
                                          const SparseObject*, size_t* bytes) {
  *bytes = kWorkspace;
  return kSparseSuccess;
}
SparseStatus cusparseLtSpMMACompressedSize(const SparseObject*,
                                           const SparseObject* plan,
                                           size_t* bytes,
                                           size_t* buffer_bytes) {
  *bytes = static_cast<size_t>(Of<Matmul>(plan).groups()) * 5;
  *buffer_bytes = kBuffer;
  return kSparseSuccess;
}
SparseStatus cusparseLtSpMMACompress(const SparseObject*,
                                     const SparseObject* plan,
                                     const void* dense, void* compressed,
                                     void* buffer, LtStream stream) {
  Machine& machine = Machine::Get();
  const Lock lock(machine.mutex);
  const Matmul matmul = Of<Matmul>(plan);
  machine.Enter(__func__);
  if (!Aligned(dense) || !Aligned(compressed)) return kSparseInvalidValue;
  Step step;
  step.name = __func__;
  step.work = [=] {
    std::memset(buffer, 0x7f, kBuffer);
    Machine::Get().Touch(buffer, kBuffer, /*writes=*/true);
    for (int64_t group = 0; group < matmul.groups(); ++group)
      CompressGroup(matmul, dense, compressed, group);
  };
  machine.Put(*static_cast<Stream*>(stream), std::move(step));
  return kSparseSuccess;
}
SparseStatus cusparseLtMatmul(const SparseObject*, const SparseObject* plan,
                              const void* alpha, const void* a, const void* b,
                              const void* beta, const void* c, void* d,
                              void* workspace, LtStream* streams,
                              int32_t count) {
  Machine& machine = Machine::Get();
  const Lock lock(machine.mutex);
  const Matmul matmul = Of<Matmul>(plan);
  machine.Enter(__func__, std::to_string(matmul.m()) + "x" +
                              std::to_string(matmul.n()) + "x" +
                              std::to_string(matmul.k()));
  if (count != 1 || *static_cast<const float*>(alpha) != 1 || !Aligned(a) ||
      !Aligned(b) || !Aligned(c) || !Aligned(d) || !Aligned(workspace))
    return kSparseInvalidValue;
  const float scale = *static_cast<const float*>(beta);
  Step step;
  step.name = __func__;
  step.work = [=] { Multiply(matmul, scale, a, b, c, d, workspace); };
  machine.Put(*static_cast<Stream*>(streams[0]), std::move(step));
  return kSparseSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
