// Attributes of sdy, by their codes in the bytecode. Lists become arrays, and
// structures become dictionaries:
//
//   mesh      {axes = [{name, size}, ...], devices}
//   axis      {name, part = array<i64: pre, size>}, `part` of sub-axes only
//   dimension {axes, closed, priority}
//   sharding  {mesh, dims, replicated, unreduced}
#include <optional>

#include "frontends/stablehlo/attribute_readers.h"
#include "mlir/IR/Builders.h"

namespace partita::stablehlo {
namespace {

using llvm::failed;
using llvm::SmallVector;
using mlir::Attribute;
using Reader = mlir::DialectBytecodeReader;

// Reads the fields of a structure in order.
class Fields {
 public:
  explicit Fields(Reader& reader)
      : reader_(reader), builder_(reader.getContext()) {}

  Fields& attribute(llvm::StringRef name) {
    Attribute value;
    if (fine_ &= llvm::succeeded(reader_.readAttribute(value)); fine_)
      add(name, value);
    return *this;
  }
  Fields& optional(llvm::StringRef name) {
    Attribute value;
    if (fine_ &= llvm::succeeded(reader_.readOptionalAttribute(value));
        fine_ && value)
      add(name, value);
    return *this;
  }
  Fields& list(llvm::StringRef name) {
    SmallVector<Attribute> values;
    if (fine_ &= llvm::succeeded(reader_.readAttributes(values)); fine_)
      add(name, builder_.getArrayAttr(values));
    return *this;
  }
  Fields& integers(llvm::StringRef name) {
    SmallVector<int64_t> values;
    if (fine_ &= llvm::succeeded(reader_.readSignedVarInts(values)); fine_)
      add(name, builder_.getDenseI64ArrayAttr(values));
    return *this;
  }
  Fields& integer(llvm::StringRef name) {
    int64_t value = 0;
    if (fine_ &= llvm::succeeded(reader_.readSignedVarInt(value)); fine_)
      add(name, builder_.getI64IntegerAttr(value));
    return *this;
  }
  Fields& string(llvm::StringRef name) {
    llvm::StringRef value;
    if (fine_ &= llvm::succeeded(reader_.readString(value)); fine_)
      add(name, builder_.getStringAttr(value));
    return *this;
  }
  Fields& flag(llvm::StringRef name) {
    bool value = false;
    if (fine_ &= llvm::succeeded(reader_.readBool(value)); fine_)
      add(name, builder_.getBoolAttr(value));
    return *this;
  }
  Fields& optionalInteger(llvm::StringRef name) {
    uint64_t value = 0;
    bool is_given = false;
    if (fine_ &= llvm::succeeded(reader_.readVarIntWithFlag(value, is_given));
        fine_ && is_given)
      add(name, builder_.getI64IntegerAttr(static_cast<int64_t>(value)));
    return *this;
  }

  Attribute dictionary() {
    return fine_ ? builder_.getDictionaryAttr(fields_) : Attribute();
  }
  // The only field.
  Attribute only() { return fine_ ? fields_.front().getValue() : Attribute(); }

 private:
  void add(llvm::StringRef name, Attribute value) {
    fields_.push_back(builder_.getNamedAttr(name, value));
  }

  Reader& reader_;
  mlir::Builder builder_;
  SmallVector<mlir::NamedAttribute> fields_;
  bool fine_ = true;
};

}  // namespace

Attribute readSdyAttribute(Reader& reader) {
  uint64_t code;
  if (failed(reader.readVarInt(code))) return {};
  Fields fields(reader);
  switch (code) {
    case 0:   // manual axes
    case 7:   // shardings per value
    case 9:   // mapping of a tensor
    case 11:  // axes
    case 12:  // lists of axes
    case 14:  // parameters of all-to-alls
    case 16:  // shardings per value, with unreduced axes
      return fields.list("values").only();
    case 1:
      return fields.string("name").integer("size").dictionary();
    case 2:
      return fields.list("axes").integers("devices").dictionary();
    case 3: {
      int64_t pre, size;
      if (failed(reader.readSignedVarInt(pre)) ||
          failed(reader.readSignedVarInt(size)))
        return {};
      return mlir::DenseI64ArrayAttr::get(reader.getContext(), {pre, size});
    }
    case 4:
      return fields.string("name").optional("part").dictionary();
    case 5:
      return fields.list("axes")
          .flag("closed")
          .optionalInteger("priority")
          .dictionary();
    case 6:
      return fields.attribute("mesh")
          .list("dims")
          .list("replicated")
          .dictionary();
    case 8:
      return fields.integers("factors").only();
    case 10:
      return fields.integers("sizes")
          .list("operands")
          .list("results")
          .integers("reduction")
          .integers("replication")
          .integers("permutation")
          .integers("blocked")
          .flag("custom")
          .dictionary();
    case 13:
      return fields.list("axes")
          .integer("source")
          .integer("target")
          .dictionary();
    case 15:
      return fields.attribute("mesh")
          .list("dims")
          .list("replicated")
          .list("unreduced")
          .dictionary();
    case 17:
      return fields.attribute("mesh")
          .list("dims")
          .list("replicated")
          .list("unreduced")
          .integer("reduction")
          .dictionary();
    default:
      reader.emitError("unknown attribute of sdy, code ")
          << code << ": export for an older version";
      return {};
  }
}

}  // namespace partita::stablehlo
