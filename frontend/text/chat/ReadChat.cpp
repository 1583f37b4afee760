#include "frontend/text/chat/ReadChat.h"

#include "backends/runtime/text/jinja/Template.h"
#include "frontend/formats/gguf/GgufModel.h"
#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"
#include "frontend/support/MappedFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace mica {
namespace {

/// tokenizer_config.json lists every added token.
constexpr JsonLimits limits{size_t(64) << 20, size_t(1) << 23, 32};

constexpr llvm::StringLiteral ggufTemplate = "tokenizer.chat_template";

constexpr llvm::StringLiteral tokenKeys[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                             "pad_token", "cls_token", "mask_token"};

std::string in(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

/// The object in a file; empty if the file does not exist.
llvm::Expected<llvm::json::Object> readOptional(llvm::StringRef path) {
  if (!llvm::sys::fs::exists(path))
    return llvm::json::Object();
  return readJsonObject(path, limits);
}

/// Adds special tokens that are not known yet: a string, or an object with `content`.
void addTokens(const llvm::json::Object &object, ChatDescription &chat) {
  for (llvm::StringRef key : tokenKeys) {
    auto same = [&](const auto &token) { return token.first == key; };
    if (llvm::any_of(chat.specialTokens, same))
      continue;
    std::optional<llvm::StringRef> text = object.getString(key);
    if (const llvm::json::Object *token = object.getObject(key))
      text = token->getString("content");
    if (text)
      chat.specialTokens.emplace_back(key.str(), text->str());
  }
}

/// Chooses among several templates like transformers.
bool isUsed(llvm::StringRef name) { return name == "default" || name == "tool_use"; }

void takeNamed(llvm::StringRef name, llvm::StringRef text, llvm::StringRef path,
               ChatDescription &chat) {
  if (name == "default")
    chat.chatTemplate = text.str();
  else if (isUsed(name))
    chat.forTools = NamedTemplate{text.str(), path.str(), ""};
  else if (!llvm::is_contained(chat.leftOut, name))
    chat.leftOut.push_back(name.str());
}

/// Reads `chat_template`: a text, or a list of objects with name and template.
llvm::Error takeTemplate(const llvm::json::Object &config, llvm::StringRef path,
                         ChatDescription &chat) {
  const llvm::json::Value *value = config.get("chat_template");
  if (!value || value->kind() == llvm::json::Value::Null)
    return llvm::Error::success();
  chat.file = path.str();
  if (auto text = value->getAsString()) {
    chat.chatTemplate = text->str();
    return llvm::Error::success();
  }
  const llvm::json::Array *list = value->getAsArray();
  auto wrong = [&](const llvm::Twine &what) {
    return inputError(path, "\"chat_template\" " + what, hints::correct);
  };
  if (!list)
    return wrong("is neither a text nor a list of named texts");
  for (const llvm::json::Value &item : *list) {
    const llvm::json::Object *named = item.getAsObject();
    auto name = named ? named->getString("name") : std::nullopt;
    auto text = named ? named->getString("template") : std::nullopt;
    if (!name || !text)
      return wrong("lists something other than objects with \"name\" and \"template\"");
    takeNamed(*name, *text, path, chat);
  }
  return llvm::Error::success();
}

llvm::Error takeFile(llvm::StringRef name, llvm::StringRef path, ChatDescription &chat) {
  if (!isUsed(name)) {
    takeNamed(name, "", path, chat);
    return llvm::Error::success();
  }
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  const auto *begin = file->bytes().begin();
  if (!llvm::isLegalUTF8String(&begin, file->bytes().end()))
    return inputError(path, "is not UTF-8", hints::fetch);
  takeNamed(name, llvm::toStringRef(file->bytes()), path, chat);
  return llvm::Error::success();
}

/// The template files in a folder, by name.
std::vector<std::string> templatesIn(llvm::StringRef folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(folder, error), end; it != end && !error;
       it.increment(error))
    if (llvm::sys::path::extension(it->path()) == ".jinja")
      files.push_back(it->path());
  llvm::sort(files);
  return files;
}

llvm::Error readFolder(llvm::StringRef folder, ChatDescription &chat) {
  std::string path = in(folder, "tokenizer_config.json"), own = in(folder, "chat_template.jinja");
  auto config = readOptional(path);
  if (!config)
    return config.takeError();
  std::string folderOfNamedTemplates = in(folder, kNamedTemplates);
  std::vector<std::string> others = templatesIn(folderOfNamedTemplates);
  bool hasOwn = llvm::sys::fs::exists(own);
  if (hasOwn || !others.empty())
    chat.file = hasOwn ? own : folderOfNamedTemplates;
  if (llvm::Error error = hasOwn           ? takeFile("default", own, chat)
                          : others.empty() ? takeTemplate(*config, path, chat)
                                           : llvm::Error::success())
    return error;
  for (const std::string &file : others)
    if (llvm::Error error = takeFile(llvm::sys::path::stem(file), file, chat))
      return error;
  addTokens(*config, chat);
  auto map = readOptional(in(folder, "special_tokens_map.json"));
  if (!map)
    return map.takeError();
  addTokens(*map, chat);
  return llvm::Error::success();
}

/// A template of a GGUF file's metadata.
llvm::Error takeValue(llvm::StringRef key, const GgufValue &value, llvm::StringRef path,
                      ChatDescription &chat) {
  llvm::StringRef name = key;
  std::optional<llvm::StringRef> text = value.string();
  if (!text)
    return inputError(path, "\"" + key + "\" is not a text", hints::fetch);
  const auto *begin = text->bytes_begin();
  if (!llvm::isLegalUTF8String(&begin, text->bytes_end()))
    return inputError(path, "\"" + key + "\" is not UTF-8", hints::fetch);
  chat.file = path.str();
  name.consume_front(ggufTemplate);
  takeNamed(name.consume_front(".") ? name : "default", *text, path, chat);
  return llvm::Error::success();
}

llvm::Error readGguf(llvm::StringRef path, ChatDescription &chat) {
  auto model = GgufModel::open(path);
  if (!model)
    return model.takeError();
  // NAME is the default, NAME.tool_use the template for tools.
  std::vector<llvm::StringRef> keys;
  for (llvm::StringRef key : model->metadata().keys())
    if (llvm::StringRef rest = key;
        rest.consume_front(ggufTemplate) && (rest.empty() || rest[0] == '.'))
      keys.push_back(key);
  llvm::sort(keys);
  for (llvm::StringRef key : keys)
    if (llvm::Error error = takeValue(key, *model->find(key), path, chat))
      return error;
  if (keys.empty())
    return llvm::Error::success();
  const GgufValue *list = model->find("tokenizer.ggml.tokens");
  auto tokens = list ? list->strings() : std::nullopt;
  static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> ids[] = {
      {"bos_token", "tokenizer.ggml.bos_token_id"},
      {"eos_token", "tokenizer.ggml.eos_token_id"},
      {"unk_token", "tokenizer.ggml.unknown_token_id"},
      {"pad_token", "tokenizer.ggml.padding_token_id"}};
  for (const auto &[name, key] : ids) {
    const GgufValue *number = model->find(key);
    std::optional<int64_t> id = number ? number->integer() : std::nullopt;
    if (tokens && id && *id >= 0 && *id < int64_t(tokens->size()))
      chat.specialTokens.emplace_back(name.str(), (*tokens)[*id].str());
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<std::optional<ChatDescription>> readChat(llvm::StringRef model) {
  ChatDescription chat;
  if (llvm::Error error = isGguf(model) ? readGguf(model, chat) : readFolder(model, chat))
    return std::move(error);
  if (chat.file.empty())
    return std::nullopt;
  // Tokens of a byte-level vocabulary may be invalid text; variables of the template must be valid.
  llvm::erase_if(chat.specialTokens, [](const auto &token) {
    const auto *begin = reinterpret_cast<const llvm::UTF8 *>(token.second.data());
    return !llvm::isLegalUTF8String(&begin, begin + token.second.size());
  });
  auto problemOf = [](const std::string &text) {
    auto parsed = rt::jinja::Template::parse(text);
    return parsed ? "" : parsed.error().message;
  };
  if (chat.chatTemplate.empty() && (chat.forTools || !chat.leftOut.empty()))
    chat.unusable = "there are named ones, but none that is called \"default\"";
  else
    chat.unusable = problemOf(chat.chatTemplate);
  if (chat.forTools)
    chat.forTools->unusable = problemOf(chat.forTools->text);
  return std::move(chat);
}

} // namespace mica
