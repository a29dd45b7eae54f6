// Threads take columns of the result. If a matrix's columns are contiguous in
// memory, a column of the result is a sum of products; else eight rows of the
// matrix at a time are added to the results.
#include "runtime/cpu/row_product.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "runtime/cpu/memory.h"
#include "runtime/cpu/threads.h"

namespace partita::cpu {
namespace {

constexpr int64_t kLanes = 16;
// Columns whose sums stay in the first-level cache.
constexpr int64_t kTile = 1024;
// Elements from one row of sums to the next. Rows do not begin at the same
// place of a page, where caches would confuse them.
constexpr int64_t kPitch = kTile + 3 * kLanes;
// Rows of the matrix that are read at once.
constexpr int kDepth = 8;

using Vector = float __attribute__((vector_size(64)));

// Vectors cross no calls: everything that handles them is inlined into a
// function for one processor.
#define PARTITA_INLINE [[gnu::always_inline]] inline
// Sums stay in registers only if loops over them are unrolled.
#define PARTITA_UNROLL _Pragma("GCC unroll 8")

PARTITA_INLINE Vector Load(const float* from) {
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof(vector));
  return vector;
}
PARTITA_INLINE void Store(float* to, const Vector& vector) {
  __builtin_memcpy(to, &vector, sizeof(vector));
}

// The columns [begin, end) of the result, for one thread.
struct Part {
  const float* lhs;     // row r at lhs + r * lhs_stride
  const float* matrix;  // element (k, n) at k * row_stride + n * column_stride
  float* sums;          // row r at sums + r * kPitch; column `begin` first
  int64_t lhs_stride, row_stride, column_stride;
  int64_t depth;  // k
  int64_t begin, end;
};

// The matrix has contiguous rows.
template <int M>
PARTITA_INLINE void AddRows(const Part& part) {
  const int64_t width = part.end - part.begin, whole = width / kLanes * kLanes;
  for (int row = 0; row < M; ++row)
    std::memset(part.sums + row * kPitch, 0,
                static_cast<size_t>(width) * sizeof(float));
  for (int64_t k = 0; k < part.depth; k += kDepth) {
    const int count =
        static_cast<int>(std::min<int64_t>(kDepth, part.depth - k));
    const float* const matrix = part.matrix + k * part.row_stride + part.begin;
    float lhs[M * kDepth];
    for (int row = 0; row < M; ++row)
      for (int i = 0; i < count; ++i)
        lhs[row * kDepth + i] = part.lhs[row * part.lhs_stride + k + i];
    if (count == kDepth) {
      for (int64_t n = 0; n < whole; n += kLanes) {
        Vector sums[M];
        PARTITA_UNROLL
        for (int row = 0; row < M; ++row)
          sums[row] = Load(part.sums + row * kPitch + n);
        PARTITA_UNROLL
        for (int i = 0; i < kDepth; ++i) {
          const Vector weights = Load(matrix + i * part.row_stride + n);
          PARTITA_UNROLL
          for (int row = 0; row < M; ++row)
            sums[row] += lhs[row * kDepth + i] * weights;
        }
        PARTITA_UNROLL
        for (int row = 0; row < M; ++row)
          Store(part.sums + row * kPitch + n, sums[row]);
      }
    }
    const int64_t first = count == kDepth ? whole : 0;
    for (int i = 0; i < count; ++i)
      for (int row = 0; row < M; ++row)
        for (int64_t n = first; n < width; ++n)
          part.sums[row * kPitch + n] +=
              lhs[row * kDepth + i] * matrix[i * part.row_stride + n];
  }
}

// `C` columns of the result; the matrix has contiguous columns.
template <int M, int C>
PARTITA_INLINE void SumColumns(const Part& part, int64_t column) {
  Vector sums[C][M] = {};
  const int64_t whole = part.depth / kLanes * kLanes;
  const float* const matrix = part.matrix + column * part.column_stride;
  for (int64_t k = 0; k < whole; k += kLanes) {
    PARTITA_UNROLL
    for (int c = 0; c < C; ++c) {
      const Vector weights = Load(matrix + c * part.column_stride + k);
      PARTITA_UNROLL
      for (int row = 0; row < M; ++row)
        sums[c][row] += Load(part.lhs + row * part.lhs_stride + k) * weights;
    }
  }
  PARTITA_UNROLL
  for (int c = 0; c < C; ++c) {
    PARTITA_UNROLL
    for (int row = 0; row < M; ++row) {
      float sum = 0;
      for (int64_t lane = 0; lane < kLanes; ++lane) sum += sums[c][row][lane];
      for (int64_t k = whole; k < part.depth; ++k)
        sum += part.lhs[row * part.lhs_stride + k] *
               matrix[c * part.column_stride + k];
      part.sums[row * kPitch + column - part.begin + c] = sum;
    }
  }
}

template <int M>
PARTITA_INLINE void Compute(const Part& part) {
  if (part.column_stride == 1 && part.row_stride != 1) return AddRows<M>(part);
  constexpr int kColumns = M <= 4 ? 4 : 2;
  int64_t column = part.begin;
  for (; column + kColumns <= part.end; column += kColumns)
    SumColumns<M, kColumns>(part, column);
  for (; column < part.end; ++column) SumColumns<M, 1>(part, column);
}

PARTITA_INLINE void ComputeRows(const Part& part, int64_t rows) {
  switch (rows) {
    case 1:
      return Compute<1>(part);
    case 2:
      return Compute<2>(part);
    case 3:
      return Compute<3>(part);
    case 4:
      return Compute<4>(part);
    case 5:
      return Compute<5>(part);
    case 6:
      return Compute<6>(part);
    case 7:
      return Compute<7>(part);
    default:
      return Compute<8>(part);
  }
}

[[gnu::target("avx512f,avx512vl,fma")]] void ComputeAvx512(const Part& part,
                                                           int64_t rows) {
  ComputeRows(part, rows);
}
[[gnu::target("avx2,fma")]] void ComputeAvx2(const Part& part, int64_t rows) {
  ComputeRows(part, rows);
}
void ComputePlain(const Part& part, int64_t rows) { ComputeRows(part, rows); }

using ComputeFunction = void (*)(const Part&, int64_t rows);

ComputeFunction ChooseCompute() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
    return ComputeAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return ComputeAvx2;
  return ComputePlain;
}

