// Test fixture of importers: a context that knows nn and keeps its messages.
#ifndef PARTITA_FRONTENDS_BUILDER_IMPORT_FIXTURE_H_
#define PARTITA_FRONTENDS_BUILDER_IMPORT_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>

#include "dialects/nn/dialect.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

namespace partita::builder {

class ImportFixture : public testing::Test {
 protected:
  ImportFixture() {
    mlir::DialectRegistry registry;
    registry.insert<nn::NNDialect>();
    nn::registerExternalModels(registry);
    context_.appendDialectRegistry(registry);
    context_.getDiagEngine().registerHandler([this](mlir::Diagnostic& d) {
      const bool is_error = d.getSeverity() == mlir::DiagnosticSeverity::Error;
      llvm::raw_string_ostream stream(is_error ? errors_ : remarks_);
      stream << d.getLocation() << ": " << d << "\n";
      for (mlir::Diagnostic& note : d.getNotes())
        stream << "note: " << note.getLocation() << ": " << note << "\n";
    });
  }

  mlir::MLIRContext context_;
  // A line per message or note: errors, and warnings and remarks.
  std::string errors_, remarks_;
};

}  // namespace partita::builder

#endif  // PARTITA_FRONTENDS_BUILDER_IMPORT_FIXTURE_H_
