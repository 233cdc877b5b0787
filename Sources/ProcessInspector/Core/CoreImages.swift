internal import Glibc
internal import HangReport

/// The files that were mapped in a process that left a core: where they are now, and whether they are
/// the same.
///
/// A core leaves out what can be read from these: code, above all. A file is believed where its
/// headers and its build id are those in the core; where the core has none, by its name, and that is
/// said.
struct CoreImages: Sendable {
  /// In ascending order; none overlaps another one. The path is where the file is now.
  let all: [CoreNotes.File]
  /// Of the program; nil where the core does not tell.
  let executable: String?
  let limits: [String]
  /// By path: what may be read.
  private let opened: [String: OpenedFile]
  private let codeOf: [String: [Range<UInt64>]]

  private final class OpenedFile: Sendable {
    let descriptor: OwnedDescriptor
    let size: UInt64
    init?(_ path: String) {
      var status = stat()
      // Opening takes no memory; a file that is not there is no error here.
      guard let descriptor = try? OwnedDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK),
        fstat(descriptor.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG
      else { return nil }
      self.descriptor = descriptor
      size = UInt64(max(0, status.st_size))
    }
    var bytes: CoreBytes { CoreBytes(descriptor: descriptor.rawValue, size: size) }
  }

  private static let mostImages = 1024

  init(
    _ notes: CoreNotes, _ memory: CoreMemory, core: String, executable given: String?
  ) throws(InputError) {
    let program = Self.program(notes)
    var limits: [String] = []
    let operand = try given.map { path throws(InputError) in try Self.checked(path) }
    // Where else a library may be that was brought along with the core.
    let folders = [operand, Self.absolute(core)].compactMap { $0.map(Self.folder) }
    var starts: [String: UInt64] = [:]
    for file in notes.files where starts[file.path] == nil && file.offset == 0 {
      starts[file.path] = file.range.lowerBound
    }
    var places: [String: String] = [:]
    var codeOf: [String: [Range<UInt64>]] = [:]
    var opened: [String: OpenedFile] = [:]
    var verdicts: [(path: String, place: Place, id: String?)] = []
    for path in Self.binaries(notes, memory) {
      let inCore = starts[path].flatMap { start in
        ImageIdentity { memory.bytes(start &+ $0, $1) }
      }
      var candidates = [path] + folders.map { $0 + "/" + Self.base(path) }
      if path == program, let operand { candidates = [operand] }
      let verdict = Self.place(candidates, like: inCore)
      verdicts.append((path, verdict, inCore?.buildID))
      switch verdict {
      case .same(let place), .unknown(let place):
        places[path] = place
        opened[place] = OpenedFile(place)
        codeOf[place] = ImageIdentity(path: place)?.code
      case .differs, .missing: break
      }
    }
    limits += Self.sentences(verdicts, program: program)
    if operand != nil, program == nil {
      limits.append(
        "which of its files is the program: the core does not tell, and what was given is not used")
    }
    self.limits = limits
    self.opened = opened
    self.codeOf = codeOf
    executable = program.map { places[$0] ?? $0 } ?? nil
    var end: UInt64 = 0
    var all: [CoreNotes.File] = []
    for file in notes.files.sorted(by: { $0.range.lowerBound < $1.range.lowerBound })
    where file.range.lowerBound >= end {
      var file = file
      file.path = places[file.path] ?? file.path
      end = file.range.upperBound
      all.append(file)
    }
    self.all = all
  }

  /// The file that is mapped at an address.
  func file(at address: UInt64) -> CoreNotes.File? {
    var low = 0
    var high = all.count
    while low < high {
      let middle = (low + high) / 2
      if all[middle].range.lowerBound <= address { low = middle + 1 } else { high = middle }
    }
    return low > 0 && all[low - 1].range.contains(address) ? all[low - 1] : nil
  }

  func isCode(_ file: CoreNotes.File) -> Bool {
    (codeOf[file.path] ?? []).contains {
      $0.contains(file.offset) || (file.offset..<(file.offset + 4096)).contains($0.lowerBound)
    }
  }

