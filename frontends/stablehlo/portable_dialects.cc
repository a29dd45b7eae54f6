// Registers the operations of a table, each with a reader of its properties.
#include "frontends/stablehlo/portable_dialects.h"

#include "frontends/stablehlo/attribute_readers.h"
#include "frontends/stablehlo/vhlo_ops.h"
#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/ExtensibleDialect.h"

namespace partita::stablehlo {
namespace {

using llvm::failed;
using llvm::failure;
using llvm::LogicalResult;
using llvm::success;

const PortableOp* findOp(llvm::StringRef full_name) {
  const auto [dialect, name] = full_name.split('.');
  for (const PortableOp& op : dialect == "sdy" ? sdyOps() : vhloOps())
    if (op.name == name) return &op;
  return nullptr;
}

// Reads the properties of any operation of the tables. They become ordinary
// attributes.
struct PropertyReader
    : mlir::BytecodeOpInterface::FallbackModel<PropertyReader> {
  static LogicalResult readProperties(mlir::DialectBytecodeReader& reader,
                                      mlir::OperationState& state) {
    const PortableOp* op = findOp(state.name.getStringRef());
    if (!op) return reader.emitError("unknown operation");
    llvm::SmallVector<llvm::StringRef> properties;
    llvm::StringRef(op->properties)
        .split(properties, ' ', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef property : properties) {
      const bool is_optional = property.consume_front("?");
      mlir::Attribute value;
      if (failed(is_optional ? reader.readOptionalAttribute(value)
                             : reader.readAttribute(value)))
        return failure();
      if (value) state.addAttribute(property, value);
    }
    return success();
  }

  // Partita writes no portable artifacts.
  static void writeProperties(mlir::Operation*, mlir::DialectBytecodeWriter&) {}
};

// The version that a dialect writes into the file, which is not used: names of
// operations carry their own.
struct IgnoredVersion : mlir::DialectVersion {};

class BytecodeReader : public mlir::BytecodeDialectInterface {
 public:
  explicit BytecodeReader(mlir::Dialect* dialect)
      : BytecodeDialectInterface(dialect) {}

  mlir::Attribute readAttribute(
      mlir::DialectBytecodeReader& reader) const override {
    return getDialect()->getNamespace() == "sdy" ? readSdyAttribute(reader)
                                                 : readVhloAttribute(reader);
  }
  mlir::Type readType(mlir::DialectBytecodeReader& reader) const override {
    if (getDialect()->getNamespace() == "vhlo") return readVhloType(reader);
    reader.emitError("expected no types of dialect 'sdy', found one");
    return {};
  }
  std::unique_ptr<mlir::DialectVersion> readVersion(
      mlir::DialectBytecodeReader& reader) const override {
    uint64_t major, minor, patch;
    if (failed(reader.readVarInt(major)) || failed(reader.readVarInt(minor)) ||
        failed(reader.readVarInt(patch)))
      return nullptr;
    return std::make_unique<IgnoredVersion>();
  }
};

class PortableDialect : public mlir::ExtensibleDialect {
 public:
  PortableDialect(llvm::StringRef name, mlir::MLIRContext* context,
                  mlir::TypeID id, llvm::ArrayRef<PortableOp> ops)
      : ExtensibleDialect(name, context, id) {
    // Later versions of operations are read, and refused by name.
    allowUnknownOperations();
    addInterfaces<BytecodeReader>();
    const auto accept = [](mlir::Operation*) { return success(); };
    for (const PortableOp& op : ops) {
      registerDynamicOp(
          mlir::DynamicOpDefinition::get(op.name, this, accept, accept));
      mlir::RegisteredOperationName::lookup((name + "." + op.name).str(),
                                            context)
          ->attachInterface<PropertyReader>();
    }
  }
};

class VhloDialect : public PortableDialect {
 public:
  explicit VhloDialect(mlir::MLIRContext* context)
      : PortableDialect("vhlo", context, mlir::TypeID::get<VhloDialect>(),
                        vhloOps()) {}
  static llvm::StringRef getDialectNamespace() { return "vhlo"; }
};

class SdyDialect : public PortableDialect {
 public:
  explicit SdyDialect(mlir::MLIRContext* context)
      : PortableDialect("sdy", context, mlir::TypeID::get<SdyDialect>(),
                        sdyOps()) {}
  static llvm::StringRef getDialectNamespace() { return "sdy"; }
};

}  // namespace

void loadPortableDialects(mlir::MLIRContext* context) {
  context->loadDialect<VhloDialect, SdyDialect>();
}

}  // namespace partita::stablehlo
