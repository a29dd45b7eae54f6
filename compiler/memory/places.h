// Where the values of a function whose memory is planned lie.
#ifndef PARTITA_COMPILER_MEMORY_PLACES_H_
#define PARTITA_COMPILER_MEMORY_PLACES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Value.h"

namespace partita::memory {

struct Place {
  enum class Space { kArgument, kFrame, kConstant };
  Space space = Space::kFrame;
  // Number of an argument, results counted behind the function's arguments; or
  // a byte of the frame.
  int64_t value = 0;
  int64_t bytes = 0;
};

// The place of an argument, a constant or a result of `function`'s operations,
// or of a view of one. None if its memory is not planned.
std::optional<Place> placeOf(mlir::Value value, mlir::func::FuncOp function);

// True if a result of `function` is the new value of a stored tensor.
bool updatesStored(mlir::func::FuncOp function);

// For each result the argument whose memory it is, because the result updates
// the stored tensor that the argument is; none for other results.
std::vector<std::optional<unsigned>> updatedArguments(
    mlir::func::FuncOp function);

}  // namespace partita::memory

#endif  // PARTITA_COMPILER_MEMORY_PLACES_H_
