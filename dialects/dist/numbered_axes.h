// Axes as the exec dialect and artifacts name them.
#ifndef PARTITA_DIALECTS_DIST_NUMBERED_AXES_H_
#define PARTITA_DIALECTS_DIST_NUMBERED_AXES_H_

#include <cstdint>
#include <vector>

#include "dialects/dist/dialect.h"

namespace partita::dist {

// Parts of axes, three numbers each: the axis's number in the mesh, pre and
// size. Equal groups of devices have equal numbers: parts of one device are
// left out, and neighbours such as a:(1)2, a:(2)2 are the one part a:(1)4.
std::vector<int64_t> numberedAxes(MeshOp mesh, AxesAttr axes);

}  // namespace partita::dist

#endif  // PARTITA_DIALECTS_DIST_NUMBERED_AXES_H_
