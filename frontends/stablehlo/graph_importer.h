// Walks the operations of a StableHLO module and builds @main. Calls are
// inlined, and loops with a constant number of iterations are unrolled, so that
// the passes on nn find layers by themselves. The body of another loop is a
// function.
#ifndef PARTITA_FRONTENDS_STABLEHLO_GRAPH_IMPORTER_H_
#define PARTITA_FRONTENDS_STABLEHLO_GRAPH_IMPORTER_H_

#include <string>
#include <vector>

#include "frontends/builder/main_builder.h"
#include "frontends/stablehlo/manual/axes.h"
#include "frontends/stablehlo/shardings.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::stablehlo {

using builder::Dims;
using builder::ElementType;
using builder::Emitter;
using builder::Shape;
using builder::Val;
using llvm::failed;
using llvm::failure;
using llvm::FailureOr;
using llvm::LogicalResult;
using llvm::success;

using Values = llvm::SmallVector<Val>;

class OpContext;

class GraphImporter {
 public:
  // `program` was read from a file and is not verified. `producer` is named in
  // errors. With `ignores_shardings`, the model is not divided.
  GraphImporter(mlir::ModuleOp program, const std::string& producer,
                bool ignores_shardings, mlir::func::FuncOp main);

  // Builds @main.
  LogicalResult run();

 private:
  friend class OpContext;

  // Reports all operations without a handler, at once.
  LogicalResult checkSupported();
  LogicalResult declareArguments(mlir::Operation* function, mlir::Block& body);
  LogicalResult finishMain(mlir::Operation* function, const Values& results);

  // Imports the only block of a region with these values of its arguments.
  // Returns the operands of its terminator, or an error.
  FailureOr<Values> importRegion(mlir::Region& region,
                                 llvm::ArrayRef<Val> arguments);
  LogicalResult importOp(mlir::Operation& op);
  // Counts an operation or region against a limit.
  LogicalResult countOne();
  LogicalResult checkResult(OpContext& context, unsigned index);
  // Imports the function `name`.
  FailureOr<Values> call(llvm::StringRef name, llvm::ArrayRef<Val> arguments);

  // Imports the rest of a loop, from the values `first` on, where `goes_on` is
  // the condition for them, a scalar of booleans.
  FailureOr<Values> loop(mlir::Region& condition, mlir::Region& body,
                         Val goes_on, llvm::ArrayRef<Val> first);
  // Imports a manual computation: its body as one device's program, which
  // becomes operations on whole tensors.
  FailureOr<Values> importManualComputation(OpContext& context);

  // What Shardy says in the attributes of an argument or result; null if it
  // says nothing. Refuses what its predecessor says.
  FailureOr<mlir::Attribute> shardingOf(mlir::DictionaryAttr attributes);
  // Constrains a value to a sharding of Shardy.
  FailureOr<Val> constrain(Val value, mlir::Attribute sharding);

  mlir::ModuleOp program_;
  std::string producer_;
  bool ignores_shardings_;
  mlir::func::FuncOp main_;
  Emitter emitter_;
  builder::MainBuilder signature_;
  llvm::StringMap<mlir::Operation*> functions_;
  llvm::DenseMap<mlir::Value, Val> values_;
  // Rows along dimension 0 of values that were built row by row, as loops stack
  // their results.
  llvm::DenseMap<mlir::Value, Values> rows_;
  // For each result of the program: the argument whose memory it takes.
  llvm::DenseMap<int64_t, std::string> updates_;
  llvm::StringMap<Val> states_;
  Shardings shardings_;
  llvm::DenseMap<mlir::Value, dist::ShardingAttr> argument_shardings_;
  ManualAxes* manual_ = nullptr;  // while a body is imported
  int depth_ = 0;
  int64_t imported_ = 0;
  int64_t loops_ = 0;  // functions of loops
  // In a branch that depends on data: a scalar of booleans that tells whether
  // it is taken. Null elsewhere.
  Val taken_;
};

// The tensor type of a value: signless, with the sign in the element type.
// The element is null for types that nn lacks.
struct ValueType {
  Shape shape;
  ElementType element;
  bool is_static = false;
};
ValueType valueType(mlir::Type type);
// For messages: "tensor<2xcomplex<f32>>".
std::string typeName(mlir::Type type);

}  // namespace partita::stablehlo

#endif  // PARTITA_FRONTENDS_STABLEHLO_GRAPH_IMPORTER_H_
