// A transformer in a few numbers, and how it is divided: what a row of a sweep
// says. Compiled models need neither.
#ifndef PARTITA_COMPILER_PLANNER_TRANSFORMER_ARCHITECTURE_H_
#define PARTITA_COMPILER_PLANNER_TRANSFORMER_ARCHITECTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/core/precision.h"

namespace partita::planner {

constexpr int64_t kMostBatch = 1 << 24;  // sequences of a step

// kGpt: causal, learned positions, GELU. kBert: the same, not causal. kLlama:
// causal, gated MLP (three products), no biases, own output weights. kT5:
// `layers` encoder layers, not causal, and as many decoder layers on
// `decoder_seq` tokens with attention to the encoder's; gated MLP.
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
  int64_t decoder_seq = 0;  // of kT5 alone
  int64_t vocab = 0;
  // In place of one MLP a layer has `experts` of width `expert_ffn`, of which a
  // router sends each token to `topk`, and beside them an MLP of width
  // `shared_ffn` that all tokens pass (Shazeer et al., 2017; DeepSeekMoE,
  // 2024). 0 experts: the MLP of width `ffn`.
  int64_t experts = 0, topk = 0, expert_ffn = 0, shared_ffn = 0;
  bool tied = true;     // output weights are the embedding's
  bool frozen = false;  // low-rank adapters train: the weights get no gradients

  bool causal() const {
    return kind == ModelKind::kGpt || kind == ModelKind::kLlama;
  }
  bool gated() const {
    return kind == ModelKind::kLlama || kind == ModelKind::kT5;
  }
};

// Of one (encoder) layer without its experts; of its experts; of a decoder
// layer; of all.
int64_t LayerParameters(const Architecture& architecture);
int64_t ExpertParameters(const Architecture& architecture);
int64_t DecoderLayerParameters(const Architecture& architecture);
int64_t EmbeddingParameters(const Architecture& architecture);
int64_t Parameters(const Architecture& architecture);

// 72 B L s h^2 (1 + s/6h + V/12hL) of a GPT, its like of the others: forward
// and backward of `sequences` without recomputation, attention as if not
// causal; of experts those that a token passes.
double ModelFlops(const Architecture& architecture, int64_t sequences);

enum class Recomputation { kNone, kSelective, kFull };
std::string ToString(Recomputation recomputation);

// What the ranks of a pipeline do when, as core's generators of these names.
// k1F1B with vpp > 1 is the interleaved one; kZbV has two stages a rank.
enum class PipelineSchedule { k1F1B, kGpipe, kZbH1, kZbV };
std::string ToString(PipelineSchedule schedule);

// tp within nodes first, then cp, dp, pp: ranks in Megatron's order.
struct Division {
  int devices = 1;
  int tp = 1, pp = 1, dp = 1, cp = 1;
  // Within each stage's tp x cp x dp ranks experts have a mesh of their own:
  // etp divides an expert's width, ep the experts, the rest holds copies.
  int ep = 1, etp = 1;
  int vpp = 1;  // stages a rank
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  // Layers of each of the pp x vpp stages; empty: as even as can be, the first
  // ones with one more. The first and the last may have none,
  // but of our own programs.
  std::vector<int64_t> cut;
  bool sequence_parallel = false;  // norms and residuals divided over tp too
  Recomputation recompute = Recomputation::kNone;
  int zero = 0;
  bool offload = false;    // the optimizer's states are in the host's memory
  int64_t microbatch = 1;  // sequences
  int64_t batch = 1;       // sequences of a step, of all devices
  core::Precision precision = core::Precision::kBF16;

  int expert_copies() const { return tp * cp * dp / (ep * etp); }
  int64_t microbatches() const { return batch / (microbatch * dp); }
  int stages() const { return pp * vpp; }
  int RankOfStage(int stage) const {
    return schedule == PipelineSchedule::kZbV && stage >= pp
               ? 2 * pp - 1 - stage
               : stage % pp;
  }
  // Whether the rank of the embedding is that of the head.
  bool SameEnds() const { return RankOfStage(stages() - 1) == 0; }
  int StageOfRank(int rank, int chunk) const {  // chunk: 0 .. vpp
    return schedule == PipelineSchedule::kZbV && chunk == 1 ? 2 * pp - 1 - rank
                                                            : chunk * pp + rank;
  }
  // Of `layers` in all.
  int64_t LayersOfStage(int64_t layers, int stage) const {
    if (!cut.empty()) return cut[stage];
    return layers / stages() + (stage < layers % stages() ? 1 : 0);
  }
};

// Whether the sizes go together: says what does not divide what.
absl::Status CheckDivision(const Architecture& architecture,
                           const Division& division);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_TRANSFORMER_ARCHITECTURE_H_
