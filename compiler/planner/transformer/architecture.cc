// Counts parameters and operations, and checks that sizes are compatible.
#include "compiler/planner/transformer/architecture.h"

#include <algorithm>

#include "compiler/planner/cluster/cluster.h"

namespace partita::planner {
namespace {

using absl::InvalidArgumentError;
using absl::Status;

// Upper bounds that no model exceeds. Their products fit in 64 bits.
constexpr int64_t kMostLayers = 1 << 16, kMostWidth = 1 << 20;
constexpr int64_t kMostTokens = 1 << 30, kMostVocab = 1 << 24;
// A timetable has cells for each rank and stage.
constexpr int64_t kMostRanks = 256, kMostStages = 1024;

int64_t AttentionParameters(const Architecture& a) {
  const int64_t kv = a.hidden / a.heads * a.kv_heads;
  const int64_t weights = 2 * a.hidden * a.hidden + 2 * a.hidden * kv;
  return weights + (a.gated() ? a.hidden : 4 * a.hidden + 2 * kv);
}

// Parameters of an MLP with its norm. With experts: the router and the shared
// expert.
int64_t MlpParameters(const Architecture& a) {
  const int64_t ffn = a.experts > 0 ? a.shared_ffn : a.ffn;
  const int64_t router = a.experts * a.hidden;
  if (a.gated()) return 3 * a.hidden * ffn + router + a.hidden;
  return 2 * a.hidden * ffn + ffn + router + 3 * a.hidden;
}

// Multiply-adds per token in a layer, without attention's score products.
double LayerProducts(const Architecture& a) {
  const double kv = double(a.hidden) / a.heads * a.kv_heads;
  const double inner =
      a.experts > 0 ? double(a.topk) * a.expert_ffn + a.shared_ffn : a.ffn;
  return 2.0 * a.hidden * a.hidden + 2 * a.hidden * kv +
         double(a.experts) * a.hidden +
         (a.gated() ? 3.0 : 2.0) * a.hidden * inner;
}

Status CheckSize(const char* name, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return InvalidArgumentError(std::string(name) + ": expected 1 to " +
                              std::to_string(most) + ", found " +
                              std::to_string(value));
}

Status CheckDivides(const char* whole_name, int64_t whole,
                    const char* part_name, int64_t part) {
  if (whole % part == 0) return absl::OkStatus();
  return InvalidArgumentError(std::string(whole_name) + " of " +
                              std::to_string(whole) + " does not divide by " +
                              part_name + " " + std::to_string(part));
}

Status CheckExperts(const Architecture& a, const Division& d) {
  if (a.experts == 0)
    return d.ep == 1 ? absl::OkStatus()
                     : InvalidArgumentError(
                           "ep: expected 1 of a model without experts "
                           "(moe_experts), found " +
                           std::to_string(d.ep));
  if (a.kind == ModelKind::kT5)
    return InvalidArgumentError("moe_experts: a t5 has none");
  for (Status status : {CheckSize("moe_experts", a.experts, kMostWidth),
                        CheckSize("moe_topk", a.topk, a.experts),
                        CheckSize("moe_ffn", a.expert_ffn, kMostWidth),
                        CheckSize("ep", d.ep, kMostDevices),
                        CheckSize("etp", d.etp, kMostDevices)})
    if (!status.ok()) return status;
  if (a.shared_ffn > kMostWidth)
    return InvalidArgumentError("shared_experts x moe_ffn: expected at most " +
                                std::to_string(kMostWidth) + ", found " +
                                std::to_string(a.shared_ffn));
  if (double(d.microbatch) * a.seq * a.topk * d.etp > 1e15)
    return InvalidArgumentError(
        "mbs x seq_len x moe_topk x etp: expected at most 1e15 tokens");
  // The product of any two sizes must fit in 64 bits.
  if (double(a.experts) * a.hidden * a.expert_ffn > 1e15)
    return InvalidArgumentError("moe_experts: expected at most 1e15 weights");
  for (Status status :
       {CheckDivides("moe_experts", a.experts, "ep", d.ep),
        CheckDivides("moe_ffn", a.expert_ffn, "etp", d.etp),
        CheckDivides("tp x cp x dp", int64_t{d.tp} * d.cp * d.dp, "ep x etp",
                     int64_t{d.ep} * d.etp)})
    if (!status.ok()) return status;
  return absl::OkStatus();
}

Status CheckStages(const Architecture& a, const Division& d) {
  const int64_t layers = a.layers * (a.kind == ModelKind::kT5 ? 2 : 1);
  if (d.cut.empty() && layers < d.stages())
    return InvalidArgumentError(std::to_string(layers) +
                                " layers are fewer than pp x vpp " +
                                std::to_string(d.stages()));
  const bool zb_v = d.schedule == PipelineSchedule::kZbV;
  if (d.schedule != PipelineSchedule::k1F1B && d.vpp != (zb_v ? 2 : 1))
    return InvalidArgumentError(
        "vpp: expected " + std::to_string(zb_v ? 2 : 1) + " of " +
        ToString(d.schedule) + ", found " + std::to_string(d.vpp));
  if (d.cut.empty()) return absl::OkStatus();
  int64_t sum = 0;
  bool sound = static_cast<int>(d.cut.size()) == d.stages();
  for (size_t i = 0; i < d.cut.size(); ++i) {
    const bool end = i == 0 || i + 1 == d.cut.size();
    sound &= d.cut[i] >= (end ? 0 : 1);
    sum += d.cut[i];
  }
  if (!sound || sum != a.layers)
    return InvalidArgumentError("cut: expected " + std::to_string(d.stages()) +
                                " stages of 1 layer and more (the ends 0), " +
                                std::to_string(a.layers) + " in all, found " +
                                std::to_string(d.cut.size()) + " of " +
                                std::to_string(sum));
  return absl::OkStatus();
}

}  // namespace

std::string ToString(ModelKind kind) {
  const char* names[] = {"gpt", "bert", "llama", "t5"};
  return names[static_cast<int>(kind)];
}

std::string ToString(Recomputation recomputation) {
  const char* names[] = {"none", "selective", "full"};
  return names[static_cast<int>(recomputation)];
}

std::string ToString(PipelineSchedule schedule) {
  const char* names[] = {"1f1b", "gpipe", "zb-h1", "zb-v"};
  return names[static_cast<int>(schedule)];
}

int64_t LayerParameters(const Architecture& a) {
  return AttentionParameters(a) + MlpParameters(a);
}

int64_t ExpertParameters(const Architecture& a) {
  const int64_t biases = a.gated() ? 0 : a.expert_ffn + a.hidden;
  return a.experts * ((a.gated() ? 3 : 2) * a.hidden * a.expert_ffn + biases);
}

int64_t DecoderLayerParameters(const Architecture& a) {
  return 2 * AttentionParameters(a) + MlpParameters(a);
}

int64_t EmbeddingParameters(const Architecture& a) {
  const int64_t positions =
      a.kind == ModelKind::kGpt || a.kind == ModelKind::kBert ? a.seq * a.hidden
                                                              : 0;
  return a.vocab * a.hidden + positions;
}

int64_t Parameters(const Architecture& a) {
  const int64_t head = a.tied ? 0 : a.vocab * a.hidden;
  const int64_t decoder =
      a.kind == ModelKind::kT5 ? a.layers * DecoderLayerParameters(a) : 0;
  return a.layers * (LayerParameters(a) + ExpertParameters(a)) + decoder +
         EmbeddingParameters(a) + head + (a.gated() ? 1 : 2) * a.hidden;
}

double ModelFlops(const Architecture& a, int64_t sequences) {
  const double tokens = double(sequences) * a.seq;
  double products =
      tokens * (a.layers * (LayerProducts(a) + 2.0 * a.seq * a.hidden));
  double head_tokens = tokens;
  if (a.kind == ModelKind::kT5) {
    head_tokens = double(sequences) * a.decoder_seq;
    const double kv = double(a.hidden) / a.heads * a.kv_heads;
    const double cross = 2.0 * a.hidden * a.hidden;
    products += a.layers * (head_tokens * (LayerProducts(a) + cross +
                                           2.0 * a.decoder_seq * a.hidden +
                                           2.0 * a.seq * a.hidden) +
                            tokens * 2 * a.hidden * kv);
  }
  products += head_tokens * a.hidden * a.vocab;
  return 6 * products;
}

Status CheckDivision(const Architecture& a, const Division& d) {
  for (Status status :
       {CheckSize("layers", a.layers, kMostLayers),
        CheckSize("hidden", a.hidden, kMostWidth),
        CheckSize("heads", a.heads, kMostWidth),
        CheckSize("kv_heads", a.kv_heads, kMostWidth),
        CheckSize("ffn", a.ffn, kMostWidth),
        CheckSize("seq_len", a.seq, kMostTokens),
        CheckSize("vocab", a.vocab, kMostVocab),
        CheckSize("mbs", d.microbatch, kMostBatch),
        CheckSize("gbs", d.batch, kMostBatch),
        CheckSize("tp", d.tp, kMostDevices), CheckSize("pp", d.pp, kMostRanks),
        CheckSize("dp", d.dp, kMostDevices),
        CheckSize("cp", d.cp, kMostDevices),
        CheckSize("vpp", d.vpp, kMostStages),
        CheckSize("pp x vpp", int64_t{d.pp} * d.vpp, kMostStages)})
    if (!status.ok()) return status;
  if (double(d.tp) * d.pp * d.dp * d.cp != d.devices)
    return InvalidArgumentError(
        "tp " + std::to_string(d.tp) + " x pp " + std::to_string(d.pp) +
        " x dp " + std::to_string(d.dp) + " x cp " + std::to_string(d.cp) +
        " are not the " + std::to_string(d.devices) + " devices");
  if (d.zero < 0 || d.zero > 3)
    return InvalidArgumentError("zero_stage: expected 0 to 3, found " +
                                std::to_string(d.zero));
  for (Status status :
       {CheckDivides("hidden", a.hidden, "heads", a.heads),
        CheckDivides("heads", a.heads, "kv_heads", a.kv_heads),
        CheckDivides("heads", a.heads, "tp", d.tp),
        CheckDivides("ffn", a.ffn, "tp", d.tp),
        CheckDivides("seq_len", a.seq, "cp", d.cp),
        CheckDivides("gbs", d.batch, "mbs x dp", d.microbatch * d.dp)})
    if (!status.ok()) return status;
  if (Status status = CheckExperts(a, d); !status.ok()) return status;
  if (Status status = CheckStages(a, d); !status.ok()) return status;
  if (a.kind == ModelKind::kT5 && d.pp > 1)
    return InvalidArgumentError(
        "pp: expected 1 of a t5, whose decoder needs its encoder's output on "
        "every stage, found " +
        std::to_string(d.pp));
  return absl::OkStatus();
}

}  // namespace partita::planner
