// The dimension numbers of gathers and scatters, and the index vectors of
// nn.gather and nn.scatter: whole slices along the dimensions that are not
// indexed, and an index vector per element along those that are.
#ifndef PARTITA_FRONTENDS_STABLEHLO_OPS_INDEXING_H_
#define PARTITA_FRONTENDS_STABLEHLO_OPS_INDEXING_H_

#include "frontends/stablehlo/op_context.h"

namespace partita::stablehlo {

// Dimension numbers of a gather, or of a scatter with `window` for the
// updates' dimensions.
struct Numbers {
  Shape window;         // dimensions of the result within a slice
  Shape dropped;        // dimensions of the operand without one of these
  Shape batch;          // batch dimensions of the operand
  Shape indices_batch;  // and of the indices
  Shape map;            // dimension of the operand per component of an index
  int64_t vector_dim;   // dimension of the indices that holds the components
  Shape sizes;          // of a slice
};

// Reads all but `sizes`. Reports an error and returns false for numbers that do
// not fit the operand and the indices.
bool readNumbers(OpContext& n, Val x, Val indices, int64_t result_rank,
                 bool is_scatter, Numbers& d);

// Reports an error and returns false for slices that exceed the operand.
bool checkSizes(OpContext& n, Val x, const Numbers& d);

// Index vectors for nn: [batch, rest of the indices, sizes of slices along
// `axes`, components]. `axes` are the indexed dimensions that need components:
// a dimension of which a slice is the whole has none.
struct Indices {
  Val vectors;
  Shape axes;
  Shape rest;    // dimensions of the indices without batch and components
  Shape spread;  // axes whose slices are longer than 1
};

// With `clamps`, slices are moved so that they fit; otherwise those that do not
// fit are out of range whole, so that a scatter drops them.
Indices buildIndices(OpContext& n, Val x, Val given, const Numbers& d,
                     bool clamps);

// The order of nn's result dimensions in the operation's: nn has batch, rest,
// spread, then the other dimensions of the operand.
Shape resultOrder(const Numbers& d, const Indices& indices, int64_t rank,
                  int64_t indices_rank);

// Moves batch dimensions to the front of the operand, and renumbers.
Val batchFirst(Emitter& e, Val x, Numbers& d, Shape& perm);

}  // namespace partita::stablehlo

#endif  // PARTITA_FRONTENDS_STABLEHLO_OPS_INDEXING_H_
