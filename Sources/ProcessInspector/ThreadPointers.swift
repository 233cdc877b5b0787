internal import HangReport

/// The `pthread_t` of each thread of a process, from the C library's own list of them.
///
/// Where the list and its fields lie is what the library publishes for thread debuggers
/// (`_thread_db_…`). The list is read while it may change: a walk that leads astray ends early, and
/// threads are then missing.
struct ThreadPointers {
  private let memory: ProcessMemory
  private let lists: [UInt64]
  private let link: UInt64
  private let tid: UInt64

  /// Of the id inside of a thread's descriptor.
  var tidOffset: UInt64 { tid }

  /// Nil where the process has no such C library.
  init?(images: ImageMap, memory: ProcessMemory) {
    self.memory = memory
    let used = "_thread_db_rtld_global__dl_stack_used"
    let user = "_thread_db_rtld_global__dl_stack_user"
    let fields = ["_thread_db_pthread_list", "_thread_db_pthread_tid", used, user]
    guard let libc = Self.image(["libc.so.6", "libc-2."], images),
      let loader = Self.image(["ld-linux-x86-64.so.2", "ld-2."], images),
      let libcBias = images.loadBias(of: libc), let loaderBias = images.loadBias(of: loader),
      let found = ImageSymbols(Set(fields), in: libc, of: images)?.symbols,
      let global = ImageSymbols(["_rtld_global"], in: loader, of: images)?
        .symbols["_rtld_global"]
    else { return nil }
    // Each is {bits, how many, offset}.
    func offset(_ name: String) -> UInt64? {
      guard let symbol = found[name],
        let field = RemoteBytes(memory, symbol.value &+ libcBias, 12), field.word32(8) < 1 << 16
      else { return nil }
      return UInt64(field.word32(8))
    }
    guard let link = offset(fields[0]), let tid = offset(fields[1]), let usedAt = offset(used),
      let userAt = offset(user)
    else { return nil }
    self.link = link
    self.tid = tid
    lists = [userAt, usedAt].map { global.value &+ loaderBias &+ $0 }
  }

  private static func image(_ names: [String], _ images: ImageMap) -> ImageMap.Image? {
    images.loaded.first { image in
      let base = image.path.split(separator: "/").last ?? ""
      return names.contains { base.hasPrefix($0) }
    }
  }

  /// Of every thread, by the id that the process itself knows it by.
  func all() -> [KernelThreadID: UInt64] {
    var result: [KernelThreadID: UInt64] = [:]
    for list in lists {
      guard var node = memory.word(list) else { continue }
      var steps = 0
      while node != list, steps < 1 << 16 {
        steps += 1
        let pthread = node &- link
        // One read for the link and the id, which lie side by side.
        let low = min(link, tid)
        let size = Int(max(link, tid) - low) + 16
        guard let fields = RemoteBytes(memory, pthread &+ low, size),
          memory.word(pthread &+ 16) == pthread
        else { break }
        let id = Int32(truncatingIfNeeded: fields.word32(Int(tid - low)))
        if id > 0 { result[KernelThreadID(id)] = pthread }
        node = fields.word(Int(link - low))
      }
    }
    return result
  }
}
