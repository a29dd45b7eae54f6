#include "compiler/driver/verify/describe_placement.h"

#include "compiler/sharding/dims.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::driver {

std::string describePlacement(mlir::Value value, const core::Sharding& sharding,
                              const core::Mesh& mesh) {
  const auto names = sharding::dimsOf(value);
  std::string text;
  for (auto [i, dim] : llvm::enumerate(sharding.dims)) {
    if (dim.axes.empty()) continue;
    text += (text.empty() ? "divided in dimension " : ", dimension ") +
            std::to_string(i);
    if (names)
      if (const std::string name = sharding::print((*names)[i]); !name.empty())
        text += " (" + name + ")";
    text += " over " + core::ToString(mesh, dim.axes);
  }
  if (!sharding.unreduced.empty())
    text += (text.empty() ? "a sum over " : " and a sum over ") +
            core::ToString(mesh, sharding.unreduced);
  return text.empty() ? "whole on every device" : text;
}

}  // namespace partita::driver
