internal import CHangcheck
internal import Glibc

/// Why stacks cannot be unwound at all.
public struct UnwinderUnavailable: Error, CustomStringConvertible {
  /// What is missing, and the command that mends it.
  public let description: String
}

/// The functions of libunwind-x86_64.so.8, loaded when first asked for and never unloaded.
///
/// Loaded for itself alone: its `_Unwind_*` and `backtrace` must not replace those of a program.
struct LibUnwind {
  let create: hck_unwind_create_fn
  let destroy: hck_unwind_destroy_fn
  let setCaching: hck_unwind_caching_fn
  let start: hck_unwind_init_fn
  let step: hck_unwind_step_fn
  let register: hck_unwind_reg_fn
  let isSignalFrame: hck_unwind_step_fn
  let search: hck_unwind_search_fn
  /// Older versions have one field less in the table's description; a test at loading tells.
  private(set) var hasLoadOffset = true

  // Its own numbers of the registers, of errors and of formats.
  static let registerRBP: Int32 = 6
  static let registerRSP: Int32 = 7
  static let registerRIP: Int32 = 16
  /// Unlike "no info", this error makes the library stop rather than guess by rbp.
  static let stop: Int32 = -5
  static let unsupported: Int32 = -8
  private static let remoteTable: Int32 = 2
  private static let globalCache: Int32 = 1

  static func load() throws(UnwinderUnavailable) -> LibUnwind {
    switch loaded {
    case .success(let library): return library
    case .failure(let error): throw error
    }
  }

  private static let loaded: Result<LibUnwind, UnwinderUnavailable> = {
    guard let handle = dlopen("libunwind-x86_64.so.8", RTLD_NOW | RTLD_LOCAL) else {
      return .failure(
        UnwinderUnavailable(
          description: "libunwind-x86_64.so.8 cannot be loaded: apt-get install libunwind8"))
    }
    guard var library = LibUnwind(handle: handle) else {
      return .failure(
        UnwinderUnavailable(
          description: "libunwind-x86_64.so.8 lacks a function that hangcheck needs"))
    }
    for layout in [true, false] {
      library.hasLoadOffset = layout
      if library.findsTestEntry() { return .success(library) }
    }
    return .failure(
      UnwinderUnavailable(
        description: "libunwind-x86_64.so.8 has a layout that this version does not know"))
  }()

  private init?(handle: UnsafeMutableRawPointer) {
    func function<T>(_ name: String, as type: T.Type) -> T? {
      // The symbol is a C function of the type that the header gives for that name.
      dlsym(handle, "_Ux86_64_" + name).map { unsafeBitCast($0, to: T.self) }
    }
    guard
      let create = function("create_addr_space", as: hck_unwind_create_fn.self),
      let destroy = function("destroy_addr_space", as: hck_unwind_destroy_fn.self),
      let setCaching = function("set_caching_policy", as: hck_unwind_caching_fn.self),
      let start = function("init_remote", as: hck_unwind_init_fn.self),
      let step = function("step", as: hck_unwind_step_fn.self),
      let register = function("get_reg", as: hck_unwind_reg_fn.self),
      let isSignalFrame = function("is_signal_frame", as: hck_unwind_step_fn.self),
      let search = function("dwarf_search_unwind_table", as: hck_unwind_search_fn.self)
    else { return nil }
    self.create = create
    self.destroy = destroy
    self.setCaching = setCaching
    self.start = start
    self.step = step
    self.register = register
    self.isSignalFrame = isSignalFrame
    self.search = search
  }

  /// An address space that keeps what it has parsed.
  func makeSpace(_ accessors: hck_unwind_accessors) -> hck_unwind_space? {
    var accessors = accessors
    guard let space = create(&accessors, 0) else { return nil }
    _ = setCaching(space, Self.globalCache)
    return space
  }

  /// Describes a table in the target's memory for `search`.
  func describe(
    base: UInt64, entries: UInt64, count: Int, textStart: UInt64, textEnd: UInt64
  ) -> hck_unwind_table {
    var table = hck_unwind_table()
    table.start_ip = textStart
    table.end_ip = textEnd
    table.format = Self.remoteTable
    // name, segment base, length in words, address; after the load offset where there is one.
    let length = UInt64(count)
    if hasLoadOffset {
      table.words = (0, 0, base, length, entries, 0, 0, 0)
    } else {
      table.words = (0, base, length, entries, 0, 0, 0, 0)
    }
    return table
  }
}
