// cuBLASLt's functions as plain loops on the recording driver's streams. Calls
// that break the library's rules on leading dimensions, alignment and workspace
// fail with its error.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/cuda/blas_api.h"
#include "runtime/cuda/recording/queue.h"
#include "runtime/cuda/recording/recording.h"
#include "runtime/cuda/recording/touched_kernels.h"

namespace partita::cuda::recording {
namespace {

constexpr LtStatus kInvalidValue = static_cast<LtStatus>(7);
constexpr size_t kWorkspace = 4096;

bool Aligned(const void* data, uint64_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % bytes == 0;
}

struct Layout {
  LtDataType type;
  int64_t rows, columns, leading;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Matmul {
  int32_t transposed[2] = {0, 0};
  int32_t epilogue = kLtEpilogueNone;
  const void* bias = nullptr;  // or sums
  const void* preactivation = nullptr;
  const void* scale = nullptr;  // of A
  int64_t preactivation_leading = 0, preactivation_stride = 0;

  bool has_sums() const {
    return (epilogue & (kLtEpilogueSumsOfA | kLtEpilogueSumsOfB)) != 0;
  }
  bool has_preactivation() const { return (epilogue & kLtEpilogueKept) != 0; }
  // The library's rules on addresses and sizes.
  bool IsValid(uint64_t alignment) const {
    if (((epilogue & kLtEpilogueBias) || has_sums()) &&
        (bias == nullptr || !Aligned(bias, alignment)))
      return false;
    return !has_preactivation() ||
           (preactivation != nullptr && Aligned(preactivation, alignment) &&
            preactivation_leading > 0 && preactivation_leading % 8 == 0 &&
            preactivation_stride % 8 == 0);
  }
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t alignments[4] = {256, 256, 256, 256};
  uint32_t reductions =
      kLtReduceInOutput | kLtReduceInComputeType | kLtReduceInOutputType;
};

KernelType TypeOf(LtDataType type) {
  switch (type) {
    case kLtF32:
      return KernelType::kF32;
    case kLtF16:
      return KernelType::kF16;
    case kLtBF16:
      return KernelType::kBF16;
    case kLtF8E4M3:
      return KernelType::kF8E4M3;
    case kLtF8E5M2:
      return KernelType::kF8E5M2;
  }
  return KernelType::kBF16;
}

bool IsFloat8(LtDataType type) {
  return type == kLtF8E4M3 || type == kLtF8E5M2;
}

struct Operand {
  Layout layout;
  const void* data = nullptr;
  int32_t transposed = 0;

  int64_t rows() const { return transposed ? layout.columns : layout.rows; }
  int64_t columns() const { return transposed ? layout.rows : layout.columns; }
  int64_t IndexOf(int64_t batch, int64_t row, int64_t column) const {
    if (transposed) std::swap(row, column);
    return batch * layout.stride + column * layout.leading + row;
  }
  float At(int64_t batch, int64_t row, int64_t column) const {
    return LoadFactor(TypeOf(layout.type), data, IndexOf(batch, row, column));
  }
};

struct Product {
  Operand a, b, c, d;
  float alpha, beta;
  Matmul desc;
  void* workspace;
  bool rounds_parts;  // splits the sums in two, rounded to the result's type

