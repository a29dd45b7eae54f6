#include "frontends/builder/padding.h"

#include <algorithm>
#include <string>

#include "llvm/Support/MathExtras.h"

namespace partita::builder {

Val spreadApart(Emitter& e, Val x, Val value, Dims between) {
  for (int64_t i = 0; i < x.rank(); ++i) {
    const int64_t size = x.dim(i);
    if (between[i] == 0 || size <= 1) continue;
    // Pads a new dimension after each element, then drops the padding after the
    // last one.
    Shape split(x.shape()), joined(x.shape());
    split.insert(split.begin() + i + 1, 1);
    Shape low(x.rank() + 1, 0), high(x.rank() + 1, 0);
    high[i + 1] = between[i];
    int64_t stride;
    if (llvm::AddOverflow<int64_t>(between[i], 1, stride) ||
        llvm::MulOverflow(size, stride, joined[i])) {
      e.error("expected fewer elements between those of a tensor, found " +
              std::to_string(between[i]));
      return x;
    }
    x = e.reshape(e.pad(e.reshape(x, split), value, low, high), joined);
    if (e.failed()) return x;
    x = e.sliceDim(x, i, 0, joined[i] - between[i]);
  }
  return x;
}

}  // namespace partita::builder
