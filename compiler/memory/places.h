// Places in memory of a function's values, once memory is planned.
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
  // The number of an argument, or a byte of the frame. Results are numbered
  // after the function's arguments.
  int64_t value = 0;
  int64_t bytes = 0;
};

// The place of an argument, a constant or a result of `function`'s operations,
// or of a view of one. None if its memory is not planned.
std::optional<Place> placeOf(mlir::Value value, mlir::func::FuncOp function);

// True if a result of `function` is the new value of a stored tensor.
bool updatesStored(mlir::func::FuncOp function);

// For each result that updates a stored tensor: the argument that is this
// tensor, whose memory the result uses. None for other results.
std::vector<std::optional<unsigned>> updatedArguments(
    mlir::func::FuncOp function);

}  // namespace partita::memory

#endif  // PARTITA_COMPILER_MEMORY_PLACES_H_
