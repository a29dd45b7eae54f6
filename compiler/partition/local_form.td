// The interface that builds an operation on one device's part of its operands.
#ifndef PARTITA_COMPILER_PARTITION_LOCAL_FORM_TD
#define PARTITA_COMPILER_PARTITION_LOCAL_FORM_TD

include "mlir/IR/OpBase.td"

def LocalFormOpInterface : OpInterface<"LocalFormOpInterface"> {
  let cppNamespace = "::partita::partition";
  let description = [{
    For operations whose local form is not simply the operation on local shapes:
    they need neighbours' rows, use row numbers, or have attributes with global
    positions. Implementations are external models, because they need the dist
    dialect.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the local form at the form's builder and returns one value per
        result, of the form's result types. Rows beyond a dimension's end have
        undefined content, in operands and results.
      }],
      "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "buildLocal",
      (ins "const ::partita::partition::LocalForm &":$form)>
  ];
}

#endif  // PARTITA_COMPILER_PARTITION_LOCAL_FORM_TD