  // The library's rules on floats of 8 bits: not both of e5m2, k contiguous,
  // all sizes multiples of 16, a bias of 16 bits, and a result of more bits.
  bool FitsFloat8() const {
    if (!IsFloat8(a.layout.type) && !IsFloat8(b.layout.type))
      return desc.scale == nullptr;
    if (!IsFloat8(a.layout.type) || !IsFloat8(b.layout.type) ||
        (a.layout.type == kLtF8E5M2 && b.layout.type == kLtF8E5M2) ||
        IsFloat8(d.layout.type) || !a.transposed || b.transposed)
      return false;
    if ((desc.epilogue & kLtEpilogueBias) && d.layout.type == kLtF32)
      return false;
    for (const Layout* layout : {&a.layout, &b.layout, &d.layout})
      for (const int64_t size :
           {layout->rows, layout->columns, layout->leading})
        if (size % 16 != 0) return false;
    return true;
  }
  bool Fits() const {
    if (!FitsFloat8()) return false;
    for (const Operand* x : {&a, &b, &c, &d})
      if (x->layout.leading < x->layout.rows ||
          x->layout.batch != d.layout.batch)
        return false;
    if (desc.has_sums() && d.layout.batch != 1) return false;
    if (desc.has_preactivation() && desc.preactivation_leading < d.rows())
      return false;
    return a.rows() == d.rows() && b.columns() == d.columns() &&
           a.columns() == b.rows();
  }
  void Run() const {
    std::memset(workspace, 0x7f, kWorkspace);
    Machine::Get().Touch(workspace, kWorkspace, /*writes=*/true);
    for (int64_t batch = 0; batch < d.layout.batch; ++batch) {
      // Every element of a factor is read once, [row, k] and [column, k].
      std::vector<float> rows, columns;
      for (int64_t row = 0; row < a.rows(); ++row)
        for (int64_t k = 0; k < a.columns(); ++k)
          rows.push_back(a.At(batch, row, k));
      for (int64_t column = 0; column < b.columns(); ++column)
        for (int64_t k = 0; k < b.rows(); ++k)
          columns.push_back(b.At(batch, k, column));
      for (int64_t row = 0; row < d.rows(); ++row)
        for (int64_t column = 0; column < d.columns(); ++column)
          Make(batch, row, column, rows.data() + row * a.columns(),
               columns.data() + column * b.rows());
    }
    if (desc.epilogue & kLtEpilogueSumsOfA)
      for (int64_t row = 0; row < a.rows(); ++row)
        Sum(row, a.columns(), [&](int64_t k) { return a.At(0, row, k); });
    if (desc.epilogue & kLtEpilogueSumsOfB)
      for (int64_t column = 0; column < b.columns(); ++column)
        Sum(column, b.rows(), [&](int64_t k) { return b.At(0, k, column); });
  }

