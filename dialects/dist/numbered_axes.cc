// Converts axis names to numbers.
#include "dialects/dist/numbered_axes.h"

namespace partita::dist {

std::vector<int64_t> numberedAxes(MeshOp mesh, AxesAttr axes) {
  std::vector<int64_t> numbers;
  for (AxisAttr axis : axes) {
    const int64_t index = mesh.indexOf(axis.getName()),
                  size = mesh.sizeOf(axis), last = numbers.size();
    if (size == 1) continue;
    if (last > 0 && numbers[last - 3] == index &&
        numbers[last - 2] * numbers[last - 1] == axis.getPre()) {
      numbers[last - 1] *= size;
      continue;
    }
    numbers.insert(numbers.end(), {index, axis.getPre(), size});
  }
  return numbers;
}

}  // namespace partita::dist
