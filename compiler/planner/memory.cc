// Bytes of the fullest rank: states as ZeRO counts them (Rajbhandari et al.,
// 2020), activations as Korthikanti et al. (2022) do, of any widths.
#include <algorithm>

#include "compiler/planner/evaluate.h"

namespace partita::planner {
namespace {

// Bytes of one token's activations of a layer in 16 bits: those that every rank
// of tp has whole unless the sequence is divided too, and those that it
// divides.
struct TokenBytes {
  double whole = 0, divided = 0;
};

TokenBytes BytesOfToken(const Architecture& a, const Division& d,
                        const Software& software, int64_t others,
                        int attentions) {
  const double h = a.hidden, kv = h * a.kv_heads / a.heads;
  const double masks = a.gated() ? 0 : 1;
  TokenBytes bytes;
  // Inputs of the norm and of the product behind it, the mask of the dropout.
  bytes.whole = (attentions + 1) * (4 + masks) * h;
  bytes.divided =
      attentions * (2 * h + 4 * kv + 2 * h) + (a.gated() ? 6.0 : 4.0) * a.ffn;
  if (!software.fused_attention && d.recompute == Recomputation::kNone)
    bytes.divided += attentions * 5.0 * a.heads * others;
  return bytes;
}

double LayerBytes(const Architecture& a, const Division& d,
                  const TokenBytes& token, int64_t seq) {
  const double tokens = double(d.microbatch) * seq / d.cp;
  const double wide = BytesOf(d.precision) / 2.0;
  const double tp = d.sequence_parallel ? d.tp : 1;
  if (d.recompute == Recomputation::kFull)
    return wide * tokens * 2.0 * a.hidden / tp;
  return wide * tokens * (token.whole / tp + token.divided / d.tp);
}

// What a rank that has `layers` layers and `in_flight` microbatches keeps.
MemoryUse UseOf(const Architecture& a, const Division& d,
                const Software& software, double layers, double in_flight,
                bool embedding, bool head) {
  const bool t5 = a.kind == ModelKind::kT5;
  double parameters = layers * LayerParameters(a);
  if (t5) parameters += layers * DecoderLayerParameters(a);
  if (embedding) parameters += EmbeddingParameters(a);
  if (head && !(a.tied && embedding)) parameters += double(a.vocab) * a.hidden;
  parameters /= d.tp;
  const double replicas = d.dp * d.cp;
  const bool narrow = BytesOf(d.precision) == 2;
  const double gradient = narrow ? software.state_bytes - 14 : 4;
  const double trained = a.frozen ? 0.01 : 1;
  MemoryUse use;
  use.parameters = (narrow ? 2 : 4) * parameters / (d.zero >= 3 ? replicas : 1);
  use.gradients =
      trained * gradient * parameters / (d.zero >= 2 ? replicas : 1);
  use.optimizer =
      trained * (narrow ? 12 : 8) * parameters / (d.zero >= 1 ? replicas : 1);
  const double layer = LayerActivationBytes(a, d, software);
  use.activations = layers * in_flight * layer;
  if (t5)
    use.activations +=
        layers * in_flight *
        LayerBytes(a, d, BytesOfToken(a, d, software, a.seq + a.decoder_seq, 2),
                   a.decoder_seq);
  if (head) {
    const double tokens =
        double(d.microbatch) * (t5 ? a.decoder_seq : a.seq) / d.cp;
    use.working += tokens * a.vocab / d.tp * (BytesOf(d.precision) + 4);
  }
  if (d.recompute == Recomputation::kFull) {
    Division all = d;
    all.recompute = Recomputation::kNone;
    use.working += LayerActivationBytes(a, all, software);
  }
  if (d.zero >= 3)
    use.working += 2.0 * (narrow ? 2 : 4) * LayerParameters(a) / d.tp;
  return use;
}

}  // namespace

double LayerActivationBytes(const Architecture& a, const Division& d,
                            const Software& software) {
  return LayerBytes(a, d, BytesOfToken(a, d, software, a.seq, 1), a.seq);
}

double InFlight(const Division& d) {
  if (d.pp == 1) return 1;
  const double extra = d.vpp > 1 ? (d.pp - 1.0) / (double(d.pp) * d.vpp) : 0;
  return std::min<double>(d.pp * (1 + extra), d.microbatches());
}

MemoryUse EvaluateMemory(const Architecture& a, const Division& d,
                         const Software& software) {
  const double layers =
      double((a.layers + int64_t{d.pp} * d.vpp - 1) / (int64_t{d.pp} * d.vpp)) *
      d.vpp;
  const MemoryUse first =
      UseOf(a, d, software, layers, InFlight(d), true, d.pp == 1);
  if (d.pp == 1) return first;
  const double last_in_flight = d.vpp > 1 ? InFlight(d) - d.pp + 1 : 1;
  const MemoryUse last =
      UseOf(a, d, software, layers, last_in_flight, false, true);
  return first.total() >= last.total() ? first : last;
}

}  // namespace partita::planner
