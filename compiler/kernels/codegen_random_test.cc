// Compares kernels of random chains of operations with the interpreter, to find
// cases that no table lists.
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "compiler/kernels/codegen_fixture.h"

namespace partita::kernels {
namespace {

using Shape = std::vector<int64_t>;

// Writes a kernel as text, one operation after the other, on a pool of values.
class KernelWriter {
 public:
  explicit KernelWriter(unsigned seed) : generator_(seed) {}

  std::string write(int operations) {
    newArgument(randomShape());
    for (int i = 0; i < operations; ++i) addOperation();
    // Returns the last value, and sometimes an earlier one.
    std::vector<Value> results = {values_.back()};
    if (pick(3) == 0) results.push_back(values_[pick(values_.size())]);
    std::string names, types;
    for (const Value& value : results) {
      names += (names.empty() ? "" : ", ") + value.name;
      types += (types.empty() ? "" : ", ") + typeOf(value.shape);
    }
    return "func.func @k(" + arguments_ + ") -> (" + types + ") {\n" +
           body_.str() + "  return " + names + " : " + types + "\n}\n";
  }

 private:
  struct Value {
    std::string name;
    Shape shape;
  };

  int64_t pick(int64_t count) {
    return static_cast<int64_t>(generator_() % count);
  }

  Shape randomShape() {
    static const int64_t kSizes[] = {1,  2,  3,  4,  5,  6,  7,  8,
                                     12, 16, 17, 24, 32, 33, 48, 64};
    Shape shape;
    int64_t rank = 1 + pick(4), elements = 1;
    for (int64_t i = 0; i < rank; ++i) {
      int64_t size = kSizes[pick(16)];
      if (elements * size > 6000) size = 1 + pick(3);
      elements *= size;
      shape.push_back(size);
    }
    return shape;
  }

  static std::string list(const Shape& values) {
    std::string text = "[";
    for (size_t i = 0; i < values.size(); ++i)
      text += (i ? ", " : "") + std::to_string(values[i]);
    return text + "]";
  }
  static std::string typeOf(const Shape& shape) {
    std::string text = "tensor<";
    for (int64_t size : shape) text += std::to_string(size) + "x";
    return text + "f32>";
  }
  static int64_t elementsOf(const Shape& shape) {
    int64_t count = 1;
    for (int64_t size : shape) count *= size;
    return count;
  }

  Value newArgument(const Shape& shape) {
    Value value = {"%a" + std::to_string(argument_count_++), shape};
    arguments_ +=
        (arguments_.empty() ? "" : ", ") + value.name + ": " + typeOf(shape);
    values_.push_back(value);
    return value;
  }
  void define(const Shape& shape, const std::string& text) {
    Value value = {"%v" + std::to_string(value_count_++), shape};
    body_ << "  " << value.name << " = " << text << "\n";
    values_.push_back(value);
  }

  // The operand of the next operation: mostly the last value.
  Value current() {
    return pick(5) == 0 ? values_[pick(values_.size())] : values_.back();
  }

  void addOperation() {
    Value x = current();
    switch (pick(14)) {
      case 0:
        return addReshape(x);
      case 1:
      case 2:
        return addTranspose(x);
      case 3:
        return addSlice(x);
      case 4:
        return addPad(x);
      case 5:
        return addBroadcast(x);
      case 6:
        return addReduce(x);
      case 7:
        return addConcat(x);
      case 8:
        return addRow(x);
      case 9:
        return addReshape(x);
      case 10:
        return define(x.shape, "math.tanh " + x.name + " : " + typeOf(x.shape));
      default:
        return addBinary(x);
    }
  }

  void addReshape(const Value& x) {
    int64_t left = elementsOf(x.shape);
    Shape shape;
    for (int i = 0; i < 3 && left > 1; ++i) {
      int64_t factor = 1 + pick(std::min<int64_t>(left, 64));
      while (left % factor != 0) --factor;
      shape.push_back(factor);
      left /= factor;
    }
    shape.insert(shape.begin() + pick(shape.size() + 1), left);
    define(shape, "nn.reshape " + x.name + " : " + typeOf(x.shape) + " -> " +
                      typeOf(shape));
  }

  void addTranspose(const Value& x) {
    Shape perm, shape;
    for (size_t i = 0; i < x.shape.size(); ++i) perm.push_back(i);
    std::shuffle(perm.begin(), perm.end(), generator_);
    for (int64_t dim : perm) shape.push_back(x.shape[dim]);
    define(shape, "nn.transpose " + x.name + " perm = " + list(perm) + " : " +
                      typeOf(x.shape) + " -> " + typeOf(shape));
  }

