import HangReport

/// A thread of a report; beside Foundation, `Thread` alone would be ambiguous.
typealias WatchedThread = Thread
