// The functions of a step, operation by operation, in the order in which the
// compiler writes them.
#include "compiler/planner/own_layers.h"

#include "compiler/planner/own_writer.h"

namespace partita::planner {
namespace {

using Value = ProgramSketch::Value;

class LayerForward : public Writer {
 public:
  LayerForward(const Sizes& sizes, const Division& d) : Writer(sizes, d) {}

  ProgramSketch Run() {
    const Value x = f.Argument(s.stream);
    const Value attention = s.gated ? Rotated(x) : Packed(x);
    const Value heads = s.again ? attention : f.Kernel({attention}, s.queries);
    const Value projected = Save(
        Sum(f.Product(s.tokens, s.hidden, s.wide, {heads}, s.forms.ahead)));
    const std::vector<Value> both = f.Kernel(
        s.gated ? std::vector<Value>{projected, x, Weight(s.hidden)}
                : std::vector<Value>{projected, x, Weight(3 * s.hidden)},
        {s.stream, s.stream});
    const Value down = Mlp(Gather(both[1]));
    f.Return(f.Kernel(s.gated || (!s.narrow && !s.split)
                          ? std::vector<Value>{down, both[0]}
                          : std::vector<Value>{down, both[0], Weight(s.hidden)},
                      s.stream));
    return std::move(f);
  }

 private:
  Value Save(Value value) { return s.again ? value : f.Return(value); }

  // Weights of queries, keys and values are one parameter.
  Value Packed(Value x) {
    const Value weights = Weight(3.0 * s.hidden * s.wide);
    std::vector<Value> cut;
    for (int i = 0; i < 3; ++i)
      cut.push_back(f.Piece(weights, s.element * double(s.hidden) * s.wide));
    const Value normed = Gather(Norm(x));
    std::vector<Value> parts;
    for (const Value weight : cut)
      parts.push_back(Save(f.Product(s.tokens, s.wide, s.hidden,
                                     {normed, weight}, s.forms.ahead)));
    parts.push_back(Weight(3.0 * s.wide));
    return Save(f.Kernel(parts, s.queries, Operations(core::kAttention)));
  }

  Value Rotated(Value x) {
    const Value normed = Gather(Norm(x));
    const Value tables = Tables();
    const auto projected = [&](int64_t columns) {
      return Save(
          f.Product(s.tokens, columns, s.hidden, {normed}, s.forms.ahead));
    };
    const Value q = projected(s.wide);
    const Value rotated_q = f.Kernel({q, tables}, s.queries);
    const Value k = projected(s.kv);
    const Value rotated_k = f.Kernel({k, tables}, s.keys);
    const Value v = projected(s.kv);
    return Save(f.Kernel({rotated_q, rotated_k, v}, s.queries,
                         Operations(core::kAttention)));
  }

  Value Mlp(Value x) {
    std::vector<Value> up = {
        Save(f.Product(s.tokens, s.inner, s.hidden, {x}, s.forms.ahead))};
    up.push_back(s.gated ? Save(f.Product(s.tokens, s.inner, s.hidden, {x},
                                          s.forms.ahead))
                         : Weight(s.inner));
    const Value active = f.Kernel(up, s.middle);
    return Sum(f.Product(s.tokens, s.hidden, s.inner, {active}, s.forms.ahead));
  }
};

class LayerBackward : public Writer {
 public:
  LayerBackward(const Sizes& sizes, const Division& d) : Writer(sizes, d) {}

  ProgramSketch Run() {
    x_ = f.Argument(s.stream);
    for (Value* saved : {&q_, &attention_}) *saved = f.Argument(s.queries);
    for (Value* saved : {&k_, &v_})
      *saved = f.Argument(s.gated ? s.keys : s.queries);
    projected_ = f.Argument(s.stream);
    up_ = f.Argument(s.middle);
    gate_ = f.Argument(s.middle);
    const Value gradient = f.Argument(s.stream);
    if (s.gated)
      Gated(gradient);
    else
      Plain(gradient);
    return std::move(f);
  }

