// Registers local forms, one group per file.
#ifndef PARTITA_COMPILER_PARTITION_LOCAL_FORMS_H_
#define PARTITA_COMPILER_PARTITION_LOCAL_FORMS_H_

#include "mlir/IR/MLIRContext.h"

namespace partita::partition {

void registerAttentionForms(mlir::MLIRContext* context);
void registerExpertForms(mlir::MLIRContext* context);
void registerIndexForms(mlir::MLIRContext* context);
void registerWindowForms(mlir::MLIRContext* context);

}  // namespace partita::partition

#endif  // PARTITA_COMPILER_PARTITION_LOCAL_FORMS_H_
