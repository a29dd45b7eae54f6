// Axis parts by number, as the exec dialect and artifacts refer to them.
#ifndef PARTITA_DIALECTS_DIST_NUMBERED_AXES_H_
#define PARTITA_DIALECTS_DIST_NUMBERED_AXES_H_

#include <cstdint>
#include <vector>

#include "dialects/dist/dialect.h"

namespace partita::dist {

// Returns parts of axes as triples: the axis's number in the mesh, pre and
// size. The result is canonical: equal groups of devices give equal triples.
// Parts of size 1 are omitted, and adjacent parts such as a:(1)2, a:(2)2 become
// the one part a:(1)4.
std::vector<int64_t> numberedAxes(MeshOp mesh, AxesAttr axes);

}  // namespace partita::dist

#endif  // PARTITA_DIALECTS_DIST_NUMBERED_AXES_H_
