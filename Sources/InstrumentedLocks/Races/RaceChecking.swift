internal import CHangcheck

/// How the values of `RaceChecked` are looked at, in the whole process.
///
/// May be set from any thread at any time; what is under way may still go by what was before.
public enum RaceChecking {
  /// Of so many accesses that are not mere repetitions one is looked at: 1, the first value, for all.
  /// What is left out is not seen, so that races are missed, and none is made up.
  public static var period: Int {
    get { Int(hck_race_period_get()) }
    set { hck_race_period_set(UInt32(clamping: max(1, newValue))) }
  }

  /// Whether a note is made where a thread reads a value under a lock, gives it back, takes it again
  /// and writes the value, while another thread wrote it in between: each access is protected, and
  /// yet a write is lost. Whether the second value came of the first nobody can tell. Off at first.
  public static var notesStaleWrites: Bool {
    get { hck_race_stale_get() != 0 }
    set { hck_race_stale_set(newValue ? 1 : 0) }
  }

  /// From here on the drop-ins keep clocks. What came before is taken as ordered.
  static func begin() { hck_begin_ordering(HCK_ORDER_RACES) }
}
