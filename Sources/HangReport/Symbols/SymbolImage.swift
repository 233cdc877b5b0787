internal import CElfutils

/// One image's names: its symbol table, its DWARF and what they say about whose code it is.
final class SymbolImage {
  let path: String
  private let elf: ElfImage
  private let debugFile: ElfImage?
  let debugInfo: DebugInfo?
  private let table: SymbolTable
  private let runtime: RuntimeCode

  init?(_ image: ImageMap.Image, in images: ImageMap) {
    path = image.path
    guard let elf = Self.open(image, in: images) else { return nil }
    self.elf = elf
    let debugFile =
      elf.hasDebugInfo
      ? nil : ElfImage.debugFile(of: elf, path: image.path, root: images.root)
    self.debugFile = debugFile
    debugInfo = DebugInfo(debugFile ?? elf)
    table = SymbolTable(elf: elf.elf, debug: debugFile?.elf)
    runtime = RuntimeCode(image: image.path, symbols: table, hasLines: debugInfo != nil)
  }

  private static func open(_ image: ImageMap.Image, in images: ImageMap) -> ElfImage? {
    if let file = images.open(image).file {
      // libelf moves the offset of its descriptor, which only it uses, and closes its copy.
      return file.duplicateDescriptor().flatMap { ElfImage(descriptor: $0, path: file.path) }
    }
    guard image.path == "[vdso]" else { return nil }
    return ElfImage(bytes: images.bytesOfKernelImage(image), path: image.path)
  }

  /// The calls at an address of the file, inlined ones first; never empty.
  func frames(at pc: UInt64, address: Address) -> [Frame] {
    let symbol = table.name(at: pc)
    var scopes = debugInfo?.scopes(at: pc) ?? []
    if scopes.isEmpty {
      scopes = [DebugInfo.Scope(name: nil, place: DebugInfo.Place(), isInlined: false)]
    }
    return scopes.map { scope in
      // A unit's range may hold code that no function in it claims: the table knows its name.
      let linkerName = scope.isInlined ? scope.name : better(scope.name, symbol)
      return Frame(
        address: address, image: path, symbol: linkerName.map(Demangler.name),
        file: scope.place.file, line: scope.place.line, column: scope.place.column,
        inlined: scope.isInlined,
        runtime: runtime.isRuntime(linkerName: linkerName, place: scope.place))
    }
  }

  /// The compiler's name, unless the symbol says that several functions share the code.
  private func better(_ compiler: String?, _ symbol: String?) -> String? {
    guard let symbol else { return compiler }
    if symbol.hasSuffix("Tm"), Demangler.isSwift(symbol) { return symbol }
    // glibc's own names for its functions (__GI_raise) are not those that people call.
    return runtime.isRuntimeImage ? symbol : compiler ?? symbol
  }
}
