// Writes the functions of own_layers.h: what they have in common.
#ifndef PARTITA_COMPILER_PLANNER_OWN_WRITER_H_
#define PARTITA_COMPILER_PLANNER_OWN_WRITER_H_

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "compiler/core/attention_work.h"
#include "compiler/core/reduction_steps.h"
#include "compiler/planner/architecture.h"
#include "compiler/planner/program_sketch.h"

namespace partita::planner {

// What is computed of 16-bit values in f32 and what indices are.
constexpr double kWide = 4, kIndex = 8;

// Sizes of one microbatch on one device; bytes where they are doubles.
struct Sizes {
  Sizes(const Architecture& a, const Division& d)
      : gated(a.gated()),
        split(d.tp > 1),
        sequence(d.sequence_parallel && d.tp > 1),
        again(d.recompute == Recomputation::kFull),
        narrow(BytesOf(d.precision) < 4),
        one_kv_head(a.kv_heads <= d.tp),
        forms(FormsOf(a)),
        tensor_cores(core::FitsTensorCores(a.hidden / a.heads,
                                           a.hidden / a.heads, narrow ? 2 : 4,
                                           /*gradient=*/true)),
        sequences(d.microbatch),
        tokens(d.microbatch * a.seq),
        own(sequence ? tokens / d.tp : tokens),
        hidden(a.hidden),
        wide(a.hidden / d.tp),
        kv(a.hidden / a.heads * std::max<int64_t>(a.kv_heads / d.tp, 1)),
        inner(a.ffn / d.tp),
        vocab((a.vocab + d.tp - 1) / d.tp),
        element(BytesOf(d.precision)),
        stream(element * double(own) * hidden),
        whole(element * double(tokens) * hidden),
        queries(element * double(tokens) * wide),
        keys(element * double(tokens) * kv),
        middle(element * double(tokens) * inner),
        logits(element * double(tokens) * vocab),
        vector(element * hidden),
        positions(element * double(a.seq) * hidden / (sequence ? d.tp : 1)),
        rotary(kWide * double(a.seq) * hidden / a.heads / 2),
        pairs(2.0 * d.microbatch * wide *
              (a.causal() ? double(a.seq) * (a.seq + 1) / 2
                          : double(a.seq) * a.seq)) {}

  bool gated, split, sequence, again, narrow, one_kv_head;
  WeightForms forms;  // of layers
  bool tensor_cores;  // for the gradient of attention
  int64_t sequences, tokens, own, hidden, wide, kv, inner, vocab;
  double element;
  double stream, whole;  // activations between layers, on a device and gathered
  double queries, keys, middle, logits, vector, positions;
  double rotary;  // one of the two tables
  double pairs;   // operations of one product of attention
  double WideStream() const { return kWide * double(own) * hidden; }
  double WideMiddle() const { return kWide * double(tokens) * inner; }
  double PerToken() const { return kWide * double(tokens); }
};

// One function in the making.
class Writer {
 public:
  using Value = ProgramSketch::Value;

  Writer(const Sizes& sizes, const Division& d)
      : s(sizes), f(s.element, d.precision), tp_(d.tp) {}

