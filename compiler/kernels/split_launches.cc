// Makes one launch for each of a kernel's parts, which write to the same
// places; see passes.td.
#include "compiler/kernels/kernel_work.h"
#include "compiler/kernels/part_maps.h"
#include "compiler/kernels/passes.h"
#include "dialects/exec/dialect.h"
#include "dialects/exec/kernel_parts.h"
#include "dialects/exec/labels.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::kernels {

#define GEN_PASS_DEF_SPLITLAUNCHESPASS
#include "compiler/kernels/passes.h.inc"

namespace {

using mlir::func::FuncOp;

// How a launch runs one part of its kernel.
struct Part {
  exec::KernelPart numbers;
  mlir::FlatSymbolRefAttr kernel;
  KernelWork work;
  mlir::ArrayAttr maps;  // null: the last part has the launch's
};

// The attribute of a kernel of one part, as an example of the format.
mlir::NamedAttribute exampleOf(FuncOp kernel) {
  mlir::OpBuilder builder(kernel.getContext());
  mlir::OwningOpRef<FuncOp> example = FuncOp::create(
      builder, kernel.getLoc(), kernel.getName(), kernel.getFunctionType());
  exec::setKernelParts(*example, {exec::KernelPart()});
  return *(*example)->getDiscardableAttrs().begin();
}

// True if both have the same names, kinds and types of attributes.
bool areAlike(mlir::Attribute found, mlir::DictionaryAttr example) {
  auto words = llvm::dyn_cast<mlir::DictionaryAttr>(found);
  return words && words.size() == example.size() &&
         llvm::all_of(example, [&](mlir::NamedAttribute word) {
           mlir::Attribute other = words.get(word.getName());
           if (!other || other.getTypeID() != word.getValue().getTypeID())
             return false;
           auto number = llvm::dyn_cast<mlir::IntegerAttr>(other);
           return !number ||
                  number.getType() ==
                      llvm::cast<mlir::IntegerAttr>(word.getValue()).getType();
         });
}

bool isListOfMaps(mlir::Attribute found) {
  auto maps = llvm::dyn_cast<mlir::ArrayAttr>(found);
  return maps && llvm::all_of(maps, llvm::IsaPred<exec::TensorMapAttr>);
}

// The attributes may come from an edited dump. Emits an error at the kernel.
mlir::LogicalResult checkParts(FuncOp kernel) {
  const mlir::NamedAttribute example = exampleOf(kernel);
  const auto name = example.getName();
  mlir::Attribute found = kernel->getAttr(name),
                  maps = kernel->getAttr(kPartMapsAttr);
  auto parts = llvm::dyn_cast_if_present<mlir::ArrayAttr>(found);
  if (found && !parts)
    return kernel.emitError("expected a list as attribute '")
           << name.getValue() << "', found " << found;
  const auto like = llvm::cast<mlir::DictionaryAttr>(
      llvm::cast<mlir::ArrayAttr>(example.getValue())[0]);
  for (auto [i, part] : llvm::enumerate(
           parts ? parts.getValue() : llvm::ArrayRef<mlir::Attribute>()))
    if (!areAlike(part, like))
      return kernel.emitError("expected part ")
             << i << " of '" << name.getValue() << "' to have the form of "
             << like << ", found " << part;
  if (parts && !parts.empty()) {
    const auto all = exec::kernelParts(kernel);
    llvm::StringSet<> names;
    for (auto [i, part] : llvm::enumerate(all)) {
      if (part.blocks < 1 || part.scratch < 0 || part.shared < 0)
        return kernel.emitError("expected part ")
               << i << " of '" << name.getValue()
               << "' to have blocks, and no negative memory, found "
               << parts[i];
      if (part.code.empty() || !names.insert(part.code).second)
        return kernel.emitError("expected parts of '")
               << name.getValue() << "' with names that differ, found '"
               << part.code << "' as part " << i;
    }
    const std::string last = all.back().code;
    if (last != kernel.getName())
      return kernel.emitError("expected the last part of '")
             << name.getValue() << "' to be the kernel '" << kernel.getName()
             << "', found '" << last << "'";
  }
  if (!maps) return mlir::success();
  auto lists = llvm::dyn_cast<mlir::ArrayAttr>(maps);
  if (!lists || !llvm::all_of(lists, isListOfMaps))
    return kernel.emitError("expected lists of tensor maps as attribute '")
           << kPartMapsAttr << "', found " << maps;
  const size_t count = parts ? parts.size() : 0;
  if (lists.size() != count)
    return kernel.emitError("expected a list in '")
           << kPartMapsAttr << "' for each of the " << count
           << " parts of the kernel, found " << lists.size();
  return mlir::success();
}

// Declares the parts' functions behind the kernel, which is itself the last
// part.
llvm::SmallVector<Part> declareParts(FuncOp kernel) {
  llvm::SmallVector<Part> parts;
  auto maps = kernel->getAttrOfType<mlir::ArrayAttr>(kPartMapsAttr);
  mlir::OpBuilder builder(kernel.getContext());
  builder.setInsertionPointAfter(kernel);
  for (const exec::KernelPart& numbers : exec::kernelParts(kernel)) {
    parts.push_back(
        {numbers,
         mlir::FlatSymbolRefAttr::get(kernel.getContext(), numbers.code),
         workOf(kernel, numbers),
         maps ? llvm::cast<mlir::ArrayAttr>(maps[parts.size()])
              : mlir::ArrayAttr()});
    if (numbers.code == kernel.getName()) continue;
    auto declared = FuncOp::create(builder, kernel.getLoc(), numbers.code,
                                   kernel.getFunctionType());
    declared.setPrivate();
    declared->setAttr(exec::kKernelAttr, builder.getUnitAttr());
    declared->setAttr(exec::kPartOfAttr,
                      mlir::FlatSymbolRefAttr::get(kernel.getSymNameAttr()));
  }
  exec::setKernelParts(kernel, {});
  kernel->removeAttr(kPartMapsAttr);
  return parts;
}

// Launches the part in front of `launch`. It writes to the results of `before`.
exec::LaunchOp launchPart(exec::LaunchOp launch, const Part& part,
                          exec::LaunchOp before, bool is_last) {
  mlir::OpBuilder builder(launch);
  auto one = llvm::cast<exec::LaunchOp>(builder.clone(*launch));
  one.setKernelAttr(part.kernel);
  one.setBlocks(part.numbers.blocks);
  one.setScratch(part.numbers.scratch);
  if (part.numbers.shared > 0)
    one.setShared(part.numbers.shared);
  else
    one.removeSharedAttr();
  setWork(one, part.work);
  if (part.maps && !part.maps.empty())
    one.setMapsAttr(part.maps);
  else if (part.maps || !is_last)
    one.removeMapsAttr();
  if (before) {
    one.getIntoMutable().assign(before.getResults());
    one->removeAttr(exec::kOffsetsAttr);
  }
  return one;
}

class SplitLaunches : public impl::SplitLaunchesPassBase<SplitLaunches> {
 public:
  using SplitLaunchesPassBase::SplitLaunchesPassBase;

  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>())
      if (failed(checkParts(function))) return signalPassFailure();
    llvm::StringMap<llvm::SmallVector<Part>> parts;
    for (FuncOp function :
         llvm::make_early_inc_range(getOperation().getOps<FuncOp>()))
      if (!exec::kernelParts(function).empty())
        parts[function.getName()] = declareParts(function);
    getOperation().walk([&](exec::LaunchOp launch) {
      auto found = parts.find(launch.getKernel());
      if (found != parts.end() && launch.getInto().empty())
        split(launch, found->second);
    });
  }

 private:
  void split(exec::LaunchOp launch, llvm::ArrayRef<Part> parts) {
    exec::LaunchOp last;
    for (const Part& part : parts)
      last = launchPart(launch, part, last, &part == &parts.back());
    launch.replaceAllUsesWith(last.getResults());
    launch.erase();
    added += parts.size() - 1;
  }
};

}  // namespace
}  // namespace partita::kernels
