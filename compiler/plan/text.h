// The small syntaxes inside a plan's scalars, and words for refusals.
#ifndef PARTITA_COMPILER_PLAN_TEXT_H_
#define PARTITA_COMPILER_PLAN_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/core/mesh.h"

namespace partita::plan {

// 'text', long ones cut, what cannot be printed as \x1b.
std::string Quote(const std::string& text);
// The one of them that is close, else "".
std::string Nearest(const std::string& found,
                    const std::vector<std::string>& candidates);
// "; did you mean 'shard'?" where one of them is close, else "".
std::string Suggest(const std::string& found,
                    const std::vector<std::string>& candidates);
// "a, b, c".
std::string Join(const std::vector<std::string>& words);
std::string Trim(const std::string& text);
// "12.3 GB"; below a gigabyte "45.6 MB".
std::string GigaBytes(double bytes);
// The same, rounded up: a limit that those bytes are within.
std::string GigaBytesUp(double bytes);
// Cuts at `separator` where no bracket is open. Never empty.
std::vector<std::string> SplitOutside(const std::string& text, char separator);

// Letters, digits and _, no digit first, at most 64.
bool IsIdentifier(const std::string& text);
// Digits only, no more than 2^53.
absl::StatusOr<int64_t> ParseCount(const std::string& text);

// "tensor", "tensor:(1)2".
absl::StatusOr<core::AxisRef> ParseAxis(const std::string& text,
                                        const core::Mesh& mesh);
// Refuses an axis of no mesh, or a part that its size does not have.
absl::Status CheckAxis(const core::AxisRef& axis, const core::Mesh& mesh);
// Refuses an axis that meets one of the others; `what` has them.
absl::Status CheckUnused(const core::Mesh& mesh, const core::AxisRef& axis,
                         const std::vector<core::AxisRef>& others,
                         const std::string& what);
// Names, sizes and order of a mesh.
absl::Status CheckMesh(const core::Mesh& mesh);
// A name that `names` may give a dimension of a tensor.
absl::Status CheckDimensionName(const std::string& text);

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_TEXT_H_
