internal import Glibc
internal import HangReport

/// A place in memory that several processes may have mapped, each at an address of its own.
struct SharedPlace: Hashable {
  var device: String
  var inode: UInt64
  var offset: UInt64
  /// Whoever knows its name may map it at any time; what has none is handed on by fork alone, or by
  /// descriptor.
  var isNamed: Bool

  /// Where an address lies; nil in memory that is not shared.
  init?(_ address: UInt64, maps: String) {
    for line in maps.split(separator: "\n") {
      guard let shared = SharedMapping(line), shared.range.contains(address) else { continue }
      device = shared.device
      inode = shared.inode
      offset = shared.offset &+ (address - shared.range.lowerBound)
      isNamed = !shared.path.hasSuffix(" (deleted)") || shared.path.hasPrefix("/SYSV")
      return
    }
    return nil
  }

  /// The processes that have it mapped, or could map it by a descriptor; nil where one that cannot be
  /// looked at might as well.
  func processes(for pid: ProcessID) -> Set<ProcessID>? {
    var hidden = HiddenProcesses()
    var result: Set<ProcessID> = []
    for other in ProcessID.all {
      let proc = ProcReader(other)
      guard let maps = proc.text("maps"), let descriptors = proc.list("fdinfo") else {
        hidden.note(other, proc)
        continue
      }
      let mapsIt = maps.split(separator: "\n").contains { line in
        SharedMapping(line).map { $0.inode == inode && $0.device == device } ?? false
      }
      let opensIt =
        !mapsIt
        && descriptors.contains { name in
          proc.text("fdinfo/" + name)?.split(separator: "\n").contains { $0 == "ino:\t\(inode)" }
            ?? false
        }
      if mapsIt || opensIt { result.insert(other) }
    }
    return hidden.mayShare(with: pid) ? nil : result
  }
}

/// A line of /proc/PID/maps of memory that is shared: `7f00-7f10 rw-s 00000000 00:01 17 /dev/zero`.
private struct SharedMapping {
  var range: Range<UInt64>
  var offset: UInt64
  var device: String
  var inode: UInt64
  var path: Substring

  init?(_ line: Substring) {
    let fields = line.split(separator: " ", maxSplits: 5)
    guard fields.count >= 5, fields[1].hasSuffix("s") else { return nil }
    let ends = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
    guard ends.count == 2, ends[0] < ends[1], let offset = UInt64(fields[2], radix: 16),
      let inode = UInt64(fields[4])
    else { return nil }
    range = ends[0]..<ends[1]
    self.offset = offset
    device = String(fields[3])
    self.inode = inode
    path = fields.count == 6 ? fields[5].drop { $0 == " " } : ""
  }
}