 private:
  // Full recomputation: the forward pass again, up to what the MLP's first
  // products give; what the gradients need of it stays.
  void Again() {
    if (!s.again) return;
    CutWeights();
    normed_ = Gather(Norm(x_));
    const auto product = [&](int64_t columns, size_t part) {
      return s.gated ? f.Product(s.tokens, columns, s.hidden, {normed_},
                                 s.forms.ahead)
                     : f.Product(s.tokens, columns, s.hidden,
                                 {normed_, cut_[part]}, s.forms.ahead);
    };
    q_ = product(s.wide, 0);
    k_ = product(s.gated ? s.kv : s.wide, 1);
    v_ = product(s.gated ? s.kv : s.wide, 2);
    Prepare();
    attention_ =
        f.Kernel({q_, k_, v_}, s.queries, Operations(core::kAttention));
    heads_ = f.Kernel({attention_}, s.queries);
    projected_ =
        Sum(f.Product(s.tokens, s.hidden, s.wide, {heads_}, s.forms.ahead));
  }
  void CutWeights() {
    if (s.gated || !cut_.empty()) return;
    const Value packed = Weight(3.0 * s.hidden * s.wide);
    for (int i = 0; i < 3; ++i)
      cut_.push_back(f.Piece(packed, s.element * double(s.hidden) * s.wide));
  }
  // Queries, keys and values as attention takes them: with their biases, or
  // rotated.
  void Prepare() {
    if (s.gated) {
      tables_ = Tables();
      q_ = f.Kernel({q_, tables_}, s.queries);
      k_ = f.Kernel({k_, tables_}, s.keys);
      return;
    }
    const Value bias = Weight(3.0 * s.wide);
    for (Value* part : {&q_, &k_, &v_})
      *part = f.Kernel({bias, *part}, s.queries);
  }
  void UpAgain(Value normed) {
    if (!s.again) return;
    up_ = f.Product(s.tokens, s.inner, s.hidden, {normed}, s.forms.ahead);
    if (s.gated)
      gate_ = f.Product(s.tokens, s.inner, s.hidden, {normed}, s.forms.ahead);
  }

  // The residual stream behind attention, in f32 too what comes in.
  struct Middle {
    Value wide_input = -1, wide = -1, residual = -1, normed = -1;
  };
  Middle Residual() {
    Middle m;
    std::vector<double> writes;
    if (s.narrow && s.gated)
      writes = {s.WideStream(), s.stream, s.WideStream()};
    else if (s.narrow)
      writes = {s.WideStream(), s.stream, s.stream};
    else
      writes = {s.stream, s.stream};
    const std::vector<Value> made =
        f.Kernel({projected_, x_, Weight(3 * s.hidden)}, writes);
    if (!s.narrow) {
      m.wide_input = x_;
      m.wide = m.residual = made[0];
      m.normed = made[1];
    } else if (s.gated) {
      m.wide = made[0];
      m.residual = made[1];
      m.wide_input = made[2];
      m.normed = Norm(m.residual);
    } else {
      m.wide_input = made[0];
      m.wide = m.residual = made[1];
      m.normed = made[2];
    }
    return m;
  }

  void Plain(Value gradient) {
    f.Return(ColumnSum({gradient}, s.own, s.hidden));
    const Value whole = Gather(gradient);
    const Value active =
        f.Product(s.tokens, s.inner, s.hidden, {whole}, s.forms.back);
    Middle m;
    if (s.again) {
      Again();
      m = Residual();
      m.normed = Gather(m.normed);
      UpAgain(m.normed);
    }
    // GELU and its derivative leave to each other what they share.
    const std::vector<Value> parts =
        f.Kernel({Weight(s.inner), up_, active},
                 {s.WideMiddle(), s.WideMiddle(), s.middle});
    const Value input = f.Kernel({parts[0], parts[1]}, s.middle);
    Gradient(s.inner, s.hidden, s.tokens, {input, whole});
    f.Return(ColumnSum({parts[2]}, s.tokens, s.inner));
    const Value back =
        Sum(f.Product(s.tokens, s.hidden, s.inner, {parts[2]}, s.forms.back));
    if (!s.again) {
      m = Residual();
      m.normed = Gather(m.normed);
    }
    Gradient(s.hidden, s.inner, s.tokens, {m.normed, parts[2]});
    const Value stream = NormBackward(Wide(back), m.wide, gradient);
    f.Return(ColumnSum({stream}, s.own, s.hidden));
    const Value of_heads = Projection(stream);
    if (!s.again) Prepare();
    const std::vector<Value> grads = Attention(of_heads);
    f.Return(NormBackward(PackedBackward(grads), m.wide_input, stream));
  }

  Value Projection(Value stream) {
    const Value whole = Gather(stream);
    const Value of_heads =
        f.Product(s.tokens, s.wide, s.hidden, {whole}, s.forms.back);
    if (!s.again) heads_ = f.Kernel({attention_}, s.queries);
    Gradient(s.wide, s.hidden, s.tokens, {heads_, whole});
    return of_heads;
  }

  // Scores, their gradients, and those of queries, keys and values: on tensor
  // cores one kernel for the queries' gradient, which computes scores twice,
  // and one for the others', whose memory is planned as if they were one.
  std::vector<Value> Attention(Value of_heads) {
    const double keys = s.gated ? s.keys : s.queries;
    if (!s.tensor_cores)
      return f.Kernel({q_, k_, v_, attention_, of_heads},
                      {s.queries, keys, keys},
                      Operations(core::kAttentionGradient));
    const Value of_q = f.Kernel({q_, k_, v_, attention_, of_heads}, s.queries,
                                Operations(core::kQueriesGradient));
    const std::vector<Value> others = f.Kernel(
        {q_, k_, v_, of_heads}, {keys, keys}, Operations(core::kKeysGradient));
    f.Call(0, {attention_}, {});
    return {of_q, others[0], others[1]};
  }

