// Finds the bytecode, reads it with MLIR's reader, and builds @main.
#include "frontends/stablehlo/importer.h"

#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "frontends/stablehlo/artifact.h"
#include "frontends/stablehlo/graph_importer.h"
#include "frontends/stablehlo/portable_dialects.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/MemoryBuffer.h"
#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"

namespace partita::stablehlo {
namespace {

llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> openFile(
    const std::string& path) {
  return llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                     /*RequiresNullTerminator=*/false);
}

std::string_view bytesOf(const llvm::MemoryBuffer& buffer) {
  return {buffer.getBufferStart(), buffer.getBufferSize()};
}

// MLIR's reader tries an attribute or type again after those that it refers to,
// so entries of a damaged file that refer to each other would be tried without
// end. A limit on the number of tries makes that an error.
class ReadLimit {
 public:
  // An entry takes at least a byte of the file.
  explicit ReadLimit(size_t bytes)
      : left_(1000 + 64 * static_cast<int64_t>(bytes)) {}

  // `config` must not be used after this object's end.
  void attachTo(mlir::BytecodeReaderConfig& config) {
    config.attachAttributeCallback(
        [this](mlir::DialectBytecodeReader& reader, llvm::StringRef,
               mlir::Attribute&) { return take(reader); });
    config.attachTypeCallback([this](mlir::DialectBytecodeReader& reader,
                                     llvm::StringRef,
                                     mlir::Type&) { return take(reader); });
  }

 private:
  llvm::LogicalResult take(mlir::DialectBytecodeReader& reader) {
    if (--left_ >= 0) return llvm::success();
    return reader.emitError(
        "attributes or types refer to each other without end");
  }

  int64_t left_;
};

bool readBlock(llvm::MemoryBufferRef buffer, mlir::MLIRContext* context,
               mlir::Block& block) {
  loadPortableDialects(context);
  mlir::ParserConfig config(context, /*verifyAfterParse=*/false);
  ReadLimit limit(buffer.getBufferSize());
  limit.attachTo(config.getBytecodeReaderConfig());
  return mlir::succeeded(mlir::readBytecodeFile(buffer, &block, config));
}

// True if regions nest deeper than any program does. Walks and destructors
// call themselves per level.
bool isTooDeep(mlir::Block& block) {
  constexpr int kMaxDepth = 256;
  llvm::SmallVector<std::pair<mlir::Block*, int>> left = {{&block, 0}};
  while (!left.empty()) {
    const auto [next, depth] = left.pop_back_val();
    if (depth > kMaxDepth) return true;
    for (mlir::Operation& op : *next)
      for (mlir::Region& region : op.getRegions())
        for (mlir::Block& inner : region) left.push_back({&inner, depth + 1});
  }
  return false;
}

// True if MLIR's reader survives the bytecode. It ends the process on some
// damage, e.g. on counts beyond memory, and then leaves its context unusable.
// So it first reads into a context of its own, which is not destroyed after
// that. Nor is one with regions that nest too deep.
bool isSurvived(llvm::MemoryBufferRef buffer) {
  auto context = std::make_unique<mlir::MLIRContext>(
      mlir::MLIRContext::Threading::DISABLED);
  auto block = std::make_unique<mlir::Block>();
  context->getDiagEngine().registerHandler([](mlir::Diagnostic&) {});
  llvm::CrashRecoveryContext::Enable();
  const bool survived = llvm::CrashRecoveryContext().RunSafely([&] {
    readBlock(buffer, context.get(), *block);
  }) && !isTooDeep(*block);
  llvm::CrashRecoveryContext::Disable();
  if (survived) {
    block.reset();  // before its context
    return true;
  }
  static_cast<void>(block.release());
  static_cast<void>(context.release());
  return false;
}

// The module in the bytecode, not verified; null after an error.
mlir::OwningOpRef<mlir::ModuleOp> readModule(std::string_view bytecode,
                                             const std::string& path,
                                             mlir::Location loc,
                                             mlir::MLIRContext* context) {
  // A copy, as the reader needs aligned memory.
  const auto buffer = llvm::WritableMemoryBuffer::getNewUninitMemBuffer(
      bytecode.size(), path, llvm::Align(64));
  std::copy(bytecode.begin(), bytecode.end(), buffer->getBufferStart());
  mlir::Block block;
  if (!isSurvived(buffer->getMemBufferRef()) ||
      !readBlock(buffer->getMemBufferRef(), context, block))
    return mlir::emitError(loc) << "cannot read the bytecode: it is damaged, "
                                   "nests too deep, or is of a later version "
                                   "than StableHLO 1.22",
           nullptr;
  auto module = llvm::hasSingleElement(block)
                    ? mlir::dyn_cast<mlir::ModuleOp>(&block.front())
                    : mlir::ModuleOp();
  if (!module)
    return mlir::emitError(loc) << "expected one module in the bytecode",
           nullptr;
  module->remove();
  return module;
}

}  // namespace

bool isStablehlo(const std::string& path) {
  auto buffer = openFile(path);
  return buffer && looksLikeArtifact(bytesOf(**buffer));
}

mlir::OwningOpRef<mlir::ModuleOp> importStablehlo(const std::string& path,
                                                  const ImportOptions& options,
                                                  mlir::MLIRContext* context) {
  auto buffer = openFile(path);
  if (!buffer) {
    mlir::emitError(mlir::FileLineColLoc::get(context, path, 0, 0))
        << "cannot open '" << path << "': " << buffer.getError().message();
    return {};
  }
  return importStablehloBytes(bytesOf(**buffer), path, options, context);
}

mlir::OwningOpRef<mlir::ModuleOp> importStablehloBytes(
    std::string_view bytes, const std::string& path,
    const ImportOptions& options, mlir::MLIRContext* context) {
  const mlir::Location loc = mlir::FileLineColLoc::get(context, path, 0, 0);
  Artifact artifact;
  std::string error;
  if (!findArtifact(bytes, artifact, error)) {
    mlir::emitError(loc) << error;
    return {};
  }
  const auto program = readModule(artifact.bytecode, path, loc, context);
  if (!program) return {};
  return importStablehloProgram(*program, artifact.producer, loc, options);
}

mlir::OwningOpRef<mlir::ModuleOp> importStablehloProgram(
    mlir::ModuleOp program, const std::string& producer, mlir::Location loc,
    const ImportOptions& options) {
  program.getContext()
      ->loadDialect<nn::NNDialect, dist::DistDialect, mlir::arith::ArithDialect,
                    mlir::math::MathDialect, mlir::func::FuncDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(module->getBody());
  auto main = mlir::func::FuncOp::create(builder, loc, "main",
                                         builder.getFunctionType({}, {}));
  GraphImporter importer(program, producer, options.ignore_shardings, main);
  if (mlir::failed(importer.run()) || mlir::failed(mlir::verify(*module)))
    return {};
  return module;
}

}  // namespace partita::stablehlo
