internal import Glibc

/// The binaries of a process by address: where each lies, and the file that it came from.
///
/// Files are opened when an address in them is first asked for. One thread at a time may use a map
/// and what was made from it; there is no lock inside, since a watched program calls this while it
/// hangs.
public final class ImageMap {
  /// One binary in memory.
  public struct Image {
    /// As the kernel names it in the process's own view; "[vdso]" for the kernel's.
    public let path: String
    /// The first address and the one past the last, holes between segments included.
    public let start: UInt64, end: UInt64
    let index: Int
    let mappings: [Mapping]
  }

  /// All mappings in ascending order, the anonymous ones included.
  public let mappings: [Mapping]
  /// What could not be read, one sentence each.
  public private(set) var notes: [String] = []

  let images: [Image]
  let root: String
  let memory: (any MemoryReader)?
  private let pid: Int32?
  /// The image of each mapping, -1 for those of none.
  private let imageOfMapping: [Int]
  private var opened: [Opened?]

  struct Opened {
    var file: ImageFile?
    var headers: ProgramHeaders?
    var bias: UInt64?
  }

  /// Makes a map of what /proc/PID/maps or a core file's notes tell.
  ///
  /// `root` comes before each path ("/proc/PID/root" for a process in another mount namespace).
  /// With `memory`, a file is trusted only if its headers equal those in memory; without, if its
  /// inode does. A file that was replaced is looked for in /proc/PID/map_files, where `pid` tells
  /// which.
  public init(
    _ mappings: [Mapping], root: String = "", pid: Int32? = nil,
    memory: (any MemoryReader)? = nil
  ) {
    let sorted = mappings.filter { $0.start < $0.end }.sorted { $0.start < $1.start }
    self.mappings = sorted
    self.root = root
    self.memory = memory
    self.pid = pid ?? Self.pid(ofRoot: root)
    var groups: [[Int]] = []
    var imageOfMapping = [Int](repeating: -1, count: sorted.count)
    var seen: [Mapping] = []
    for (position, mapping) in sorted.enumerated() where Self.isImage(mapping) {
      // The same file mapped again from its beginning is another image, unless this is the data
      // segment of a small binary, whose page also begins at offset 0.
      let isAdjacent = seen.last?.end == mapping.start
      let startsAnew =
        mapping.offset == 0 && !mapping.isWritable && !isAdjacent
        && seen.contains { $0.isExecutable }
      if seen.last?.path == mapping.path, seen.last?.inode == mapping.inode, !startsAnew {
        groups[groups.count - 1].append(position)
      } else {
        groups.append([position])
        seen = []
      }
      seen.append(mapping)
      imageOfMapping[position] = groups.count - 1
    }
    self.imageOfMapping = imageOfMapping
    images = groups.enumerated().map { index, group in
      let members = group.map { sorted[$0] }
      return Image(
        path: members[0].path, start: members[0].start, end: members[members.count - 1].end,
        index: index, mappings: members)
    }
    opened = Array(repeating: nil, count: images.count)
  }

  /// The binary whose mapping holds an address; bss and heap belong to none.
  public func image(at address: UInt64) -> Image? {
    guard let position = position(of: address), imageOfMapping[position] >= 0 else { return nil }
    return images[imageOfMapping[position]]
  }

  /// What is added to the addresses in the image's file, where its headers could be read.
  public func loadBias(of image: Image) -> UInt64? { open(image).bias }

  /// The mapping that holds an address.
  public func mapping(at address: UInt64) -> Mapping? { position(of: address).map { mappings[$0] } }

  private func position(of address: UInt64) -> Int? {
    var low = 0
    var high = mappings.count
    while low < high {
      let middle = (low + high) / 2
      if mappings[middle].start <= address { low = middle + 1 } else { high = middle }
    }
    guard low > 0, address < mappings[low - 1].end else { return nil }
    return low - 1
  }

  private static func isImage(_ mapping: Mapping) -> Bool {
    mapping.path.hasPrefix("/") || mapping.path == "[vdso]"
  }

  private static func pid(ofRoot root: String) -> Int32? {
    let parts = root.split(separator: "/")
    guard parts.count == 3, parts[0] == "proc", parts[2] == "root" else { return nil }
    return Int32(parts[1])
  }
}

extension ImageMap {
  /// The file of an image and its headers, from the file or else from memory.
  func open(_ image: Image) -> Opened {
    if let known = opened[image.index] { return known }
    var result = Opened()
    let first = image.mappings[0]
    // With no mapping of the file's beginning there are no headers to compare with.
    let inMemory = first.offset == 0 ? headersInMemory(at: first.start) : nil
    if image.path != "[vdso]" {
      let found = file(of: image, like: inMemory)
      result.file = found?.file
      result.headers = found?.headers
    }
    result.headers = result.headers ?? inMemory
    result.bias = result.headers.flatMap {
      $0.loadBias(mappedAt: first.start, offset: first.offset)
    }
    opened[image.index] = result
    return result
  }

  private func file(
    of image: Image, like inMemory: ProgramHeaders?
  ) -> (file: ImageFile, headers: ProgramHeaders)? {
    let first = image.mappings[0]
    var candidates = [root + image.path]
    if let pid {
      let range = String(first.start, radix: 16) + "-" + String(first.end, radix: 16)
      candidates.append("/proc/\(pid)/map_files/\(range)")
    }
    var wasReplaced = false
    for path in candidates {
      guard let file = ImageFile(path: path), let headers = ProgramHeaders(read: file.read) else {
        continue
      }
      let isTheOne =
        inMemory.map { $0.bytes == headers.bytes && sameNotes(headers, file, image) }
        ?? (first.inode == 0 || first.inode == file.inode)
      if isTheOne { return (file, headers) }
      wasReplaced = true
    }
    // Devices and data files are mapped too: only what can hold code is worth a word.
    if image.mappings.contains(where: { $0.isExecutable }) {
      notes.append(
        "\(image.path): "
          + (wasReplaced ? "replaced on disk since it was loaded" : "cannot be read"))
    }
    return nil
  }

  /// Compares the notes, which hold the build id.
  private func sameNotes(
    _ headers: ProgramHeaders, _ file: ImageFile, _ image: Image
  ) -> Bool {
    let first = image.mappings[0]
    for note in headers.notes where note.fileSize <= 4096 {
      let end = note.offset &+ note.fileSize
      guard note.offset < end, end <= first.end - first.start else { continue }
      let count = Int(note.fileSize)
      let loaded = bytesInMemory(at: first.start &+ note.offset, count)
      if loaded.count == count, loaded != file.read(note.offset, count) { return false }
    }
    return true
  }

  /// The whole vdso, which is in memory alone; empty without `memory`.
  func bytesOfKernelImage(_ image: Image) -> [UInt8] {
    bytesInMemory(at: image.start, Int(min(image.end - image.start, 1 << 16)))
  }

  private func headersInMemory(at start: UInt64) -> ProgramHeaders? {
    memory == nil ? nil : ProgramHeaders { bytesInMemory(at: start &+ $0, $1) }
  }

  private func bytesInMemory(at address: UInt64, _ count: Int) -> [UInt8] {
    guard let memory else { return [] }
    // The reader fills a prefix and returns its length, clamped in case it lies.
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      filled = min(count, max(0, memory.read(address, into: UnsafeMutableRawBufferPointer(buffer))))
    }
  }
}
