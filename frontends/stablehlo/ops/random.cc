// Random bits: the counter-based generators Philox4x32 and Threefry2x32 (Salmon
// et al., 2011) as integer arithmetic, with the counters and the order of the
// words that XLA's rng_bit_generator has.
#include <array>

#include "frontends/stablehlo/ops/ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::stablehlo {
namespace {

// Words of 32 bits of one shape, the least significant first.
template <size_t kCount>
using Words = std::array<Val, kCount>;

class Words32 {
 public:
  explicit Words32(Emitter& e)
      : e(e), u32{e.builder().getI32Type(), true}, u64{e.i64(), true} {}

  Val low(Val x) { return e.cast(x, u32); }
  Val high(Val x) { return e.cast(shiftRight(x, 32), u32); }
  Val join(Val low, Val high) {
    return e.bitOr(e.cast(low, u64), shiftLeft(e.cast(high, u64), 32));
  }
  Val shiftRight(Val x, double by) {
    return {e.create<mlir::arith::ShRUIOp>(x.value, e.splatLike(by, x).value),
            true};
  }
  Val shiftLeft(Val x, double by) {
    return {e.create<mlir::arith::ShLIOp>(x.value, e.splatLike(by, x).value),
            true};
  }
  Val rotateLeft(Val x, int by) {
    return e.bitOr(shiftLeft(x, by), shiftRight(x, 32 - by));
  }
  // base + 0, 1, ..., count - 1; base is a scalar of 64 bits.
  Val countFrom(Val base, int64_t count) {
    return e.add(base, {e.iota({count}, 0, u64.type).value, true});
  }

  Emitter& e;
  const ElementType u32, u64;
};

// Ten rounds. `key` holds scalars.
Words<4> philox(Words32& words, Words<4> x, Words<2> key) {
  Emitter& e = words.e;
  const auto multiply = [&](Val a, double by) {
    return e.mul(e.cast(a, words.u64), by);
  };
  for (int round = 0; round < 10; ++round) {
    const Val even = multiply(x[0], 0xD2511F53),
              odd = multiply(x[2], 0xCD9E8D57);
    x = {e.bitXor(e.bitXor(words.high(odd), x[1]), key[0]), words.low(odd),
         e.bitXor(e.bitXor(words.high(even), x[3]), key[1]), words.low(even)};
    key = {e.add(key[0], 0x9E3779B9), e.add(key[1], 0xBB67AE85)};
  }
  return x;
}

// Twenty rounds. `key` holds scalars.
Words<2> threefry(Words32& words, Words<2> x, Words<2> key) {
  Emitter& e = words.e;
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const Val keys[] = {
      key[0], key[1],
      e.bitXor(e.bitXor(key[0], key[1]), e.splat(0x1BD11BDA, words.u32))};
  x = {e.add(x[0], keys[0]), e.add(x[1], keys[1])};
  for (int group = 0; group < 5; ++group) {
    for (int rotation : kRotations[group % 2]) {
      x[0] = e.add(x[0], x[1]);
      x[1] = e.bitXor(x[0], words.rotateLeft(x[1], rotation));
    }
    x[0] = e.add(x[0], keys[(group + 1) % 3]);
    x[1] = e.add(x[1], e.add(keys[(group + 2) % 3], group + 1));
  }
  return x;
}

// The first `shape` of vectors that take turns.
Val takeTurns(Emitter& e, llvm::ArrayRef<Val> vectors, Dims shape) {
  Values columns;
  for (Val vector : vectors)
    columns.push_back(e.reshape(vector, {vector.dim(0), 1}));
  const Val joined = e.concat(columns, 1);
  return e.reshape(
      e.sliceDim(e.reshape(joined, {joined.size()}), 0, 0, product(shape)),
      shape);
}

struct Generated {
  Val bits, state;  // of u32 or u64; the entries of the state after the key
};

// The counter is a number of 128 bits, one per four words. It is the state
// after the key, or, in a state of two entries, the last one below the key.
Generated generatePhilox(Words32& words, Val key, llvm::ArrayRef<Val> state,
                         Dims shape, bool is_wide) {
  Emitter& e = words.e;
  const bool has_high = state.size() == 2;
  const Val low = state[0], high = has_high ? state[1] : key;
  const int64_t blocks = (product(shape) * (is_wide ? 2 : 1) + 3) / 4;
  const auto carried = [&](Val sum) {
    return e.add(high, e.cast(e.compare(Compare::lt, sum, low), words.u64));
  };
  const Val counter = words.countFrom(low, blocks), above = carried(counter);
  const Words<4> bits = philox(words,
                               {words.low(counter), words.high(counter),
                                words.low(above), words.high(above)},
                               {words.low(key), words.high(key)});
  const Val next = e.add(low, static_cast<double>(blocks));
  Values next_state = {e.reshape(next, {1})};
  if (has_high) next_state.push_back(e.reshape(carried(next), {1}));
  return {is_wide ? takeTurns(e,
                              {words.join(bits[0], bits[1]),
                               words.join(bits[2], bits[3])},
                              shape)
                  : takeTurns(e, bits, shape),
          e.concat(next_state, 0)};
}

// The counter is the only entry after the key, one per two words. The two words
// are neighbours along the first dimension of even size, or else along the
// largest one, which is then cut.
Generated generateThreefry(Words32& words, Val key, Val counter, Dims shape,
                           bool is_wide) {
  Emitter& e = words.e;
  const auto run = [&](int64_t count) {
    const Val counted = words.countFrom(counter, count);
    return threefry(words, {words.low(counted), words.high(counted)},
                    {words.low(key), words.high(key)});
  };
  const auto after = [&](int64_t count) {
    return e.reshape(e.add(counter, static_cast<double>(count)), {1});
  };
  if (is_wide) {
    const int64_t count = product(shape);
    const Words<2> bits = run(count);
    return {e.reshape(words.join(bits[0], bits[1]), shape), after(count)};
  }
  if (shape.empty()) return {e.reshape(run(1)[0], {}), after(1)};
  size_t split = 0;
  for (size_t i = 1; i < shape.size(); ++i)
    if (shape[i] > shape[split]) split = i;
  for (size_t i = shape.size(); i-- > 0;)
    if (shape[i] % 2 == 0) split = i;
  Shape half(shape), whole(shape);
  half[split] = (shape[split] + 1) / 2;
  whole[split] = 2 * half[split];
  half.insert(half.begin() + split + 1, 1);
  const int64_t count = product(half);
  const Words<2> bits = run(count);
  const Val pairs =
      e.concat({e.reshape(bits[0], half), e.reshape(bits[1], half)}, split + 1);
  return {e.sliceDim(e.reshape(pairs, whole), split, 0, shape[split]),
          after(count)};
}

}  // namespace