 protected:
  Value Weight(double elements) { return f.Argument(s.element * elements); }
  Value Norm(Value x) {
    if (s.gated) return f.Kernel({x, Weight(s.hidden)}, s.stream);
    return f.Kernel({x, Weight(s.hidden), Weight(s.hidden)}, s.stream);
  }
  // The whole sequence, where it is divided.
  Value Gather(Value x) {
    if (!s.sequence) return x;
    return f.Collective(core::CollectiveKind::kAllGather, x, s.whole, s.whole);
  }
  // Cosines and sines of all positions.
  Value Tables() {
    Value tables = f.Argument(2 * s.rotary);
    if (!s.sequence) return tables;
    for (int i = 0; i < 2; ++i)
      f.Collective(core::CollectiveKind::kAllGather, tables, s.rotary,
                   s.rotary);
    return tables;
  }
  // Of attention's products, heads of keys and of values being as large.
  double Operations(const core::AttentionProducts& products) const {
    return static_cast<double>(products.of_keys + products.of_values) * s.pairs;
  }
  // What each device has a part of the sum of.
  Value Sum(Value x) {
    if (!s.split) return x;
    return s.sequence ? f.Collective(core::CollectiveKind::kReduceScatter, x,
                                     s.whole, s.stream)
                      : f.Collective(core::CollectiveKind::kAllReduce, x,
                                     s.whole, s.whole);
  }
  void TokenSum(Value x, core::CollectiveKind kind) {
    f.Collective(kind, x, s.PerToken(),
                 kind == core::CollectiveKind::kReduceScatter
                     ? s.PerToken() / tp_
                     : s.PerToken());
  }
  void Gradient(int64_t m, int64_t n, int64_t k, std::vector<Value> reads) {
    f.Return(f.Product(m, n, k, std::move(reads), ProductForm::kLhsTransposed));
  }
  void VectorGradient(std::vector<Value> reads, double elements) {
    f.Return(f.Kernel(std::move(reads), s.element * elements));
  }
  // Sums over all rows, in the steps of a GPU. The last one of narrow numbers,
  // where there are several, may be left to the kernel that reads it.
  Value ColumnSum(std::vector<Value> reads, int64_t rows, int64_t elements,
                  bool leave_last = false) {
    // A search sketches the same few sizes again and again.
    thread_local std::map<std::array<int64_t, 3>,
                          std::vector<core::ReductionStep>>
        known;
    const std::array<int64_t, 3> shape = {s.sequences, rows / s.sequences,
                                          elements};
    std::vector<core::ReductionStep>& steps = known[shape];
    if (steps.empty())
      steps = core::ReductionSteps({shape[0], shape[1], shape[2]}, {0, 1});
    for (size_t i = 0; i + 1 < steps.size(); ++i) {
      double left = kWide;
      for (const int64_t size : steps[i].left) left *= double(size);
      reads = {f.Kernel(std::move(reads), left)};
    }
    if (leave_last && s.narrow && steps.size() > 1) return reads[0];
    return f.Kernel(std::move(reads), s.element * double(elements));
  }
  Value Wide(Value x) { return s.narrow ? f.Kernel({x}, s.WideStream()) : x; }
  // Sums of what comes back from several products, in f32 for the norm.
  Value SumOf(std::vector<Value> parts) {
    if (s.split) {
      Value sum = parts[0];
      if (parts.size() > 1) sum = f.Kernel(std::move(parts), s.whole);
      return Wide(Sum(sum));
    }
    if (parts.size() > 1) return f.Kernel(std::move(parts), s.WideStream());
    return Wide(parts[0]);
  }
  // `gradient` of the norm's result in f32, `source` what it normed (in f32
  // where it is gated). `residual`: what is added, or -1.
  Value NormBackward(Value gradient, Value source, Value residual) {
    if (!s.gated) f.Return(ColumnSum({gradient}, s.own, s.hidden));
    const Value centered =
        s.gated ? source : f.Kernel({source}, s.WideStream());
    const Value scale = f.Kernel({centered}, kWide * double(s.own));
    const Value normed = f.Kernel({centered, scale}, s.WideStream());
    f.Return(ColumnSum({gradient, normed}, s.own, s.hidden));
    Value weight = Weight(s.hidden);
    if (s.narrow) weight = f.Kernel({weight}, kWide * double(s.hidden));
    std::vector<Value> reads = {gradient, weight, normed, scale};
    if (residual >= 0) reads.push_back(residual);
    return f.Kernel(reads, s.stream);
  }

  const Sizes& s;
  ProgramSketch f;
  const int tp_;
};

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_OWN_WRITER_H_