  Value PackedBackward(const std::vector<Value>& grads) {
    std::vector<Value> parts, weights, biases, back;
    for (const Value grad : grads) parts.push_back(f.Kernel({grad}, s.queries));
    for (const Value part : parts)
      biases.push_back(ColumnSum({part}, s.tokens, s.wide, true));
    const Value packed = Weight(3.0 * s.hidden * s.wide);
    for (size_t i = 0; i < parts.size(); ++i) {
      const Value weight =
          s.again ? cut_[i]
                  : f.Piece(packed, s.element * double(s.hidden) * s.wide);
      back.push_back(f.Product(s.tokens, s.hidden, s.wide, {parts[i], weight},
                               s.forms.back));
      if (normed_ < 0) normed_ = Gather(Norm(x_));
      weights.push_back(f.Product(s.hidden, s.wide, s.tokens,
                                  {normed_, parts[i]},
                                  ProductForm::kLhsTransposed));
    }
    const Value sum = SumOf(back);
    VectorGradient(weights, 3.0 * s.hidden * s.wide);
    VectorGradient(biases, 3.0 * s.wide);
    return sum;
  }

  void Gated(Value gradient) {
    const Value whole = Gather(gradient);
    const Value active =
        f.Product(s.tokens, s.inner, s.hidden, {whole}, s.forms.back);
    Middle m;
    if (s.again) {
      Again();
      m = Residual();
      m.normed = Gather(m.normed);
      UpAgain(m.normed);
    }
    const auto [of_gate, of_up, input] = GateBackward(active);
    Gradient(s.hidden, s.inner, s.tokens, {whole, input});
    std::vector<Value> back;
    back.push_back(
        f.Product(s.tokens, s.hidden, s.inner, {of_up}, s.forms.back));
    if (!s.again) {
      m = Residual();
      m.normed = Gather(m.normed);
    }
    Gradient(s.inner, s.hidden, s.tokens, {of_up, m.normed});
    back.push_back(
        f.Product(s.tokens, s.hidden, s.inner, {of_gate}, s.forms.back));
    Gradient(s.inner, s.hidden, s.tokens, {of_gate, m.normed});
    const Value stream = NormBackward(SumOf(back), m.wide, gradient);
    const Value of_heads = Projection(stream);
    if (!s.again) Prepare();
    RotatedBackward(Attention(of_heads), m, stream);
  }

  // SiLU, its derivative and the product with the gate, in three kernels that
  // leave to each other what they share.
  struct Gate {
    Value of_gate, of_up, input;
  };
  Gate GateBackward(Value active) {
    const double wide = s.WideMiddle();
    if (!s.narrow) {
      const std::vector<Value> first =
          f.Kernel({gate_, up_, active}, {wide, wide});
      const std::vector<Value> second =
          f.Kernel({first[1], active, gate_}, {wide, wide});
      return {first[0], second[0], f.Kernel({second[1], up_}, wide)};
    }
    std::vector<double> writes(6, wide);
    writes.push_back(s.middle);
    const std::vector<Value> first = f.Kernel({gate_, active}, writes);
    const std::vector<Value> second =
        f.Kernel({up_, first[0], first[1], first[2], first[3], first[5]},
                 {wide, s.middle});
    return {second[1], first[6], f.Kernel({first[4], second[0]}, s.middle)};
  }

  void RotatedBackward(const std::vector<Value>& grads, const Middle& m,
                       Value stream) {
    const auto laid_out = [&](Value value, bool key) {
      if (key && s.one_kv_head) return value;
      return f.Kernel({value}, f.bytes(value));
    };
    std::vector<Value> back;
    const auto linear = [&](Value grad, int64_t columns) {
      back.push_back(
          f.Product(s.tokens, s.hidden, columns, {grad}, s.forms.back));
      if (normed_ < 0) normed_ = Gather(Norm(x_));
      Gradient(columns, s.hidden, s.tokens, {grad, normed_});
    };
    linear(laid_out(grads[2], true), s.kv);
    linear(laid_out(f.Kernel({grads[1], tables_}, s.keys), true), s.kv);
    linear(laid_out(f.Kernel({grads[0], tables_}, s.queries), false), s.wide);
    f.Return(NormBackward(SumOf(back), m.wide_input, stream));
  }

  Value x_ = -1, q_ = -1, k_ = -1, v_ = -1, attention_ = -1, projected_ = -1,
        up_ = -1, gate_ = -1, normed_ = -1, heads_ = -1, tables_ = -1;
  std::vector<Value> cut_;
};

}  // namespace

OwnPart OwnLayer(const Architecture& a, const Division& d) {
  const Sizes sizes(a, d);
  OwnPart part{LayerForward(sizes, d).Run(), LayerBackward(sizes, d).Run()};
  part.output = sizes.stream;
  part.saved = part.forward.ReturnedBytes() - part.output;
  return part;
}

}  // namespace partita::planner
