// Measured rates of a machine on grids of sizes, used instead of formulas.
// `partita measure` writes them; cluster.yaml has them under `tables`.
#ifndef PARTITA_COMPILER_PLANNER_CLUSTER_MEASURED_H_
#define PARTITA_COMPILER_PLANNER_CLUSTER_MEASURED_H_

#include <map>
#include <string>
#include <vector>

namespace partita::planner {

// Rates at all combinations of sizes, with the last dimension varying fastest.
// Sizes are ascending and positive. Rates are positive.
struct RateTable {
  std::vector<std::vector<double>> sizes;  // a list per dimension
  std::vector<double> rates;  // per second: FLOP for products, else bytes

  // The rate at the given sizes, one per dimension. Interpolates linearly
  // between logarithms. Sizes beyond the grid get the rate at its edge.
  double At(const std::vector<double>& at) const;
  // For a table of one dimension: seconds for `bytes`. Fewer bytes than the
  // first size take as long as that size.
  double Seconds(double bytes) const;
};

// Tables by the names below.
using RateTables = std::map<std::string, RateTable>;

// Memory layout of a product's operands: row-major, one of them transposed, or
// the right one packed once in the library's layout.
enum class ProductForm { kPlain, kRhsTransposed, kLhsTransposed, kPacked };
// Window of a convolution: a single element, several elements over all channels
// of a group, or several elements over one channel.
enum class ConvKind { kPointwise, kWindow, kDepthwise };

// "product f32 nn", with sizes m, n and k.
std::string ProductName(const std::string& precision, ProductForm form);
// "convolution f32 forward window", with sizes input channels, output channels
// and output positions over all images. A depthwise convolution has as many
// channels on both sides, so it lists them once.
std::string ConvName(const std::string& precision, const std::string& direction,
                     ConvKind kind);
// "all_reduce 4", among 4 devices, with the size in bytes.
std::string CollectiveName(const std::string& kind, int devices);
// "attention forward" and "attention backward", with the size in FLOP of
// products per byte read or written.
std::string AttentionName(bool backward);
inline constexpr char kCopyName[] = "copy";  // size: bytes read plus written
// Same as kCopyName for kernels that overwrite what they read, such as an
// optimizer. A CPU then need not fetch the bytes that it overwrites.
inline constexpr char kUpdateName[] = "update";
inline constexpr char kSendName[] = "send";  // size: bytes

// Number of dimensions of the table with that name. 0: no such table.
int DimensionsOf(const std::string& name);

// Null if it was not measured.
const RateTable* FindTable(const RateTables& tables, const std::string& name);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_CLUSTER_MEASURED_H_
