#if Detection
  internal import CHangcheck

  extension hck_creation {
    /// Where something was made, for the reader of the memory that this lies in.
    init(_ fileID: StaticString, _ line: UInt) {
      self.init()
      if fileID.hasPointerRepresentation {
        file = fileID.utf8Start
        file_bytes = UInt32(truncatingIfNeeded: fileID.utf8CodeUnitCount)
      }
      self.line = UInt32(truncatingIfNeeded: line)
      mark = HCK_CREATION_MARK
    }
  }
#endif
