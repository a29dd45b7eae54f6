// A transformer as a few numbers, and its division, as a row of a sweep has
// them. Compiled models use neither.
#ifndef PARTITA_COMPILER_PLANNER_TRANSFORMER_ARCHITECTURE_H_
#define PARTITA_COMPILER_PLANNER_TRANSFORMER_ARCHITECTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/core/precision.h"

namespace partita::planner {

constexpr int64_t kMostBatch = 1 << 24;  // sequences per step

// kGpt: causal, learned positions, GELU. kBert: as kGpt, not causal. kLlama:
// causal, gated MLP (three products), no biases, separate output weights. kT5:
// `layers` encoder layers, not causal, and as many decoder layers on
// `decoder_seq` tokens with cross-attention; gated MLP.
enum class ModelKind { kGpt, kBert, kLlama, kT5 };
std::string ToString(ModelKind kind);

struct Architecture {
  ModelKind kind = ModelKind::kGpt;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t ffn = 0;
  int64_t seq = 0;
  int64_t decoder_seq = 0;  // kT5 only
  // Tokens of a sample, if a sequence has several that do not attend to each
  // other. 0: one.
  int64_t packed = 0;
  int64_t vocab = 0;
  // Mixture of experts. Instead of one MLP, a layer has `experts` of width
  // `expert_ffn`. A router sends each token to `topk` of them. An additional
  // MLP of width `shared_ffn` computes all tokens (Shazeer et al., 2017;
  // DeepSeekMoE, 2024). 0 experts: one MLP of width `ffn`.
  int64_t experts = 0, topk = 0, expert_ffn = 0, shared_ffn = 0;
  bool tied = true;     // the output weights are the embedding
  bool frozen = false;  // only low-rank adapters are trained

  bool causal() const {
    return kind == ModelKind::kGpt || kind == ModelKind::kLlama;
  }
  bool gated() const {
    return kind == ModelKind::kLlama || kind == ModelKind::kT5;
  }
};

// Numbers of parameters: of one (encoder) layer without its experts, of its
// experts, of a decoder layer, of the embedding, of the whole model.
int64_t LayerParameters(const Architecture& architecture);
int64_t ExpertParameters(const Architecture& architecture);
int64_t DecoderLayerParameters(const Architecture& architecture);
int64_t EmbeddingParameters(const Architecture& architecture);
int64_t Parameters(const Architecture& architecture);

// Operations of the forward and backward pass of `sequences`, without
// recomputation: 72 B L s h^2 (1 + s/6h + V/12hL) for a GPT, and similar for
// the others. Attention counts as if not causal. Only the experts that a token
// uses count.
double ModelFlops(const Architecture& architecture, int64_t sequences);

enum class Recomputation { kNone, kSelective, kFull };
std::string ToString(Recomputation recomputation);

// Pipeline schedules, as core's generators of these names. k1F1B with vpp > 1
// is the interleaved schedule. kZbV has two stages per rank.
enum class PipelineSchedule { k1F1B, kGpipe, kZbH1, kZbV };
std::string ToString(PipelineSchedule schedule);

// How a model is divided. Ranks are in Megatron's order: tp is innermost
// (within nodes first), then cp, dp, pp.
struct Division {
  int devices = 1;
  int tp = 1, pp = 1, dp = 1, cp = 1;
  // Experts have their own mesh within each stage's tp x cp x dp ranks. etp
  // divides the width of an expert, ep the experts. The remaining ranks hold
  // copies.
  int ep = 1, etp = 1;
  int vpp = 1;  // stages per rank
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  // Layers of each of the pp x vpp stages. Empty: as even as possible, with one
  // more in the first ones. The first and last stage may have no layers, except
  // in Partita's own programs.
  std::vector<int64_t> cut;
  bool sequence_parallel =
      false;  // norms and residuals are divided over tp too
  Recomputation recompute = Recomputation::kNone;
  int zero = 0;
  bool offload = false;    // optimizer states are in host memory
  int64_t microbatch = 1;  // sequences per rank
  int64_t batch = 1;       // sequences per step, over all devices
  core::Precision precision = core::Precision::kBF16;

  int expert_copies() const { return tp * cp * dp / (ep * etp); }
  // In Partita's own programs: the part of dp that divides the experts. If tp
  // does not divide their widths, it divides the experts, too.
  int experts_over_data() const { return ep * etp > tp ? ep * etp / tp : 1; }
  int64_t microbatches() const { return batch / (microbatch * dp); }
  int stages() const { return pp * vpp; }
  int RankOfStage(int stage) const {
    return schedule == PipelineSchedule::kZbV && stage >= pp
               ? 2 * pp - 1 - stage
               : stage % pp;
  }
  // True if one rank has both the embedding and the head.
  bool SameEnds() const { return RankOfStage(stages() - 1) == 0; }
  int StageOfRank(int rank, int chunk) const {  // chunk: 0 .. vpp - 1
    return schedule == PipelineSchedule::kZbV && chunk == 1 ? 2 * pp - 1 - rank
                                                            : chunk * pp + rank;
  }
  // Layers of a stage, out of `layers` in total.
  int64_t LayersOfStage(int64_t layers, int stage) const {
    if (!cut.empty()) return cut[stage];
    return layers / stages() + (stage < layers % stages() ? 1 : 0);
  }
};

// Refuses incompatible sizes and says what does not divide what.
absl::Status CheckDivision(const Architecture& architecture,
                           const Division& division);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_TRANSFORMER_ARCHITECTURE_H_
