// Models a transformer's layers as products, attention, passes over
// activations, and collectives.
#include "compiler/planner/transformer/layer_cost.h"

#include <algorithm>

#include "compiler/planner/cost/cost.h"

namespace partita::planner {
namespace {

// Bytes per element of gradient sums over microbatches.
constexpr double kSumBytes = 4;

using core::CollectiveKind;
using core::Precision;

// Activations that kernels fused like Megatron's read and write, in elements
// per token. Per hidden element (divided only by sequence parallelism): two
// norms (read, write) and two bias-dropout-residuals (read two, write one, half
// for the mask).
constexpr double kResidualPasses = 2 * 2 + 2 * 3.5;
// Per element divided by tensor parallelism: splitting q, k and v, read and
// write.
constexpr double kProjectionPasses = 2;
// Per inner element of the MLP: GELU and bias, or the gate's product.
constexpr double kGeluPasses = 2, kGatePasses = 3;
// Per score, if scores are written to memory: softmax and dropout read and
// write them, and the mask.
constexpr double kScorePasses = 4.5;
// Sorting tokens by expert before and after sending, in both directions. Each
// pass reads and writes a copy of the token per expert.
constexpr double kRoutingPasses = 4 * 2;
// The backward pass of the same kernels also reads the saved values.
constexpr double kBackwardPasses = 1.6;
// Backward products per forward product of fused attention. Fused kernels
// recompute scores.
constexpr double kFusedBackward = 2.5;
// Tensor cores need 16-bit operands with rows in multiples of 16 bytes. For
// other operands cuBLAS computes products in f32 (NVIDIA, "Matrix
// Multiplication Background", section 2.2; BigScience's heads of 108, 150 and
// 450).
constexpr int64_t kAlignedElements = 8;
// Additional passes if elementwise operations are not fused, counted in
// torchtitan's model (PyTorch's RMSNorm without a fused kernel: to f32, square,
// mean, product, to 16 bits, weight). Per hidden element, two norms: 18 instead
// of 2. Per element of queries and keys: rotation in f32. Per inner element:
// SiLU apart from the gate's product.
constexpr double kUnfusedNormPasses = 2 * 16;
constexpr double kUnfusedRotationPasses = 10;
constexpr double kUnfusedGatePasses = 2;

// Layout of a weight in its forward product, and in the product for its input's
// gradient.
struct WeightForms {
  ProductForm ahead, back;
};
constexpr WeightForms kInByOut = {ProductForm::kPlain,
                                  ProductForm::kRhsTransposed};
constexpr WeightForms kOutByIn = {ProductForm::kRhsTransposed,
                                  ProductForm::kPlain};
// Layout of layer weights: in x out for GPT-2, out x in for all others.
// Embedding tables, including the head's, are out x in.
WeightForms FormsOf(const Architecture& a) {
  return a.kind == ModelKind::kGpt ? kInByOut : kOutByIn;
}

class LayerModel {
 public:
  explicit LayerModel(const Setting& setting)
      : a_(setting.architecture),
        d_(setting.division),
        software_(setting.software),
        cluster_(setting.cluster),
        device_(setting.cluster.device),
        element_(core::ElementBytes(d_.precision)) {}

  // Adds attention from `tokens` to `others` tokens per sequence.
  void AddAttention(int64_t tokens, int64_t others, bool causal);
  void AddProjections(int64_t tokens, int64_t kv_tokens);
  void AddMlp(int64_t tokens, int64_t ffn);
  void AddExperts(int64_t tokens);
  void AddResiduals(int64_t tokens);
  void AddTensorCollectives(int64_t tokens, int count);
  PartCost Finish(double share_of_dispatch);

  PartCost Embedding();
  PartCost Head();

 private:
  double Product(int64_t batch, int64_t m, int64_t n, int64_t k,
                 Precision precision,
                 ProductForm form = ProductForm::kPlain) const {
    return MatmulTime(device_, precision, batch, m, n, k, form);
  }
  // Adds a linear layer and both its gradients, or `batch` such layers at once.
  void AddLinear(int64_t tokens, int64_t in, int64_t out, Precision precision,
                 int64_t batch = 1, bool normed = false) {
    AddLinear(tokens, in, out, precision, batch, normed, FormsOf(a_));
  }
  // `normed`: the input is the result of a norm.
  void AddLinear(int64_t tokens, int64_t in, int64_t out, Precision precision,
                 int64_t batch, bool normed, const WeightForms& forms);
  void AddElementwise(double elements) {
    cost_.forward.elementwise += Kernel(elements);
    cost_.backward.elementwise += Kernel(kBackwardPasses * elements);
  }
  double Kernel(double elements) const {
    return MemoryBoundTime(device_, elements * element_);
  }
  void AddRing(int64_t tokens, double attention);
  Precision sixteen_bit() const {
    return d_.precision == Precision::kF8 ? Precision::kBF16 : d_.precision;
  }

