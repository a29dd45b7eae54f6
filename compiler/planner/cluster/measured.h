// What was measured of a machine, in place of a formula: rates on grids of
// sizes. `partita measure` makes them; cluster.yaml has them under `tables`.
#ifndef PARTITA_COMPILER_PLANNER_CLUSTER_MEASURED_H_
#define PARTITA_COMPILER_PLANNER_CLUSTER_MEASURED_H_

#include <map>
#include <string>
#include <vector>

namespace partita::planner {

// Rates at all combinations of sizes, the last dimension's fastest. Sizes are
// ascending and above 0, and so are rates.
struct RateTable {
  std::vector<std::vector<double>> sizes;  // a list per dimension
  std::vector<double> rates;  // per second: FLOP of products, else bytes

  // Logarithms are interpolated linearly; beyond the grid is its edge. As many
  // sizes as dimensions.
  double At(const std::vector<double>& at) const;
  // Of one dimension: seconds of so many bytes; fewer than the first size take
  // what that takes.
  double Seconds(double bytes) const;
};

// By what was measured (MeasuredNames).
using RateTables = std::map<std::string, RateTable>;

// How the operands of a product lie: row by row, or transposed; or the right
// one as the library wants it, made once.
enum class ProductForm { kPlain, kRhsTransposed, kLhsTransposed, kPacked };
// Of a convolution's window: one element, several over all channels of a
// group, or several over a channel of its own.
enum class ConvKind { kPointwise, kWindow, kDepthwise };

// "product f32 nn": of m, n and k.
std::string ProductName(const std::string& precision, ProductForm form);
// "convolution f32 forward window": of channels that go in, channels that come
// out, and places (of the output, images included); a depthwise one has as many
// channels on both sides, which stand once.
std::string ConvName(const std::string& precision, const std::string& direction,
                     ConvKind kind);
// "all_reduce 4": of bytes, among so many devices.
std::string CollectiveName(const std::string& kind, int devices);
// "attention forward", "attention backward": of products' FLOP for a byte read
// or written.
std::string AttentionName(bool backward);
inline constexpr char kCopyName[] = "copy";  // of bytes read and written
// The same where what is written was read before, as an optimizer does it: a
// processor need not fetch what it overwrites.
inline constexpr char kUpdateName[] = "update";
inline constexpr char kSendName[] = "send";  // of bytes

// How many dimensions a table of that name has; 0: there is none.
int DimensionsOf(const std::string& name);

// Null where nothing was measured.
const RateTable* FindTable(const RateTables& tables, const std::string& name);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_CLUSTER_MEASURED_H_
