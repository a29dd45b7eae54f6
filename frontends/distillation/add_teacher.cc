// Moves a teacher's functions into the student's module, its @main before the
// student's operations, so that its activations are gone when the student's
// begin.
#include <filesystem>

#include "dialects/nn/math_builder.h"
#include "dialects/nn/result_names.h"
#include "dialects/nn/signature.h"
#include "frontends/distillation/distance.h"
#include "frontends/distillation/distillation.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "runtime/base/teacher_name.h"

namespace partita::distillation {
namespace {

using llvm::StringRef;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;
using mlir::func::FuncOp;

StringRef textOf(mlir::Attribute attribute) {
  auto text = llvm::dyn_cast_if_present<mlir::StringAttr>(attribute);
  return text ? text.getValue() : StringRef();
}

bool isInput(FuncOp main, unsigned i) {
  return textOf(main.getArgAttr(i, nn::kKindAttr)) == "input";
}

// The location with the name of its parameter or layer after the prefix.
mlir::Location ofTeacher(mlir::Location location) {
  auto name = llvm::dyn_cast<mlir::NameLoc>(location);
  if (!name) return location;
  return mlir::NameLoc::get(
      mlir::StringAttr::get(name.getContext(),
                            base::kTeacherPrefix + name.getName().str()),
      name.getChildLoc());
}

// A value that one of the two models computes, by the name of an output or of
// the operation; empty: the first output. Null after a diagnostic that
// `whose` model has none.
Value findValue(FuncOp main, const std::string& name, const char* whose) {
  mlir::Operation* terminator = main.front().getTerminator();
  std::vector<std::string> outputs;
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    outputs.push_back(textOf(main.getResultAttr(i, nn::kNameAttr)).str());
    if (name.empty() || outputs.back() == name)
      return terminator->getOperand(i);
  }
  Value found;
  std::vector<std::string> layers;
  for (mlir::Operation& op : main.front()) {
    auto location = llvm::dyn_cast<mlir::NameLoc>(op.getLoc());
    if (!location || op.getNumResults() == 0) continue;
    if (location.getName().getValue() == name) found = op.getResult(0);
    if (llvm::isa<mlir::func::CallOp>(op))
      layers.push_back(location.getName().str());
  }
  if (found) return found;
  auto error = mlir::emitError(mlir::UnknownLoc::get(main.getContext()))
               << "--distill: expected an output or a layer of the " << whose
               << ", found '" << name
               << "'; outputs: " << llvm::join(outputs, ", ");
  if (!layers.empty())
    error << "; layers: " << layers.front() << " to " << layers.back();
  return {};
}

class Teacher {
 public:
  Teacher(mlir::ModuleOp student, mlir::ModuleOp teacher,
          const Options& options, const std::string& folder)
      : student_(student),
        teacher_(teacher),
        options_(options),
        folder_(folder),
        main_(student.lookupSymbol<FuncOp>("main")),
        taught_(teacher.lookupSymbol<FuncOp>("main")) {}

  LogicalResult run() {
    if (!main_ || !taught_)
      return student_.emitError("expected a function named 'main', found none");
    // Found before the bodies are one, in which names may be ambiguous.
    if (mlir::failed(findPairs()) || mlir::failed(mapInputs()))
      return failure();
    moveFunctions();
    addWeights();
    copyBody();
    addLosses();
    return success();
  }

 private:
  struct Values {
    Value student, teacher;
  };

  mlir::InFlightDiagnostic refuse() {
    return mlir::emitError(mlir::UnknownLoc::get(student_.getContext()))
           << "--teacher: ";
  }

  // The compared value as a message names it; see findValue.
  static std::string nameOf(FuncOp main, const std::string& name) {
    return name.empty() ? textOf(main.getResultAttr(0, nn::kNameAttr)).str()
                        : name;
  }

