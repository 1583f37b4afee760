//===- ModelFiles.cpp - files of a model ----------------------------------===//

#include "tools/mica/ModelFiles.h"

#include "frontend/formats/gguf/GgufModel.h"
#include "frontend/support/InputError.h"
#include "frontend/text/chat/ReadChat.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace mica::tool {

/// Files read from model folders: configs, weights, tokenizers, chat templates.
static constexpr StringLiteral kExtensions[] = {".json", ".safetensors", ".bin",  ".model",
                                                ".txt",  ".tiktoken",    ".jinja"};

static std::set<std::string> filesIn(StringRef folder) {
  std::set<std::string> files;
  std::error_code error;
  for (sys::fs::directory_iterator it(folder, error), end; it != end && !error;
       it.increment(error)) {
    StringRef extension = sys::path::extension(it->path());
    ErrorOr<sys::fs::basic_file_status> status = it->status();
    bool regular =
        status && status->type() == sys::fs::file_type::regular_file && status->getSize() > 0;
    if (regular && is_contained(kExtensions, extension))
      files.insert(it->path());
  }
  return files;
}

std::set<std::string> modelFiles(StringRef model) {
  if (sys::fs::is_directory(model)) {
    SmallString<256> templates(model);
    sys::path::append(templates, kNamedTemplates);
    std::set<std::string> files = filesIn(model);
    files.merge(filesIn(templates));
    return files;
  }
  if (isGguf(model)) {
    std::vector<std::string> parts = ggufFiles(model);
    return {parts.begin(), parts.end()};
  }
  // Either folder may contain the weights of a .mlir file, or a GGUF file with its name.
  StringRef parent = sys::path::parent_path(model);
  std::set<std::string> files = filesIn(parent.empty() ? "." : parent);
  std::set<std::string> sibling = filesIn(model.drop_back(sys::path::extension(model).size()));
  files.insert(sibling.begin(), sibling.end());
  std::string gguf = (model.drop_back(sys::path::extension(model).size()) + ".gguf").str();
  if (isGguf(gguf))
    for (const std::string &part : ggufFiles(gguf))
      files.insert(part);
  files.insert(model.str());
  return files;
}

Error protectModel(StringRef model, StringRef output, StringRef option) {
  if (!sys::fs::exists(output))
    return Error::success();
  for (const std::string &file : modelFiles(model))
    if (sys::fs::equivalent(file, output))
      return inputError(output, "is a file of the model, which would be replaced",
                        "choose another " + option);
  return Error::success();
}

} // namespace mica::tool
