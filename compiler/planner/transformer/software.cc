// Partita's own programs, as seen by estimates.
#include "compiler/planner/transformer/software.h"

namespace partita::planner {

const Software& OwnSoftware() {
  static const Software* const own = [] {
    auto* software = new Software;
    software->name = "partita";
    software->own = true;
    software->gradient_overlap = 0.8;
    software->gather_overlap = 0.8;
    software->zero_over_batch = true;
    software->dispatch = 0.1e-3;
    software->step = 1e-3;
    // runtime/program/library_limits.h: workspace of products on a GPU.
    software->libraries = 33554432;
    return software;
  }();
  return *own;
}

}  // namespace partita::planner
