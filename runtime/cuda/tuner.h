// Chooses the fastest of a library's algorithms. Each operation is measured
// once; the result is kept in a file.
#ifndef PARTITA_RUNTIME_CUDA_TUNER_H_
#define PARTITA_RUNTIME_CUDA_TUNER_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/cuda/context.h"

namespace partita::cuda {

struct TunerOptions {
  std::string file;       // of the fastest algorithms; empty: none
  bool measures = false;  // measure operations that the file does not list
  bool warms = false;     // let Warm run operations
  // Time for all measurements, and for preparing what they compare.
  std::chrono::milliseconds budget = std::chrono::milliseconds(3000);
};

// The file has a line per operation: the name of its algorithm, a space, the
// GPU and the operation's description. A file that cannot be read or written is
// ignored.
class Tuner {
 public:
  // Operations that are not in the file and not measured get the library's
  // first choice.
  Tuner(std::shared_ptr<Context> context, TunerOptions options);

  const Context& context() const { return *context_; }
  bool measures() const { return measures_; }
  // The algorithm that the file or a measurement names for an operation. Empty:
  // none.
  std::string Known(const std::string& operation) const;

  // Time that is left of the budget. At 0 or less nothing is measured.
  std::chrono::nanoseconds left() const { return left_; }
  // Subtracts the time of preparing algorithms for Choose.
  void Spend(std::chrono::nanoseconds time) { left_ -= time; }

  // Returns the index into `names` of the algorithm for an operation. Index 0
  // is the library's first choice. `prepare` allocates memory and returns a
  // function that puts one algorithm on a stream, or null if that is
  // impossible. Only measured choices are kept.
  using Run = std::function<absl::Status(size_t index, CuStream stream)>;
  size_t Choose(const std::string& operation,
                const std::vector<std::string>& names,
                const std::function<Run()>& prepare);

  // Runs algorithms once and waits for them, so that the library loads their
  // kernels now: later, loading may wait for kernels that wait for other ranks.
  void Warm(const std::vector<size_t>& algorithms,
            const std::function<Run()>& prepare);
  // Number of operations that Warm could not run.
  int cold() const { return cold_; }

 private:
  bool RunOnce(const std::vector<size_t>& algorithms, const Run& run) const;
  // GPU time of one run in milliseconds. Infinity if the algorithm does not
  // run.
  double Measure(size_t index, const Run& run, CuStream stream) const;
  // Index of the fastest algorithm. None if none runs.
  std::optional<size_t> MeasureAll(size_t count, const Run& run) const;
  std::string KeyOf(const std::string& operation) const;
  void Keep(const std::string& key, const std::string& name);

  const std::shared_ptr<Context> context_;
  const std::string file_;
  const bool measures_, warms_;
  int cold_ = 0;
  std::chrono::nanoseconds left_;
  std::map<std::string, std::string> known_;  // algorithm names by key
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_TUNER_H_
