// The collectives of DESIGN.md 2a.3, 2a.4 and 2a.10, counted.
#include "compiler/planner/traffic.h"

#include <cstdio>

namespace partita::planner {
namespace {

class Counter {
 public:
  Counter(const Architecture& a, const Division& d)
      : a_(a),
        d_(d),
        tokens_(double(d.microbatch) * a.seq),
        residual_(tokens_ * a.hidden * BytesOf(d.precision)),
        all_gradients_(d.microbatches() > 1 ? 4.0 : BytesOf(d.precision)) {}

  std::vector<Traffic> Run() {
    if (d_.tp > 1) {
      if (d_.sequence_parallel)
        AddSequence();
      else
        AddTensor();
    }
    AddPipeline();
    AddGradients();
    return std::move(traffic_);
  }

 private:
  double Microbatches() const { return d_.microbatches(); }
  // `times` in a step of a whole pipeline, each by one of its ranks.
  void Add(const char* kind, const char* axes, double bytes, double times,
           bool bucketed = false) {
    if (bytes > 0 && times > 0)
      traffic_.push_back({kind, axes, bytes, times / d_.pp, bucketed});
  }

  // Both row-parallel products in both directions, the embedding and the head;
  // what is computed again ends before its last product. Of the loss: largest
  // logit, sum and target's logit, and the first two once more.
  void AddTensor() {
    const double again = d_.recompute == Recomputation::kFull ? 1 : 0;
    Add("all_reduce", "tensor", residual_,
        Microbatches() * (a_.layers * (4 + again) + 2));
    Add("all_reduce", "tensor", 4 * tokens_, Microbatches() * 5);
  }

  // The same as gathers and reduce-scatters; gathered inputs are not kept.
  // Tokens and targets (i64) are gathered for the embedding and the loss, and
  // the gradient of what was looked up in f32.
  void AddSequence() {
    const double m = Microbatches();
    const double again = d_.recompute == Recomputation::kFull ? 1 : 0;
    Add("all_gather", "tensor", residual_, m * (a_.layers * 6 + 2));
    Add("reduce_scatter", "tensor", residual_,
        m * (a_.layers * (4 + again) + 2));
    Add("all_gather", "tensor", 4 * tokens_ * a_.hidden, m);
    Add("all_gather", "tensor", 8 * tokens_, m * 4);
    Add("all_gather", "tensor", 4 * tokens_, m);
    // Both tables of rotary embeddings, in both directions.
    if (a_.gated())
      Add("all_gather", "tensor",
          double(BytesOf(d_.precision)) * a_.seq * a_.hidden / a_.heads,
          m * 4 * a_.layers);
    Add("reduce_scatter", "tensor", 4 * tokens_, m * 2);
    Add("all_reduce", "tensor", 4 * tokens_, m * 3);
  }

  // Activations and their gradients over every boundary; of a tied embedding,
  // which the first stage owns, the head's gradient and a copy.
  void AddPipeline() {
    if (d_.pp == 1) return;
    const double parts = d_.sequence_parallel ? d_.tp : 1;
    Add("send", "", residual_ / parts, Microbatches() * 2 * (d_.stages() - 1));
    if (!a_.tied || d_.RankOfStage(d_.stages() - 1) == 0) return;
    const double table = LocalVocabulary() * a_.hidden;
    Add("send", "", all_gradients_ * table, 1);
    Add("send", "", BytesOf(d_.precision) * table, 1);
  }

  double LocalVocabulary() const {
    return double((a_.vocab + d_.tp - 1) / d_.tp);
  }

  // What every rank of tp has whole, norms and the biases behind reductions,
  // and with what its own sequence alone would give a part of.
  double WholeParameters() const {
    const double layer = a_.gated() ? 2 : 6, last = a_.gated() ? 1 : 2;
    return (a_.layers * layer + last) * a_.hidden;
  }
  double DividedParameters() const {
    const double kv = double(a_.hidden) * a_.kv_heads / a_.heads;
    double layer = 2.0 * a_.hidden * a_.hidden + 2 * a_.hidden * kv +
                   (a_.gated() ? 3.0 : 2.0) * a_.hidden * a_.ffn;
    if (!a_.gated()) layer += a_.hidden + 2 * kv + a_.ffn;
    const double positions =
        a_.gated()
            ? 0
            : double(a_.seq) * a_.hidden / (d_.sequence_parallel ? d_.tp : 1);
    return a_.layers * layer / d_.tp +
           (a_.tied ? 1 : 2) * LocalVocabulary() * a_.hidden + positions;
  }

  // Once a step, or with ZeRO-2 for every microbatch, in buckets. Where tokens
  // are divided over tp, whole parameters are reduced over it too.
  void AddGradients() {
    const double element = BytesOf(d_.precision);
    const double whole = WholeParameters(), divided = DividedParameters();
    const bool apart = d_.sequence_parallel && d_.tp > 1;
    const double over_data = divided + (apart ? 0 : whole);
    if (apart)
      Add("all_reduce", d_.dp > 1 ? "data,tensor" : "tensor",
          all_gradients_ * whole, 1, true);
    if (d_.dp == 1) return;
    if (d_.zero == 0) {
      Add("all_reduce", "data", all_gradients_ * over_data, 1, true);
    } else if (d_.zero == 1) {
      Add("reduce_scatter", "data", all_gradients_ * over_data, 1, true);
    } else {
      Add("reduce_scatter", "data", element * over_data, Microbatches(), true);
    }
    if (d_.zero > 0)
      Add("all_gather", "data", element * (whole + divided), 1, true);
  }

  const Architecture& a_;
  const Division& d_;
  const double tokens_;         // of a microbatch
  const double residual_;       // bytes of their activations between layers
  const double all_gradients_;  // bytes of one as it is reduced
  std::vector<Traffic> traffic_;
};

}  // namespace

absl::StatusOr<std::vector<Traffic>> EvaluateTraffic(const Architecture& a,
                                                     const Division& d) {
  if (absl::Status status = CheckDivision(a, d); !status.ok()) return status;
  const char* missing = nullptr;
  if (a.kind != ModelKind::kGpt && a.kind != ModelKind::kLlama)
    missing = "models but gpt and llama";
  if (a.experts > 0) missing = "experts";
  if (d.cp > 1) missing = "cp";
  if (d.zero > 2) missing = "zero_stage 3";
  if (d.zero > 0 && d.sequence_parallel && d.tp > 1)
    missing = "sp with zero_stage";
  if (missing != nullptr)
    return absl::UnimplementedError(
        std::string("traffic is not described for ") + missing);
  return Counter(a, d).Run();
}

std::string ToString(const std::vector<Traffic>& traffic) {
  std::string text;
  for (const Traffic& each : traffic) {
    char line[160];
    std::snprintf(line, sizeof(line), "%s%s%s%s: %.10g%s x %.15g",
                  text.empty() ? "" : "; ", each.kind.c_str(),
                  each.axes.empty() ? "" : " over ", each.axes.c_str(),
                  each.calls, each.bucketed ? " buckets" : "", each.bytes);
    text += line;
  }
  return text;
}

}  // namespace partita::planner