Val importRngBitGenerator(OpContext& n) {
  const Val state = n.in(0);
  const int64_t algorithm = n.integer("rng_algorithm");
  const ValueType type = n.result(1);
  if (n.failed()) return {};
  // XLA's processors take Philox if they may choose.
  constexpr int64_t kDefault = 0, kThreefry = 1, kPhilox = 2;
  if (algorithm < kDefault || algorithm > kPhilox)
    return n.error("unknown algorithm " + llvm::Twine(algorithm));
  const bool is_philox = algorithm != kThreefry;
  Words32 words(n.e);
  if (state.rank() != 1 || !(state.elementType() == words.u64) ||
      (state.dim(0) != 2 && !(is_philox && state.dim(0) == 3)))
    return n.error(
        "expected a state of two numbers ui64, or of three for Philox, found " +
        toString(state.elementType()) + " " + toString(state.shape()));
  const ElementType element = type.element;
  if (mlir::isa<mlir::FloatType>(element.type) || element.type.isInteger(1))
    return n.unsupported("random bits as " + toString(element));
  Values entries;
  for (int64_t i = 0; i < state.dim(0); ++i)
    entries.push_back(n.e.reshape(n.e.sliceDim(state, 0, i, 1), {}));
  const bool is_wide = element.type.isInteger(64);
  Generated generated;
  if (product(type.shape) == 0)
    generated = {n.e.splat(0, is_wide ? words.u64 : words.u32, type.shape),
                 n.e.sliceDim(state, 0, 1, state.dim(0) - 1)};
  else if (is_philox)
    generated =
        generatePhilox(words, entries[0], llvm::ArrayRef(entries).drop_front(),
                       type.shape, is_wide);
  else
    generated =
        generateThreefry(words, entries[0], entries[1], type.shape, is_wide);
  n.out(0, n.e.concat({n.e.reshape(entries[0], {1}), generated.state}, 0));
  n.out(1, n.e.cast(generated.bits, element));
  return {};
}

}  // namespace partita::stablehlo
