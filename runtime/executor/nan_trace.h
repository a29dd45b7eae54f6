// Finds the origin of non-finite numbers: the step of a run that made the first
// one that reached the loss or a parameter.
//
// For every output of every step, the trace records whether it holds NaN or
// infinity, and the origins of its non-finite inputs. Nothing is reported
// during the run: masks are infinite by design, and padding may hold anything.
// If an outcome is not finite, the trace walks back from it to steps that made
// such numbers from better ones.
#ifndef PARTITA_RUNTIME_EXECUTOR_NAN_TRACE_H_
#define PARTITA_RUNTIME_EXECUTOR_NAN_TRACE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/program/program_generated.h"

namespace partita::executor {

// From best to worst.
enum class NumberKind { kFinite = 0, kInfinite, kNan };

// The origin found by one rank; among ranks, the one with the smallest order
// counts.
struct NonFinite {
  // Sources present before all steps come first, then steps in the order of
  // execution, last tensors received from other ranks.
  int64_t order = 0;
  std::string text;
};

// Message if no rank finds an origin.
inline constexpr char kUntraced[] =
    "the loss or a parameter is not finite, and no step that made it so was "
    "found";

class NanTrace {
 public:
  // Worst kind of number among `count` elements, and the first element of that
  // kind.
  struct Look {
    NumberKind kind = NumberKind::kFinite;
    int64_t element = 0;
  };
  static Look At(base::DType dtype, const void* data, int64_t count);

  // `describe` names a step; it must outlive this object.
  explicit NanTrace(std::function<std::string(int64_t step)> describe)
      : describe_(std::move(describe)) {}

  // Forgets the previous run.
  void Begin();
  // Records memory that holds a value before the first step, e.g. "input 'x'".
  void AddSource(const std::string& name, const void* data, int64_t bytes,
                 const Look& look);
  // Records the outputs of step `index`. Outputs whose type the program does
  // not give count as finite.
  void AddStep(int64_t index, const program::Instruction& instruction,
               void* const* operands);
  // Records that `bytes` at `from` were copied to `to`: what is not finite
  // keeps its origin.
  void AddCopy(const void* from, const void* to, int64_t bytes);
  // Records an outcome after the last step: its memory and its worst number.
  void AddOutcome(const void* data, int64_t bytes, NumberKind kind);

  // Worst kind of all outcomes.
  NumberKind worst() const { return worst_; }
  // Finds the origin of numbers as bad as `kind`, the worst outcome of any
  // rank. Empty if no path leads from this rank's outcomes to such numbers.
  std::optional<NonFinite> Find(NumberKind kind) const;

 private:
  // A tensor that was not finite when it was written.
  struct Origin {
    int64_t step = -1;  // -1: a source
    std::string what;   // name of the source or of the output
    NumberKind kind = NumberKind::kFinite;
    bool collective = false;
    std::vector<int> inputs;  // origins of its non-finite inputs
  };
  // Memory that is not finite now.
  struct Region {
    const char* begin;
    const char* end;
    int origin;
  };

  std::vector<int> OriginsIn(const void* data, int64_t bytes) const;
  void Overwrite(const void* data, int64_t bytes);
  // First origin on the paths back from `roots` whose inputs are all better
  // than `kind`; -1 if there is none.
  int FirstMaker(std::vector<int> roots, NumberKind kind) const;
  std::string Describe(const Origin& origin) const;

  const std::function<std::string(int64_t)> describe_;
  std::vector<Origin> origins_;
  std::vector<Region> regions_;
  // Origins of outcomes and of tensors sent to other ranks.
  std::vector<int> roots_;
  NumberKind worst_ = NumberKind::kFinite;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_NAN_TRACE_H_
