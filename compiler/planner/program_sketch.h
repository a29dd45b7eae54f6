// A function of our own programs as far as its time and memory need it: which
// kernels, products and collectives follow each other, on how many bytes.
#ifndef PARTITA_COMPILER_PLANNER_PROGRAM_SKETCH_H_
#define PARTITA_COMPILER_PLANNER_PROGRAM_SKETCH_H_

#include <cstdint>
#include <vector>

#include "compiler/core/traffic.h"
#include "compiler/planner/cost.h"
#include "compiler/planner/layer_cost.h"

namespace partita::planner {

// Values are numbered as they are made; sizes are in bytes of one device.
class ProgramSketch {
 public:
  using Value = int;

  // `element`: bytes of an activation; products are of operands in `precision`.
  ProgramSketch(double element, Precision precision)
      : element_(element), precision_(precision) {}

  // Memory of the caller's.
  Value Argument(double bytes);
  // One kernel that reads all of `reads`; attention does `operations` too.
  std::vector<Value> Kernel(std::vector<Value> reads,
                            std::vector<double> writes, double operations = 0);
  Value Kernel(std::vector<Value> reads, double writes, double operations = 0) {
    return Kernel(std::move(reads), std::vector<double>{writes}, operations)[0];
  }
  // A kernel that reads no more of `from` than it writes.
  Value Piece(Value from, double bytes);
  // m x k by k x n; a weight's gradient is kLhsTransposed.
  Value Product(int64_t m, int64_t n, int64_t k, std::vector<Value> reads,
                ProductForm form);
  // Of tensor parallelism; `sent` as cost.h counts bytes.
  Value Collective(core::CollectiveKind kind, Value input, double sent,
                   double writes);
  // A function that holds so much beyond what it returns while it runs.
  std::vector<Value> Call(double frame, std::vector<Value> reads,
                          std::vector<double> writes);
  // Lives on when the function ends, in memory of the caller's.
  Value Return(Value value);

  double bytes(Value value) const { return values_[value].bytes; }
  // What is there at once at most, arguments and returned values apart.
  double FrameBytes() const;
  double ReturnedBytes() const;
  // `tensor`: the devices of its collectives. Of weights' gradients alone too.
  Pass Time(const Cluster& cluster, const GroupShape& tensor) const;
  double WeightTime(const Cluster& cluster) const;

 private:
  struct Content {
    double bytes = 0;
    int first = 0, last = 0;  // operations; meaningless of arguments
    bool held = false;        // by the caller
    bool returned = false;
  };
  struct Operation {
    enum class Kind { kKernel, kProduct, kCollective, kCall };
    Kind kind = Kind::kKernel;
    double bytes = 0;  // read and written; of a collective sent; of a call held
    double operations = 0;
    int64_t m = 0, n = 0, k = 0;
    ProductForm form = ProductForm::kPlain;
    core::CollectiveKind collective = core::CollectiveKind::kAllReduce;
  };

  std::vector<Value> Append(Operation operation,
                            const std::vector<Value>& reads,
                            const std::vector<double>& writes);

  const double element_;
  const Precision precision_;
  std::vector<Content> values_;
  std::vector<Operation> operations_;
};

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_PROGRAM_SKETCH_H_
