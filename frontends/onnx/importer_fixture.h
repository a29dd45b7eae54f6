// Test fixture of the ONNX importer: a folder for files, and checks.
#ifndef PARTITA_FRONTENDS_ONNX_IMPORTER_FIXTURE_H_
#define PARTITA_FRONTENDS_ONNX_IMPORTER_FIXTURE_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "frontends/builder/import_fixture.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/test_model.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::onnx {

class ImporterTest : public builder::ImportFixture {
 protected:
  ImporterTest() {
    folder_ = testing::TempDir() + "/" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }

  std::string write(const std::string& name, const std::string& bytes) {
    std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  mlir::OwningOpRef<mlir::ModuleOp> import(const Message& model,
                                           const ImportOptions& options = {}) {
    errors_.clear();
    remarks_.clear();
    report_ = {};
    path_ = write("m.onnx", model.encoded());
    return importOnnx(path_, options, &context_, &report_);
  }

  // The import must fail with a message that contains each of these parts.
  void expectRefused(const Message& model,
                     const std::vector<std::string>& parts,
                     const ImportOptions& options = {}) {
    EXPECT_FALSE(import(model, options));
    for (const std::string& part : parts)
      EXPECT_NE(errors_.find(part), std::string::npos)
          << "expected '" << part << "' in:\n"
          << errors_;
  }

  mlir::func::FuncOp mainOf(mlir::OwningOpRef<mlir::ModuleOp>& module) {
    return module->lookupSymbol<mlir::func::FuncOp>("main");
  }

  std::string argAttr(mlir::func::FuncOp main, unsigned i, const char* name) {
    auto attr = main.getArgAttrOfType<mlir::StringAttr>(i, name);
    return attr ? attr.str() : "";
  }

  std::string folder_, path_;
  ImportReport report_;
};

inline const Message kX = valueInfo("x", kF32, {"2", "3"});
inline const Message kY = valueInfo("y", kF32, {});

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_IMPORTER_FIXTURE_H_
