// Rows that a program chooses by NonZero while it runs, as loops of experts do:
//
//   i = NonZero(mask); y = ScatterND(y, i, f(Gather(x, i)), reduction = "add")
//
// Shapes here are static, so every element of the mask counts as chosen until
// rows are added up, where the other rows become zeros. This is the
// same if f works on rows separately and nothing else reads them. Any other use
// is refused at its node.
#ifndef PARTITA_FRONTENDS_ONNX_CHOSEN_ROWS_H_
#define PARTITA_FRONTENDS_ONNX_CHOSEN_ROWS_H_

#include "frontends/onnx/builder_names.h"
#include "llvm/ADT/DenseMap.h"

namespace partita::onnx {

class ChosenRows {
 public:
  // Returns the indices [rank, elements] of the elements of `mask` that are not
  // zero, with a row for every element: a placeholder until `resolve`.
  Val choose(Emitter& e, Val mask);

  bool empty() const { return masks_.empty(); }
  // True if a dimension of the value has one entry per element of a mask.
  bool isChosen(mlir::Value value);

  // Replaces all placeholders. Reports an error at the first operation that
  // depends on the choice of rows.
  llvm::LogicalResult resolve();

 private:
  llvm::SmallVector<mlir::Value> masks_;
  llvm::DenseMap<mlir::Value, bool> known_;
};

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_CHOSEN_ROWS_H_
