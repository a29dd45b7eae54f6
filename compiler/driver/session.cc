// Prints diagnostics for people: users know their model, not our IR.
#include "compiler/driver/session.h"

#include "compiler/driver/console.h"
#include "compiler/driver/registry.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"

namespace partita::driver {
namespace {

const char* nameOf(mlir::DiagnosticSeverity severity) {
  switch (severity) {
    case mlir::DiagnosticSeverity::Error:
      return "error";
    case mlir::DiagnosticSeverity::Warning:
      return "warning";
    default:
      return "note";
  }
}

void print(mlir::Diagnostic& diagnostic) {
  const std::string what = diagnostic.str();
  messages() << nameOf(diagnostic.getSeverity()) << ": " << what;
  const std::string where = describe(diagnostic.getLocation());
  if (!where.empty() && !llvm::StringRef(what).contains(where))
    messages() << " [at " << where << "]";
  messages() << "\n";
  for (mlir::Diagnostic& note : diagnostic.getNotes()) print(note);
}

}  // namespace

Session::Session() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  context_.appendDialectRegistry(registry);
  context_.loadAllAvailableDialects();
  context_.disableMultithreading();
  context_.printOpOnDiagnostic(false);
  context_.getDiagEngine().registerHandler(
      [](mlir::Diagnostic& diagnostic) { print(diagnostic); });
}

std::string describe(mlir::Location location) {
  if (auto file = llvm::dyn_cast<mlir::FileLineColLoc>(location)) {
    std::string text = file.getFilename().str();
    if (file.getLine() > 0)
      text += ":" + std::to_string(file.getLine()) + ":" +
              std::to_string(file.getColumn());
    return text;
  }
  if (auto name = llvm::dyn_cast<mlir::NameLoc>(location))
    return name.getName().str();
  if (auto call = llvm::dyn_cast<mlir::CallSiteLoc>(location))
    return describe(call.getCallee());
  if (auto fused = llvm::dyn_cast<mlir::FusedLoc>(location))
    for (mlir::Location part : fused.getLocations())
      if (std::string text = describe(part); !text.empty()) return text;
  return "";
}

int finishOutput(int code) {
  llvm::outs().flush();
  if (!llvm::outs().has_error()) return code;
  const std::string reason = ": " + llvm::outs().error().message();
  llvm::outs().clear_error();  // or its destructor ends the process
  messages() << "error: cannot write to standard output" << reason << "\n";
  return code == kSuccess ? kUserError : code;
}

}  // namespace partita::driver
