// Where numbers that are not finite come from: which step of a run made the
// first one that reached the loss or a parameter.
//
// Of every output of every step it is noted whether it holds NaN or an
// infinity, and where its inputs that do come from. Nothing is said while the
// run goes on: masks are infinite by design, and padding may hold anything.
// When the outcome is not finite, the steps that it was computed from are
// followed back to those that made such numbers of others.
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

// From good to bad.
enum class NumberKind { kFinite = 0, kInfinite, kNan };

// What one rank found; of several ranks the smallest order counts.
struct NonFinite {
  // What came in before all steps, then steps as they were run, and last what
  // other ranks sent.
  int64_t order = 0;
  std::string text;
};

// Said where no rank knows.
inline constexpr char kUntraced[] =
    "the loss or a parameter is not finite, and no step that made it so was "
    "found";

class NanTrace {
 public:
  // The worst kind of `count` elements, and which of them is the first of it.
  struct Look {
    NumberKind kind = NumberKind::kFinite;
    int64_t element = 0;
  };
  static Look At(base::DType dtype, const void* data, int64_t count);

  // `describe` names a step; it outlives this.
  explicit NanTrace(std::function<std::string(int64_t step)> describe)
      : describe_(std::move(describe)) {}

  // Forgets the run before.
  void Begin();
  // What lies in memory before the first step: "input 'x'".
  void AddSource(const std::string& name, const void* data, int64_t bytes,
                 const Look& look);
  // After step `index`. Outputs whose type the program does not tell count as
  // finite.
  void AddStep(int64_t index, const program::Instruction& instruction,
               void* const* operands);
  // After the last step: memory that a run is there for, and its numbers.
  void AddOutcome(const void* data, int64_t bytes, NumberKind kind);

  // Of all outcomes.
  NumberKind worst() const { return worst_; }
  // What made numbers as bad as `kind`, the worst of any rank's outcomes.
  // Nothing where no way leads back from this rank's to such numbers.
  std::optional<NonFinite> Find(NumberKind kind) const;

 private:
  // A tensor that is not finite, as it was written.
  struct Origin {
    int64_t step = -1;  // -1: a source
    std::string what;   // the source's name, or the output
    NumberKind kind = NumberKind::kFinite;
    bool collective = false;
    std::vector<int> inputs;  // origins of inputs that are not finite
  };
  // Memory that is not finite now.
  struct Region {
    const char* begin;
    const char* end;
    int origin;
  };

  std::vector<int> OriginsIn(const void* data, int64_t bytes) const;
  void Overwrite(const void* data, int64_t bytes);
  // The first origin on the ways back from `roots` whose inputs are better than
  // `kind`; -1: none.
  int FirstMaker(std::vector<int> roots, NumberKind kind) const;
  std::string Describe(const Origin& origin) const;

  const std::function<std::string(int64_t)> describe_;
  std::vector<Origin> origins_;
  std::vector<Region> regions_;
  std::vector<int> roots_;  // what outcomes and other ranks got
  NumberKind worst_ = NumberKind::kFinite;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_NAN_TRACE_H_
