// The sizes that a program leaves open, their names, and expressions of them.
#ifndef PARTITA_FRONTENDS_TORCH_SYMBOLS_H_
#define PARTITA_FRONTENDS_TORCH_SYMBOLS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontends/torch/program.h"

namespace partita::torch {

// A symbol and the names by which a command line may call it, the first of
// which messages use: "batch" for the first dimension of the first input,
// "seq" for the second of an integer matrix, "x.0" for each place, and the
// symbol itself.
struct OpenDim {
  std::string symbol;
  std::vector<std::string> names;
};

// In the order of the inputs.
std::vector<OpenDim> openDims(const Program& program);

class Symbols {
 public:
  explicit Symbols(const Program& program);

  // Sets sizes by names, and by whole shapes of inputs. Returns false and sets
  // `error` if a name is unknown, sizes are missing, or two contradict.
  bool bind(const std::map<std::string, int64_t>& dims,
            const std::map<std::string, std::vector<int64_t>>& shapes,
            std::string& error);

  // Nothing if the expression has unknown symbols or functions, or overflows.
  std::optional<int64_t> evaluate(const SymInt& size) const;

  // Symbols bound to sizes outside the range for which torch exported the
  // program, as texts "batch = 1 (exported for 2 to 64)".
  std::vector<std::string> outsideRanges() const;

 private:
  bool set(const OpenDim& dim, int64_t size, std::string& error);
  bool bindShape(const std::string& input, const std::vector<SymInt>& sizes,
                 const std::vector<int64_t>& shape, std::string& error);

  const Program& program_;
  std::vector<OpenDim> dims_;
  std::map<std::string, int64_t> values_;  // by symbol
};

}  // namespace partita::torch

#endif  // PARTITA_FRONTENDS_TORCH_SYMBOLS_H_