float Activate(device::Activation activation, float x) {
  switch (activation) {
    case device::Activation::kNone:
      return x;
    case device::Activation::kRelu:
      return x > 0 ? x : x == x ? 0 : x;
    case device::Activation::kGeluErf:
      return 0.5F * x * (1 + std::erf(x * 0.70710678F));
    case device::Activation::kGeluTanh:
      return 0.5F * x *
             (1 + std::tanh(0.79788456F * (x + 0.044715F * x * x * x)));
    case device::Activation::kSilu:
      return x / (1 + std::exp(-x));
    case device::Activation::kTanh:
      return std::tanh(x);
    case device::Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case device::Activation::kRelu6:
      return std::min(std::max(x, 0.0F), 6.0F);
    case device::Activation::kHardSwish:
      return x * std::min(std::max(x + 3, 0.0F), 6.0F) / 6;
  }
  return x;
}

class RowProduct : public CpuOp {
 public:
  RowProduct(const device::GemmDesc& desc, int threads)
      : desc_(desc), rows_(desc.batch * desc.m), compute_(ChooseCompute()) {
    set_threads(threads);
    if (desc.batch > 1) {
      desc_.lhs_strides[1] =
          desc.m == 1 ? desc.lhs_strides[0] : desc.lhs_strides[1];
      desc_.out_strides[1] =
          desc.m == 1 ? desc.out_strides[0] : desc.out_strides[1];
    }
  }

  int64_t scratch_bytes() const override { return threads() * ThreadBytes(); }
  bool Packed(int) const override { return false; }
  std::string Description() const override { return "rows in place"; }

  absl::Status Run(void* const* buffers, char* scratch) override {
    buffers_ = buffers;
    scratch_ = scratch;
    if (threads() == 1)
      RunPart(this, 0, 1);
    else
      RunOnThreads(threads(), &RunPart, this);
    return absl::OkStatus();
  }

 private:
  int64_t ThreadBytes() const {
    return AlignUp(rows_ * kPitch * static_cast<int64_t>(sizeof(float)));
  }
  const float* Floats(int index) const {
    return static_cast<const float*>(buffers_[index]);
  }

  static void RunPart(void* data, int thread, int threads) {
    const RowProduct& op = *static_cast<RowProduct*>(data);
    // Whole vectors for each thread.
    const int64_t vectors = (op.desc_.n + kLanes - 1) / kLanes;
    const auto border = [&](int64_t index) {
      return std::min(op.desc_.n, vectors * index / threads * kLanes);
    };
    const int64_t end = border(thread + 1);
    for (int64_t begin = border(thread); begin < end; begin += kTile)
      op.RunTile(thread, begin, std::min(end, begin + kTile));
  }

  void RunTile(int thread, int64_t begin, int64_t end) const {
    float* const sums =
        reinterpret_cast<float*>(scratch_ + thread * ThreadBytes());
    compute_({Floats(0), Floats(1), sums, desc_.lhs_strides[1],
              desc_.rhs_strides[1], desc_.rhs_strides[2], desc_.k, begin, end},
             rows_);
    int index = 2;
    const float* const bias = desc_.has_bias ? Floats(index++) : nullptr;
    const float* const residual =
        desc_.has_residual ? Floats(index++) : nullptr;
    float* const out = static_cast<float*>(buffers_[index]);
    for (int64_t row = 0; row < rows_; ++row)
      for (int64_t n = begin; n < end; ++n) {
        const int64_t at = row * desc_.out_strides[1] + n;
        float value = sums[row * kPitch + n - begin];
        if (bias != nullptr) value += bias[n];
        value = Activate(desc_.activation, value);
        if (residual != nullptr) value += residual[at];
        out[at] = value;
      }
  }

  device::GemmDesc desc_;
  const int64_t rows_;
  const ComputeFunction compute_;
  void* const* buffers_ = nullptr;  // of the current run
  char* scratch_ = nullptr;
};

// True if the rows of the batch's matrices are evenly spaced.
bool IsOneMatrix(const device::GemmDesc& desc,
                 const std::array<int64_t, 3>& strides) {
  return desc.batch == 1 || desc.m == 1 || strides[0] == desc.m * strides[1];
}

}  // namespace

bool IsRowProduct(const device::GemmDesc& desc) {
  const std::array<int64_t, 3>& rhs = desc.rhs_strides;
  return desc.dtype == base::DType::kF32 && desc.batch >= 1 && desc.m >= 1 &&
         desc.batch * desc.m <= kMostRows && (desc.batch == 1 || rhs[0] == 0) &&
         IsOneMatrix(desc, desc.lhs_strides) &&
         IsOneMatrix(desc, desc.out_strides) &&
         (desc.k == 1 || desc.lhs_strides[2] == 1) &&
         (desc.n == 1 || desc.out_strides[2] == 1) &&
         (rhs[2] == 1 || rhs[1] == 1);
}

std::unique_ptr<CpuOp> MakeRowProduct(const device::GemmDesc& desc,
                                      int threads) {
  return std::make_unique<RowProduct>(desc, threads);
}

}  // namespace partita::cpu