  const Architecture& a_;
  const Division& d_;
  const Software& software_;
  const Cluster& cluster_;
  const Device& device_;
  const double element_;
  double last_product_ = 0;  // seconds of the last product added, forward
  Pass scores_;              // recomputed by selective recomputation
  PartCost cost_;
};

void LayerModel::AddLinear(int64_t tokens, int64_t in, int64_t out,
                           Precision precision, int64_t batch, bool normed,
                           const WeightForms& forms) {
  last_product_ = Product(batch, tokens, out, in, precision, forms.ahead);
  cost_.forward.products += last_product_;
  cost_.backward.products +=
      Product(batch, tokens, in, out, precision, forms.back);
  if (!a_.frozen) {
    const double time =
        Product(batch, in, out, tokens, precision, ProductForm::kLhsTransposed);
    cost_.backward.products += time;
    cost_.weights += time;
  }
  if (precision != Precision::kF8) return;
  const double cast = double(batch) * tokens * software_.cast_bytes;
  const double bandwidth = device_.memory_bandwidth * device_.streaming;
  if (!normed || !software_.norms_cast)
    cost_.forward.elementwise += cast * in / bandwidth;
  cost_.backward.elementwise += cast * out / bandwidth;
}

void LayerModel::AddProjections(int64_t tokens, int64_t kv_tokens) {
  const int64_t kv =
      a_.hidden / a_.heads * std::max<int64_t>(a_.kv_heads, d_.tp);
  if (tokens == kv_tokens) {
    AddLinear(tokens, a_.hidden, (a_.hidden + 2 * kv) / d_.tp, d_.precision, 1,
              true);
  } else {
    AddLinear(tokens, a_.hidden, a_.hidden / d_.tp, d_.precision);
    AddLinear(kv_tokens, a_.hidden, 2 * kv / d_.tp, d_.precision);
  }
  AddLinear(tokens, a_.hidden / d_.tp, a_.hidden, d_.precision);
  AddElementwise(kProjectionPasses *
                 (double(tokens) * a_.hidden + 2.0 * kv_tokens * kv) / d_.tp);
  if (!software_.fused_elementwise)
    AddElementwise(kUnfusedRotationPasses *
                   (double(tokens) * a_.hidden + double(kv_tokens) * kv) /
                   d_.tp);
}

void LayerModel::AddAttention(int64_t tokens, int64_t others, bool causal) {
  const int64_t heads = a_.heads / d_.tp, head = a_.hidden / a_.heads;
  const int64_t batch = d_.microbatch * heads;
  const Precision precision = sixteen_bit();
  if (software_.fused_attention) {
    const double rate = device_.peak[static_cast<int>(precision)] *
                        device_.matmul * device_.attention *
                        software_.attention;
    const double half = causal ? 0.5 : 1;
    const double time = 4.0 * half * batch * tokens * others * head / rate;
    cost_.forward.attention += time + device_.kernel;
    cost_.backward.attention += kFusedBackward * time + device_.kernel;
    if (d_.cp > 1) AddRing(tokens, time);
    return;
  }
  const Precision computed =
      head % kAlignedElements == 0 ? precision : Precision::kF32;
  const double scores = Product(batch, tokens, others, head, computed);
  const double values = Product(batch, tokens, head, others, computed);
  const double passes = Kernel(kScorePasses * batch * double(tokens) * others);
  scores_.attention = scores + values + passes;
  cost_.forward.attention += scores_.attention;
  cost_.backward.attention += 2 * (scores + values) + kBackwardPasses * passes;
}

// Ring attention: keys and values travel around the ring while attention
// computes. So do their gradients. Gathers take as long, but nothing hides
// them.
void LayerModel::AddRing(int64_t tokens, double attention) {
  const int64_t heads = software_.gathers_keys ? a_.heads : a_.kv_heads;
  const double bytes = 2.0 * d_.microbatch * tokens * (d_.cp - 1) * element_ *
                       (a_.hidden / a_.heads) *
                       std::max<int64_t>(heads / d_.tp, 1);
  const double time = CollectiveTime(cluster_, CollectiveKind::kPermute, bytes,
                                     ShapeOfStride(cluster_, d_.tp, d_.cp));
  const double hidden = software_.gathers_keys ? 0 : attention;
  cost_.forward.tensor += std::max(0.0, time - hidden);
  cost_.backward.tensor += std::max(0.0, 2 * time - kFusedBackward * hidden);
}

void LayerModel::AddMlp(int64_t tokens, int64_t ffn) {
  const int64_t inner = ffn / d_.tp;
  AddLinear(tokens, a_.hidden, a_.gated() ? 2 * inner : inner, d_.precision, 1,
            true);
  AddLinear(tokens, inner, a_.hidden, d_.precision);
  const double passes = (a_.gated() ? kGatePasses : kGeluPasses) +
                        (software_.fused_elementwise ? 0 : kUnfusedGatePasses);
  AddElementwise(passes * double(tokens) * inner);
}

// A rank routes its tokens of the sequence divided over tp, as in
// Megatron-Core. An all-to-all over ep sends each token to the ranks of its
// experts. A gather over etp brings it to all parts of an expert. The results
// return the same way. Experts are assumed to receive equally many tokens.
void LayerModel::AddExperts(int64_t tokens) {
  const int64_t local = (tokens + d_.tp - 1) / d_.tp;
  const int64_t routed = local * a_.topk;  // token copies that a rank sends
  const int64_t arriving =
      routed * d_.etp;  // token copies that a rank computes
  const int64_t experts = a_.experts / d_.ep, inner = a_.expert_ffn / d_.etp;
  const int64_t each = (arriving + experts - 1) / experts;
  AddLinear(local, a_.hidden, a_.experts, sixteen_bit());
  AddLinear(each, a_.hidden, a_.gated() ? 2 * inner : inner, d_.precision,
            experts);
  AddLinear(each, inner, a_.hidden, d_.precision, experts);
  AddElementwise((a_.gated() ? kGatePasses : kGeluPasses) * double(arriving) *
                     inner +
                 kRoutingPasses * double(routed) * a_.hidden);
  const double sent = double(routed) * a_.hidden * element_;
  const GroupShape parts = ShapeOfStride(cluster_, 1, d_.etp);
  const double time =
      2 * CollectiveTime(cluster_, CollectiveKind::kAllToAll, sent,
                         ShapeOfStride(cluster_, d_.etp, d_.ep)) +
      CollectiveTime(cluster_, CollectiveKind::kAllGather, d_.etp * sent,
                     parts) +
      CollectiveTime(cluster_, CollectiveKind::kReduceScatter, d_.etp * sent,
                     parts);
  cost_.forward.tensor += time;
  cost_.backward.tensor += time;
}

void LayerModel::AddResiduals(int64_t tokens) {
  const double passes =
      kResidualPasses + (software_.fused_elementwise ? 0 : kUnfusedNormPasses);
  AddElementwise(passes * double(tokens) * a_.hidden /
                 (d_.sequence_parallel ? d_.tp : 1));
}

// Adds `count` all-reduces of the residual stream, or as many pairs of gather
// and reduce-scatter with sequence parallelism.
void LayerModel::AddTensorCollectives(int64_t tokens, int count) {
  if (d_.tp == 1) return;
  const GroupShape group = ShapeOfStride(cluster_, 1, d_.tp);
  const double bytes = double(tokens) * a_.hidden * element_;
  double time = 0;
  if (d_.sequence_parallel)
    for (CollectiveKind kind :
         {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter})
      time += CollectiveTime(cluster_, kind, bytes, group);
  else
    time = CollectiveTime(cluster_, CollectiveKind::kAllReduce, bytes, group);
  if (software_.pipelines_tensor) time /= d_.tp;
  time *= count;
  cost_.forward.tensor += time;
  cost_.backward.tensor += time;
}

PartCost LayerModel::Finish(double share_of_dispatch) {
  // A blocking launch exposes the host's work and the launch itself.
  const bool blocking = software_.blocking_launches;
  const double dispatch =
      share_of_dispatch *
      (software_.dispatch + (blocking ? kKernelsOfLayer * device_.launch : 0));
  const auto wait = [&](Pass& pass, double host) {
    pass.host = blocking ? host : std::max(0.0, host - pass.total());
  };
  wait(cost_.forward, dispatch);
  double host = dispatch * 1.5;
  if (d_.recompute == Recomputation::kFull) {
    Pass again = cost_.forward;
    again.host = 0;
    if (software_.stops_early) again.products -= last_product_;
    cost_.backward += again;
    host += dispatch;
  } else if (d_.recompute == Recomputation::kSelective) {
    cost_.backward += scores_;
    cost_.backward.products += software_.selective * cost_.forward.products;
    if (software_.selective > 0)
      cost_.backward.elementwise += cost_.forward.elementwise;
    host += software_.selective * dispatch;
  }
  wait(cost_.backward, host);
  return cost_;
}

PartCost LayerModel::Embedding() {
  const double elements = double(d_.microbatch) * a_.seq / d_.cp * a_.hidden;
  AddElementwise(3.5 * elements);
  if (d_.tp > 1) {
    cost_.forward.tensor +=
        CollectiveTime(cluster_, CollectiveKind::kAllReduce,
                       elements * element_, ShapeOfStride(cluster_, 1, d_.tp));
  }
  return cost_;
}

// The logits, and a loss that reads and writes them in f32.
PartCost LayerModel::Head() {
  const int64_t seq = a_.kind == ModelKind::kT5 ? a_.decoder_seq : a_.seq;
  const int64_t tokens = d_.microbatch * seq / d_.cp;
  const int64_t columns = (a_.vocab + d_.tp - 1) / d_.tp;
  AddLinear(tokens, a_.hidden, columns, sixteen_bit(), 1, true, kOutByIn);
  const double logits = double(tokens) * columns;
  cost_.forward.elementwise += MemoryBoundTime(device_, 16 * logits);
  cost_.backward.elementwise += MemoryBoundTime(device_, 8 * logits);
  if (d_.tp > 1) {
    const double time = CollectiveTime(cluster_, CollectiveKind::kAllReduce,
                                       double(tokens) * a_.hidden * element_,
                                       ShapeOfStride(cluster_, 1, d_.tp));
    cost_.backward.tensor += time;
  }
  return cost_;
}

}  // namespace

Pass& Pass::operator+=(const Pass& other) {
  products += other.products;
  attention += other.attention;
  elementwise += other.elementwise;
  tensor += other.tensor;
  host += other.host;
  return *this;
}

Pass operator*(double times, Pass pass) {
  pass.products *= times;
  pass.attention *= times;
  pass.elementwise *= times;
  pass.tensor *= times;
  pass.host *= times;
  return pass;
}

Sums SumsOf(const Setting& setting) {
  const Architecture& a = setting.architecture;
  const Division& d = setting.division;
  Sums sums;
  if (!setting.software.own || a.frozen) return sums;
  const double bytes = core::ElementBytes(d.precision) + 2 * kSumBytes;
  const double times = 1 - 1 / double(d.microbatches());
  const auto of = [&](double parameters, double copies) {
    return times *
           MemoryBoundTime(setting.cluster.device,
                           bytes * parameters / (d.zero >= 2 ? copies : 1));
  };
  sums.layer = of(double(LayerParameters(a)) / d.tp, d.dp);
  if (a.experts > 0)
    sums.layer += of(double(ExpertParameters(a)) / (d.ep * d.etp),
                     ExpertReplicas(d, setting.software));
  if (a.kind == ModelKind::kT5)
    sums.decoder = of(double(DecoderLayerParameters(a)) / d.tp, d.dp);
  sums.embedding = of(double(EmbeddingParameters(a)) / d.tp, d.dp);
  if (!a.tied || !d.SameEnds())
    sums.head = of(double(a.vocab) * a.hidden / d.tp, d.dp);
  return sums;
}

int ExpertReplicas(const Division& d, const Software& software) {
  return software.zero_over_batch ? d.dp / d.experts_over_data()
                                  : d.expert_copies();
}

PartCost LayerCost(const Setting& setting) {
  const Architecture& a = setting.architecture;
  const Division& d = setting.division;
  LayerModel layer(setting);
  const int64_t own = a.seq / d.cp, tokens = d.microbatch * own;
  layer.AddProjections(tokens, tokens);
  layer.AddAttention(own, a.packed > 0 ? a.packed : a.seq, a.causal());
  const int64_t ffn = a.experts > 0 ? a.shared_ffn : a.ffn;
  if (ffn > 0) layer.AddMlp(tokens, ffn);
  if (a.experts > 0) layer.AddExperts(tokens);
  layer.AddResiduals(tokens);
  layer.AddTensorCollectives(tokens, ffn > 0 ? 2 : 1);
  return layer.Finish(1);
}

PartCost DecoderLayerCost(const Setting& setting) {
  const Architecture& a = setting.architecture;
  const Division& d = setting.division;
  LayerModel layer(setting);
  const int64_t own = a.decoder_seq / d.cp, tokens = d.microbatch * own;
  const int64_t encoded = d.microbatch * (a.seq / d.cp);
  layer.AddProjections(tokens, tokens);
  layer.AddAttention(own, a.decoder_seq, true);
  layer.AddProjections(tokens, encoded);
  layer.AddAttention(own, a.seq, false);
  layer.AddMlp(tokens, a.ffn);
  layer.AddResiduals(tokens);
  layer.AddTensorCollectives(tokens, 3);
  return layer.Finish(1.5);
}

PartCost EmbeddingCost(const Setting& setting) {
  return LayerModel(setting).Embedding();
}

PartCost HeadCost(const Setting& setting) { return LayerModel(setting).Head(); }

}  // namespace partita::planner
