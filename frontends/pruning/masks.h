// Chooses the elements to prune by magnitude. Works on plain numbers, which
// must be finite: NaN has no place in an order.
#ifndef PARTITA_FRONTENDS_PRUNING_MASKS_H_
#define PARTITA_FRONTENDS_PRUNING_MASKS_H_

#include <cstdint>
#include <vector>

namespace partita::pruning {

// A weight of the shape [outer, length, inner], row-major: a product sums over
// the elements of each of outer * inner lines.
struct Lines {
  int64_t outer = 0, length = 0, inner = 1;
  std::vector<float> values;

  int64_t count() const { return outer * inner; }
  // Element `i` of line `line`.
  float& at(int64_t line, int64_t i) {
    return values[((line / inner) * length + i) * inner + line % inner];
  }
  float at(int64_t line, int64_t i) const {
    return const_cast<Lines*>(this)->at(line, i);
  }
};

// Sets the round(sparsity * n) elements of smallest magnitude to zero, with n
// the number of elements of all weights together. Of equal magnitudes, the
// first go. As torch.nn.utils.prune's l1_unstructured for one weight and
// global_unstructured for several. `sparsity` is in [0, 1].
void pruneSmallest(const std::vector<Lines*>& weights, double sparsity);

// Keeps the `keep` largest magnitudes of each group of `group` consecutive
// elements of a line; of equal ones, the last. `length` must be a multiple of
// `group`. 2 of 4 is what GPUs multiply at double speed (Mishra et al., 2021).
void pruneGroups(Lines& weight, int64_t keep, int64_t group);

// The sum of magnitudes that pruneGroups keeps if element i of each line is
// element order[i] of the line.
double keptMagnitude(const Lines& weight, const std::vector<int64_t>& order,
                     int64_t keep, int64_t group);

// An order of the elements of lines for which keptMagnitude is as large as
// possible (up to 8 elements) or at least not smaller than without reordering:
// swaps between groups until none helps (Pool and Yu, 2021).
std::vector<int64_t> bestOrder(const Lines& weight, int64_t keep,
                               int64_t group);

}  // namespace partita::pruning

#endif  // PARTITA_FRONTENDS_PRUNING_MASKS_H_
