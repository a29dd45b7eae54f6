// The interface between an operator's handler and one node: arguments and
// results. A wrong argument is reported once at the node; the accessor then
// returns a harmless default and `failed()` is true.
#ifndef PARTITA_FRONTENDS_TORCH_NODE_CONTEXT_H_
#define PARTITA_FRONTENDS_TORCH_NODE_CONTEXT_H_

#include <optional>
#include <string>

#include "frontends/torch/graph_importer.h"

namespace partita::torch {

using builder::Compare;
using builder::countUp;
using builder::product;
using builder::toString;

class NodeContext {
 public:
  NodeContext(GraphImporter& importer, Scope& scope, const Node& node,
              llvm::StringRef op, llvm::StringRef overload);

  Emitter& e;
  const Node& node;
  // "add" and "Tensor" for torch.ops.aten.add.Tensor; a last underscore of the
  // operator is removed.
  const llvm::StringRef op, overload;

  bool failed() const { return e.failed(); }
  // Reports an error and returns a null value.
  Val error(const llvm::Twine& message);
  // Reports a feature that the importer or nn lacks.
  Val unsupported(const llvm::Twine& what);

  // Arguments by their names in the operator's schema. An argument that the
  // file leaves out, or that is None, is absent.
  bool has(llvm::StringRef name) const { return find(name) != nullptr; }
  bool isTensor(llvm::StringRef name) const;
  // A tensor, which must be given.
  Val tensor(llvm::StringRef name);
  // A tensor or null.
  Val optionalTensor(llvm::StringRef name);
  // A list of tensors, with nulls for absent ones.
  llvm::SmallVector<Val> tensors(llvm::StringRef name);
  // A tensor or a number, as a tensor of this type.
  Val operand(llvm::StringRef name, ElementType type);
  // Two tensors or numbers, converted to one type as PyTorch does.
  std::pair<Val, Val> promoted(llvm::StringRef a, llvm::StringRef b);

  int64_t integer(llvm::StringRef name, std::optional<int64_t> absent = {});
  Shape ints(llvm::StringRef name, std::optional<Shape> absent = {});
  double number(llvm::StringRef name, std::optional<double> absent = {});
  bool flag(llvm::StringRef name, bool absent);
  std::string text(llvm::StringRef name, llvm::StringRef absent);
  // Symbolic arithmetic: an integer argument by position.
  int64_t integerAt(unsigned i);

  // Dimension `name` of `rank` dimensions, counted from the end if negative.
  int64_t axis(llvm::StringRef name, int64_t rank,
               std::optional<int64_t> absent = {});
  // Dimensions in the order given; all dimensions if the list is absent or
  // empty.
  Shape axes(llvm::StringRef name, int64_t rank);
  int64_t wrapAxis(int64_t axis, int64_t rank);

  // The type of result i as the file declares it.
  ElementType resultType(unsigned i = 0);
  // The type named by argument `dtype`, or `absent` without one.
  ElementType dtype(ElementType absent, llvm::StringRef name = "dtype");

  // Names of results, in order; lists of tensors are flat.
  llvm::ArrayRef<std::string> results() const { return results_; }
  bool wants(unsigned i) const { return i < results_.size(); }
  void out(unsigned i, Val value);
  void outInt(int64_t value);

  Val nextSeed() { return importer_.signature_.nextSeed(); }

 private:
  const Argument* find(llvm::StringRef name) const;
  const Argument* require(llvm::StringRef name);
  std::optional<int64_t> valueOf(const IntArgument& argument);

  GraphImporter& importer_;
  Scope& scope_;
  llvm::SmallVector<std::string> results_;
};

}  // namespace partita::torch

#endif  // PARTITA_FRONTENDS_TORCH_NODE_CONTEXT_H_
