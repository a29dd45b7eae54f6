// Computes bytes of the fullest rank by formulas: states as in ZeRO
// (Rajbhandari et al., 2020), activations as in Korthikanti et al. (2022), for
// any widths.
#include <algorithm>

#include "compiler/planner/transformer/evaluate.h"
#include "compiler/planner/transformer/layer_cost.h"

namespace partita::planner {
namespace {

// Activation bytes per token and layer in 16 bits. `divided` bytes are divided
// over tp. `whole` bytes are on every rank of tp, unless sequence parallelism
// divides them.
struct TokenBytes {
  double whole = 0, divided = 0;
};

TokenBytes BytesOfToken(const Architecture& a, const Division& d,
                        const Software& software, int64_t others,
                        int attentions) {
  const double h = a.hidden, kv = h * a.kv_heads / a.heads;
  const double masks = a.gated() || !software.dropout ? 0 : 1;
  TokenBytes bytes;
  // Keeps the layer's input, attention's result, and a share of the products'
  // results.
  if (d.recompute == Recomputation::kSelective && software.selective > 0 &&
      a.experts == 0) {
    const double results =
        attentions * (2 * h + 2 * kv) + h + (a.gated() ? 2 : 1) * double(a.ffn);
    bytes.whole = 2 * h;
    bytes.divided = 2 * h * attentions + (1 - software.selective) * 2 * results;
    return bytes;
  }
  // The inputs of the norm and of the product after it, and the dropout's mask.
  bytes.whole = (attentions + 1) * (4 + masks) * h;
  const double inner = a.gated() ? 6 : 4;
  bytes.divided = attentions * (2 * h + 4 * kv + 2 * h) +
                  inner * (a.experts > 0 ? a.shared_ffn : a.ffn);
  // For each copy of a token: the sorted token, its values inside the expert,
  // and the expert's output, which the router's gradient needs. Also the
  // router's softmax. Partita's own programs compute these again.
  if (a.experts > 0 && !software.own)
    bytes.divided +=
        a.topk * ((2 * h + inner * a.expert_ffn / d.etp) * d.etp + 2 * h) +
        4.0 * a.experts;
  if (!software.fused_attention && d.recompute == Recomputation::kNone)
    bytes.divided += 5.0 * a.heads * others;  // of all attentions
  return bytes;
}

double LayerBytes(const Architecture& a, const Division& d,
                  const TokenBytes& token, int64_t seq) {
  const double tokens = double(d.microbatch) * seq / d.cp;
  const double wide = core::ElementBytes(d.precision) / 2.0;
  const double tp = d.sequence_parallel ? d.tp : 1;
  if (d.recompute == Recomputation::kFull)
    return wide * tokens * 2.0 * a.hidden / tp;
  return wide * tokens * (token.whole / tp + token.divided / d.tp);
}

// Adds states of `parameters` that `replicas` ranks share.
void AddStates(const Architecture& a, const Division& d,
               const Software& software, double parameters, double replicas,
               MemoryUse& use) {
  const bool whole = DefersZero(software, d.pp);
  const auto over = [&](int zero) {
    return d.zero < zero || (zero == 2 && whole) ||
                   (zero == 3 && whole && d.pp > 1)
               ? 1
               : replicas;
  };
  const bool narrow = core::ElementBytes(d.precision) < 4;
  const double trained = a.frozen ? 0.01 : 1;
  const double gradient = software.state_bytes - 2 - software.optimizer_bytes;
  use.parameters += (narrow ? 2 : 4) * parameters / over(3);
  use.gradients += trained * (narrow ? gradient : 4) * parameters / over(2);
  if (d.zero == 1) use.parameters += software.gathered_bytes * parameters;
  if (d.zero >= 1)
    use.gradients += trained * software.divided_bytes * parameters / replicas;
  (d.offload ? use.host : use.optimizer) +=
      trained * OptimizerBytes(d, software) * parameters / over(1);
}

// Temporary memory. The loss needs logits and similar values in f32.
// Recomputation of a layer needs its activations. The two are not needed at the
// same time.
double WorkingBytes(const Architecture& a, const Division& d,
                    const Software& software, bool head) {
  double loss = 0, again = 0;
  if (head) {
    const bool t5 = a.kind == ModelKind::kT5;
    const double tokens =
        double(d.microbatch) * (t5 ? a.decoder_seq : a.seq) / d.cp;
    const int wide = core::ElementBytes(d.precision) - 2;
    loss = tokens * a.vocab / d.tp * (software.loss_bytes + wide);
  }
  if (d.recompute == Recomputation::kFull) {
    Division all = d;
    all.recompute = Recomputation::kNone;
    again = LayerActivationBytes(a, all, software);
  }
  double working = std::max(loss, again);
  if (d.zero >= 3)
    working += software.gathered *
               (core::ElementBytes(d.precision) < 4 ? 2 : 4) *
               (double(LayerParameters(a)) / d.tp +
                double(ExpertParameters(a)) / (d.ep * d.etp));
  return working;
}

// Activations that Partita's own programs keep in addition without
// recomputation, per layer and microbatch: values that elementwise operations
// save for their gradients, mostly in f32. Derived from compiled GPTs and
// Llamas whose MLPs are 2 and 4 times as wide.
double UnfusedActivationBytes(const Architecture& a, const Division& d,
                              const Software& software) {
  if (!software.own || d.recompute != Recomputation::kNone) return 0;
  const double tokens = double(d.microbatch) * a.seq / d.cp;
  const double whole = d.sequence_parallel ? d.tp : 1;
  const double inner = double(a.experts > 0 ? a.shared_ffn : a.ffn) / d.tp;
  const double hidden = a.hidden;
  return tokens *
         (a.gated() ? 20 * inner + 4 * hidden / whole
                    : 18 * inner + 5.6 * hidden / d.tp + 5.5 * hidden / whole);
}

MemoryUse UseOf(const Architecture& a, const Division& d,
                const Software& software, double layers, double in_flight,
                bool embedding, bool head) {
  const bool t5 = a.kind == ModelKind::kT5;
  double parameters = layers * LayerParameters(a);
  if (t5) parameters += layers * DecoderLayerParameters(a);
  if (embedding) parameters += EmbeddingParameters(a);
  if (head && !(a.tied && embedding)) parameters += double(a.vocab) * a.hidden;
  MemoryUse use;
  AddStates(a, d, software, parameters / d.tp,
            software.zero_over_batch ? d.dp : d.dp * d.cp, use);
  AddStates(a, d, software, layers * ExpertParameters(a) / (d.ep * d.etp),
            ExpertReplicas(d, software), use);
  use.activations = layers * in_flight *
                    (LayerActivationBytes(a, d, software) +
                     UnfusedActivationBytes(a, d, software));
  if (t5)
    use.activations +=
        layers * in_flight *
        LayerBytes(a, d, BytesOfToken(a, d, software, a.seq + a.decoder_seq, 2),
                   a.decoder_seq);
  use.working = WorkingBytes(a, d, software, head);
  use.libraries = software.libraries;
  return use;
}

// Microbatches in flight, as a multiple of the activations of `rank`'s layers.
// In Megatron's interleaved schedule, a rank runs 2 (pp - rank - 1) + (v - 1)
// pp stages before its first backward.
double InFlightOf(const Division& d, int rank) {
  const double first = InFlight(d);
  if (d.schedule != PipelineSchedule::k1F1B || d.pp == 1) return first;
  if (d.vpp == 1) return std::min<double>(d.pp - rank, d.microbatches());
  const double all = d.pp + (d.pp - 1.0 - 2 * rank) / d.vpp;
  return std::min<double>(all, d.microbatches());
}

double LayersOfRank(const Architecture& a, const Division& d, int rank) {
  double layers = 0;
  for (int chunk = 0; chunk < d.vpp; ++chunk)
    layers += d.LayersOfStage(a.layers, d.StageOfRank(rank, chunk));
  return layers;
}

MemoryUse FormulaOfRank(const Architecture& a, const Division& d,
                        const Software& software, int rank, double layers) {
  return UseOf(a, d, software, layers, InFlightOf(d, rank), rank == 0,
               rank == d.RankOfStage(d.stages() - 1));
}

// Calls `visit` with ranks among which is the fullest one. Skips a middle rank
// that has no more layers than an earlier rank, because it holds no more of
// anything.
template <typename Visit>
void ForEachFullRank(const Architecture& a, const Division& d,
                     const Visit& visit) {
  double most = -1;
  for (int r = 0; r < d.pp; ++r) {
    const double layers = LayersOfRank(a, d, r);
    if (layers <= most && r + 1 < d.pp) continue;
    most = std::max(most, layers);
    visit(r, layers);
  }
}

}  // namespace

double OptimizerBytes(const Division& d, const Software& software) {
  return core::ElementBytes(d.precision) < 4 ? software.optimizer_bytes : 8;
}

double LayerActivationBytes(const Architecture& a, const Division& d,
                            const Software& software) {
  return LayerBytes(a, d, BytesOfToken(a, d, software, a.seq, 1), a.seq);
}

double InFlight(const Division& d) {
  if (d.pp == 1) return 1;
  if (d.schedule == PipelineSchedule::kGpipe) return d.microbatches();
  if (d.schedule != PipelineSchedule::k1F1B)
    return std::min<double>(d.pp, d.microbatches());
  const double extra = d.vpp > 1 ? (d.pp - 1.0) / (double(d.pp) * d.vpp) : 0;
  return std::min<double>(d.pp * (1 + extra), d.microbatches());
}

MemoryUse EvaluateRankMemory(const Architecture& a, const Division& d,
                             const Software& software, int rank) {
  return FormulaOfRank(a, d, software, rank, LayersOfRank(a, d, rank));
}

MemoryUse EvaluateMemory(const Architecture& a, const Division& d,
                         const Software& software) {
  MemoryUse most;
  ForEachFullRank(a, d, [&](int rank, double layers) {
    const MemoryUse use = FormulaOfRank(a, d, software, rank, layers);
    if (use.total() > most.total()) most = use;
  });
  return most;
}

double HostBytes(const Architecture& a, const Division& d,
                 const Software& software) {
  if (!d.offload) return 0;
  double most = 0;
  ForEachFullRank(a, d, [&](int rank, double layers) {
    most = std::max(most, FormulaOfRank(a, d, software, rank, layers).host);
  });
  return most;
}

}  // namespace partita::planner
