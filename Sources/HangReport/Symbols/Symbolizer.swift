internal import CElfutils

/// Names code addresses of a process: function, file, line, inlined calls.
///
/// An image is opened and indexed when an address in it is first asked for, its DWARF unit by unit;
/// later addresses cost microseconds. One thread at a time may use a symbolizer: it is confined to
/// its creator, like its `ImageMap`.
public final class Symbolizer {
  private let images: ImageMap
  private var known: [Int: SymbolImage] = [:]
  private var cache: [RawFrame: [Frame]] = [:]
  private static let cacheLimit = 1 << 16

  /// Names addresses in these images; nothing is opened yet.
  public init(images: ImageMap) {
    self.images = images
  }

  /// The calls at one address, inlined ones first; never empty.
  public func frames(for raw: RawFrame) -> [Frame] {
    let key = RawFrame(pc: raw.pc, cfa: 0, isExact: raw.isExact)
    if let frames = cache[key] { return frames }
    let frames = makeFrames(raw)
    if cache.count >= Self.cacheLimit { cache.removeAll() }
    cache[key] = frames
    return frames
  }

  /// The calls of a stack, innermost first.
  public func frames(for raw: [RawFrame]) -> [Frame] { raw.flatMap { frames(for: $0) } }

  /// The calls of an instruction at an offset of an image that is named by its file's name alone; nil
  /// where no such image is mapped. Code that the compiler made up has no line of its own: then that
  /// of the next instruction with one in the same function stands for it.
  public func frames(image name: String, offset: UInt64) -> [Frame]? {
    guard let image = images.images.first(where: { fileName($0.path) == name }),
      let bias = images.loadBias(of: image)
    else { return nil }
    func calls(_ ahead: UInt64) -> [Frame] {
      frames(for: RawFrame(pc: bias &+ offset &+ ahead, cfa: 0, isExact: true))
    }
    let exact = calls(0)
    guard let last = exact.last, !last.runtime, last.file != nil, last.line ?? 0 == 0 else {
      return exact
    }
    for ahead in UInt64(1)..<64 {
      let next = calls(ahead)
      guard next.last?.symbol == last.symbol else { break }
      if let line = next.last?.line, line > 0 { return next }
    }
    return exact
  }

  /// Whether files and lines are known for the code of an image of this path.
  public func debugInformation(for image: String) -> Bool {
    images.images.contains { $0.path == image && symbols(of: $0)?.debugInfo != nil }
  }

  private func makeFrames(_ raw: RawFrame) -> [Frame] {
    let address = Address(raw.pc)
    // A return address may be the next function's first byte: the call lies before it.
    let pc = raw.isExact ? raw.pc : raw.pc &- 1
    guard let image = images.image(at: pc) else { return [Frame(address: address, image: "")] }
    guard let symbols = symbols(of: image), let bias = images.loadBias(of: image) else {
      return [
        Frame(
          address: address, image: image.path, runtime: RuntimeCode.isRuntime(image: image.path))
      ]
    }
    return symbols.frames(at: pc &- bias, address: address).map {
      var frame = $0
      frame.offset = Address(pc &- bias)
      return frame
    }
  }

  private func symbols(of image: ImageMap.Image) -> SymbolImage? {
    if let symbols = known[image.index] { return symbols }
    guard let symbols = SymbolImage(image, in: images) else { return nil }
    known[image.index] = symbols
    return symbols
  }
}
