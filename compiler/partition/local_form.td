// How an operation is computed on one device's part of its operands.
#ifndef PARTITA_COMPILER_PARTITION_LOCAL_FORM_TD
#define PARTITA_COMPILER_PARTITION_LOCAL_FORM_TD

include "mlir/IR/OpBase.td"

def LocalFormOpInterface : OpInterface<"LocalFormOpInterface"> {
  let cppNamespace = "::partita::partition";
  let description = [{
    For operations whose local form is more than themselves on local shapes:
    those that need neighbours' rows, that count rows, or whose attributes speak
    of global positions. Attached from outside (external models), as the forms
    need the dist dialect.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the local form at the form's builder and returns a value per
        result, of the form's result types. Rows beyond a dimension's end have
        undefined content, in operands and results alike.
      }],
      "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "buildLocal",
      (ins "const ::partita::partition::LocalForm &":$form)>
  ];
}

#endif  // PARTITA_COMPILER_PARTITION_LOCAL_FORM_TD