  FailureOr<Values> find(const Pair& pair, bool are_logits) {
    const Values found = {findValue(main_, pair.student, "student"),
                          findValue(taught_, pair.teacher, "teacher")};
    if (!found.student || !found.teacher) return failure();
    auto ours = llvm::cast<mlir::RankedTensorType>(found.student.getType());
    auto theirs = llvm::cast<mlir::RankedTensorType>(found.teacher.getType());
    const auto fits = [](mlir::RankedTensorType type) {
      const mlir::Type element = type.getElementType();
      return element.isF32() || element.isF16() || element.isBF16();
    };
    if (ours.getShape() == theirs.getShape() && ours.getRank() > 0 &&
        fits(ours) && fits(theirs))
      return found;
    auto error = refuse() << "expected values of the same shape, of floats, to "
                             "compare as "
                          << (are_logits ? "logits" : "hidden values")
                          << ", found the student's '"
                          << nameOf(main_, pair.student) << "' of " << ours
                          << " and the teacher's '"
                          << nameOf(taught_, pair.teacher) << "' of " << theirs;
    if (are_logits && ours.getRank() > 0 && theirs.getRank() > 0 &&
        ours.getShape().back() != theirs.getShape().back())
      error << "; kl compares probabilities over one vocabulary, here of "
            << ours.getShape().back() << " and " << theirs.getShape().back()
            << " entries";
    return error;
  }

  LogicalResult findPairs() {
    if (options_.kl > 0) {
      const FailureOr<Values> found =
          find(options_.logits, /*are_logits=*/true);
      if (mlir::failed(found)) return failure();
      logits_ = *found;
    }
    for (const Pair& pair : options_.hidden) {
      const FailureOr<Values> found = find(pair, /*are_logits=*/false);
      if (mlir::failed(found)) return failure();
      hidden_.push_back(*found);
    }
    return success();
  }

  // Inputs are the student's by name. If each model has one, names may differ.
  LogicalResult mapInputs() {
    llvm::SmallVector<unsigned> ours, theirs;
    for (unsigned i = 0; i < main_.getNumArguments(); ++i)
      if (isInput(main_, i)) ours.push_back(i);
    for (unsigned i = 0; i < taught_.getNumArguments(); ++i)
      if (isInput(taught_, i)) theirs.push_back(i);
    for (const unsigned i : theirs) {
      const StringRef name = textOf(taught_.getArgAttr(i, nn::kNameAttr));
      const mlir::BlockArgument argument = taught_.getArgument(i);
      const auto same = llvm::find_if(ours, [&](unsigned other) {
        return textOf(main_.getArgAttr(other, nn::kNameAttr)) == name ||
               (ours.size() == 1 && theirs.size() == 1);
      });
      if (same != ours.end() &&
          main_.getArgument(*same).getType() == argument.getType()) {
        mapping_.map(argument, main_.getArgument(*same));
        continue;
      }
      auto error = refuse() << "expected inputs that the student has too, "
                               "found '"
                            << name << "' of " << argument.getType();
      if (same == ours.end())
        error << "; the student has none of this name";
      else
        error << "; the student's is of " << main_.getArgument(*same).getType();
      return error;
    }
    return success();
  }

  void moveFunctions() {
    mlir::SymbolTable students(student_), teachers(teacher_);
    llvm::SmallVector<FuncOp> functions;
    for (FuncOp function : teacher_.getOps<FuncOp>())
      if (function != taught_) functions.push_back(function);
    // Renamed first, as they call each other.
    for (FuncOp function : functions)
      if (students.lookup(function.getName()))
        (void)teachers.renameToUnique(function, {&students});
    for (FuncOp function : functions) {
      function->remove();
      student_.push_back(function);
      function.walk(
          [](mlir::Operation* op) { op->setLoc(ofTeacher(op->getLoc())); });
    }
  }

