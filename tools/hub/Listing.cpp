//===- Listing.cpp - files of a repository or a model ---------------------===//

#include "tools/hub/Listing.h"

#include "frontend/formats/checkpoint/WeightForms.h"
#include "frontend/formats/gguf/GgufModel.h"
#include "frontend/formats/safetensors/ShardIndex.h"
#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace mica::hub {

static constexpr StringLiteral kHint = "try again, or check HF_ENDPOINT";

/// A page lists a thousand files, a description all files.
static const JsonLimits kLimits = {32u << 20, 1u << 20, 32, kHint};

static bool isHash(StringRef text, size_t digits) {
  return text.size() == digits &&
         all_of(text, [](char c) { return isDigit(c) || (c >= 'a' && c <= 'f'); });
}

bool isCommit(StringRef text) { return isHash(text, 40); }

Expected<std::string> parseCommit(StringRef text, StringRef source) {
  Expected<json::Value> root = parseJson(text, source, kLimits);
  if (!root)
    return root.takeError();
  const json::Object *object = root->getAsObject();
  std::optional<StringRef> commit = object ? object->getString("sha") : std::nullopt;
  if (!commit || !isCommit(*commit))
    return inputError(source, "contains no commit", kHint);
  return commit->str();
}

/// The file described by an entry of the listing.
static Expected<RemoteFile> fileOf(const json::Object &entry, StringRef source) {
  std::optional<StringRef> path = entry.getString("path");
  if (!path || !isSafePath(*path))
    return inputError(source, "lists " + (path ? inQuotes(*path) : "a file without a path"),
                      "do not use this repository");
  const json::Object *lfs = entry.getObject("lfs");
  std::optional<StringRef> hash = lfs ? lfs->getString("oid") : entry.getString("oid");
  std::optional<int64_t> size = lfs ? lfs->getInteger("size") : entry.getInteger("size");
  constexpr int64_t largest = int64_t(1) << 46;
  if (!size || *size < 0 || *size > largest || !hash || !isHash(*hash, lfs ? 64 : 40))
    return inputError(source, "lists " + inQuotes(*path) + " without a size and a hash", kHint);
  return RemoteFile{path->str(), static_cast<uint64_t>(*size), hash->str()};
}

Expected<std::vector<RemoteFile>> parseListing(StringRef text, StringRef source) {
  Expected<json::Value> root = parseJson(text, source, kLimits);
  if (!root)
    return root.takeError();
  const json::Array *entries = root->getAsArray();
  if (!entries)
    return inputError(source, "is not a list of files", kHint);
  std::vector<RemoteFile> files;
  for (const json::Value &value : *entries) {
    const json::Object *entry = value.getAsObject();
    if (!entry)
      return inputError(source, "is not a list of files", kHint);
    if (entry->getString("type") != StringRef("file"))
      continue;
    Expected<RemoteFile> file = fileOf(*entry, source);
    if (!file)
      return file.takeError();
    files.push_back(std::move(*file));
  }
  return files;
}

/// Whether the file may describe a model: configs, tokenizers and chat templates.
static bool describesModel(StringRef path) {
  if (path.contains('/'))
    return path.starts_with("additional_chat_templates/") && path.ends_with(".jinja");
  return !path.ends_with(".index.json") &&
         is_contained({".json", ".model", ".txt", ".tiktoken", ".jinja"},
                      sys::path::extension(path));
}

namespace {
/// A model in one GGUF file or several, its first part first.
using GgufParts = std::vector<std::string>;
} // namespace

/// The GGUF models among `paths`, without image projectors.
static std::vector<GgufParts> ggufModels(ArrayRef<std::string> paths) {
  std::vector<GgufParts> models;
  for (const std::string &path : paths) {
    if (!StringRef(path).ends_with(".gguf") || sys::path::filename(path).starts_with("mmproj"))
      continue;
    GgufParts parts = ggufFiles(path);
    sort(parts);
    if (parts.front() == path)
      models.push_back(std::move(parts));
  }
  return models;
}

/// Whether the file's name ends with the quantization, as in NAME-Q4_K_M.gguf or NAME.q4_k_m.gguf.
static bool hasQuantization(StringRef path, StringRef quantization) {
  StringRef name = ggufName(path);
  if (!name.ends_with_insensitive(quantization))
    return false;
  name = name.drop_back(quantization.size());
  return name.empty() || !isAlnum(name.back());
}

static std::string listed(ArrayRef<GgufParts> models) {
  constexpr size_t maxListed = 16;
  std::string text;
  for (const GgufParts &parts : models.take_front(maxListed))
    text += (text.empty() ? "" : ", ") + parts.front();
  return models.size() > maxListed
             ? text + " and " + std::to_string(models.size() - maxListed) + " more"
             : text;
}

/// The model selected by `name`.
static Expected<Selection> selectGguf(ArrayRef<std::string> paths, ArrayRef<GgufParts> models,
                                      const HubName &name) {
  if (models.size() > 1)
    return inputError(name.text(), "could be any of " + listed(models),
                      "choose one with " + name.repository() + ":FILE");
  const GgufParts &parts = models.front();
  for (const std::string &part : parts)
    if (!is_contained(paths, part))
      return inputError(name.text(), part + " is missing among the parts of the model",
                        "choose another file");
  return Selection{parts, parts.front(), ""};
}

static Expected<Selection> selectFile(ArrayRef<std::string> paths, const HubName &name) {
  std::vector<GgufParts> models = ggufModels(paths), matching;
  auto exact = [&](const GgufParts &parts) { return is_contained(parts, name.selection); };
  auto byQuantization = [&](const GgufParts &parts) {
    return hasQuantization(parts.front(), name.selection);
  };
  copy_if(models, std::back_inserter(matching), exact);
  if (matching.empty() && is_contained(paths, name.selection))
    return Selection{{name.selection}, name.selection, ""};
  if (matching.empty())
    copy_if(models, std::back_inserter(matching), byQuantization);
  if (!matching.empty())
    return selectGguf(paths, matching, name);
  std::string hint =
      models.empty() ? "leave out :" + name.selection : "choose one of " + listed(models);
  return inputError(name.text(),
                    "is not a file of the repository, nor the end of a GGUF file's name", hint);
}

Expected<Selection> selectFiles(ArrayRef<std::string> paths, const HubName &name) {
  if (!name.selection.empty())
    return selectFile(paths, name);
  Selection selection;
  copy_if(paths, std::back_inserter(selection.files), describesModel);
  for (const WeightForm &form : kWeightForms) {
    bool isSingle = is_contained(paths, form.single);
    if (!isSingle && !is_contained(paths, form.index))
      continue;
    if (!is_contained(paths, "config.json"))
      break;
    selection.files.push_back((isSingle ? form.single : form.index).str());
    if (!isSingle)
      selection.index = form.index.str();
    return selection;
  }
  std::vector<GgufParts> models = ggufModels(paths);
  if (!models.empty())
    return selectGguf(paths, models, name);
  return inputError(name.text(), "has neither config.json with model.safetensors nor a GGUF file",
                    "choose another repository");
}

Expected<std::vector<std::string>> readShards(const Selection &selection, StringRef folder) {
  if (selection.index.empty())
    return std::vector<std::string>();
  auto form =
      find_if(kWeightForms, [&](const WeightForm &form) { return form.index == selection.index; });
  return readShardIndex((folder + "/" + selection.index).str(), sys::path::extension(form->single));
}

} // namespace mica::hub