  /// What the file holds that was mapped there; 0 where it may not be read.
  func read(_ address: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard let file = file(at: address), let opened = opened[file.path] else { return 0 }
    let count = Int(min(UInt64(buffer.count), file.range.upperBound - address))
    return opened.bytes.read(
      file.offset &+ (address - file.range.lowerBound),
      into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
  }

  func partOfExecutable(at offset: UInt64, _ count: Int) -> [UInt8]? {
    let bytes = executable.flatMap { opened[$0] }?.bytes.read(offset, count)
    return bytes?.count == count ? bytes : nil
  }

  // MARK: - Where files are

  private enum Place {
    case same(String)
    case unknown(String)
    case differs(String, String?)
    case missing
  }

  private static func place(_ candidates: [String], like inCore: ImageIdentity?) -> Place {
    var other: Place?
    for path in candidates {
      guard path.hasPrefix("/"), let file = ImageIdentity(path: path) else { continue }
      guard let inCore else { return .unknown(path) }
      if file.matches(inCore) { return .same(path) }
      other = other ?? .differs(path, file.buildID)
    }
    return other ?? .missing
  }

  /// The mapped files that hold code, `mostImages` of them at most.
  private static func binaries(_ notes: CoreNotes, _ memory: CoreMemory) -> [String] {
    var found: Set<String> = []
    var looked: Set<String> = []
    for file in notes.files
    where !isSpecial(file.path) && found.count < mostImages && !found.contains(file.path) {
      // A debugger's core has no segments of what it left out.
      let flags = memory.segment(at: file.range.lowerBound)?.flags ?? 0
      if flags & 1 != 0 || base(file.path).contains(".so") {
        found.insert(file.path)
      } else if looked.count < mostImages, looked.insert(file.path).inserted,
        ImageIdentity(path: file.path) != nil
      {
        found.insert(file.path)
      }
    }
    return found.sorted()
  }

  /// What is wrong with files, the program first; one sentence for many that are wrong in one way.
  private static func sentences(
    _ verdicts: [(path: String, place: Place, id: String?)], program: String?
  ) -> [String] {
    var sentences: [String] = []
    func add(_ paths: [String], one: (String) -> String, many: (String) -> String) {
      guard paths.count > 2 else {
        sentences += paths.map(one)
        return
      }
      let names = paths.map(base).prefix(8).joined(separator: ", ")
      sentences.append(many("\(paths.count) files (\(names)\(paths.count > 8 ? ", …" : ""))"))
    }
    var unknown: [String] = []
    var missing: [String] = []
    for (path, place, id) in verdicts.filter({ $0.path == program })
      + verdicts.filter({ $0.path != program })
    {
      switch place {
      case .same: break
      case .unknown(let place): unknown.append(place)
      case .missing where path == program:
        sentences.append(
          "names and lines of \(path): it is not here\(id.map { " (build id \($0))" } ?? ""); give the"
            + " program as the second argument")
      case .missing: missing.append(path)
      case .differs(let place, let other):
        sentences.append(
          "names and lines of \(path): \(place) is another build of it"
            + (id.map { " (build id \(other ?? "unknown"), in the core \($0))" } ?? ""))
      }
    }
    add(
      missing,
      one: { path in
        let id = verdicts.first { $0.path == path }?.id
        return "names and lines of \(path): it is not here\(id.map { " (build id \($0))" } ?? "")"
      },
      many: { "names and lines of \($0), which are not here: put them beside the core" })
    add(
      unknown, one: { "whether \($0) is what was in memory: the core has no headers of it" },
      many: { "whether \($0) are what was in memory: the core has no headers of them" })
    return sentences
  }

  /// The file that the program's headers, or else its first instruction, lie in.
  private static func program(_ notes: CoreNotes) -> String? {
    for key: UInt64 in [3, 9] {
      guard let address = notes.auxiliary[key], address != 0 else { continue }
      if let file = notes.files.first(where: { $0.range.contains(address) }) { return file.path }
    }
    return notes.files.first { !notes.name.isEmpty && base($0.path).hasPrefix(notes.name) }?.path
  }

  /// Not to be opened: devices, and files of other processes.
  private static func isSpecial(_ path: String) -> Bool {
    !path.hasPrefix("/") || ["/dev/", "/proc/", "/sys/"].contains { path.hasPrefix($0) }
  }

  private static func checked(_ path: String) throws(InputError) -> String {
    guard let absolute = absolute(path) else {
      throw InputError(message: "\(path): cannot be read: \(SystemError(errno))")
    }
    guard ImageIdentity(path: absolute) != nil else {
      throw InputError(message: "\(path): it is no program of this kind of machine (64-bit x86-64)")
    }
    return absolute
  }

  private static func absolute(_ path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  private static func folder(_ path: String) -> String {
    path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
  }

  private static func base(_ path: String) -> String {
    path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
  }
}