  void addSlice(const Value& x) {
    Shape starts, strides, shape;
    for (int64_t size : x.shape) {
      int64_t first = pick(size), stride = pick(4) == 0 ? -1 : 1 + pick(2);
      int64_t most = stride > 0 ? (size - 1 - first) / stride + 1 : first + 1;
      starts.push_back(first);
      strides.push_back(stride);
      shape.push_back(std::max<int64_t>(1, most - pick(2)));
    }
    define(shape, "nn.slice " + x.name + " starts = " + list(starts) +
                      " strides = " + list(strides) + " : " + typeOf(x.shape) +
                      " -> " + typeOf(shape));
  }

  void addPad(const Value& x) {
    static const char* const kModes[] = {"", " mode = edge", " mode = reflect",
                                         " mode = wrap"};
    int64_t mode = pick(4);
    Shape low, high, shape;
    for (int64_t size : x.shape) {
      int64_t most = mode == 2 ? size : 5;
      low.push_back(pick(most));
      high.push_back(pick(most));
      shape.push_back(size + low.back() + high.back());
    }
    if (elementsOf(shape) > 50000) return;
    std::string zero = "%c" + std::to_string(value_count_);
    body_ << "  " << zero << " = arith.constant dense<1.5> : tensor<f32>\n";
    define(shape, "nn.pad " + x.name + ", " + zero + " low = " + list(low) +
                      " high = " + list(high) + kModes[mode] + " : " +
                      typeOf(x.shape) + ", tensor<f32> -> " + typeOf(shape));
  }

  void addBroadcast(const Value& x) {
    if (elementsOf(x.shape) > 8000) return;
    Shape dims, shape;
    for (int64_t size : x.shape) {
      if (pick(4) == 0) shape.push_back(1 + pick(3));
      dims.push_back(shape.size());
      shape.push_back(size == 1 ? 1 + pick(4) : size);
    }
    define(shape, "nn.broadcast " + x.name + " dims = " + list(dims) + " : " +
                      typeOf(x.shape) + " -> " + typeOf(shape));
  }

  void addReduce(const Value& x) {
    static const char* const kKinds[] = {"sum", "max", "min"};
    Shape dims, shape;
    for (size_t i = 0; i < x.shape.size(); ++i) {
      if (pick(2) == 0)
        dims.push_back(i);
      else
        shape.push_back(x.shape[i]);
    }
    define(shape, std::string("nn.reduce ") + kKinds[pick(3)] + " " + x.name +
                      " dims = " + list(dims) + " : " + typeOf(x.shape) +
                      " -> " + typeOf(shape));
  }

  void addConcat(const Value& x) {
    if (x.shape.empty()) return;
    int64_t axis = pick(x.shape.size());
    Shape other = x.shape, shape = x.shape;
    other[axis] = 1 + pick(20);
    shape[axis] += other[axis];
    if (elementsOf(shape) > 50000) return;
    Value y = newArgument(other);
    bool first = pick(2) == 0;
    define(shape,
           "nn.concat " +
               (first ? y.name + ", " + x.name : x.name + ", " + y.name) +
               " axis = " + std::to_string(axis) + " : (" +
               typeOf(first ? other : x.shape) + ", " +
               typeOf(first ? x.shape : other) + ") -> " + typeOf(shape));
  }

  void addRow(const Value& x) {
    if (x.shape.empty()) return;
    std::string axis = std::to_string(pick(x.shape.size()));
    if (pick(2) == 0)
      return define(x.shape, "nn.softmax " + x.name + " axis = " + axis +
                                 " : " + typeOf(x.shape));
    define(x.shape, "nn.rms_norm " + x.name + " axis = " + axis +
                        " epsilon = 1.0e-1 : " + typeOf(x.shape));
  }

  void addBinary(const Value& x) {
    static const char* const kOps[] = {"arith.addf", "arith.subf", "arith.mulf",
                                       "arith.maximumf"};
    std::vector<Value> partners;
    for (const Value& value : values_)
      if (value.shape == x.shape) partners.push_back(value);
    Value y =
        pick(3) == 0 ? newArgument(x.shape) : partners[pick(partners.size())];
    define(x.shape, std::string(kOps[pick(4)]) + " " + x.name + ", " + y.name +
                        " : " + typeOf(x.shape));
  }

  std::mt19937 generator_;
  std::vector<Value> values_;
  std::string arguments_;
  std::ostringstream body_;
  int argument_count_ = 0, value_count_ = 0;
};

class RandomKernel : public testing::TestWithParam<int> {};

TEST_P(RandomKernel, EqualsTheInterpreter) {
  for (unsigned seed = GetParam() * 20;
       seed < static_cast<unsigned>(GetParam() + 1) * 20; ++seed) {
    std::string text = KernelWriter(seed).write(2 + seed % 9);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    std::unique_ptr<CompiledKernel> kernel = CompiledKernel::fromText(text);
    ASSERT_NE(kernel, nullptr);
    EXPECT_EQ(kernel->difference(1e-3, 1e-3, 0.5), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Chains, RandomKernel, testing::Range(0, 10));

}  // namespace
}  // namespace partita::kernels