  // A path of weights that holds in the student's module, too.
  mlir::Attribute sourceOf(mlir::Attribute source) const {
    if (auto parts = llvm::dyn_cast_if_present<mlir::ArrayAttr>(source)) {
      llvm::SmallVector<mlir::Attribute> moved;
      for (mlir::Attribute part : parts) moved.push_back(sourceOf(part));
      return mlir::ArrayAttr::get(source.getContext(), moved);
    }
    auto file = llvm::dyn_cast_if_present<nn::FileAttr>(source);
    if (!file) return source;
    const std::filesystem::path path =
        std::filesystem::absolute(std::filesystem::path(folder_) /
                                  file.getPath().str())
            .lexically_normal();
    return nn::FileAttr::get(source.getContext(), path.string(),
                             file.getOffset(), file.getBytes(),
                             file.getStored());
  }

  void addWeights() {
    nn::Signature signature(main_);
    mlir::Builder builder(student_.getContext());
    for (unsigned i = 0; i < taught_.getNumArguments(); ++i) {
      if (isInput(taught_, i)) continue;
      const mlir::BlockArgument argument = taught_.getArgument(i);
      mlir::NamedAttrList attributes(taught_.getArgAttrDict(i));
      attributes.set(
          nn::kNameAttr,
          builder.getStringAttr(base::kTeacherPrefix +
                                textOf(attributes.get(nn::kNameAttr)).str()));
      if (mlir::Attribute source = attributes.get(nn::kSourceAttr))
        attributes.set(nn::kSourceAttr, sourceOf(source));
      mapping_.map(argument, signature.addArgument(
                                 argument.getType(),
                                 attributes.getDictionary(builder.getContext()),
                                 ofTeacher(argument.getLoc())));
    }
  }

  void copyBody() {
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(&main_.front());
    for (mlir::Operation& op : taught_.front().without_terminator())
      builder.clone(op, mapping_)->setLoc(ofTeacher(op.getLoc()));
    const auto map = [&](Values& values) {
      values.teacher = mapping_.lookup(values.teacher);
    };
    if (logits_.student) map(logits_);
    llvm::for_each(hidden_, map);
  }

  void addLosses() {
    mlir::OpBuilder builder(main_.front().getTerminator());
    const mlir::Location loc = main_.getLoc();
    nn::MathBuilder math(builder, loc);
    Value loss;
    const auto add = [&](Value term, double weight) {
      if (weight != 1) term = math.multiply(term, weight);
      loss = loss ? math.add(loss, term) : term;
    };
    if (logits_.student)
      add(divergence(builder, loc, logits_.student, logits_.teacher,
                     options_.temperature),
          options_.kl);
    for (const Values& values : hidden_)
      add(hiddenDistance(builder, loc, values.student, values.teacher,
                         options_.hidden_loss),
          options_.hidden_weight);
    nn::Signature signature(main_);
    unsigned index = 0;  // new values of stored tensors follow outputs
    while (index < signature.numResults() &&
           !signature.resultAttr(index, nn::kUpdatesAttr))
      ++index;
    const auto result = [&](const char* name, Value value) {
      signature.insertResult(index++, value,
                             builder.getDictionaryAttr(builder.getNamedAttr(
                                 nn::kNameAttr, builder.getStringAttr(name))));
    };
    result(nn::kDistillationLossResult, loss);
    if (options_.cross_entropy != 1)
      result(
          nn::kTargetLossWeightResult,
          math.constant(nn::MathBuilder::typeOf(loss), options_.cross_entropy));
  }

  mlir::ModuleOp student_, teacher_;
  const Options& options_;
  const std::string& folder_;
  FuncOp main_, taught_;
  mlir::IRMapping mapping_;  // from the teacher's @main to the student's
  Values logits_;
  llvm::SmallVector<Values> hidden_;
};

}  // namespace

LogicalResult addTeacher(mlir::ModuleOp student,
                         mlir::OwningOpRef<mlir::ModuleOp> teacher,
                         const Options& options, const std::string& folder) {
  return Teacher(student, *teacher, options, folder).run();
}

}  // namespace partita::distillation
