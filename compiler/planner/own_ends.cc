// Embedding and head, and the parameters of all parts.
#include "compiler/planner/own_layers.h"
#include "compiler/planner/own_writer.h"

namespace partita::planner {
namespace {

using core::CollectiveKind;
using Value = ProgramSketch::Value;

class Embedding : public Writer {
 public:
  Embedding(const Sizes& sizes, const Division& d) : Writer(sizes, d) {}

  ProgramSketch Forward() {
    const Value ids = Ids(f.Argument(kIndex * double(s.own)));
    const Value table = f.Argument(0);  // of which it reads few rows
    if (!s.split) {
      f.Return(
          f.Kernel({table, f.Argument(s.stream), ids, Positions()}, s.stream));
      return std::move(f);
    }
    const Value rows = f.Kernel({Index(ids), f.Argument(s.whole)}, s.whole);
    if (s.gated) f.Return(rows);
    const Value sum = Sum(rows);
    f.Return(s.gated ? sum : f.Kernel({sum, Positions()}, s.stream));
    return std::move(f);
  }

  ProgramSketch Backward() {
    Value gradient = f.Argument(s.stream);
    if (!s.gated) f.Return(f.Kernel({gradient}, s.positions));
    Value ids = f.Argument(kIndex * double(s.own));
    if (s.sequence) ids = Ids(f.Kernel({ids}, kIndex * double(s.own)));
    gradient = Wide(gradient);
    if (s.sequence)
      gradient = f.Collective(CollectiveKind::kAllGather, gradient,
                              kWide * double(s.tokens) * s.hidden,
                              kWide * double(s.tokens) * s.hidden);
    const double table = double(s.vocab) * s.hidden;
    Value sum = f.Kernel({Index(ids), gradient}, kWide * table);
    if (s.narrow) sum = f.Kernel({sum}, s.element * table);
    f.Return(sum);
    return std::move(f);
  }

 private:
  Value Ids(Value ids) {
    if (!s.sequence) return ids;
    return f.Collective(CollectiveKind::kAllGather, ids,
                        kIndex * double(s.tokens), kIndex * double(s.tokens));
  }
  // Where an id is in a device's part of the table.
  Value Index(Value ids) { return f.Kernel({ids}, kIndex * double(s.tokens)); }
  Value Positions() { return f.Argument(s.gated ? 0 : s.positions); }
};

class Head : public Writer {
 public:
  Head(const Sizes& sizes, const Division& d) : Writer(sizes, d) {}

  ProgramSketch Forward() {
    const Value logits = Logits();
    if (!s.again) f.Return(logits);
    if (s.split) {
      const Value shifted = Shifted(logits);
      TokenSum(f.Kernel({shifted}, s.PerToken()), Scattering());
      f.Kernel({Targets()}, kIndex * double(s.tokens));
      TokenSum(f.Piece(shifted, s.PerToken()), Scattering());
    } else {
      f.Kernel({logits, f.Argument(kIndex * double(s.tokens))}, s.PerToken());
    }
    f.Kernel({f.Argument(4 * s.PerToken())}, kIndex);
    return std::move(f);
  }

  ProgramSketch Backward() {
    Value logits = s.again ? Logits() : f.Argument(s.logits);
    if (s.split) {
      logits = Shifted(logits);
      TokenSum(f.Kernel({logits}, s.PerToken()), CollectiveKind::kAllReduce);
      if (s.sequence) {
        f.Kernel({Targets()}, kIndex * double(s.tokens));
        const Value weight =
            f.Kernel({f.Argument(kIndex * double(s.own))}, s.PerToken() / tp_);
        f.Collective(CollectiveKind::kAllGather, weight, s.PerToken(),
                     s.PerToken());
      }
    }
    const Value gradient =
        f.Kernel({logits, f.Argument(3 * s.PerToken())}, s.logits);
    const Value x = f.Argument(s.stream);
    const Value back =
        Sum(f.Product(s.tokens, s.hidden, s.vocab, {gradient}, kOutByIn.back));
    const Value normed = s.again ? normed_ : Gather(Norm(x));
    Gradient(s.vocab, s.hidden, s.tokens, {gradient, normed});
    const Value wide = Wide(back);
    f.Return(NormBackward(wide, s.gated ? Wide(x) : x, -1));
    return std::move(f);
  }

 private:
  Value Logits() {
    normed_ = Gather(Norm(f.Argument(s.stream)));
    return f.Product(s.tokens, s.vocab, s.hidden, {normed_}, kOutByIn.ahead);
  }
  Value Targets() {
    const Value targets = f.Argument(kIndex * double(s.own));
    if (!s.sequence) return targets;
    return f.Collective(CollectiveKind::kAllGather, targets,
                        kIndex * double(s.tokens), kIndex * double(s.tokens));
  }
  CollectiveKind Scattering() const {
    return s.sequence ? CollectiveKind::kReduceScatter
                      : CollectiveKind::kAllReduce;
  }
  // Logits less the largest of all devices', in f32; their exponentials.
  Value Shifted(Value logits) {
    const double wide = kWide * double(s.tokens) * s.vocab;
    if (s.narrow) logits = f.Kernel({logits}, wide);
    const Value largest = f.Kernel({logits}, s.PerToken());
    TokenSum(largest, CollectiveKind::kAllReduce);
    return f.Kernel({logits, largest}, wide);
  }

  Value normed_ = -1;
};

}  // namespace

bool KnowsOwn(const Architecture& a, const Division& d) {
  return (a.kind == ModelKind::kGpt || a.kind == ModelKind::kLlama) &&
         !a.frozen && a.experts == 0 && d.cp == 1 && d.zero < 3 && !d.offload &&
         d.precision != Precision::kFp8;
}

OwnPart OwnEmbedding(const Architecture& a, const Division& d) {
  const Sizes sizes(a, d);
  OwnPart part{Embedding(sizes, d).Forward(), Embedding(sizes, d).Backward()};
  part.output = sizes.stream;
  return part;
}

OwnPart OwnHead(const Architecture& a, const Division& d) {
  const Sizes sizes(a, d);
  OwnPart part{Head(sizes, d).Forward(), Head(sizes, d).Backward()};
  part.saved = part.forward.ReturnedBytes();
  return part;
}

std::vector<double> OwnLayerParameters(const Architecture& a,
                                       const Division& d) {
  const Sizes s(a, d);
  const double h = s.hidden, q = s.wide, kv = s.kv, inner = s.inner;
  if (s.gated)
    return {h, h * q,     h * kv,    h * kv,   q * h,
            h, h * inner, h * inner, inner * h};
  return {h, h, 3 * h * q, 3 * q, q * h,     h,
          h, h, h * inner, inner, inner * h, h};
}

std::vector<double> OwnEmbeddingParameters(const Architecture& a,
                                           const Division& d) {
  const Sizes s(a, d);
  const double table = double(s.vocab) * s.hidden;
  if (s.gated) return {table};
  return {table, s.positions / s.element};
}

std::vector<double> OwnHeadParameters(const Architecture& a,
                                      const Division& d) {
  const Sizes s(a, d);
  std::vector<double> sizes(s.gated ? 1 : 2, s.hidden);
  if (!a.tied) sizes.push_back(double(s.vocab) * s.hidden);
  return sizes;
}

}  // namespace partita::planner
