// The small syntaxes inside a plan's scalars, and text for refusals.
#ifndef PARTITA_COMPILER_PLAN_TEXT_H_
#define PARTITA_COMPILER_PLAN_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/core/mesh.h"

namespace partita::plan {

// 'text' in quotes. Shortens long texts and escapes unprintable characters as
// \x1b.
std::string Quote(const std::string& text);
// The candidate closest to `found`, or "" if none is close.
std::string Nearest(const std::string& found,
                    const std::vector<std::string>& candidates);
// "; did you mean 'shard'?" if a candidate is close, else "".
std::string Suggest(const std::string& found,
                    const std::vector<std::string>& candidates);
// "a, b, c".
std::string Join(const std::vector<std::string>& words);
std::string Trim(const std::string& text);
// "12.3 GB", or "45.6 MB" below a gigabyte.
std::string GigaBytes(double bytes);
// Same as GigaBytes, rounded up, so that `bytes` is within the printed limit.
std::string GigaBytesUp(double bytes);
// Splits at each `separator` outside brackets. Never returns an empty list.
std::vector<std::string> SplitOutside(const std::string& text, char separator);

// True for at most 64 letters, digits and '_' that do not start with a digit.
bool IsIdentifier(const std::string& text);
// Parses a number of digits only, up to 2^53.
absl::StatusOr<int64_t> ParseCount(const std::string& text);

// Parses a factor over an even share, as "1.25": from 1 to 1000000.
absl::StatusOr<double> ParseFactor(const std::string& text);
// The shortest text that ParseFactor reads as this number.
std::string FactorText(double factor);

// Parses "tensor" or "tensor:(1)2".
absl::StatusOr<core::AxisRef> ParseAxis(const std::string& text,
                                        const core::Mesh& mesh);
// Refuses an axis that is not in the mesh, or a part that does not fit its
// size.
absl::Status CheckAxis(const core::AxisRef& axis, const core::Mesh& mesh);
// Refuses an axis that overlaps one of `others`. `what` names their owner.
absl::Status CheckUnused(const core::Mesh& mesh, const core::AxisRef& axis,
                         const std::vector<core::AxisRef>& others,
                         const std::string& what);
// Checks names, sizes and order of a mesh.
absl::Status CheckMesh(const core::Mesh& mesh);
// Refuses a name that `names` cannot give to a tensor dimension.
absl::Status CheckDimensionName(const std::string& text);

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_TEXT_H_
