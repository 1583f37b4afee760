//===- Dialect.cpp - registration of the mica dialect ---------------------===//

#include "ir/Mica/EntrySignature.h"
#include "ir/Mica/Mica.h"
#include "ir/Mica/Shard.h"
#include "ir/Mica/StackedExperts.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mica;

#include "ir/Mica/MicaDialect.cpp.inc"
#include "ir/Mica/MicaEnums.cpp.inc"

/// An enum attribute as a bare word: `half`.
template <typename EnumAttrT> static ParseResult parseWord(OpAsmParser &parser, EnumAttrT &attr) {
  using Enum = decltype(attr.getValue());
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<Enum> value = symbolizeEnum<Enum>(word);
  if (!value)
    return parser.emitError(loc) << "'" << word << "' is not a valid " << EnumAttrT::getMnemonic()
                                 << renamedHint(word);
  attr = EnumAttrT::get(parser.getContext(), *value);
  return success();
}

template <typename EnumAttrT>
static void printWord(OpAsmPrinter &printer, Operation *, EnumAttrT attr) {
  printer << stringifyEnum(attr.getValue());
}

/// Rejects a keyword of an earlier version with a hint to its replacement.
static ParseResult parseOldKeyword(AsmParser &parser, StringRef keyword) {
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  return parser.emitError(loc) << "'" << keyword << "' is not a keyword" << renamedHint(keyword);
}

static void printOldKeyword(OpAsmPrinter &, Operation *, StringRef) {}
static void printOldKeyword(AsmPrinter &, StringRef) {}

/// <"up", entry 3, transposed, rows 0 to 8 of 32, as_columns>
Attribute SliceAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::string tensor;
  std::optional<int64_t> entry;
  int64_t first = 0, last = 0, period = 0;
  bool transposed = false, asColumns = false;
  if (parser.parseLess() || parser.parseString(&tensor))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc at = parser.getCurrentLocation();
    StringRef word;
    if (parser.parseKeyword(&word))
      return {};
    if (word == "entry") {
      if (parser.parseInteger(entry.emplace()))
        return {};
    } else if (word == "transposed") {
      transposed = true;
    } else if (word == "rows") {
      if (parser.parseInteger(first) || parser.parseKeyword("to") || parser.parseInteger(last) ||
          parser.parseKeyword("of") || parser.parseInteger(period))
        return {};
    } else if (word == "as_columns") {
      asColumns = true;
    } else {
      parser.emitError(at)
          << "'" << word
          << "' is not a parameter of a slice, expected entry, transposed, rows or "
             "as_columns";
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<SliceAttr>(loc, parser.getContext(), tensor, entry, transposed, first,
                                      last, period, asColumns);
}

void SliceAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printString(getTensor());
  if (getEntry())
    printer << ", entry " << *getEntry();
  if (getTransposed())
    printer << ", transposed";
  if (getPeriod() != 0)
    printer << ", rows " << getFirst() << " to " << getLast() << " of " << getPeriod();
  if (getAsColumns())
    printer << ", as_columns";
  printer << '>';
}

#define GET_ATTRDEF_CLASSES
#include "ir/Mica/MicaAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/Mica/MicaTypes.cpp.inc"

#include "ir/Mica/ProductOpInterfaces.cpp.inc"
#include "ir/Mica/RowOpInterfaces.cpp.inc"
#include "ir/Mica/WeightOpInterfaces.cpp.inc"

/// concat, stack, interleave or nothing. A custom parser, because an optional group of the assembly
/// format cannot begin with a bare word.
static ParseResult parseComposition(OpAsmParser &parser, ComposeAttr &compose) {
  StringRef word;
  if (succeeded(parser.parseOptionalKeyword(&word, {"concat", "stack", "interleave"})))
    compose = ComposeAttr::get(parser.getContext(), *symbolizeCompose(word));
  return success();
}

static void printComposition(OpAsmPrinter &printer, WeightOp, ComposeAttr compose) {
  if (compose)
    printer << stringifyCompose(compose.getValue());
}

#define GET_OP_CLASSES
#include "ir/Mica/MicaOps.cpp.inc"

static ParseResult parseRenamedOp(OpAsmParser &parser, OperationState &state) {
  StringRef name = state.name.getStringRef();
  return parser.emitError(parser.getNameLoc())
         << "unknown operation '" << name << "'" << renamedHint(name);
}

std::optional<Dialect::ParseOpHook> MicaDialect::getParseOperationHook(StringRef name) const {
  if (renamedTo(name).empty())
    return Dialect::getParseOperationHook(name);
  return ParseOpHook(parseRenamedOp);
}

Type MicaDialect::parseType(DialectAsmParser &parser) const {
  StringRef name;
  Type type;
  if (generatedTypeParser(parser, &name, type).has_value())
    return type;
  StringRef replacement = replacementOfType(name);
  if (replacement.empty())
    parser.emitError(parser.getNameLoc()) << "unknown type `" << name << "` in dialect `mica`";
  else
    parser.emitError(parser.getNameLoc())
        << "!mica." << name << " is a type of an earlier version; " << replacement;
  return {};
}

void MicaDialect::printType(Type type, DialectAsmPrinter &printer) const {
  (void)generatedTypePrinter(type, printer);
}

LogicalResult MicaDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (StringRef name = attribute.getName(); !renamedTo(name).empty())
    return op->emitOpError() << "has " << name << renamedHint(name);
  if (attribute.getName() == kEntryRoleAttr)
    return op->emitOpError()
           << "has " << kEntryRoleAttr
           << ", which arguments and results of entry functions have; the role of "
              "the rows of a function is mica.row_role";
  if (attribute.getName() == kRanksAttr) {
    auto ranks = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!isa<ModuleOp>(op) || !ranks || !ranks.getType().isInteger(64) || ranks.getInt() < 2 ||
        ranks.getInt() > kMaxRanks)
      return op->emitOpError() << "has " << kRanksAttr << " = " << attribute.getValue()
                               << ", expected a number from 2 to " << kMaxRanks
                               << ", in i64, on a module";
  }
  if (attribute.getName() == kStackedExpertsAttr &&
      (!isa<ModuleOp>(op) || !isa<UnitAttr>(attribute.getValue())))
    return op->emitOpError() << "has " << kStackedExpertsAttr << " = " << attribute.getValue()
                             << ", expected a unit attribute on a module";
  return success();
}

LogicalResult MicaDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index,
                                                    NamedAttribute attribute) {
  return attribute.getName() == kEntryRoleAttr
             ? EntrySignature::verifyArgument(op, index, attribute.getValue())
             : success();
}

LogicalResult MicaDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                                       NamedAttribute attribute) {
  return attribute.getName() == kEntryRoleAttr
             ? EntrySignature::verifyResult(op, index, attribute.getValue())
             : success();
}

void MicaDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/Mica/MicaAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/Mica/MicaTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/Mica/MicaOps.cpp.inc"
      >();
}