 private:
  static double GeluGradient(double x) {
    const double slope = std::sqrt(2 / M_PI);
    const double t = std::tanh(slope * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) +
           0.5 * x * (1 - t * t) * slope * (1 + 3 * 0.044715 * x * x);
  }
  static float Round(KernelType type, double value) {
    float rounded = 0;  // as large as the largest type
    Store(type, &rounded, 0, static_cast<float>(value));
    return Load(type, &rounded, 0);
  }
  template <typename At>
  void Sum(int64_t index, int64_t count, const At& at) const {
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += at(k);
    Store(TypeOf(d.layout.type), const_cast<void*>(desc.bias), index,
          static_cast<float>(sum));
  }
  void Make(int64_t batch, int64_t row, int64_t column, const float* of_a,
            const float* of_b) const {
    const KernelType type = TypeOf(d.layout.type);
    double sum = 0;
    for (int64_t k = 0; k < a.columns(); ++k) {
      if (rounds_parts && k == a.columns() / 2) sum = Round(type, sum);
      sum += double{of_a[k]} * of_b[k];
    }
    if (rounds_parts) sum = Round(type, sum);
    if (desc.scale != nullptr) sum *= Load(KernelType::kF32, desc.scale, 0);
    sum *= alpha;
    if (beta != 0) sum += beta * c.At(batch, row, column);
    if (desc.epilogue & kLtEpilogueBias) sum += Load(type, desc.bias, row);
    if (desc.epilogue & kLtEpilogueRelu) sum = sum > 0 ? sum : 0;
    const int64_t place = batch * desc.preactivation_stride +
                          column * desc.preactivation_leading + row;
    if ((desc.epilogue & kLtEpilogueGeluGradient) == kLtEpilogueGeluGradient)
      sum *= GeluGradient(Load(type, desc.preactivation, place));
    else if (desc.has_preactivation())
      Store(type, const_cast<void*>(desc.preactivation), place,
            static_cast<float>(sum));
    if (desc.epilogue & kLtEpilogueGelu)
      sum = 0.5 * sum *
            (1 + std::tanh(std::sqrt(2 / M_PI) *
                           (sum + 0.044715 * sum * sum * sum)));
    Store(type, const_cast<void*>(d.data), d.IndexOf(batch, row, column),
          static_cast<float>(sum));
  }
};

// The library offers kAlgorithms algorithms. Its preferred one is not the
// fastest. All of them split sums and round the parts to the result's type, if
// they may.
constexpr int kAlgorithms = 3;
constexpr float kMilliseconds[kAlgorithms] = {3, 1, 2};

}  // namespace
}  // namespace partita::cuda::recording

using namespace partita::cuda;
using namespace partita::cuda::recording;

#pragma GCC visibility push(default)
extern "C" {

LtStatus cublasLtCreate(LtHandle* handle) {
  static int only;
  *handle = &only;
  return kLtSuccess;
}
LtStatus cublasLtDestroy(LtHandle) { return kLtSuccess; }
LtStatus cublasLtMatmulDescCreate(LtMatmul* matmul, LtComputeType, LtDataType) {
  *matmul = new Matmul();
  return kLtSuccess;
}
LtStatus cublasLtMatmulDescDestroy(LtMatmul matmul) {
  delete static_cast<Matmul*>(matmul);
  return kLtSuccess;
}
LtStatus cublasLtMatmulDescSetAttribute(LtMatmul matmul,
                                        LtMatmulAttribute attribute,
                                        const void* value, size_t bytes) {
  Matmul& into = *static_cast<Matmul*>(matmul);
  const auto set = [&](auto& target) {
    if (bytes != sizeof(target)) return kInvalidValue;
    std::memcpy(&target, value, bytes);
    return kLtSuccess;
  };
  switch (attribute) {
    case kLtTransposeA:
      return set(into.transposed[0]);
    case kLtTransposeB:
      return set(into.transposed[1]);
    case kLtEpilogue:
      return set(into.epilogue);
    case kLtBiasPointer:
      return set(into.bias);
    case kLtPreactivationPointer:
      return set(into.preactivation);
    case kLtScaleOfA:
      return set(into.scale);
    case kLtPreactivationLeading:
      return set(into.preactivation_leading);
    case kLtPreactivationBatchStride:
      return set(into.preactivation_stride);
  }
  return kInvalidValue;
}
LtStatus cublasLtMatrixLayoutCreate(LtLayout* layout, LtDataType type,
                                    uint64_t rows, uint64_t columns,
                                    int64_t leading) {
  *layout = new Layout{type, static_cast<int64_t>(rows),
                       static_cast<int64_t>(columns), leading};
  return kLtSuccess;
}
LtStatus cublasLtMatrixLayoutDestroy(LtLayout layout) {
  delete static_cast<Layout*>(layout);
  return kLtSuccess;
}
LtStatus cublasLtMatrixLayoutSetAttribute(LtLayout layout,
                                          LtLayoutAttribute attribute,
                                          const void* value, size_t bytes) {
  Layout& into = *static_cast<Layout*>(layout);
  if (attribute == kLtBatchCount) {
    if (bytes != sizeof(into.batch)) return kInvalidValue;
    std::memcpy(&into.batch, value, bytes);
  } else {
    if (bytes != sizeof(into.stride)) return kInvalidValue;
    std::memcpy(&into.stride, value, bytes);
  }
  return kLtSuccess;
}
LtStatus cublasLtMatmulPreferenceCreate(LtPreference* preference) {
  *preference = new Preference();
  return kLtSuccess;
}
LtStatus cublasLtMatmulPreferenceDestroy(LtPreference preference) {
  delete static_cast<Preference*>(preference);
  return kLtSuccess;
}
LtStatus cublasLtMatmulPreferenceSetAttribute(LtPreference preference,
                                              LtPreferenceAttribute attribute,
                                              const void* value, size_t bytes) {
  Preference& into = *static_cast<Preference*>(preference);
  if (attribute == kLtMaxWorkspaceBytes) {
    if (bytes != sizeof(into.workspace)) return kInvalidValue;
    std::memcpy(&into.workspace, value, bytes);
  } else if (attribute == kLtReductionSchemes) {
    if (bytes != sizeof(into.reductions)) return kInvalidValue;
    std::memcpy(&into.reductions, value, bytes);
  } else {
    if (bytes != sizeof(into.alignments[0])) return kInvalidValue;
    std::memcpy(&into.alignments[attribute - kLtAlignmentA], value, bytes);
  }
  return kLtSuccess;
}
// The algorithm stores the alignments that it may rely on.
LtStatus cublasLtMatmulAlgoGetHeuristic(LtHandle, LtMatmul matmul, LtLayout a,
                                        LtLayout b, LtLayout, LtLayout d,
                                        LtPreference preference, int most,
                                        LtHeuristic* results, int* found) {
  const Preference& wanted = *static_cast<Preference*>(preference);
  const Matmul& desc = *static_cast<Matmul*>(matmul);
  const Lock lock(Machine::Get().mutex);
  if (Machine::Get().Enter(__func__) != kCuSuccess) return kLtNotSupported;
  // A library of another version, or another GPU.
  if (desc.has_sums() || desc.has_preactivation()) {
    const CuResult result = Machine::Get().Enter(kTrainingEpilogue);
    if (result != kCuSuccess)
      return result == kCuInvalidValue ? kInvalidValue : kLtNotSupported;
  }
  if (!desc.IsValid(1)) return kInvalidValue;
  const Product product = {
      {*static_cast<Layout*>(a), nullptr, desc.transposed[0]},
      {*static_cast<Layout*>(b), nullptr, desc.transposed[1]},
      {*static_cast<Layout*>(d), nullptr, 0},
      {*static_cast<Layout*>(d), nullptr, 0},
      1,
      0,
      desc,
      nullptr,
      false};
  if (!product.FitsFloat8() ||
      (IsFloat8(product.a.layout.type) && wanted.alignments[0] < 16))
    return kLtNotSupported;
  *found = wanted.workspace >= kWorkspace ? std::min(most, kAlgorithms) : 0;
  for (int n = 0; n < *found; ++n) {
    results[n] = {};
    for (size_t i = 0; i < 4; ++i)
      results[n].algorithm.opaque[i] = wanted.alignments[i];
    results[n].algorithm.opaque[4] = static_cast<uint64_t>(n);
    results[n].algorithm.opaque[5] =
        wanted.reductions & (kLtReduceInOutput | kLtReduceInOutputType);
    results[n].workspace_bytes = kWorkspace;
  }
  return kLtSuccess;
}
LtStatus cublasLtMatmul(LtHandle, LtMatmul matmul, const void* alpha,
                        const void* a_data, LtLayout a, const void* b_data,
                        LtLayout b, const void* beta, const void* c_data,
                        LtLayout c, void* d_data, LtLayout d,
                        const LtAlgorithm* algorithm, void* workspace,
                        size_t workspace_bytes, LtStream stream) {
  Machine& machine = Machine::Get();
  const Lock lock(machine.mutex);
  const Matmul& desc = *static_cast<Matmul*>(matmul);
  Product product = {{*static_cast<Layout*>(a), a_data, desc.transposed[0]},
                     {*static_cast<Layout*>(b), b_data, desc.transposed[1]},
                     {*static_cast<Layout*>(c), c_data, 0},
                     {*static_cast<Layout*>(d), d_data, 0},
                     *static_cast<const float*>(alpha),
                     *static_cast<const float*>(beta),
                     desc,
                     workspace,
                     algorithm->opaque[5] != 0};
  machine.Enter("cublasLtMatmul",
                std::to_string(product.d.rows()) + "x" +
                    std::to_string(product.d.columns()) + "x" +
                    std::to_string(product.a.columns()) + " epilogue " +
                    std::to_string(desc.epilogue) + " algorithm " +
                    std::to_string(algorithm->opaque[4]));
  if (!product.Fits() || workspace_bytes < kWorkspace ||
      !Aligned(workspace, 256) || !Aligned(a_data, algorithm->opaque[0]) ||
      !Aligned(b_data, algorithm->opaque[1]) ||
      !Aligned(c_data, algorithm->opaque[2]) ||
      !Aligned(d_data, algorithm->opaque[3]) ||
      !desc.IsValid(algorithm->opaque[3]))
    return kInvalidValue;
  Step step;
  step.name = "cublasLtMatmul";
  const float milliseconds = kMilliseconds[algorithm->opaque[4] % kAlgorithms];
  step.work = [product, milliseconds] {
    product.Run();
    Machine::Get().AddTime(milliseconds);
  };
  machine.Put(*static_cast<Stream*>(stream), std::move(step));
  return kLtSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
