// Which of a library's algorithms is the fastest: measured once, kept in a
// file.
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

// The file has a line per operation: its algorithm's name, a space, the GPU and
// what the operation is. A file that cannot be read or written is as none.
class Tuner {
 public:
  // `file` may be empty. With `measures` operations that it does not know are
  // measured, for `budget` in all at most: further ones, and all without it,
  // get the library's first choice.
  Tuner(std::shared_ptr<Context> context, std::string file, bool measures,
        std::chrono::milliseconds budget = std::chrono::milliseconds(3000));

  const Context& context() const { return *context_; }

  // Index into `names` of the algorithm to take for an operation described so,
  // the library's first choice being 0. `run` puts one on a stream, on memory
  // that is ready; null: it cannot be tried. Only what was measured is kept.
  using Run = std::function<absl::Status(size_t index, CuStream stream)>;
  size_t Choose(const std::string& operation,
                const std::vector<std::string>& names,
                const std::function<Run()>& prepare);

 private:
  // Milliseconds of the GPU; infinity if it does not run.
  double Measure(size_t index, const Run& run, CuStream stream) const;
  // None if none runs.
  std::optional<size_t> MeasureAll(size_t count, const Run& run) const;
  void Keep(const std::string& key, const std::string& name);

  const std::shared_ptr<Context> context_;
  const std::string file_;
  const bool measures_;
  std::chrono::nanoseconds left_;
  std::map<std::string, std::string> known_;  // names by key
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_TUNER_H_
