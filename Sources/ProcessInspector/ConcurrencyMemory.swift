internal import CHangcheck
internal import HangReport

/// Swift Concurrency of a process, read from its memory without stopping it: tasks and what they
/// wait for, actors, the pool, which thread runs what. Of another process, or of this one.
///
/// The runtime names its structures' version and some addresses for debuggers; offsets are those of
/// that version (Swift 6.3, x86-64). Whatever does not look as expected is nil or left out. A
/// process that runs changes under the reader: believe what two looks agree on.
///
/// Confined to one thread. Making one costs some milliseconds, keeps the symbols that it needs, and
/// is of use until the process runs another program.
final class ConcurrencyMemory {
  let files: ProcessFiles
  let memory: ProcessMemory
  let pages: PagedMemory
  let symbols: ConcurrencySymbols
  /// The function of the agent that stands in front of a job: see `hck_job`.
  var jobEntry: UInt64?
  /// Ranges of code, ascending.
  var code: [Range<UInt64>] = []
  /// Executors by address, whose class never changes.
  var places: [UInt64: ExecutorPlace] = [:]

  /// nil where the process has no Swift Concurrency, or one of another layout, or nothing can be
  /// read.
  init?(files: ProcessFiles, memory: ProcessMemory) {
    let mappings = files.mappings()
    let images = files.images(memory)
    guard let pages = PagedMemory(memory),
      let symbols = ConcurrencySymbols(images, executable: files.executable(), pages)
    else { return nil }
    self.files = files
    self.memory = memory
    self.pages = pages
    self.symbols = symbols
    noteCode(mappings)
  }

  /// Where code can lie, anew: libraries are loaded later, too.
  func noteCode(_ mappings: [Mapping]) {
    code = mappings.filter(\.isExecutable).map { $0.start..<$0.end }
  }

  func isCode(_ address: UInt64) -> Bool { code.holds(address) }

  /// Whom an executor reference names.
  func place(identity: UInt64, implementation: UInt64) -> ExecutorPlace {
    if identity == 0 { return .pool }
    // The low bits say how such references compare; a default actor has no witness table.
    if implementation & ~7 == 0 { return .actor(identity) }
    if let known = places[identity] { return known }
    let type = pages.word(identity)
    var place = ExecutorPlace.other(identity)
    if let type {
      if type == symbols.mainExecutorType {
        place = .main
      } else if symbols.poolExecutorTypes.contains(type) {
        place = .pool
      }
    }
    if places.count < 4096 { places[identity] = place }
    return place
  }
}

extension [Range<UInt64>] {
  /// Whether one of these ranges, which ascend, holds an address.
  func holds(_ address: UInt64) -> Bool {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if self[middle].upperBound <= address { low = middle + 1 } else { high = middle }
    }
    return low < count && self[low].contains(address)
  }
}
